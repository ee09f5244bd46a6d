"""The definitions as values: Blueprint, ConfigMap and ActionSet. Durations are in milliseconds."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from services.actions.durations import MINUTE, SECOND, Milliseconds

API_VERSION = "pkger/v1"

STACK = "Stack"
"""The kind of an action whose object is a stack, not one of its resources."""

NO_OBJECT = "None"
"""The kind of an action that needs no object."""

DEFAULT_BACKOFF = SECOND
DEFAULT_MAX_BACKOFF = MINUTE
DEFAULT_WAIT = 10 * MINUTE


class DefinitionKind(StrEnum):
    """The kinds of definitions."""

    BLUEPRINT = "Blueprint"
    CONFIG_MAP = "ConfigMap"
    ACTION_SET = "ActionSet"


@dataclass(frozen=True, slots=True)
class Retry:
    """
    How often a phase that fails is tried.

    Attributes:
        attempts: How often in all, 1 to 20.
        backoff: The pause after the first attempt; it doubles with each further one.
        max_backoff: The longest pause.
    """

    attempts: int
    backoff: Milliseconds = DEFAULT_BACKOFF
    max_backoff: Milliseconds = DEFAULT_MAX_BACKOFF


@dataclass(frozen=True, slots=True)
class Phase:
    """
    One call of one function.

    Attributes:
        name: Its name, unique in its action.
        function: The name of the function, or ``SERVER/FUNCTION`` of a function server.
        version: The version of the function; None: the newest.
        arguments: What is passed: JSON values whose texts are templates.
        condition: A template that gives a bool: false skips the phase. Empty: it always runs.
        timeout: How long it may take; None: as long as its function says.
        retry: How often it is tried; None: once.
        idempotent: The author's word that running it twice is as good as once.
    """

    name: str
    function: str
    version: int | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    condition: str = ""
    timeout: Milliseconds | None = None
    retry: Retry | None = None
    idempotent: bool = False


@dataclass(frozen=True, slots=True)
class Option:
    """
    A text that a run may set.

    Attributes:
        description: What it is for.
        default: Its value in a run that does not set it; None: it has none.
        required: Whether each run has to set it.
        choices: The texts that are allowed; empty: any.
    """

    description: str = ""
    default: str | None = None
    required: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Action:
    """
    An ordered list of phases with its inputs and outputs.

    Attributes:
        phases: Its phases, in order; at least one.
        description: What it does.
        kind: What its object is: ``STACK``, a kind of packages, or ``NO_OBJECT``.
        lock: Whether it reserves the stack of its object; None: if one of its functions changes a stack.
        options: The options of a run, by name.
        config_map_names: The config maps that a run has to pass, sorted.
        secret_names: The secrets that a run has to pass, sorted.
        input_artifact_names: The artifacts that a run has to pass, sorted.
        output_artifacts: The templates of the artifacts that a run leaves, by name and key.
        defer_phase: The phase that runs last, whatever happened; None: there is none.
        timeout: How long its phases may take together, without the last one; None: as long as they need.
    """

    phases: tuple[Phase, ...]
    description: str = ""
    kind: str = STACK
    lock: bool | None = None
    options: Mapping[str, Option] = field(default_factory=dict)
    config_map_names: tuple[str, ...] = ()
    secret_names: tuple[str, ...] = ()
    input_artifact_names: tuple[str, ...] = ()
    output_artifacts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    defer_phase: Phase | None = None
    timeout: Milliseconds | None = None


class DeclaredInputs(NamedTuple):
    """
    What an action wants of a run, as far as it could be read: None stands for what could not.

    Attributes:
        kind: What its object is.
        options: Its options by name.
        config_maps: The names of its config maps.
        secrets: The names of its secrets.
        artifacts: The names of its input artifacts.
    """

    kind: str | None
    options: Mapping[str, Option] | None
    config_maps: Collection[str] | None
    secrets: Collection[str] | None
    artifacts: Collection[str] | None


def inputs_of(action: Action) -> DeclaredInputs:
    """What an action wants of a run."""
    return DeclaredInputs(
        action.kind, action.options, action.config_map_names, action.secret_names, action.input_artifact_names
    )


@dataclass(frozen=True, slots=True)
class Blueprint:
    """Named actions, at least one."""

    name: str
    actions: Mapping[str, Action]
    description: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConfigMap:
    """Named texts that runs can use."""

    name: str
    data: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ActionObject:
    """
    The object of an action: a stack, or a resource in it.

    Attributes:
        kind: ``STACK``, or the kind of the resource.
        name: The name of the stack, or the ``metadata.name`` of the resource.
        stack: The stack of a resource; empty for a stack.
        platform: The platform of the stack; empty: the default one.
        org: Its organization; empty: the default one.
    """

    kind: str
    name: str
    stack: str = ""
    platform: str = ""
    org: str = ""


class SecretPlace(StrEnum):
    """Where the value of a secret is."""

    VARIABLE = "env"
    """In an environment variable of the applier; the name has the part after its prefix."""

    FILE = "file"
    """In a file of the applier, below its folder of secrets."""

    REQUEST = "given"
    """In the request."""


@dataclass(frozen=True, slots=True)
class SecretSource:
    """Where one value of a secret is; *name* is the variable or the path, empty for a value of the request."""

    place: SecretPlace
    name: str = ""


@dataclass(frozen=True, slots=True)
class ConfigMapSource:
    """The content of a config map, or the *name* of a stored one, in which case *data* is None."""

    data: Mapping[str, str] | None
    name: str = ""


@dataclass(frozen=True, slots=True)
class ActionRun:
    """
    One action of an action set, with its inputs.

    Attributes:
        name: The action; empty in overrides.
        blueprint: The blueprint that has it; empty in overrides that keep it.
        object: Its object; None: it has none, or the overrides keep it.
        artifacts: The input artifacts, by name and key.
        config_maps: The config maps by name.
        secrets: The places of the secrets, by name and key.
        options: The options that are set, by name.
    """

    name: str = ""
    blueprint: str = ""
    object: ActionObject | None = None
    artifacts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    config_maps: Mapping[str, ConfigMapSource] = field(default_factory=dict)
    secrets: Mapping[str, Mapping[str, SecretSource]] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Predecessor:
    """The action set whose artifacts a new one is made from, and the action that the new one runs."""

    action_set: str
    action: str


@dataclass(frozen=True, slots=True)
class ActionSet:
    """
    A request to run actions.

    Attributes:
        name: Its name; empty: the service makes one.
        actions: The actions, at least one; empty with a predecessor.
        predecessor: What it is made from; None: its actions are listed.
        overrides: What replaces inputs that come from the predecessor; None: nothing.
        sequential: Whether the actions run one after the other, in order.
        timeout: How long the whole run may take; None: as long as its actions need.
        wait: How long it waits for the stacks of its objects.
        ttl: How long after its end it is kept; None: as long as the store keeps any.
        labels: Texts of its author.
    """

    name: str = ""
    actions: tuple[ActionRun, ...] = ()
    predecessor: Predecessor | None = None
    overrides: ActionRun | None = None
    sequential: bool = False
    timeout: Milliseconds | None = None
    wait: Milliseconds = DEFAULT_WAIT
    ttl: Milliseconds | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


Definition = Blueprint | ConfigMap | ActionSet
