"""Scenarios, the input of a run: actions of clients, crashes, edits and faults; as values and as JSON."""

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
"""Largest absolute value of a number in a scenario file, but for the seed: later times are no valid dates."""

MOST = 100
"""Upper limit of the number of appliers, and of applies of one plan."""

_SHOWN = 60
"""Characters of a wrong value that an error quotes."""

SERVERS = ("stack", "platform", "parser", "planner")
"""The nodes that exist once in each run."""

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
"""The pool of objects from which packages are drawn: kinds by metadata.name."""

OTHER_KINDS: Mapping[str, str] = {"hook": "NotificationEndpointSlack"}
"""The objects of the pool that may have another kind of their family, with that kind."""

LABELS = tuple(name for name, kind in OBJECTS.items() if kind == "Label")

SECRETS = ("one", "two")
"""Keys of secrets."""

PACKAGES: Mapping[str, tuple[str, ...]] = {
    "base": ("1.0.0", "1.1.0", "2.0.0"),
    "data": ("1.0.0", "1.1.0"),
    "view": ("1.0.0", "2.0.0"),
    "alert": ("1.0.0", "1.1.0"),
}
"""The published packages, with their versions (``package_pool.POOL``)."""

PACKAGE_VERBS = ("install", "update", "uninstall", "update_all")
"""The verbs of changes of packages."""

PACKAGE_STACK = "packages"
"""Name of the stack in which packages are installed."""

EDITS = ("edit", "create", "delete", "attach", "detach", "put_secret", "delete_secret")
"""The verbs of edits."""


class ScenarioInvalid(Exception):
    """The text is no scenario; the message names the place and the allowed values."""


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
        brief: Of a bucket: it keeps data for an hour and not for ever, so its update loses data.
    """

    name: str
    version: int = 0
    labels: tuple[str, ...] = ()
    explicit: bool = False
    renamed: bool = False
    turned: bool = False
    brief: bool = False

    @property
    def kind(self) -> str:
        """Its kind."""
        return (OTHER_KINDS if self.turned else OBJECTS)[self.name]


@dataclass(frozen=True, slots=True)
class PackageChange:
    """
    One change of the packages of a stack.

    Attributes:
        do: One of ``PACKAGE_VERBS``.
        name: The package; empty: all.
        version: The version of an install or update; empty: the planner chooses it.
    """

    do: str
    name: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Action:
    """
    One request of a client.

    Attributes:
        do: "apply"; "plan": store a plan and apply it; "change": likewise, of changes of packages; "rollback";
            "uninstall"; "delete": uninstall and delete the stack.
        items: The package.
        pause: Seconds before it.
        skip: Names of objects that are skipped.
        secrets: Keys of secrets that are written.
        cancel_after: Seconds after which it is cancelled; negative: it is not.
        leave_after: Seconds after which the client leaves and retries with the same request id; 0: it does not leave.
        applies: Of a stored plan: how often it is applied.
        lag: Of a stored plan: seconds between plan and apply.
        is_backed_up: Whether the store is backed up right before the apply, when it has the plan.
        restored_after: Seconds after the start of its first apply at which the store is restored; negative: it is not.
        cancel_at: Number of the event from which *cancel_after* counts.
        packages: The changes of packages.
        consents: Whether dependencies may move, versions may be lower, and what needs a removed package goes, too.
        revision: Number of the revision to which the stack is rolled back.
    """

    do: str
    items: tuple[Item, ...] = ()
    pause: float = 0.0
    skip: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    cancel_after: float = -1.0
    leave_after: float = 0.0
    applies: int = 1
    lag: float = 0.0
    is_backed_up: bool = False
    restored_after: float = -1.0
    cancel_at: int = 1
    packages: tuple[PackageChange, ...] = ()
    consents: bool = False
    revision: int = 1


@dataclass(frozen=True, slots=True)
class Client:
    """
    A client of one stack.

    Attributes:
        stack: Name of the stack.
        prefix: Prefix of the display names of its objects.
        actions: Its requests, in order.
        rival: Suffix of its name, where another client works on the same stack.
    """

    stack: str
    prefix: str
    actions: tuple[Action, ...]
    rival: str = ""


IN_FLIGHT = "in_flight"
"""The place between sending a write to the platform and its arrival, at which an applier is killed."""


@dataclass(frozen=True, slots=True)
class Crash:
    """
    A node is killed, or stands still.

    Attributes:
        node: The node: "applier" and a number, or one of ``SERVERS``.
        at: Number of the callback, over all incarnations, before which it happens; 0: it happens at the failpoint.
        failpoint: The failpoint, inside a callback, or ``IN_FLIGHT``; empty: *at* counts.
        nth: Number of the arrival at the failpoint.
        seconds: Seconds after which it starts again, or continues.
        is_stop: Whether it stops for a time instead of being killed.
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
    A change that a person makes on the platform, without pkger.

    Attributes:
        at: Its time, in seconds.
        do: One of ``EDITS``.
        name: One of ``OBJECTS``; of an edit of a secret, one of ``SECRETS``.
        prefix: Prefix of the display name.
        label: The label that is attached or detached, one of ``LABELS``.
        label_prefix: Prefix of the display name of that label; None: the same.
    """

    at: float
    do: str
    name: str
    prefix: str = ""
    label: str = ""
    label_prefix: str | None = None


@dataclass(frozen=True, slots=True)
class Jump:
    """A jump of the wall clock of *node* by *seconds*, *at* that time of the run; negative: it is set back."""

    at: float
    node: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Platform:
    """
    The traits and the failure rates of the platform.

    Attributes:
        identity: How the engine finds what a creation without an answer made: "NATIVE", "NATURAL_KEY" or "SEARCH".
        fences: Whether it refuses old tokens.
        batch: Most mutations in a batch.
        concurrency: Most batches at a time.
        refusals: Share of creations and updates that it refuses, from 0 to 1, in undos, too.
        kept: Share of resources that it refuses to delete, from 0 to 1.
        doubts: Share of mutations whose outcome it reports as ambiguous although they took effect, from 0 to 1.
        throttled: Share of mutations that it throttles, from 0 to 1.
    """

    identity: str = "NATIVE"
    fences: bool = True
    batch: int = 500
    concurrency: int = 4
    refusals: float = 0.0
    kept: float = 0.0
    doubts: float = 0.0
    throttled: float = 0.0


@dataclass(frozen=True, slots=True)
class MutationFault:
    """
    A fault that one mutation of an operation meets on the platform.

    Attributes:
        operation: The number of the operation, counted from 1 in the order in which they first write to the platform.
        nth: The number of the mutation in its operation, counted from 1 over all appliers.
        fault: One of ``faults.OF_MUTATIONS``.
        is_lasting: Whether the same mutation meets the fault at each retry, too.
    """

    operation: int
    nth: int
    fault: str
    is_lasting: bool = False


@dataclass(frozen=True, slots=True)
class Scenario:
    """
    All input of one run but its draws.

    Attributes:
        seed: The seed of all draws.
        features: The features that the seed switched on.
        appliers: Number of appliers.
        lease: Duration of a lease in seconds.
        platform: Its platform.
        clients: The clients of its stacks.
        crashes: Kills and stops.
        edits: Edits of the person.
        jumps: Jumps of wall clocks.
        faults: Faults by call, such as "Mutate applier0/1"; None: they are drawn.
        mutation_faults: Faults of single mutations.
        refused_record: The number of the operation, counted from 1 in the order in which they first end, whose success
            the store refuses to record until all faults stop; 0: none.
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
    mutation_faults: tuple[MutationFault, ...] = ()
    refused_record: int = 0


def to_json(scenario: Scenario) -> dict[str, Any]:
    """The scenario as a JSON value, without fields that have their default."""
    return {"version": VERSION, **_plain(scenario)}


def from_json(value: Any) -> Scenario:
    """
    Read a scenario.

    Raises:
        ScenarioInvalid: It is not a scenario, or names something that does not exist.
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
    """Why no scenario can be written to *path*, checked before the search that takes minutes; empty: it can."""
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
    # NaN fails this comparison, too.
    if isinstance(value, int | float) and path != "scenario.seed" and not -LARGEST <= value <= LARGEST:
        raise ScenarioInvalid(f"{path}: {_short(value)} is none of -{LARGEST:.0f} to {LARGEST:.0f}")
    return value


def check(scenario: Scenario) -> None:
    """
    Check that *scenario* can be run.

    Raises:
        ScenarioInvalid: It has an unknown name, a number out of range, or an invalid package.
    """
    _between("appliers", scenario.appliers, 1, MOST)
    _between("lease", scenario.lease, 1)
    nodes = (*SERVERS, *(f"applier{number}" for number in range(scenario.appliers)))
    _among("features", scenario.features, FEATURES)
    _among("platform.identity", [scenario.platform.identity], ("NATIVE", "NATURAL_KEY", "SEARCH"))
    for name in ("batch", "concurrency"):
        _between(f"platform.{name}", getattr(scenario.platform, name), 1)
    for name in ("refusals", "kept", "doubts", "throttled"):
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
            for name in ("pause", "leave_after", "lag"):
                _between(f"actions.{name}", getattr(action, name), 0)
            _among("actions.do", [action.do], ("apply", "plan", "change", "rollback", "uninstall", "delete"))
            _check_changes(action)
            _among("actions.items.name", [item.name for item in action.items], OBJECTS)
            _among("actions.items.labels", [label for item in action.items for label in item.labels], LABELS)
            _among("actions.items.turned", [item.name for item in action.items if item.turned], OTHER_KINDS)
            _check_package(action.items)
            _among("actions.skip", action.skip, OBJECTS)
            _among("actions.secrets", action.secrets, SECRETS)
    _between("refused_record", scenario.refused_record, 0)
    for fault in scenario.mutation_faults:
        _between("mutation_faults.operation", fault.operation, 1)
        _between("mutation_faults.nth", fault.nth, 1)
        _among("mutation_faults.fault", [fault.fault], faults.OF_MUTATIONS)
    _among("faults", (scenario.faults or {}).values(), faults.WORDS)
    for call in scenario.faults or {}:
        if not re.fullmatch(r"\w+ .+/[0-9]+", call):
            raise ScenarioInvalid(f"faults: {_short(call)} is no call such as 'Mutate applier0/1'")


def _check_changes(action: Action) -> None:
    """Check the changes of packages of an action."""
    _between("actions.revision", action.revision, 1)
    if action.do == "change" and not action.packages:
        raise ScenarioInvalid("actions.packages: there are no changes")
    _among("actions.packages.do", [each.do for each in action.packages], PACKAGE_VERBS)
    for each in action.packages:
        if each.do != "update_all":
            _among("actions.packages.name", [each.name], PACKAGES)
            _among("actions.packages.version", [each.version], ("", *PACKAGES[each.name]))


def _check_package(items: tuple[Item, ...]) -> None:
    """Check the rules of packages that the objects of the pool can break."""
    names = [item.name for item in items]
    if len(set(names)) < len(names):
        raise ScenarioInvalid("actions.items: an object is listed twice")
    if "alarm" in names and "hook" not in names:
        raise ScenarioInvalid("actions.items: 'alarm' needs 'hook' in the same package")
    for item in items:
        _among(f"actions.items.labels of {item.name}", item.labels, [name for name in LABELS if name in names])
        if len(set(item.labels)) < len(item.labels):
            raise ScenarioInvalid(f"actions.items.labels of {item.name}: a label is listed twice")


def _between(path: str, number: float, least: float, most: float = LARGEST) -> None:
    if not least <= number <= most:
        raise ScenarioInvalid(f"{path}: {number!r} is none of {least} to {most:.0f}")


def _short(value: Any) -> str:
    """*value* as text for an error of one line."""
    # A value may be nested too deeply, or have too many digits, to be shown whole.
    text = ascii(value) if not isinstance(value, list | dict) else f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _among(path: str, words: typing.Iterable[str], allowed: typing.Iterable[str]) -> None:
    known = list(allowed)
    for word in words:
        if word not in known:
            raise ScenarioInvalid(f"{path}: {word!r} is none of {', '.join(sorted(known))}")
