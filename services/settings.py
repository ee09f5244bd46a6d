"""Addresses and paths from the environment, read once."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from services.core.errors import PlatformUnknown
from services.core.model import DEFAULT_PLATFORM

PORTS = {"parser": 50051, "planner": 50052, "applier": 50053, "stack": 50054, "platform": 50055}
"""The five services and their default ports (design.md 2)."""

GRACE_SECONDS = 30.0
"""How long a stopping server lets calls in flight run on."""


def address_variable(service: str) -> str:
    """The environment variable that tells clients where *service* is."""
    return f"PKGER_{service.upper()}_ADDRESS"


@dataclass(frozen=True, slots=True)
class Settings:
    """
    What the environment says.

    Attributes:
        addresses: Where clients find each service, by its name in ``PORTS``: ``host:port`` or ``unix:/path``.
        listen: Where a server binds; empty means its own address in ``addresses``.
        data: Folder of the two databases.
        home: Folder for what the command line keeps between calls.
    """

    addresses: Mapping[str, str]
    listen: str
    data: Path
    home: Path

    def platform_address(self, platform: str) -> str:
        """
        Where the driver of *platform* is.

        Raises:
            PlatformUnknown: Only the embedded platform is configured in this version.
        """
        if platform != DEFAULT_PLATFORM:
            raise PlatformUnknown(platform)
        return self.addresses["platform"]


def load(environ: Mapping[str, str] = os.environ) -> Settings:
    """
    Read the settings.

    ``PKGER_<SERVICE>_ADDRESS`` is the address of one service; ``PKGER_SERVER`` the host of all whose address is not
    given (default 127.0.0.1, with the default ports); ``PKGER_LISTEN`` where a server binds; ``PKGER_HOME`` the folder
    of the command line (default ``~/.pkger``); ``PKGER_DATA`` the folder of the databases (default ``PKGER_HOME``).
    """
    host = environ.get("PKGER_SERVER") or "127.0.0.1"
    home = Path(environ.get("PKGER_HOME") or Path.home() / ".pkger")
    return Settings(
        addresses={name: environ.get(address_variable(name)) or f"{host}:{port}" for name, port in PORTS.items()},
        listen=environ.get("PKGER_LISTEN", ""),
        data=Path(environ.get("PKGER_DATA") or home),
        home=home,
    )
