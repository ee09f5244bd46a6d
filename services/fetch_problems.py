"""
Why a file cannot be fetched, in sentences that say what to do.

Those of aiohttp and of the system are for programmers. Imported by ``services.fetching`` only when a file is fetched.
"""

import errno
import ssl
from collections.abc import Mapping

import aiohttp

CONNECT_SECONDS = 60
"""
The timeout of a connection (docs/reference/package-format.md, "Sources"); the bound on seconds is mostly shorter.
"""

_LATER = "check the address, or try again later"

_PROBLEMS: tuple[tuple[type[Exception], str], ...] = (
    (aiohttp.ServerTimeoutError, f"there is no connection within {CONNECT_SECONDS} seconds; {_LATER}"),
    (TimeoutError, "there is no full answer within {seconds} seconds; try again later"),
    (aiohttp.ClientConnectorDNSError, "the name {host} is not known; check the address"),
    (aiohttp.ClientConnectorSSLError, "no TLS with {host}:{port}; check whether the address has to begin with http://"),
    (aiohttp.ClientConnectorError, f"no connection to {{host}}:{{port}}; {_LATER}"),
    (aiohttp.ServerDisconnectedError, f"the server ended the connection without an answer; {_LATER}"),
    (aiohttp.ClientPayloadError, "the answer is cut off or broken; try again, or have the server corrected"),
    (aiohttp.ClientResponseError, "the answer is no valid HTTP; check the address, or have the server corrected"),
    (OSError, f"the connection to the server broke; {_LATER}"),
    # The name of a host that cannot be written as one, such as one with an empty part.
    (Exception, "the name of the server is none; check the address"),
)
"""The first row that fits counts."""

_BY_NUMBER = {
    errno.ECONNREFUSED: "nothing listens at {host}:{port}; check the address, or start the server",
    errno.EHOSTUNREACH: "no way leads to {host}:{port}; check the address, or the network of the service",
    errno.ENETUNREACH: "no way leads to {host}:{port}; check the address, or the network of the service",
}
"""Connections that fail, by the number of the system."""

_UNTRUSTED = "the certificate of {host}:{port} is of nobody whom the service trusts; have its machine trust the issuer"

_BY_CERTIFICATE: Mapping[int | None, str] = {
    9: "the certificate of {host}:{port} is not valid yet; check the clocks of both machines",
    10: "the certificate of {host}:{port} has expired; have it renewed",
    18: _UNTRUSTED,
    19: _UNTRUSTED,
    20: _UNTRUSTED,
    21: _UNTRUSTED,
    62: "the certificate of {host}:{port} is for another name; take the address that it is for",
    64: "the certificate of {host}:{port} is for another name; take the address that it is for",
}
"""Refused certificates, by the number of OpenSSL (X509_V_ERR)."""

_CERTIFICATE = "the certificate of {host}:{port} is not valid; have it replaced"


def problem_of(error: Exception, seconds: int) -> str:
    """
    Why a file cannot be fetched, and what to do, without a full stop.

    Args:
        error: What aiohttp raised.
        seconds: The time that the answer had.
    """
    host, port = getattr(error, "host", ""), getattr(error, "port", "")
    return _sentence(error).format(host=host, port=port, seconds=seconds)


def _sentence(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        cause = error.certificate_error
        number = cause.verify_code if isinstance(cause, ssl.SSLCertVerificationError) else None
        return _BY_CERTIFICATE.get(number, _CERTIFICATE)
    is_named = isinstance(error, aiohttp.ClientConnectorDNSError | aiohttp.ClientConnectorSSLError)
    if isinstance(error, aiohttp.ClientConnectorError) and not is_named and error.os_error.errno in _BY_NUMBER:
        return _BY_NUMBER[error.os_error.errno]
    return next(sentence for kind, sentence in _PROBLEMS if isinstance(error, kind))
