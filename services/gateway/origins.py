"""
Which pages in a browser may send requests: pages of this server, and of the origins that are listed.

A form of any page can post to any server with the rights of its user, so requests of all other pages are refused.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from services.gateway.answers import Code
from services.gateway.errors import Problem


@dataclass(frozen=True, slots=True)
class OriginRules:
    """
    The origins that requests may come from, and the names of this server.

    Attributes:
        origins: Origins of other sites whose pages may send requests, such as ``https://console.example.com``.
        hosts: Names of this server in addition to those of loopback.
        checks_hosts: Whether other names are refused: the owner of a page may point a name at this machine
            (DNS rebinding).
    """

    origins: Collection[str] = ()
    hosts: Collection[str] = ()
    checks_hosts: bool = False

    def problem(self, method: str, headers: Mapping[str, str], origins: Sequence[str] = ()) -> Problem | None:
        """
        The reason to refuse a request, before its body is read; None: it is accepted.

        Args:
            method: Its method.
            headers: Its headers.
            origins: All of its Origin headers; a browser sends one.
        """
        host, origin = headers.get("Host", ""), headers.get("Origin")
        if len(origins) > 1:
            return _cross_site("with several origins")
        if self.checks_hosts and not self._is_known(host):
            message = f"{host[:100]!r} is no name of this server; use localhost, or list the name in PKGER_HTTP_HOSTS"
            return Problem(Code.INVALID, message, status=421)
        if origin in self.origins:
            return None
        if origin is not None and not _is_own(origin, host):
            return _cross_site(f"from {origin[:100]!r}")
        # A link on another site may lead here: to follow it has no effect.
        is_link = method in ("GET", "HEAD") and headers.get("Sec-Fetch-Mode") == "navigate"
        if headers.get("Sec-Fetch-Site", "").lower() in ("cross-site", "same-site") and not is_link:
            return _cross_site("of another site")
        return None

    def headers_for(self, origin: str | None) -> dict[str, str]:
        """Headers that let a page of a listed origin read the answer."""
        if origin is None or origin not in self.origins:
            return {"Vary": "Origin"} if self.origins else {}
        return {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Expose-Headers": "X-Request-Id, X-Platform-Error-Code, X-Pkger-Warnings, Retry-After, ETag",
            "Vary": "Origin",
        }

    def preflight_headers(self, origin: str | None, asked_headers: str) -> dict[str, str] | None:
        """Headers of the answer to a preflight; None: the origin is not listed."""
        if origin is None or origin not in self.origins:
            return None
        return {
            **self.headers_for(origin),
            "Access-Control-Allow-Methods": "GET, HEAD, POST, PATCH, DELETE",
            "Access-Control-Allow-Headers": asked_headers or "Authorization, Content-Type, Idempotency-Key",
            "Access-Control-Max-Age": "600",
        }

    def _is_known(self, host: str) -> bool:
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
        except ValueError:
            return False
        return is_loopback(name) or name in self.hosts or host.lower() in self.hosts


def _is_own(origin: str, host: str) -> bool:
    """
    Whether *origin* is that of a page of this server, which is called *host*. The server has no TLS: a page with TLS
    comes from another one, maybe a proxy, whose origin is listed.
    """
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme.lower() == "http" and parts.netloc.lower() == host.lower().removesuffix(":80")


def is_loopback(name: str) -> bool:
    """Whether a host name or address is a loopback one."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def _cross_site(source: str) -> Problem:
    message = f"a request {source} is refused, to protect users of a browser; list its origin in PKGER_HTTP_ORIGINS"
    return Problem(Code.FORBIDDEN, message)
