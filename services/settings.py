"""Addresses, paths and limits from the environment, read once."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from services.core.addresses import SOCKET_PREFIX, address_problem, is_host
from services.core.limits import MAX_PACKAGE_BYTES
from services.system import process_name
from services.times import Times

PORTS = {"parser": 50051, "planner": 50052, "applier": 50053, "stack": 50054, "platform": 50055}
"""The five services and their default ports (docs/architecture.md); ``platform`` has its port in containers only."""

HTTP = "http"
"""Name of the gateway."""

HTTP_PORT = 8086
"""Default port of the gateway, as the ``influx`` command line connects to this one by default."""

LEASE_SECONDS = 30
LONGEST_LEASE_SECONDS = 600
"""Default and maximum of ``PKGER_LEASE`` (journal.proto)."""

STACK_DATABASE = "stack.db"
"""The database of the stack service, in the folder of the databases; no platform may use it."""

MORE_PLATFORMS = "PKGER_MORE_PLATFORMS"
"""
The environment variable with platforms in addition to the rows of the platforms file; ``pkger up`` sets it for its
services.
"""

MAX_DEPTH = 200
"""Maximum of the limit on depth, slightly below the limit of the JSON library."""


def address_variable(service: str) -> str:
    """The environment variable with the address of *service* for clients."""
    return f"PKGER_{service.upper()}_ADDRESS"


def socket_address(folder: Path, service: str) -> str:
    """The address of the socket of *service* in a folder of sockets."""
    return f"{SOCKET_PREFIX}{folder / service}.sock"


def bound_variable(bound: str) -> str:
    """The environment variable that sets a field of ``Bounds``."""
    return f"PKGER_MAX_{bound.upper()}"


def keep_variable(bound: str) -> str:
    """The environment variable that sets a field of ``Keep``."""
    return f"PKGER_KEEP_{bound.upper()}"


class SettingInvalid(SystemExit):
    """A variable of the environment has an invalid value. Every process that reads it ends with this line."""

    def __init__(self, variable: str, value: str, problem: str) -> None:
        super().__init__(f"Error: {variable}={value}: {problem}")


@dataclass(frozen=True, slots=True)
class Bounds:
    """
    Limits of the parser for one package; an operator can set each.

    Attributes:
        bytes: UTF-8 text of all sources together.
        objects: Objects in all sources together.
        depth: Nested lists and mappings, aliases followed; a dashboard needs about ten.
        nodes: Values in all sources together, aliases followed; 8 MiB of real packages hold some 300,000.
        seconds: Time to fetch and evaluate all sources, and as much again to read them.
        memory: Bytes of memory that the evaluation of one Jsonnet source may use.
    """

    bytes: int = MAX_PACKAGE_BYTES
    objects: int = 50_000
    depth: int = 100
    nodes: int = 1_000_000
    seconds: float = 30
    memory: int = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Keep:
    """
    How many finished operations the store keeps, with their plans and events; the first limit reached applies.

    Attributes:
        operations: Their number, without action sets.
        days: Days since they ended.
        bytes: Size of all of them together.
        action_sets: Number of finished action sets without a snapshot, for which no other limit applies.
    """

    operations: int = 1000
    days: int = 90
    bytes: int = 512 * 1024 * 1024
    action_sets: int = 1000


_MOST_KEPT = {"operations": 10**9, "days": 36_500, "bytes": 10**15, "action_sets": 10**9}
"""Maxima of the fields of ``Keep``."""


MAX_INDEX_BYTES = 8 * 1024 * 1024
"""What ``PKGER_MAX_INDEX_BYTES`` is by default."""

MAX_ACTION_SETS = 64
"""What ``PKGER_MAX_ACTION_SETS`` is by default."""

SECRET_PREFIX = "PKGER_SECRET_"  # noqa: S105
"""Beginning of the names of the environment variables with secrets that phases of action sets may use."""

RESOLUTION_SECONDS = 10
"""What ``PKGER_MAX_RESOLUTION_SECONDS`` is by default."""

DOCUMENT_CACHE_BYTES = 32 * 1024 * 1024
"""What ``PKGER_DOCUMENT_CACHE`` is by default: room for about 25,000 objects of a mixed package."""


@dataclass(frozen=True, slots=True)
class Settings:
    """
    The settings from the environment.

    Attributes:
        addresses: Address of each service for clients, by its name in ``PORTS``: ``host:port`` or ``unix:/path``.
        listen: Where the server of this process listens; empty for its socket in *run* and its address.
        own_addresses: Addresses of services that variables set, by name; ``http`` for the gateway.
        run: Folder of the sockets in which the services of a home meet.
        allow_plaintext: Whether a server may listen where other machines reach it, without TLS.
        operator_token: The file with the token of the operator, for addresses that other machines reach; None: none.
        reflection: Whether servers serve reflection; None: only to this machine.
        data: Folder of the two databases.
        home: Folder for data that the command line keeps between calls.
        bounds: Limits of the parser for one package.
        allow_jsonnet: Whether the parser evaluates Jsonnet that it receives or fetches.
        libraries: Folders in which imports of Jsonnet programs are looked up, the first one first.
        allow_private_addresses: Whether the parser fetches packages from addresses that are not public.
        lease: Seconds after which another applier resumes the operation of an applier that died.
        holder: Name of this applier in leases and operations, for users.
        keep: How many finished operations and action sets the store keeps.
        platforms: The platforms file; None: the one in *home*, if it exists.
        more_platforms: Rows that are added to the rows of the platforms file, as text in the format of that file.
        platform_sockets: Folder with the sockets of the drivers that run here; None: their rows have the addresses, as
            the addresses of services are set.
        document_cache: Bytes of memory for the document cache of the parser; 0: no cache.
        repository_folders: Folders below which the planner reads repositories; None: anywhere.
        max_index_bytes: Greatest size of the index of a repository.
        resolution_seconds: Longest search for versions of packages that go together.
        max_action_sets: Most unfinished action sets of one applier.
        secrets_folder: The folder of files with secrets that phases may use; None: there is none.
        secret_variables: The values of secrets that phases may use, by the name of their variable without its prefix.
        times: How long services wait; no variable sets it.
    """

    addresses: Mapping[str, str]
    data: Path
    home: Path
    run: Path
    listen: tuple[str, ...] = ()
    own_addresses: Mapping[str, str] = field(default_factory=dict)
    allow_plaintext: bool = False
    operator_token: Path | None = None
    reflection: bool | None = None
    bounds: Bounds = Bounds()
    allow_jsonnet: bool = False
    libraries: tuple[Path, ...] = ()
    allow_private_addresses: bool = False
    lease: int = LEASE_SECONDS
    holder: str = field(default_factory=process_name)
    keep: Keep = Keep()
    platforms: Path | None = None
    more_platforms: str = ""
    platform_sockets: Path | None = None
    document_cache: int = DOCUMENT_CACHE_BYTES
    repository_folders: tuple[Path, ...] | None = ()
    max_index_bytes: int = MAX_INDEX_BYTES
    resolution_seconds: int = RESOLUTION_SECONDS
    max_action_sets: int = MAX_ACTION_SETS
    secrets_folder: Path | None = None
    secret_variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    times: Times = Times()

    def listen_addresses(self, service: str) -> tuple[str, ...]:
        """
        Where the server of *service* listens: as ``PKGER_LISTEN`` says, or on its socket, and at its address or port.

        A driver has no port: all writes to a platform go through the applier.
        """
        if self.listen:
            return self.listen
        port = HTTP_PORT if service == HTTP else PORTS.get(service) if service != "platform" else None
        own = self.own_addresses.get(service) or (f"127.0.0.1:{port}" if port else "")
        return tuple(dict.fromkeys(filter(None, (socket_address(self.run, service), own))))


def is_configured(environ: Mapping[str, str]) -> bool:
    """Whether the environment has the address of a server, or of any service."""
    return bool(environ.get("PKGER_SERVER")) or any(environ.get(address_variable(name)) for name in PORTS)


def load(environ: Mapping[str, str] = os.environ) -> Settings:
    """
    Read the settings.

    ``PKGER_<SERVICE>_ADDRESS`` is the address of one service; ``PKGER_SERVER`` the host of all whose address is not
    given, with the default ports; without both, services are at their sockets in ``PKGER_RUN`` (default: ``run`` in
    ``PKGER_HOME``). ``PKGER_LISTEN`` lists where a server listens, separated by commas; ``PKGER_ALLOW_PLAINTEXT``,
    ``PKGER_OPERATOR_TOKEN_FILE`` and ``PKGER_REFLECTION`` are for addresses that others reach. ``PKGER_HOME`` is the
    folder of the command line (default ``~/.pkger``); ``PKGER_DATA`` the folder of the databases (default
    ``PKGER_HOME``);
    ``PKGER_MAX_<BOUND>`` a field of ``Bounds``; ``PKGER_ALLOW_JSONNET`` and ``PKGER_ALLOW_PRIVATE_ADDRESSES`` switches;
    ``PKGER_JPATH`` the folders with libraries of Jsonnet, separated like the folders of ``PATH``; ``PKGER_LEASE`` the
    seconds of a lease; ``PKGER_HOLDER`` the name of an applier in its leases; ``PKGER_KEEP_<BOUND>`` a field of
    ``Keep``; ``PKGER_PLATFORMS`` the platforms file (``services.platforms`` reads it), ``PKGER_MORE_PLATFORMS`` further
    rows for it; ``PKGER_DOCUMENT_CACHE`` the bytes of the parser's cache; ``PKGER_REPOSITORY_FOLDERS`` the folders with
    repositories, separated like the folders of ``PATH``; ``PKGER_MAX_INDEX_BYTES`` the size of an index;
    ``PKGER_MAX_RESOLUTION_SECONDS`` the time of one search for versions that go together; ``PKGER_MAX_ACTION_SETS`` the
    unfinished action sets of an applier, ``PKGER_SECRETS_DIR`` the folder, and ``PKGER_SECRET_<NAME>`` the values, of
    secrets that their phases may use.

    Raises:
        SettingInvalid: A limit is not a whole number in its range, a switch is neither 0 nor 1, or a folder with
            repositories has no absolute path.
    """
    home = Path(environ.get("PKGER_HOME") or Path.home() / ".pkger")
    run = (_path(environ, "PKGER_RUN") or home / "run").absolute()
    own = {name: address for name in (*PORTS, HTTP) if (address := _address(environ, address_variable(name)))}
    host = environ.get("PKGER_SERVER", "")
    if host and not is_host(host):
        raise SettingInvalid("PKGER_SERVER", host, "write a host without a port, an IPv6 address in brackets")
    return Settings(
        addresses={
            name: own.get(name) or (f"{host}:{port}" if host else socket_address(run, name))
            for name, port in PORTS.items()
        },
        data=Path(environ.get("PKGER_DATA") or home),
        home=home,
        run=run,
        listen=tuple(each.strip() for each in environ.get("PKGER_LISTEN", "").split(",") if each.strip()),
        own_addresses=own,
        allow_plaintext=_switch(environ, "PKGER_ALLOW_PLAINTEXT"),
        operator_token=_path(environ, "PKGER_OPERATOR_TOKEN_FILE"),
        reflection=_switch(environ, "PKGER_REFLECTION") if environ.get("PKGER_REFLECTION") else None,
        bounds=_bounds(environ),
        allow_jsonnet=_switch(environ, "PKGER_ALLOW_JSONNET"),
        libraries=tuple(Path(folder) for folder in environ.get("PKGER_JPATH", "").split(os.pathsep) if folder),
        allow_private_addresses=_switch(environ, "PKGER_ALLOW_PRIVATE_ADDRESSES"),
        lease=_whole_number("PKGER_LEASE", environ.get("PKGER_LEASE") or str(LEASE_SECONDS), LONGEST_LEASE_SECONDS),
        holder=environ.get("PKGER_HOLDER") or process_name(),
        keep=_keep(environ),
        platforms=_path(environ, "PKGER_PLATFORMS"),
        more_platforms=environ.get(MORE_PLATFORMS, ""),
        platform_sockets=None if is_configured(environ) else run,
        document_cache=_document_cache(environ),
        repository_folders=_repository_folders(environ),
        max_index_bytes=_whole_number(
            "PKGER_MAX_INDEX_BYTES", environ.get("PKGER_MAX_INDEX_BYTES") or str(MAX_INDEX_BYTES), 10**9
        ),
        resolution_seconds=_whole_number(
            "PKGER_MAX_RESOLUTION_SECONDS",
            environ.get("PKGER_MAX_RESOLUTION_SECONDS") or str(RESOLUTION_SECONDS),
            3600,
        ),
        max_action_sets=_whole_number(
            "PKGER_MAX_ACTION_SETS", environ.get("PKGER_MAX_ACTION_SETS") or str(MAX_ACTION_SETS), 10_000
        ),
        secrets_folder=_path(environ, "PKGER_SECRETS_DIR"),
        secret_variables={
            name.removeprefix(SECRET_PREFIX): value for name, value in environ.items() if name.startswith(SECRET_PREFIX)
        },
    )


def _address(environ: Mapping[str, str], variable: str) -> str:
    """An address; empty if it is not set."""
    address = environ.get(variable, "")
    if address and (problem := address_problem(address)):
        raise SettingInvalid(variable, address, problem)
    return address


def _path(environ: Mapping[str, str], variable: str) -> Path | None:
    value = environ.get(variable)
    return Path(value) if value else None


def _repository_folders(environ: Mapping[str, str]) -> tuple[Path, ...]:
    folders = [each for each in environ.get("PKGER_REPOSITORY_FOLDERS", "").split(os.pathsep) if each]
    for folder in folders:
        if not Path(folder).is_absolute():
            raise SettingInvalid("PKGER_REPOSITORY_FOLDERS", folder, "write absolute paths")
    return tuple(Path(os.path.normpath(folder)) for folder in folders)


def _bounds(environ: Mapping[str, str]) -> Bounds:
    values = {field.name: environ.get(bound_variable(field.name)) for field in fields(Bounds)}
    return Bounds(**{name: _bound(name, value) for name, value in values.items() if value})


def _bound(name: str, value: str) -> int:
    return _whole_number(bound_variable(name), value, MAX_DEPTH if name == "depth" else 10**15)


def _keep(environ: Mapping[str, str]) -> Keep:
    values = {field.name: environ.get(keep_variable(field.name)) for field in fields(Keep)}
    return Keep(
        **{name: _whole_number(keep_variable(name), value, _MOST_KEPT[name]) for name, value in values.items() if value}
    )


def _document_cache(environ: Mapping[str, str]) -> int:
    value = environ.get("PKGER_DOCUMENT_CACHE") or str(DOCUMENT_CACHE_BYTES)
    return _whole_number("PKGER_DOCUMENT_CACHE", value, 10**15, least=0)


def _whole_number(variable: str, value: str, most: int, least: int = 1) -> int:
    if not re.fullmatch("0|[1-9][0-9]{0,15}", value) or not least <= int(value) <= most:
        raise SettingInvalid(variable, value, f"write a whole number from {least} to {most:,}")
    return int(value)


def _switch(environ: Mapping[str, str], variable: str) -> bool:
    value = environ.get(variable) or "0"
    if value not in ("0", "1"):
        raise SettingInvalid(variable, value, "write 1 to allow it, 0 not to")
    return value == "1"
