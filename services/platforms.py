"""The platforms file: which platforms there are, where their drivers are, and which drivers run here."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from services.core.errors import PlatformUnknown
from services.core.model import DEFAULT_PLATFORM
from services.settings import MORE_PLATFORMS, Settings

FILE = "platforms.yml"
"""Name of the file in ``PKGER_HOME``."""

EMBEDDED = "embedded"
"""The driver of the only platform, where there is no file."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
"""A name is part of names of files, also where case does not count, and of sockets, whose paths have a bound."""

NAME_RULE = "write up to 40 lower-case letters, digits, - and _, the first a letter or digit"
"""What to write instead of a name that cannot be used."""

_HOST_AND_PORT = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):(?P<port>[0-9]{1,5})")

_SOCKET_PATH_BYTES = 107
"""Longest path of a socket: ``sun_path`` has 108 bytes on Linux, the last a NUL (unix(7)); gRPC refuses longer ones."""

_KEYS = ("driver", "address", "options")

_NO_FILE = (FileNotFoundError, NotADirectoryError)


@dataclass(frozen=True, slots=True)
class Platform:
    """
    One row of the file.

    Attributes:
        name: What targets call it.
        driver: Its driver in this program; empty for a driver that somebody else runs.
        address: Where the driver is: ``host:port`` or ``unix:/path``.
        options: What its driver is opened with. They name files and variables, never hold credentials.
        source: File and line of the row, for errors; empty where there is no file.
    """

    name: str
    driver: str
    address: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    source: str = ""

    @property
    def service(self) -> str:
        """What its process, log, socket and database are called: ``platform``, as ever, for the platform embedded."""
        return "platform" if self.name == DEFAULT_PLATFORM else f"platform-{self.name}"

    @property
    def row(self) -> str:
        """How an error about the row begins: its file and line, if there is a file, and the name of the platform."""
        return f"{self.source}: platform {self.name}" if self.source else f"platform {self.name}"


class PlatformsInvalid(SystemExit):
    """The file cannot be used. Whatever process reads it ends with one line for each mistake."""

    def __init__(self, problems: Collection[str]) -> None:
        super().__init__("\n".join(f"Error: {problem}" for problem in problems))


def read_platforms(settings: Settings, drivers: Collection[str] | None = None) -> dict[str, Platform]:
    """
    Read the platforms by name, in the order of the file; behind them, those of ``PKGER_MORE_PLATFORMS``.

    Args:
        settings: Where the file is. Without one, the only platform is ``embedded``, at ``PKGER_PLATFORM_ADDRESS``.
        drivers: The drivers that a row may name; None: any, for who connects to drivers and runs none.

    Raises:
        PlatformsInvalid: The file cannot be read, is named and not there, or has mistakes: all are reported.
    """
    path = settings.platforms or settings.home / FILE
    try:
        text = path.read_text("utf-8")
    except _NO_FILE:
        if settings.platforms:
            raise PlatformsInvalid([f"PKGER_PLATFORMS={path}: there is no such file"]) from None
        platforms = [Platform(DEFAULT_PLATFORM, EMBEDDED, settings.addresses["platform"])]
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise PlatformsInvalid([f"{path}: the platforms file cannot be read: {reason}"]) from None
    else:
        reading = _Reading(path, settings.addresses["platform"], drivers)
        platforms = list(reading.platforms(text))
        if reading.problems:
            raise PlatformsInvalid([problem for _, problem in sorted(reading.problems)])
    platforms += _more_platforms(settings, platforms, drivers)
    return {platform.name: _at_socket(platform, settings.platform_sockets) for platform in platforms}


def _more_platforms(settings: Settings, known: Collection[Platform], drivers: Collection[str] | None) -> list[Platform]:
    """
    The rows that stand in the environment.

    Raises:
        PlatformsInvalid: They have mistakes, or the name or the address of a platform that is *known*.
    """
    if not settings.more_platforms:
        return []
    reading = _Reading(Path(MORE_PLATFORMS), settings.addresses["platform"], drivers)
    more = list(reading.platforms(settings.more_platforms))
    problems = [problem for _, problem in sorted(reading.problems)]
    for platform, other in product(more, known):
        if platform.name == other.name:
            problems.append(f"{platform.row}: {other.source or 'the default'} has a platform of that name already")
        elif platform.address == other.address:
            problems.append(f"{platform.row}: {platform.address} is the address of platform {other.name} already")
    if problems:
        raise PlatformsInvalid(problems)
    return more


def is_platform_name(name: str) -> bool:
    """Whether a platform may have that name."""
    return bool(_NAME.fullmatch(name))


def find_platform(platforms: Mapping[str, Platform], name: str) -> Platform:
    """
    The platform of that name.

    Raises:
        PlatformUnknown: There is none.
    """
    if name not in platforms:
        raise PlatformUnknown(name, list(platforms))
    return platforms[name]


def address_of(platforms: Mapping[str, Platform], name: str) -> str:
    """
    Where the driver of the platform of that name is.

    Raises:
        PlatformUnknown: There is none.
    """
    return find_platform(platforms, name).address


def _at_socket(platform: Platform, folder: Path | None) -> Platform:
    """The platform with its driver in a folder of sockets, if there is one and the driver runs here."""
    if folder and platform.driver:
        return replace(platform, address=f"unix:{folder / platform.service}.sock")
    return platform


class _Reading:
    """
    Reads one file to its end, whatever is wrong in it.

    Attributes:
        problems: Each mistake as a sentence, with its line before it.
    """

    def __init__(self, path: Path, default_address: str, drivers: Collection[str] | None) -> None:
        self.problems: list[tuple[int, str]] = []
        self._path = path
        self._default_address = default_address
        self._drivers = drivers
        self._name = ""

    def platforms(self, text: str) -> Iterator[Platform]:
        """The platforms of *text*; after a mistake, those that are left."""
        names: dict[str, yaml.Node] = {}
        taken: dict[str, str] = {}
        for key, value in self._rows(text):
            self._name = _text(key)
            if not _NAME.fullmatch(self._name):
                self._report(key, f"the name cannot be used; {NAME_RULE}")
            elif self._name in names:
                self._report(key, f"the name stands in line {_line(names[self._name])} already; each has one row")
            names.setdefault(self._name, key)
            if not isinstance(value, yaml.MappingNode):
                self._report(key, "the row is no mapping; write driver, address and options below the name")
                continue
            fields = self._fields(value)
            address, place = self._address(key, fields)
            if address in taken:
                self._report(
                    place, f"{address} is the address of platform {taken[address]} already; choose another one"
                )
            elif address:
                taken[address] = self._name
            driver = self._driver(fields)
            yield Platform(self._name, driver, address, self._options(fields, driver), f"{self._path}:{_line(key)}")

    def _rows(self, text: str) -> list[tuple[yaml.Node, yaml.Node]]:
        try:
            root = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            self.problems.append((line, f"{self._path}:{line}: the file is no YAML: {error.problem}"))
            return []
        except (yaml.YAMLError, RecursionError):
            self.problems.append((1, f"{self._path}: the file is no YAML"))
            return []
        if not isinstance(root, yaml.MappingNode) or not root.value:
            wanted = "NAME: {driver: DRIVER, address: ADDRESS}"
            self.problems.append((1, f"{self._path}: the file names no platform; write a row for each, {wanted}"))
            return []
        rows: list[tuple[yaml.Node, yaml.Node]] = root.value
        return rows

    def _fields(self, row: yaml.MappingNode) -> dict[str, yaml.Node]:
        """The values of a row by their keys; of a key that stands twice, the first."""
        found: dict[str, yaml.Node] = {}
        for key, value in row.value:
            if _text(key) not in _KEYS:
                self._report(key, f"unknown key {_text(key)!r}; write {', '.join(_KEYS)}")
            elif _text(key) in found:
                self._report(key, f"{_text(key)} stands twice; write it once")
            found.setdefault(_text(key), value)
        return found

    def _address(self, row: yaml.Node, fields: Mapping[str, yaml.Node]) -> tuple[str, yaml.Node]:
        """The address, empty when it cannot be used, and where it stands."""
        if "address" not in fields:
            if self._name == DEFAULT_PLATFORM:
                return self._default_address, row
            self._report(row, "address is missing; write host:port or unix:/path, where its driver is")
            return "", row
        place = fields["address"]
        address = _text(place)
        if problem := _address_problem(address):
            self._report(place, f"the address {address!r} cannot be used; {problem}")
            return "", place
        return address, place

    def _driver(self, fields: Mapping[str, yaml.Node]) -> str:
        if "driver" not in fields:
            return ""
        driver = _text(fields["driver"])
        if not driver:
            self._report(fields["driver"], "driver is no name; leave it out for a driver that somebody else runs")
        elif self._drivers is not None and driver not in self._drivers:
            self._report(
                fields["driver"], f"there is no driver {driver!r}; drivers are {', '.join(sorted(self._drivers))}"
            )
        return driver

    def _options(self, fields: Mapping[str, yaml.Node], driver: str) -> dict[str, Any]:
        if "options" not in fields:
            return {}
        node = fields["options"]
        if not isinstance(node, yaml.MappingNode):
            self._report(node, "options is no mapping; write names and values below it")
            return {}
        if not driver:
            self._report(node, "options are for a driver that runs here; name the driver, or leave them out")
        options: dict[str, Any] = {}
        for key, value in node.value:
            name = _text(key)
            if not name:
                self._report(key, "the name of an option is no text")
            elif name in options:
                self._report(key, f"option {name!r} stands twice; write it once")
            else:
                options[name] = self._value(name, value)
        return options

    def _value(self, name: str, node: yaml.Node) -> Any:
        """The value of an option, as data. No error shows it: it may be a credential all the same."""
        loader = yaml.SafeLoader("")
        try:
            return loader.construct_document(node)
        except (yaml.YAMLError, ValueError, RecursionError):
            self._report(node, f"option {name!r} is no text, number, switch, list or mapping")
            return None
        finally:
            loader.dispose()

    def _report(self, node: yaml.Node, problem: str) -> None:
        line = _line(node)
        called = self._name if _NAME.fullmatch(self._name) else repr(self._name)
        self.problems.append((line, f"{self._path}:{line}: platform {called}: {problem}"))


def _line(node: yaml.Node) -> int:
    line: int = node.start_mark.line
    return line + 1


def _text(node: yaml.Node) -> str:
    """What a key or a value is written as; empty for a list, a mapping and null."""
    if not isinstance(node, yaml.ScalarNode) or node.tag == "tag:yaml.org,2002:null":
        return ""
    text: str = node.value
    return text


def _address_problem(address: str) -> str:
    """What to write instead of *address*, and why; empty when it is one."""
    found = _HOST_AND_PORT.fullmatch(address)
    socket = address.removeprefix("unix:") if address.startswith("unix:") else ""
    if len(socket.encode("utf-8", "surrogatepass")) > _SOCKET_PATH_BYTES:
        return f"write a shorter path, as that of a socket has at most {_SOCKET_PATH_BYTES} bytes (sun_path)"
    if socket or (found and 0 < int(found["port"]) < 65536):
        return ""
    return "write host:port or unix:/path"
