"""Operations in the store; an operation remains when its stack is deleted."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from services.core.model import OperationKind, Target
from services.engine.operation import OperationState

OperationPlace = tuple[int, str]
"""Create time and id of an operation; the next page starts after it."""

START: OperationPlace = (2**63 - 1, "")
"""The place before the newest operation, where the first page starts."""

GONE = "its applier was gone before it sent anything"
"""The cause of an operation whose lease expired before the operation started."""


class Blocks(NamedTuple):
    """
    The reason and the steps that block an operation.

    Attributes:
        reason: Number of a ``pkger.model.v1.BlockedReason``.
        step_count: Number of blocked steps.
        body: The blocked steps, in a ``pkger.model.v1.Operation`` in its wire format.
    """

    reason: int
    step_count: int
    body: bytes = b""


NOT_BLOCKED = Blocks(0, 0)
"""The blocks of an operation that is not BLOCKED."""


class OperationFilter(NamedTuple):
    """
    A filter on the operations that a list returns.

    Attributes:
        stack: Id of the stack; empty for all stacks.
        target: Target of the operations; None for all.
        states: States to include; empty for all states.
        kinds: Kinds to include; empty for all kinds.
        since: Lower bound of the create time, inclusive, in microseconds since 1970.
        until: Upper bound of the create time, exclusive, in microseconds since 1970.
    """

    stack: str = ""
    target: Target | None = None
    states: Collection[OperationState] = ()
    kinds: Collection[OperationKind] = ()
    since: int = 0
    until: int = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Operation:
    """
    A stored operation.

    Attributes:
        id: Its id, chosen by its applier.
        stack: Id of its stack, which may have been deleted.
        stackless: Whether it has no stack; ``stack`` is then the id of a row that only carries its lease.
        stack_name: Name of the stack when it began.
        target: The target of its stack, or of the operation itself when it has no stack.
        kind: Its kind, such as an apply.
        state: Its state, such as BLOCKED.
        holder: The applier that runs it, or ran it last.
        token: Fencing token of its last lease.
        create_time: Time at which it began, in microseconds since 1970.
        update_time: Time of the last write or renewal by its applier, in microseconds since 1970; never before
            ``create_time``.
        rolling_back: Whether it is rolling back; once true, it stays true, also while the operation is BLOCKED.
        sealed: Whether it has passed the seal, after which no step is undone.
        cancel_requested: Whether a client asked to cancel it.
        cause: The failure that made it fail, roll back or block; empty when nothing failed.
        step_count: Number of steps of its plan, or of phases of its action set; 0 while it has none.
        done_count: Number of steps that took effect and were not undone, or of phases that ended.
        position: Position of the last write in its journal; 0 while there is none.
        last_seq: Sequence number of its last event; 0 while it has none.
        last_event: Its last event in the wire format; empty unless the operation is finished.
        plan: Id of its plan; empty while it has none.
        blocks: The reason that blocks it and the number of blocked steps; ``body`` is empty.
        defects: Number of attempts to resume it that ended with a defect since the last recovery.
        author: Name of its author, as the client gave it.
        handed_over: Number of hand-overs of resources from other stacks to its stack since it began. Each hand-over
            increases the generation of its stack by one.
        parent: The operation whose phase began it; empty: none did.
        action_set: Name of its action set; empty while it has none.
    """

    id: str
    stack: str
    stackless: bool
    stack_name: str
    target: Target
    kind: OperationKind
    state: OperationState
    holder: str
    token: int
    create_time: int
    update_time: int
    rolling_back: bool = False
    sealed: bool = False
    cancel_requested: bool = False
    cause: str = ""
    step_count: int = 0
    done_count: int = 0
    position: int = 0
    last_seq: int = 0
    last_event: bytes = b""
    plan: str = ""
    blocks: Blocks = NOT_BLOCKED
    defects: int = 0
    handed_over: int = 0
    author: str = ""
    parent: str = ""
    action_set: str = ""

    @property
    def unblocked_state(self) -> OperationState:
        """Its state, or for a BLOCKED operation the state in which its next holder resumes it."""
        if self.state is not OperationState.BLOCKED:
            return self.state
        return OperationState.ROLLING_BACK if self.rolling_back else OperationState.APPLYING


class OperationsReading(Protocol):
    """Read access to operations."""

    def stack_of(self, operation_id: str) -> str | None:
        """Return the id of the stack of an operation, which never changes; None when there is no such operation."""

    def find(self, operation_id: str) -> Operation | None:
        """Read one operation."""

    def unfinished_on(self, stack: str) -> Operation | None:
        """Read the unfinished operation on a stack; there is one at most."""

    def last_on(self, stack: str) -> Operation | None:
        """Read the operation with the highest token among the operations on a stack."""

    def since(self, stack: str, token: int) -> list[Operation]:
        """Read the operations on a stack that have *token* or a higher one, sorted by token."""

    def page(self, criteria: OperationFilter, after: OperationPlace, most: int) -> list[Operation]:
        """Read at most *most* operations that match *criteria* and follow the place *after*, newest first."""

    def abandoned(self, now: int, most: int) -> list[str]:
        """Return the names of at most *most* unfinished, not BLOCKED operations whose lease is free, oldest first."""

    def blocked_steps(self, operation_id: str) -> bytes:
        """Read the blocked steps of an operation, as in ``Blocks.body``; empty when there are none."""


class Operations(OperationsReading, Protocol):
    """Read and write access to operations."""

    def insert(self, operation: Operation) -> bool:
        """Add an operation; False: the name is taken, or the stack has another unfinished one."""

    def update(self, operation: Operation) -> None:
        """Write the changing fields of an existing operation, except its plan and its blocks."""

    def block(self, operation_id: str, blocks: Blocks) -> None:
        """Store the blocks of an operation that has none."""

    def unblock(self, operation_id: str) -> None:
        """Remove the blocks of an operation."""

    def delete(self, operation_id: str) -> None:
        """Remove an operation with its journal, its plan, its action set and its reservations."""
