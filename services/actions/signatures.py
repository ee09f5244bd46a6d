"""Signatures of functions: what a phase may pass to each, what it gets, and what a repeated call does."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from services.actions.durations import MINUTE, Milliseconds


class ArgumentType(StrEnum):
    """The types of arguments."""

    ANY = "any"
    STRING = "string"
    BOOL = "bool"
    INT = "int"
    DURATION = "duration"
    LIST = "list"
    STRINGS = "list of string"
    INTS = "list of int"
    MAP = "map"
    STRING_MAP = "map of string"


class ArgumentForm(StrEnum):
    """What the values of an argument have to be beyond their type."""

    FREE = "free"
    COMMAND = "command"
    """A list whose first text is the name of a command, not a template and without a path."""

    VARIABLES = "variables"
    """A mapping whose keys are names of environment variables."""

    PATH_KEYS = "path-keys"
    """A mapping whose keys are paths below the folder of the call."""

    PATH_VALUES = "path-values"
    """A mapping whose values are paths below the folder of the call."""

    STORAGE_KEY = "storage-key"
    """A key of a storage location: parts with ``/`` between them, relative."""

    STACK_NAME = "stack-name"
    """The name of a stack; not empty, as an option that nobody set would otherwise be the stack of the object."""

    SNAPSHOT_ID = "snapshot-id"
    """The id of a snapshot; checked when it is rendered."""

    FUNCTION = "function"
    """The name of another function, not a template."""

    CALL_ARGUMENTS = "call-arguments"
    """The arguments of each call of the function that the argument of the form ``FUNCTION`` names."""


class Effect(StrEnum):
    """What a function changes."""

    READ = "read"
    STACK = "stack"
    """A stack, by an operation of its own; needs the reservation of the stack."""

    OUTSIDE = "outside"
    NONE = "none"


class Recovery(StrEnum):
    """What happens to a call that was interrupted."""

    RERUN = "rerun"
    """It runs again."""

    ATTACH = "attach"
    """The operation that it began is found by its name."""

    ONCE = "once"
    """It may have had its effect, so it does not run again."""


@dataclass(frozen=True, slots=True)
class Argument:
    """
    One argument of a function.

    Attributes:
        name: Its name.
        type: The type of its values.
        required: Whether each call has to pass it, and not as null.
        default: The value of an optional argument that is not passed; None: the function decides.
        choices: The values that are allowed; empty: all of the type.
        takes_secrets: Whether its templates may use secrets.
        form: What its values have to be beyond the type.
        minimum: Smallest number, or smallest number of items; None: any.
        maximum: Largest number, or largest number of items; None: any.
    """

    name: str
    type: ArgumentType
    required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()
    takes_secrets: bool = False
    form: ArgumentForm = ArgumentForm.FREE
    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class OneOf:
    """Exactly one of *names* is passed; false is as good as absent. With *condition*, only beside that argument."""

    names: tuple[str, ...]
    condition: str = ""


@dataclass(frozen=True, slots=True)
class Needs:
    """An argument is passed only together with all of *others*."""

    name: str
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Excludes:
    """An argument is passed only without any of *others*."""

    name: str
    others: tuple[str, ...]


Rule = OneOf | Needs | Excludes
"""A rule between the arguments of one call."""


@dataclass(frozen=True, slots=True)
class OnceWith:
    """The values of an argument with which a call runs at most once, whatever the recovery of its function."""

    argument: str
    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class Signature:
    """
    One version of one function.

    Attributes:
        name: The name of the function, which phases write.
        version: The number of the version, from 1.
        arguments: Its arguments.
        outputs: The names of the outputs that each call has.
        effect: What it changes; that of the other function where an argument names one.
        recovery: What happens to an interrupted call; that of the other function where an argument names one.
        rules: The rules between its arguments.
        output_arguments: Arguments that name further outputs: the items of a list, the keys of a mapping.
        once_with: The calls that run at most once although *recovery* says otherwise; None: there are none.
        timeout: How long a call may take unless the phase says it.
    """

    name: str
    version: int
    arguments: tuple[Argument, ...]
    outputs: tuple[str, ...]
    effect: Effect
    recovery: Recovery
    rules: tuple[Rule, ...] = ()
    output_arguments: tuple[str, ...] = ()
    once_with: OnceWith | None = None
    timeout: Milliseconds = 10 * MINUTE


class SignatureTable:
    """The functions that exist, by name and version."""

    def __init__(self, signatures: Iterable[Signature]) -> None:
        """Make a table of *signatures*; each name and version occurs once."""
        self._by_name: dict[str, dict[int, Signature]] = {}
        for signature in sorted(signatures, key=lambda each: (each.name, each.version)):
            self._by_name.setdefault(signature.name, {})[signature.version] = signature

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all functions, sorted."""
        return tuple(self._by_name)

    def all(self) -> list[Signature]:
        """All versions of all functions, sorted by name and version."""
        return [signature for versions in self._by_name.values() for signature in versions.values()]

    def versions(self, name: str) -> tuple[int, ...]:
        """The versions of a function, the newest last; empty: there is no such function."""
        return tuple(self._by_name.get(name, ()))

    def find(self, name: str, version: int | None = None) -> Signature | None:
        """A version of a function, the newest if *version* is None; None: there is none."""
        versions = self._by_name.get(name, {})
        return versions.get(max(versions) if version is None else version) if versions else None


_SNAPSHOT = Argument("snapshot", ArgumentType.STRING, required=True, form=ArgumentForm.SNAPSHOT_ID)
_STACK = Argument("stack", ArgumentType.STRING, form=ArgumentForm.STACK_NAME)
"""The stack of the object unless it is passed."""

FUNCTIONS = SignatureTable(
    (
        Signature(
            "ExportStack",
            1,
            (_STACK, Argument("partial", ArgumentType.BOOL, default=False)),
            ("snapshot", "digest", "objects", "bytes", "leftOut"),
            Effect.READ,
            Recovery.RERUN,
        ),
        Signature(
            "RestoreStack",
            1,
            (
                _SNAPSHOT,
                _STACK,
                Argument("prune", ArgumentType.BOOL, default=False),
                Argument("secrets", ArgumentType.STRING_MAP, takes_secrets=True),
                Argument("allowMissing", ArgumentType.BOOL, default=False),
            ),
            ("operation", "created", "updated", "deleted", "noChange"),
            Effect.STACK,
            Recovery.ATTACH,
        ),
        Signature("VerifySnapshot", 1, (_SNAPSHOT,), ("bytes", "objects", "parts"), Effect.READ, Recovery.RERUN),
        Signature("DeleteSnapshot", 1, (_SNAPSHOT,), ("deleted",), Effect.OUTSIDE, Recovery.RERUN),
        Signature(
            "Sleep",
            1,
            (Argument("duration", ArgumentType.DURATION, required=True),),
            ("until",),
            Effect.NONE,
            Recovery.RERUN,
        ),
    )
)
"""The functions of the product."""
