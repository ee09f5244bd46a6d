"""Settings of the gateway from the environment, in addition to those of all services."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from services.core.model import Target
from services.gateway.origins import OriginRules
from services.settings import SettingInvalid, load

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\s:/@\[\]]+)(:[0-9]{1,5})?")
"""A host, with its port if only that is meant."""

_ORIGIN = re.compile(rf"https?://{_HOST.pattern}")

_ORG = re.compile(r"([^=,]+)=([^=,/]+)/([^=,/]+)")


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """
    The settings of the gateway.

    Attributes:
        tokens: The file of tokens of clients; None: there is none.
        orgs: Targets to serve, by name of the organization; None: all organizations.
        hosts: Names of the server in addition to those of loopback, in lower case.
        origins: Origins of other sites whose pages may send requests.
        base_path: Prefix of all paths, for a proxy that does not strip it; empty for none.
        body_bytes: Most bytes of a body, as received and as inflated.
        body_seconds: Longest time for a body, beside the time that its size allows (``bodies.BYTES_PER_SECOND``).
        header_seconds: Longest time for the headers of a request.
        requests: Most requests at a time.
        streams: Most streams at a time that watch events; they do not count as requests.
    """

    tokens: Path | None = None
    orgs: Mapping[str, Target] | None = None
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    base_path: str = ""
    body_bytes: int = 0
    body_seconds: float = 60
    header_seconds: float = 10
    requests: int = 100
    streams: int = 100

    def origin_rules(self, is_local: bool) -> OriginRules:
        """
        The origins that requests may come from.

        Args:
            is_local: Whether only this machine reaches the listener. Then the names of the server are checked.
        """
        return OriginRules(self.origins, self.hosts, is_local or bool(self.hosts))


def load_gateway(environ: Mapping[str, str] = os.environ) -> GatewaySettings:
    """
    Read the settings.

    ``PKGER_HTTP_TOKENS`` is a file of tokens.
    ``PKGER_HTTP_ORGS`` lists the organizations (``NAME=PLATFORM/ORG,...``). ``PKGER_HTTP_HOSTS`` and
    ``PKGER_HTTP_ORIGINS`` are lists. ``PKGER_HTTP_BASE_PATH`` is a path. The limit of bodies is 110 % of
    ``PKGER_MAX_BYTES``. ``PKGER_HTTP_MAX_REQUESTS``, ``PKGER_HTTP_MAX_STREAMS``, ``PKGER_HTTP_HEADER_SECONDS`` and
    ``PKGER_HTTP_BODY_SECONDS`` are whole numbers.

    Raises:
        SettingInvalid: A value is invalid.
    """
    tokens = environ.get("PKGER_HTTP_TOKENS")
    return GatewaySettings(
        tokens=Path(tokens) if tokens else None,
        orgs=_orgs(environ.get("PKGER_HTTP_ORGS", "")),
        hosts=_listed(environ, "PKGER_HTTP_HOSTS", _HOST, "write names such as gateway or gateway:8086"),
        origins=_listed(environ, "PKGER_HTTP_ORIGINS", _ORIGIN, "write origins such as https://console.example.com"),
        base_path=_base_path(environ.get("PKGER_HTTP_BASE_PATH", "")),
        body_bytes=load(environ).bounds.bytes * 11 // 10,
        body_seconds=_number(environ, "PKGER_HTTP_BODY_SECONDS", 60),
        header_seconds=_number(environ, "PKGER_HTTP_HEADER_SECONDS", 10),
        requests=_number(environ, "PKGER_HTTP_MAX_REQUESTS", 100),
        streams=_number(environ, "PKGER_HTTP_MAX_STREAMS", 100),
    )


def _listed(environ: Mapping[str, str], variable: str, form: re.Pattern[str], remedy: str) -> tuple[str, ...]:
    """The entries of a list, in lower case and without a slash at their end."""
    entries = [each.strip().lower().removesuffix("/") for each in environ.get(variable, "").split(",") if each.strip()]
    for entry in entries:
        if not form.fullmatch(entry):
            raise SettingInvalid(variable, environ[variable], f"{entry!r} has another form; {remedy}")
    return tuple(entries)


def _orgs(text: str) -> Mapping[str, Target] | None:
    if not text.strip():
        return None
    orgs: dict[str, Target] = {}
    for row in text.split(","):
        match = _ORG.fullmatch(row.strip())
        if match is None:
            raise SettingInvalid("PKGER_HTTP_ORGS", text, "write NAME=PLATFORM/ORG, with commas between several")
        name, platform, org = (each.strip() for each in match.groups())
        if name in orgs:
            raise SettingInvalid("PKGER_HTTP_ORGS", text, f"{name} is listed twice; remove one entry")
        orgs[name] = Target(platform, org)
    return orgs


def _base_path(text: str) -> str:
    path = text.rstrip("/")
    if path and not re.fullmatch(r"(/[\w.~-]+)+", path, re.ASCII):
        raise SettingInvalid("PKGER_HTTP_BASE_PATH", text, "write a path such as /pkger")
    return path


def _number(environ: Mapping[str, str], variable: str, default: int) -> int:
    value = environ.get(variable) or str(default)
    if not re.fullmatch("[1-9][0-9]{0,5}", value):
        raise SettingInvalid(variable, value, "write a whole number from 1 to 999,999")
    return int(value)
