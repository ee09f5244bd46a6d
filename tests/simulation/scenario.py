"""What a run consists of: who asks for what, and what goes wrong; as values, and as JSON (docs/simulation.md)."""

import dataclasses
import json
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from applier_svc.failpoints import NAMES as FAILPOINTS
from tests.simulation import faults
from tests.simulation.features import FEATURES

VERSION = 1
"""Of the format of scenario files."""

LARGEST = 1e9
"""What a number of a scenario file may be at most, up or down, but for the seed: dates after that are none."""

MOST = 100
"""Of appliers, and how often one plan is applied."""

_SHOWN = 60
"""Characters of a wrong value that an error repeats."""

SERVERS = ("stack", "platform", "parser", "planner")
"""The nodes that each run has one of."""

OBJECTS: Mapping[str, str] = {
    "red": "Label",
    "blue": "Label",
    "raw": "Bucket",
    "cpu": "Dashboard",
    "region": "Variable",
    "clean": "Task",
    "hook": "NotificationEndpointHTTP",
    "alarm": "NotificationRule",
}
"""The pool that packages are drawn from: kinds by metadata.name."""

OTHER_KINDS: Mapping[str, str] = {"hook": "NotificationEndpointSlack"}
"""The objects of the pool that may also be of another kind of their family."""

LABELS = tuple(name for name, kind in OBJECTS.items() if kind == "Label")

SECRETS = ("one", "two")
"""Keys of secrets."""

EDITS = ("edit", "create", "delete", "attach", "detach", "put_secret", "delete_secret")
"""What a person may do."""


class ScenarioInvalid(Exception):
    """The text is no scenario; the message says where and what is allowed."""


@dataclass(frozen=True, slots=True)
class Item:
    """
    One object of a package.

    Attributes:
        name: Its metadata.name, one of ``OBJECTS``.
        version: Makes its description.
        labels: Names of the labels associated with it.
        explicit: Of a bucket: the immutable ``schemaType`` is ``explicit``.
        renamed: Whether it has another display name.
        turned: Whether it is of the kind of ``OTHER_KINDS``.
    """

    name: str
    version: int = 0
    labels: tuple[str, ...] = ()
    explicit: bool = False
    renamed: bool = False
    turned: bool = False

    @property
    def kind(self) -> str:
        """Its kind."""
        return (OTHER_KINDS if self.turned else OBJECTS)[self.name]


@dataclass(frozen=True, slots=True)
class Action:
    """
    One thing that a client asks for.

    Attributes:
        do: "apply"; "plan": store a plan and apply that; "uninstall"; "delete": uninstall, and the stack goes.
        items: The package.
        pause: Seconds before it.
        skip: Names of objects that are skipped.
        secrets: Keys of secrets that are written.
        cancel_after: Seconds after which it is cancelled; negative: it is not.
        patience: Seconds after which the client leaves, and asks again with the same request id; 0: it does not leave.
        applies: Of a stored plan: how often it is applied.
        lag: Of a stored plan: seconds between plan and apply.
        is_backed_up: Whether the store is backed up right before it is applied, with its plan.
        restored_after: Seconds after its first apply at which the store is restored; negative: it is not.
        cancel_at: The how manieth event starts the time of *cancel_after*.
    """

    do: str
    items: tuple[Item, ...] = ()
    pause: float = 0.0
    skip: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    cancel_after: float = -1.0
    patience: float = 0.0
    applies: int = 1
    lag: float = 0.0
    is_backed_up: bool = False
    restored_after: float = -1.0
    cancel_at: int = 1


@dataclass(frozen=True, slots=True)
class Client:
    """
    Who works on one stack.

    Attributes:
        stack: Name of the stack.
        prefix: Makes the display names of its objects.
        actions: What it asks for, one after another.
        rival: What is added to its name where another client works on the same stack.
    """

    stack: str
    prefix: str
    actions: tuple[Action, ...]
    rival: str = ""


IN_FLIGHT = "in_flight"
"""Where an applier is killed right after it sent a write to the platform, before that arrives."""


@dataclass(frozen=True, slots=True)
class Crash:
    """
    A node is killed, or stands still.

    Attributes:
        node: Which; "applier" and a number, or one of ``SERVERS``.
        at: Before which of its callbacks, over all incarnations; 0: at the failpoint.
        failpoint: At which place of an operation, inside a callback, or ``IN_FLIGHT``; empty: *at* tells.
        nth: At the how manieth arrival there.
        seconds: After how long it starts again, or goes on.
        is_stop: Whether it stands still, and is not killed.
    """

    node: str
    at: int = 0
    failpoint: str = ""
    nth: int = 1
    seconds: float = 1.0
    is_stop: bool = False


@dataclass(frozen=True, slots=True)
class Edit:
    """
    Something that a person does on the platform, without pkger.

    Attributes:
        at: When, in seconds.
        do: One of ``EDITS``.
        name: One of ``OBJECTS``; of an edit of a secret, one of ``SECRETS``.
        prefix: What the display name begins with.
        label: The label that is attached or detached, one of ``LABELS``.
        label_prefix: What the display name of that label begins with; None: the same.
    """

    at: float
    do: str
    name: str
    prefix: str = ""
    label: str = ""
    label_prefix: str | None = None


@dataclass(frozen=True, slots=True)
class Jump:
    """The wall clock of *node* jumps by so many *seconds*, *at* that moment of a run; negative: it is set back."""

    at: float
    node: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Platform:
    """
    What the platform can do.

    Attributes:
        identity: How a creation without an answer is resolved: "NATIVE", "NATURAL_KEY" or "SEARCH".
        fences: Whether it refuses old tokens.
        batch: Most mutations in a batch.
        concurrency: Most batches at a time.
        refusals: How many creations and updates it refuses, from 0 to 1, undos among them.
        kept: How many resources it does not delete, from 0 to 1.
        doubts: How many mutations that took effect it does not vouch for, from 0 to 1.
        patience: How often it asks to wait, from 0 to 1.
    """

    identity: str = "NATIVE"
    fences: bool = True
    batch: int = 500
    concurrency: int = 4
    refusals: float = 0.0
    kept: float = 0.0
    doubts: float = 0.0
    patience: float = 0.0


@dataclass(frozen=True, slots=True)
class Scenario:
    """
    One run, but for the draws.

    Attributes:
        seed: Of all draws.
        features: What the seed switched on.
        appliers: How many there are.
        lease: Seconds of a lease.
        platform: What it can do.
        clients: Who works on stacks.
        crashes: Kills and stops.
        edits: What a person does.
        jumps: What happens to clocks.
        faults: Faults by call, such as "Mutate applier0/1"; None: they are drawn.
    """

    seed: int
    features: tuple[str, ...]
    appliers: int = 1
    lease: int = 30
    platform: Platform = Platform()
    clients: tuple[Client, ...] = ()
    crashes: tuple[Crash, ...] = ()
    edits: tuple[Edit, ...] = ()
    jumps: tuple[Jump, ...] = ()
    faults: Mapping[str, str] | None = field(default=None)


def to_json(scenario: Scenario) -> dict[str, Any]:
    """The scenario as a JSON value, without what is as it is by default."""
    return {"version": VERSION, **_plain(scenario)}


def from_json(value: Any) -> Scenario:
    """
    Read a scenario.

    Raises:
        ScenarioInvalid: It is none, or names something that there is not.
    """
    found = value.get("version") if isinstance(value, dict) else value
    if not isinstance(value, dict) or type(found) is not int or found != VERSION:
        raise ScenarioInvalid(f"version: write {VERSION}; {_short(found)} is another format")
    scenario = _read(Scenario, {key: each for key, each in value.items() if key != "version"}, "scenario")
    check(scenario)
    return typing.cast("Scenario", scenario)


def read_file(path: Path) -> Scenario:
    """
    Read a scenario from a JSON file.

    Raises:
        ScenarioInvalid: As ``from_json``.
        ValueError: The file holds no JSON.
        OSError: It cannot be read.
    """
    try:
        value = json.loads(path.read_text("utf-8"))
    except RecursionError:
        raise ScenarioInvalid("the file is nested too deeply") from None
    return from_json(value)


def write_file(path: Path, value: Mapping[str, Any]) -> None:
    """Write a scenario, as ``to_json`` gives it, into a file."""
    path.write_text(json.dumps(value, indent=1) + "\n", "utf-8")


def unwritable(path: str | None) -> str:
    """Why no scenario can be written to *path*, before it has taken minutes to find one; empty: nothing is wrong."""
    if path and Path(path).is_dir():
        return f"Is a directory: {path!r}"
    return f"No such file or directory: {path!r}" if path and not Path(path).parent.is_dir() else ""


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        shown = ((each, getattr(value, each.name)) for each in dataclasses.fields(value))
        return {each.name: _plain(held) for each, held in shown if held != each.default}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value


def _read(wanted: Any, value: Any, path: str) -> Any:
    if dataclasses.is_dataclass(wanted):
        hints = typing.get_type_hints(wanted)
        if not isinstance(value, dict) or (unknown := sorted(value.keys() - hints.keys())):
            problem = f"{unknown[0]!r} is none of its fields" if isinstance(value, dict) else "is no object"
            raise ScenarioInvalid(f"{path}: {problem}; they are {', '.join(hints)}")
        try:
            return wanted(**{key: _read(hints[key], each, f"{path}.{key}") for key, each in value.items()})  # type: ignore[operator]
        except TypeError as error:
            raise ScenarioInvalid(f"{path}: {error}") from None
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if origin is tuple:
        if not isinstance(value, list):
            raise ScenarioInvalid(f"{path}: {_short(value)} is no list")
        return tuple(_read(arguments[0], item, f"{path}[{position}]") for position, item in enumerate(value))
    if origin in (typing.Union, types.UnionType):
        return None if value is None else _read(arguments[0], value, path)
    if origin is not None:
        if not isinstance(value, dict):
            raise ScenarioInvalid(f"{path}: {_short(value)} is no object")
        return {key: _read(arguments[1], item, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, bool) is not (wanted is bool) or not isinstance(
        value, (int, float) if wanted is float else wanted
    ):
        raise ScenarioInvalid(f"{path}: {_short(value)} is no {wanted.__name__}")
    if isinstance(value, str) and not value.isprintable():
        raise ScenarioInvalid(f"{path}: {_short(value)} has characters that cannot be printed")
    # A comparison that NaN fails, too.
    if isinstance(value, int | float) and path != "scenario.seed" and not -LARGEST <= value <= LARGEST:
        raise ScenarioInvalid(f"{path}: {_short(value)} is none of -{LARGEST:.0f} to {LARGEST:.0f}")
    return value


def check(scenario: Scenario) -> None:
    """
    Hold *scenario* to what a run can do.

    Raises:
        ScenarioInvalid: It names something that there is not, a number that makes no sense, or a package that is none.
    """
    _between("appliers", scenario.appliers, 1, MOST)
    _between("lease", scenario.lease, 1)
    nodes = (*SERVERS, *(f"applier{number}" for number in range(scenario.appliers)))
    _among("features", scenario.features, FEATURES)
    _among("platform.identity", [scenario.platform.identity], ("NATIVE", "NATURAL_KEY", "SEARCH"))
    for name in ("batch", "concurrency"):
        _between(f"platform.{name}", getattr(scenario.platform, name), 1)
    for name in ("refusals", "kept", "doubts", "patience"):
        _between(f"platform.{name}", getattr(scenario.platform, name), 0, 1)
    for crash in scenario.crashes:
        _between("crashes.at", crash.at, 0)
        _between("crashes.nth", crash.nth, 1)
        _between("crashes.seconds", crash.seconds, 0)
        _among("crashes.node", [crash.node], nodes)
        if crash.failpoint:
            _among("crashes.failpoint", [crash.failpoint], (*FAILPOINTS, IN_FLIGHT))
        elif not crash.at:
            raise ScenarioInvalid("crashes: neither at nor failpoint says when")
    for jump in scenario.jumps:
        _between("jumps.at", jump.at, 0)
        _among("jumps.node", [jump.node], nodes)
    for edit in scenario.edits:
        _between("edits.at", edit.at, 0)
        _among("edits.do", [edit.do], EDITS)
        _among("edits.name", [edit.name], SECRETS if "secret" in edit.do else OBJECTS)
        _among("edits.label", [edit.label], ("", *LABELS))
    names = [f"{client.stack}{client.rival}" for client in scenario.clients]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ScenarioInvalid(f"clients: two are called {_short(twice[0])}; stack and rival make the name")
    for client in scenario.clients:
        for action in client.actions:
            _between("actions.applies", action.applies, 1, MOST)
            _between("actions.cancel_at", action.cancel_at, 1)
            for name in ("pause", "patience", "lag"):
                _between(f"actions.{name}", getattr(action, name), 0)
            _among("actions.do", [action.do], ("apply", "plan", "uninstall", "delete"))
            _among("actions.items.name", [item.name for item in action.items], OBJECTS)
            _among("actions.items.labels", [label for item in action.items for label in item.labels], LABELS)
            _among("actions.items.turned", [item.name for item in action.items if item.turned], OTHER_KINDS)
            _check_package(action.items)
            _among("actions.skip", action.skip, OBJECTS)
            _among("actions.secrets", action.secrets, SECRETS)
    _among("faults", (scenario.faults or {}).values(), faults.WORDS)
    for call in scenario.faults or {}:
        if not re.fullmatch(r"\w+ .+/[0-9]+", call):
            raise ScenarioInvalid(f"faults: {_short(call)} is no call such as 'Mutate applier0/1'")


def _check_package(items: tuple[Item, ...]) -> None:
    """Hold a package to the rules of packages that its objects can break."""
    names = [item.name for item in items]
    if len(set(names)) < len(names):
        raise ScenarioInvalid("actions.items: an object stands there twice")
    if "alarm" in names and "hook" not in names:
        raise ScenarioInvalid("actions.items: 'alarm' needs 'hook' in the same package")
    for item in items:
        _among(f"actions.items.labels of {item.name}", item.labels, [name for name in LABELS if name in names])
        if len(set(item.labels)) < len(item.labels):
            raise ScenarioInvalid(f"actions.items.labels of {item.name}: a label stands there twice")


def _between(path: str, number: float, least: float, most: float = LARGEST) -> None:
    if not least <= number <= most:
        raise ScenarioInvalid(f"{path}: {number!r} is none of {least} to {most:.0f}")


def _short(value: Any) -> str:
    """*value* for an error of one line."""
    # A file can hold values that are nested too deeply to be shown whole, or numbers with too many digits.
    text = ascii(value) if not isinstance(value, list | dict) else f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _among(path: str, words: typing.Iterable[str], allowed: typing.Iterable[str]) -> None:
    known = list(allowed)
    for word in words:
        if word not in known:
            raise ScenarioInvalid(f"{path}: {word!r} is none of {', '.join(sorted(known))}")
