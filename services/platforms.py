"""The platforms file: the configured platforms, the addresses of their drivers, and the drivers that run here."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from services.core.addresses import address_problem
from services.core.errors import PlatformUnknown
from services.core.model import DEFAULT_PLATFORM
from services.private_files import PathRefused, read_shared
from services.settings import MORE_PLATFORMS, Settings, socket_address

FILE = "platforms.yml"
"""Name of the file in ``PKGER_HOME``."""

EMBEDDED = "embedded"
"""The driver of the only platform if there is no platforms file."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
"""The name is part of file names, also on case-insensitive systems, and of paths of sockets, which have a limit."""

NAME_RULE = "write up to 40 lower-case letters, digits, - and _, the first a letter or digit"
"""The remedy for an invalid name; part of messages."""

_KEYS = ("driver", "address", "options")

_NAMES_VARIABLE = "_variable"
"""The ending of the name of an option that names an environment variable with a credential."""

_NO_FILE = (FileNotFoundError, NotADirectoryError)


@dataclass(frozen=True, slots=True)
class Platform:
    """
    One row of the file.

    Attributes:
        name: Name of the platform in targets.
        driver: Its driver in this program; empty for a driver that is not run here.
        address: The address of the driver: ``host:port`` or ``unix:/path``.
        options: Options of the driver. They name files and variables, and never hold credentials.
        source: File and line of the row, for errors; empty without a file.
    """

    name: str
    driver: str
    address: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    source: str = ""

    @property
    def service(self) -> str:
        """Name of its process, log, socket and database; ``platform`` for the embedded platform, for compatibility."""
        return "platform" if self.name == DEFAULT_PLATFORM else f"platform-{self.name}"

    @property
    def variables(self) -> frozenset[str]:
        """The environment variables with credentials that its options name: only its driver needs them."""
        named = [value for option, value in self.options.items() if option.endswith(_NAMES_VARIABLE)]
        return frozenset(value for value in named if isinstance(value, str))

    @property
    def row(self) -> str:
        """The prefix of errors about the row: its file and line, if there is a file, and the name of the platform."""
        return f"{self.source}: platform {self.name}" if self.source else f"platform {self.name}"


class PlatformsInvalid(SystemExit):
    """The file is invalid. Every process that reads it ends with one line for each problem."""

    def __init__(self, problems: Collection[str]) -> None:
        super().__init__("\n".join(f"Error: {problem}" for problem in problems))


def read_platforms(settings: Settings, drivers: Collection[str] | None = None) -> dict[str, Platform]:
    """
    Read the platforms by name, in the order of the file, followed by those of ``PKGER_MORE_PLATFORMS``.

    Args:
        settings: The location of the file. Without a file, the only platform is ``embedded``, at
            ``PKGER_PLATFORM_ADDRESS`` or at its socket.
        drivers: The drivers that a row may name; None: any, for processes that only connect to drivers.

    Raises:
        PlatformsInvalid: The file cannot be read, is configured but missing, or has problems: all are reported.
    """
    path = settings.platforms or settings.home / FILE
    try:
        text = read_shared(path)
    except _NO_FILE:
        if settings.platforms:
            raise PlatformsInvalid([f"PKGER_PLATFORMS={path}: there is no such file"]) from None
        platforms = [Platform(DEFAULT_PLATFORM, EMBEDDED, settings.addresses["platform"])]
    except PathRefused as error:
        raise PlatformsInvalid([f"the platforms file cannot be used: {error}"]) from None
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


def _more_platforms(
    settings: Settings, platforms: Collection[Platform], drivers: Collection[str] | None
) -> list[Platform]:
    """
    The rows in the environment variable.

    Raises:
        PlatformsInvalid: They have problems, or the name or the address of one of *platforms*.
    """
    if not settings.more_platforms:
        return []
    reading = _Reading(Path(MORE_PLATFORMS), settings.addresses["platform"], drivers)
    more = list(reading.platforms(settings.more_platforms))
    problems = [problem for _, problem in sorted(reading.problems)]
    for platform, other in product(more, platforms):
        if platform.name == other.name:
            problems.append(f"{platform.row}: {other.source or 'the default'} already has a platform with this name")
        elif platform.address == other.address:
            problems.append(f"{platform.row}: {platform.address} is already the address of platform {other.name}")
    if problems:
        raise PlatformsInvalid(problems)
    return more


def is_platform_name(name: str) -> bool:
    """Whether *name* is a valid name of a platform."""
    return bool(_NAME.fullmatch(name))


def find_platform(platforms: Mapping[str, Platform], name: str) -> Platform:
    """
    The platform with this name.

    Raises:
        PlatformUnknown: There is none.
    """
    if name not in platforms:
        raise PlatformUnknown(name, list(platforms))
    return platforms[name]


def _at_socket(platform: Platform, folder: Path | None) -> Platform:
    """The platform with the address of its driver in the folder of sockets, if there is one and it runs here."""
    if folder and platform.driver:
        return replace(platform, address=socket_address(folder, platform.service))
    return platform


class _Reading:
    """
    Reads one file completely, and collects its problems.

    Attributes:
        problems: Each problem as its line and a sentence.
    """

    def __init__(self, path: Path, default_address: str, drivers: Collection[str] | None) -> None:
        self.problems: list[tuple[int, str]] = []
        self._path = path
        self._default_address = default_address
        self._drivers = drivers
        self._name = ""

    def platforms(self, text: str) -> Iterator[Platform]:
        """The platforms of *text* without its invalid rows."""
        names: dict[str, yaml.Node] = {}
        taken: dict[str, str] = {}
        for key, value in self._rows(text):
            self._name = _text(key)
            if not _NAME.fullmatch(self._name):
                self._report(key, f"the name cannot be used; {NAME_RULE}")
            elif self._name in names:
                self._report(key, f"the name is already in line {_line(names[self._name])}; a platform has one row")
            names.setdefault(self._name, key)
            if not isinstance(value, yaml.MappingNode):
                self._report(key, "the row is no mapping; write driver, address and options below the name")
                continue
            fields = self._fields(value)
            address, place = self._address(key, fields)
            if address in taken:
                self._report(
                    place, f"{address} is already the address of platform {taken[address]}; choose another one"
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
            form = "NAME: {driver: DRIVER, address: ADDRESS}"
            self.problems.append((1, f"{self._path}: the file names no platform; write a row for each, {form}"))
            return []
        rows: list[tuple[yaml.Node, yaml.Node]] = root.value
        return rows

    def _fields(self, row: yaml.MappingNode) -> dict[str, yaml.Node]:
        """The values of a row by key; for a repeated key, the first."""
        fields: dict[str, yaml.Node] = {}
        for key, value in row.value:
            if _text(key) not in _KEYS:
                self._report(key, f"unknown key {_text(key)!r}; write {', '.join(_KEYS)}")
            elif _text(key) in fields:
                self._report(key, f"{_text(key)} is given twice; write it once")
            fields.setdefault(_text(key), value)
        return fields

    def _address(self, row: yaml.Node, fields: Mapping[str, yaml.Node]) -> tuple[str, yaml.Node]:
        """The address, empty if it is invalid, and its node in the file."""
        if "address" not in fields:
            if self._name == DEFAULT_PLATFORM:
                return self._default_address, row
            self._report(row, "address is missing; write host:port or unix:/path of its driver")
            return "", row
        place = fields["address"]
        address = _text(place)
        if problem := address_problem(address, is_remote=True):
            self._report(place, f"the address {address!r} cannot be used; {problem}")
            return "", place
        return address, place

    def _driver(self, fields: Mapping[str, yaml.Node]) -> str:
        if "driver" not in fields:
            return ""
        driver = _text(fields["driver"])
        if not driver:
            self._report(fields["driver"], "driver is not a name; leave it out for a driver that is not run here")
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
                self._report(key, f"option {name!r} is given twice; write it once")
            else:
                options[name] = self._value(name, value)
        return options

    def _value(self, name: str, node: yaml.Node) -> Any:
        """The value of an option, as data. No error shows it, as it may be a credential against the rules."""
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
    """The text of a scalar key or value; empty for a list, a mapping and null."""
    if not isinstance(node, yaml.ScalarNode) or node.tag == "tag:yaml.org,2002:null":
        return ""
    text: str = node.value
    return text
