"""Plans, as the store keeps them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from services.core.model import OperationKind, Target

Place = tuple[int, str]
"""Create time and name of the last plan of a page."""

START: Place = (2**63 - 1, "")
"""Before every plan, as the newest come first."""


class PlanState(StrEnum):
    """As in plan.proto, which says what each means. EXPIRED is never stored: it is PENDING for too long."""

    PENDING = "PENDING"
    APPLYING = "APPLYING"
    APPLIED = "APPLIED"
    STALE = "STALE"
    EXPIRED = "EXPIRED"


@dataclass(frozen=True, slots=True)
class Header:
    """
    What a plan says of itself.

    Attributes:
        name: As its planner, or the applier that made it for itself, chose it.
        stack: Id of its stack; empty for one that is still to be created, and for none.
        stack_name: Name of that stack; may be empty.
        target: Where it works.
        digest: Its digest.
        base_generation: Generation of the stack that it was made from.
        kind: What it is for.
        step_count: Number of its steps.
        package_digest: Digest of the package that its revision keeps; empty: there is none.
        baselines_digest: Digest of the baselines of what it does not write; empty: there are none.
        rollback_of: The revision that it goes back to; 0 for any other.
        creates_nameless_stack: Whether its stack is one without a name that is still to be created.
    """

    name: str
    stack: str
    stack_name: str
    target: Target
    digest: str
    base_generation: int
    kind: OperationKind
    step_count: int
    package_digest: str
    baselines_digest: str
    rollback_of: int
    creates_nameless_stack: bool


@dataclass(frozen=True, slots=True)
class StoredPlan(Header):
    """
    A plan as the store has it.

    Attributes:
        state: What became of it; PENDING also when it expired.
        problem: What it was made from that has changed; empty unless it is STALE.
        operation: Name of the operation that runs or ran it; empty for none.
        create_time: In microseconds since 1970.
        expires: Until when it can be applied, likewise; None for the plan that an operation made for itself.
    """

    state: PlanState
    problem: str
    operation: str
    create_time: int
    expires: int | None


class Work(NamedTuple):
    """Header and body of a plan in their wire format: what an apply needs of it."""

    header: bytes
    body: bytes


class PlansReading(Protocol):
    """Plans, read."""

    def find(self, name: str) -> StoredPlan | None:
        """Read one plan."""

    def work(self, name: str) -> Work | None:
        """Read header and body of a plan."""

    def content(self, name: str) -> bytes:
        """Read the compressed content of a plan; empty when none is stored."""

    def page(self, target: Target | None, stack_name: str, after: Place, most: int) -> list[tuple[StoredPlan, bytes]]:
        """
        Read at most so many plans behind *after*, newest first, with their headers in the wire format.

        Args:
            target: Only plans for this target; None for all.
            stack_name: Only plans for stacks of this name; empty for all.
            after: The last plan of the page before.
            most: Plans to read.
        """


class Plans(PlansReading, Protocol):
    """Plans, read and written."""

    def insert(self, plan: StoredPlan, work: Work, content: bytes) -> bool:
        """Add a plan; False: the name is taken, or the operation has another plan."""

    def update(self, plan: StoredPlan) -> None:
        """Write state, problem and operation of a plan that exists."""

    def delete(self, name: str) -> None:
        """Remove a plan with all that belongs to it; nothing happens if there is none."""
