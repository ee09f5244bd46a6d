"""The options of a row of the platforms file for an InfluxDB server, and the token that they name."""

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from services.drivers.options import OptionsInvalid, read_options
from services.platforms import Platform

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class InfluxdbOptions:
    """
    The options of a row.

    Attributes:
        url: The server, such as ``https://influx.example.com:8086``.
        token_file: A file that has only the token; relative to the folder of the databases.
        token_variable: An environment variable that has the token; exactly one of the two options is given.
        ca_file: A file with certificates of authorities to trust in addition to the authorities of the machine;
            relative to the same folder.
        verify: Whether the certificate of the server is verified.
    """

    url: str
    token_file: str = ""
    token_variable: str = ""
    ca_file: str = ""
    verify: bool = True


def options_of(platform: Platform) -> InfluxdbOptions:
    """
    The options of *platform*.

    Raises:
        OptionsInvalid: They are invalid.
    """
    options = read_options(InfluxdbOptions, platform)
    problems = _url_problems(options.url)
    if bool(options.token_file) == bool(options.token_variable):
        problems.append("name the token by one of the options 'token_file' and 'token_variable'")
    if options.ca_file and not options.verify:
        problems.append("option 'ca_file' has no effect beside verify: false; remove one of them")
    if problems:
        raise OptionsInvalid(platform, problems)
    return options


def place(url: str) -> str:
    """The address of the server in *url*: equal text for the same server."""
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}:{parts.port or _PORTS[parts.scheme]}{parts.path.rstrip('/')}"


def token_of(platform: Platform, options: InfluxdbOptions, data: Path, environ: Mapping[str, str] = os.environ) -> str:
    """
    The token that *options* name.

    Raises:
        OptionsInvalid: The token is missing, or has characters that no token has.
        OSError: The file cannot be opened.
    """
    where = f"the variable {options.token_variable}" if options.token_variable else f"the file {options.token_file}"
    if options.token_variable:
        token = environ.get(options.token_variable, "").strip()
    else:
        token = (data / options.token_file).read_bytes().decode(errors="replace").strip()
    if not token:
        raise OptionsInvalid(platform, [f"{where} has no token"])
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise OptionsInvalid(platform, [f"{where} has no valid token: white space inside, or characters beyond ASCII"])
    return token


def tls_of(platform: Platform, options: InfluxdbOptions, data: Path) -> ssl.SSLContext | bool:
    """
    How the certificate of the server is verified.

    Raises:
        OptionsInvalid: The file has no certificates.
        OSError: The file cannot be opened.
    """
    if not options.verify:
        return False
    if not options.ca_file:
        return True
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(data / options.ca_file)
    except ssl.SSLError:
        raise OptionsInvalid(platform, ["option 'ca_file' names a file without certificates in PEM"]) from None
    return context


def _url_problems(url: str) -> list[str]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ["option 'url' is no URL such as https://influx.example.com:8086"]
    if parts.scheme not in _PORTS or not parts.hostname or port == 0:
        return ["option 'url' is no URL such as https://influx.example.com:8086"]
    if parts.username is not None or parts.password is not None:
        return ["option 'url' holds a credential; name the token by 'token_file' or 'token_variable'"]
    if parts.query or parts.fragment:
        return ["option 'url' has a query or fragment; remove ? or # and the text after it"]
    return []
