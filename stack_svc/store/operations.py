"""Operations, as the store keeps them: they outlive their stack."""

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
"""Cause of an operation that never started and whose lease ended."""


class Blocks(NamedTuple):
    """
    What an operation is blocked by.

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
    Which operations are listed.

    Attributes:
        stack: Only those on this stack, by id; empty for all.
        states: Only those in one of these states; empty for all.
        kinds: Only those of one of these kinds; empty for all.
        since: Only those that began then or later, in microseconds since 1970.
        until: Only those that began before, likewise.
    """

    stack: str = ""
    states: Collection[OperationState] = ()
    kinds: Collection[OperationKind] = ()
    since: int = 0
    until: int = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Operation:
    """
    An operation as the store has it.

    Attributes:
        name: As its applier chose it.
        stack: Id of its stack, which may be gone.
        stackless: Whether it works on behalf of no stack; ``stack`` then only carries its lease.
        stack_name: Name of the stack when it began.
        target: Where it works.
        kind: What it is for.
        state: How far it is.
        holder: Who works on it, or did last.
        token: Fencing token of its last lease.
        create_time: In microseconds since 1970, as is ``update_time``.
        update_time: When its applier last wrote or renewed; never before ``create_time``.
        rolling_back: Whether it turned back; once true, always true, also when it is BLOCKED.
        sealed: Whether it passed the point of no return.
        cancel_requested: Whether somebody asked it to turn back.
        cause: What failed; empty when nothing did.
        step_count: Number of steps of its plan; 0 while it has none.
        done_count: How many of them are in effect.
        position: Of its last write; 0 while there is none.
        last_seq: Seq of its last event; 0 while it has none.
        last_event: That event in the wire format; empty unless it is finished.
        plan: Name of its plan; empty while it has none.
        blocks: What it is blocked by, without the steps.
        defects: How many attempts to resume it a defect has ended since somebody last recovered it.
        author: Who asked for it, as the client says.
        handed_over: How often the generation of its stack has moved since it began, as another stack handed something
            over to that.
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
    def going(self) -> OperationState:
        """Its state but for what blocks it: where whoever claims a BLOCKED one takes it up again."""
        if self.state is not OperationState.BLOCKED:
            return self.state
        return OperationState.ROLLING_BACK if self.rolling_back else OperationState.APPLYING


class OperationsReading(Protocol):
    """Operations, read."""

    def stack_of(self, name: str) -> str | None:
        """Tell on which stack an operation is, by id, which never changes; None when there is no such operation."""

    def find(self, name: str) -> Operation | None:
        """Read one operation."""

    def unfinished_on(self, stack: str) -> Operation | None:
        """Read the unfinished operation on a stack; there is one at most."""

    def last_on(self, stack: str) -> Operation | None:
        """Read the operation on a stack whose last lease has the highest token."""

    def since(self, stack: str, token: int) -> list[Operation]:
        """Read the operations on a stack whose last lease has *token* or a higher one, by token."""

    def page(self, wanted: Filter, after: Place, most: int) -> list[Operation]:
        """Read at most so many operations behind *after*, newest first."""

    def abandoned(self, now: int, most: int) -> list[str]:
        """Name at most so many operations that are neither finished nor BLOCKED, with a free lease, oldest first."""

    def blocked_steps(self, name: str) -> bytes:
        """Read the blocked steps of an operation, as in ``Blocks.body``; empty when there are none."""


class Operations(OperationsReading, Protocol):
    """Operations, read and written."""

    def insert(self, operation: Operation) -> bool:
        """Add an operation; False: the name is taken, or the stack has another unfinished one."""

    def update(self, operation: Operation) -> None:
        """Write all of an operation that exists but for what it was made with, its plan and its blocks."""

    def block(self, name: str, blocks: Blocks) -> None:
        """Keep what an operation is blocked by, which was blocked by nothing."""

    def unblock(self, name: str) -> None:
        """Forget what an operation was blocked by."""
