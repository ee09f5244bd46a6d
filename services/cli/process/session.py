"""Connects to the configured services, or runs services for the time of one command."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import IO

from services.cli.errors import CommandFailed
from services.cli.process.supervisor import Supervisor, one_child
from services.core.model import DEFAULT_PLATFORM
from services.drivers.registry import DRIVERS
from services.platforms import Platform, find_platform, read_platforms
from services.private_files import PathRefused, open_private, private_folder
from services.rpc.client import Peer
from services.settings import PORTS, Settings, address_variable, is_configured, load

PLANNING = ("parser", "planner", "stack", "platform")
"""The services that make plans."""

APPLYING = (*PLANNING, "applier")
"""The services that run them."""

LOG_BYTES = 5 * 1024 * 1024
"""A log of earlier commands that is larger than this is deleted, and a new one started."""

MOST_SOCKET_BYTES = 107
"""Limit of the path of a socket (unix(7)), without the zero at its end."""

LONGEST_SOCKET = "platform-embedded.sock"
"""One of the longest names of sockets."""


@asynccontextmanager
async def session(
    needs: Sequence[str], environ: Mapping[str, str], platform: str | None = None
) -> AsyncIterator["Session"]:
    """
    Connections to services.

    Args:
        needs: Services that the command needs; without a configured server, they run for the time of the block, on the
            databases in ``PKGER_HOME``.
        environ: The environment.
        platform: The platform of the command, whose driver is started if it runs here; empty for the default one.
            None: the command may concern any platform, so all drivers are started.

    Raises:
        CommandFailed: The services cannot be started.
        PlatformUnknown: There is no such platform.
        PlatformsInvalid: The platforms file cannot be used.
    """
    if is_configured(environ):
        async with _open(load(environ)) as opened:
            yield opened
        return
    # Sockets in a folder of this user need no free port, and no other user can connect to them.
    with sockets_folder() as folder:
        local = dict(environ) | {address_variable(name): f"unix:{folder / name}.sock" for name in PORTS}
        local["PKGER_PLATFORM_SOCKETS"] = str(folder)
        settings = load(local)
        served = _platforms(settings, platform) if "platform" in needs else []
        running = one_child(needs, settings, served)
        supervisor = Supervisor([running], local, lambda name: open_log(settings.home, name))
        try:
            await supervisor.start()
            async with _open(settings) as opened:
                yield opened
        finally:
            await supervisor.stop()


@contextmanager
def sockets_folder() -> Iterator[Path]:
    """
    A new folder for sockets, until the block is left.

    Raises:
        CommandFailed: The folder cannot be made, or the paths of sockets in it would be too long.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="pkger-"))
    except OSError as error:
        raise CommandFailed(
            f"cannot make a folder for sockets: {error.strerror or error}; set TMPDIR to another one"
        ) from error
    if len(bytes(folder / LONGEST_SOCKET)) > MOST_SOCKET_BYTES:
        folder.rmdir()
        raise CommandFailed(
            f"the path of the folder {folder.parent} is too long for sockets in it; set TMPDIR to a shorter one"
        )
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _platforms(settings: Settings, platform: str | None) -> list[Platform]:
    """
    The platforms whose drivers a command needs; arguments as for ``session``.

    Raises:
        PlatformUnknown: There is no such platform.
        PlatformsInvalid: The platforms file cannot be used.
    """
    platforms = read_platforms(settings, DRIVERS)
    return list(platforms.values()) if platform is None else [find_platform(platforms, platform or DEFAULT_PLATFORM)]


class Session:
    """Connections to the services."""

    def __init__(self, settings: Settings) -> None:
        self.parser = Peer("parser", settings.addresses["parser"])
        self.planner = Peer("planner", settings.addresses["planner"])
        self.applier = Peer("applier", settings.addresses["applier"])
        self.stack = Peer("stack", settings.addresses["stack"])

    async def close(self) -> None:
        """Close all connections."""
        for peer in (self.parser, self.planner, self.applier, self.stack):
            await peer.close()


@asynccontextmanager
async def _open(settings: Settings) -> AsyncIterator[Session]:
    opened = Session(settings)
    try:
        yield opened
    finally:
        await opened.close()


def open_log(home: Path, name: str) -> IO[bytes]:
    """
    The log of a service that a command runs, opened for appending.

    Raises:
        CommandFailed: It cannot be written.
    """
    path = home / "logs" / f"{name}.log"
    try:
        private_folder(path.parent)
        if path.exists() and path.stat().st_size > LOG_BYTES:
            path.unlink()
        return open(path, "ab", opener=open_private)
    except PathRefused as error:
        raise CommandFailed(str(error)) from error
    except OSError as error:
        raise CommandFailed(
            f"cannot write {path}: {error.strerror}; set PKGER_HOME to a folder that can be written"
        ) from error
