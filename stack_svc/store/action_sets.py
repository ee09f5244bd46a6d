"""Action sets in the store: what an operation of kind ACTION runs, and what lists of action sets need."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from services.actions.definitions import ActionObject
from services.engine.operation import OperationState
from stack_svc.store.operations import Operation, OperationPlace
from stack_svc.store.stacks import StackName


@dataclass(frozen=True, slots=True)
class StoredActionSet:
    """
    An action set without what it is to run.

    Attributes:
        name: Its name.
        operation: Id of its operation.
        phase_count: Number of its phases.
        predecessor: Name of the action set that it was made from; empty: none.
        blueprints: Names of the blueprints of its actions, sorted.
        objects: Objects of its actions, each with platform and org.
        labels: Texts of its author, by name.
        ttl: Microseconds for which it is retained after its end; None: as long as the store retains any.
        has_begun: Whether a phase has begun.
    """

    name: str
    operation: str
    phase_count: int
    predecessor: str = ""
    blueprints: Sequence[str] = ()
    objects: Sequence[ActionObject] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    ttl: int | None = None
    has_begun: bool = False


class Progress(NamedTuple):
    """How far an action set is: *has_begun* says whether a phase has begun; None: either."""

    state: OperationState
    has_begun: bool | None = None


class ActionSetFilter(NamedTuple):
    """
    A filter on the action sets that a list returns.

    Attributes:
        stack: A stack among its objects; None for all.
        blueprint: A blueprint of its actions; empty for all.
        progress: How far it is; empty for all.
        predecessor: What it was made from; empty for all.
        labels: Labels that it has, among others.
    """

    stack: StackName | None = None
    blueprint: str = ""
    progress: Collection[Progress] = ()
    predecessor: str = ""
    labels: Mapping[str, str] = {}


class ActionSetsReading(Protocol):
    """Read access to action sets."""

    def find(self, name: str) -> StoredActionSet | None:
        """Read one action set."""

    def body(self, name: str) -> bytes:
        """Read what an action set is to run, as it was inserted; empty when there is no such action set."""

    def unfinished_count(self) -> int:
        """Count the action sets whose operation is unfinished."""

    def page(
        self, criteria: ActionSetFilter, after: OperationPlace, most: int
    ) -> list[tuple[StoredActionSet, Operation]]:
        """
        Read at most *most* action sets that match *criteria* and whose operations follow *after*, newest first.

        Returns:
            Each with its operation.
        """


class ActionSets(ActionSetsReading, Protocol):
    """Read and write access to action sets. One is removed with its operation."""

    def insert(self, action_set: StoredActionSet, body: bytes) -> bool:
        """
        Add the action set of an operation that has none.

        Args:
            action_set: The action set.
            body: What it is to run: a ``pkger.journal.v1.NewActionSet`` in its wire format, compressed.

        Returns:
            Whether no other one has the name.
        """

    def begin(self, name: str) -> None:
        """Record that a phase of an action set has begun."""
