"""Plans, as stored."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from services.core.model import OperationKind, Target

PlanPlace = tuple[int, str]
"""Create time and id of the last plan of a page."""

START: PlanPlace = (2**63 - 1, "")
"""Before every plan, as the newest come first."""


class PlanState(StrEnum):
    """The states of plan.proto. EXPIRED is not stored: it is a PENDING plan whose time has passed."""

    PENDING = "PENDING"
    APPLYING = "APPLYING"
    APPLIED = "APPLIED"
    STALE = "STALE"
    EXPIRED = "EXPIRED"


@dataclass(frozen=True, slots=True)
class Header:
    """
    The fields of a plan that never change.

    Attributes:
        id: Its id, chosen by its planner.
        stack: Id of its stack; empty when the stack does not exist yet, and for a plan without a stack.
        stack_name: Name of that stack; may be empty.
        target: The target of its operation.
        digest: Its digest.
        base_generation: Generation of the stack that it was made from.
        kind: The kind of its operation.
        step_count: Number of its steps.
        package_digest: Digest of the package of its revision; empty: there is none.
        baselines_digest: Digest of the baselines of resources that it does not write; empty: there are none.
        rollback_of: The revision that it rolls back to; 0 when it is no rollback.
        creates_nameless_stack: Whether it creates a stack without a name.
    """

    id: str
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
    A plan as it is stored.

    Attributes:
        state: Its state; PENDING also for an expired plan.
        problem: The change that made it stale; empty unless it is STALE.
        operation: Id of the operation that it was made for, or that runs or ran it; empty: there is none.
        create_time: In microseconds since 1970.
        expires: Time until which it can be applied, in microseconds since 1970; None for a plan that was made for an
            operation.
    """

    state: PlanState
    problem: str
    operation: str
    create_time: int
    expires: int | None


class Part(NamedTuple):
    """
    A part of a plan, as in ``pkger.journal.v1.StoredPart``.

    Attributes:
        view: Number of its view.
        part: The part.
        masked_part: The part with masked addresses; empty when it is the same.
    """

    view: int
    part: bytes
    masked_part: bytes


class PlansReading(Protocol):
    """Read access to plans."""

    def find(self, plan_id: str) -> StoredPlan | None:
        """Read one plan."""

    def header(self, plan_id: str) -> bytes | None:
        """Read the header of a plan, in its wire format."""

    def parts(self, plan_id: str, views: Collection[int]) -> list[Part]:
        """Read the parts of a plan that belong to *views*, in the order of their insertion."""

    def page(
        self, target: Target | None, stack_name: str, after: PlanPlace, most: int
    ) -> list[tuple[StoredPlan, bytes]]:
        """
        Read at most *most* plans after *after*, newest first, with their headers in the wire format.

        Args:
            target: Only plans for this target; None for all.
            stack_name: Only plans for stacks of this name; empty for all.
            after: The last plan of the page before.
            most: Largest number of plans.
        """


class Plans(PlansReading, Protocol):
    """Read and write access to plans."""

    def insert(self, plan: StoredPlan, header: bytes, parts: Iterable[Part]) -> bool:
        """
        Add a plan, with its *header* in the wire format.

        Returns:
            False: the id is taken, or the operation has another plan.
        """

    def update(self, plan: StoredPlan) -> None:
        """Write state, problem and operation of a plan that exists."""

    def delete(self, plan_id: str) -> None:
        """Remove a plan with its parts, if it exists."""
