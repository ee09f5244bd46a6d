"""Operations, as stored: they outlive their stack."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from services.core.model import OperationKind, Target
from services.engine.operation import OperationState

Place = tuple[int, str]
"""Create time and name of the last operation of a page."""

START: Place = (2**63 - 1, "")
"""Before every operation, as the newest come first."""

GONE = "its applier was gone before it sent anything"
"""Cause of an operation that never started and whose lease expired."""


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
"""Of an operation that is not BLOCKED."""


class Filter(NamedTuple):
    """
    A filter on the operations that a list returns.

    Attributes:
        stack: Id of their stack; empty for all.
        states: States that they may be in; empty for all.
        kinds: Kinds that they may have; empty for all.
        since: Earliest time at which they began, in microseconds since 1970.
        until: They began before this time, likewise.
    """

    stack: str = ""
    states: Collection[OperationState] = ()
    kinds: Collection[OperationKind] = ()
    since: int = 0
    until: int = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Operation:
    """
    An operation as it is stored.

    Attributes:
        name: Its name, chosen by its applier.
        stack: Id of its stack, which may be gone.
        stackless: Whether it works on behalf of no stack; ``stack`` then only carries its lease.
        stack_name: Name of the stack when it began.
        target: The target of its stack, or of the operation itself when it has no stack.
        kind: Its kind, such as an apply.
        state: How far it is.
        holder: The applier that runs it, or that ran it last.
        token: Fencing token of its last lease.
        create_time: In microseconds since 1970, as is ``update_time``.
        update_time: Time of the last write or renewal by its applier; never before ``create_time``.
        rolling_back: Whether it is rolling back; once true, it stays true, also while the operation is BLOCKED.
        sealed: Whether it passed the seal.
        cancel_requested: Whether a client asked to cancel it.
        cause: The failure that made it fail, roll back or block; empty when nothing failed.
        step_count: Number of steps of its plan; 0 while it has none.
        done_count: How many of them are in effect.
        position: Of its last write; 0 while there is none.
        last_seq: Seq of its last event; 0 while it has none.
        last_event: That event in the wire format; empty unless it is finished.
        plan: Name of its plan; empty while it has none.
        blocks: The reason that it is blocked for and the number of blocked steps, without the steps.
        defects: Number of attempts to resume it that ended with a defect, since it was last recovered.
        author: Name of its author, as the client gave it.
        handed_over: Number of times that other stacks have handed resources over to its stack since it began; each adds
            one to the generation of its stack.
    """

    name: str
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

    @property
    def unblocked_state(self) -> OperationState:
        """Its state, or for a BLOCKED operation the state in which its next holder resumes it."""
        if self.state is not OperationState.BLOCKED:
            return self.state
        return OperationState.ROLLING_BACK if self.rolling_back else OperationState.APPLYING


class OperationsReading(Protocol):
    """Read access to operations."""

    def stack_of(self, name: str) -> str | None:
        """Return the id of the stack of an operation, which never changes; None when there is no such operation."""

    def find(self, name: str) -> Operation | None:
        """Read one operation."""

    def unfinished_on(self, stack: str) -> Operation | None:
        """Read the unfinished operation on a stack; there is one at most."""

    def last_on(self, stack: str) -> Operation | None:
        """Read the operation on a stack whose last lease has the highest token."""

    def since(self, stack: str, token: int) -> list[Operation]:
        """Read the operations on a stack whose last lease has *token* or a higher one, by token."""

    def page(self, wanted: Filter, after: Place, most: int) -> list[Operation]:
        """Read at most *most* operations after *after*, newest first."""

    def abandoned(self, now: int, most: int) -> list[str]:
        """Return the names of at most *most* unfinished, not BLOCKED operations with a free lease, oldest first."""

    def blocked_steps(self, name: str) -> bytes:
        """Read the blocked steps of an operation, as in ``Blocks.body``; empty when there are none."""


class Operations(OperationsReading, Protocol):
    """Read and write access to operations."""

    def insert(self, operation: Operation) -> bool:
        """Add an operation; False: the name is taken, or the stack has another unfinished one."""

    def update(self, operation: Operation) -> None:
        """Write the fields of an existing operation that change, except its plan and its blocks."""

    def block(self, name: str, blocks: Blocks) -> None:
        """Store the blocks of an operation that has none."""

    def unblock(self, name: str) -> None:
        """Remove the blocks of an operation."""
