"""
Plans that wait to be applied, and plans that operations run; each is applied at most once (docs/reference/engine.md,
"Plans").
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from services.core import limits
from services.core.errors import (
    LeaseLost,
    OperationNotFound,
    PlanExpired,
    PlanNotFound,
    PlanStale,
    PlanUsed,
    RequestInvalid,
)
from services.core.model import Target
from services.engine.operation import OperationState
from stack_svc.rules import attachments, requests, sanitize
from stack_svc.rules.leases import SECOND, rfc3339
from stack_svc.rules.requests import RequestId
from stack_svc.store.operations import Operation
from stack_svc.store.packages import PackageChanges
from stack_svc.store.plans import START, Header, Part, PlanPlace, PlanState, StoredPlan
from stack_svc.store.store import ReadTransaction, Transaction

KEPT = 24 * 3600 * SECOND
"""How long a plan can be applied, in microseconds (planner.proto)."""

EVERYTHING = 2**31
"""Size of a page that holds all rows."""


@dataclass(frozen=True, slots=True)
class NewPlan(Header):
    """
    A plan to be stored.

    Attributes:
        message: Its header in the wire format.
        parts: Its other parts.
        attachments: The bodies of its short attachments, by digest.
        packages: What becomes of the installed packages that it changes.
    """

    message: bytes
    parts: tuple[Part, ...]
    attachments: Mapping[str, bytes] = field(default_factory=dict)
    packages: PackageChanges = field(default_factory=dict)

    def refuse_too_large(self, limit: int) -> None:
        """
        Refuse a plan whose operation would need a message of more than *limit* bytes.

        Raises:
            PlanTooLarge: Says by how much.
        """
        size = len(self.message) + sum(len(each.part) + len(each.masked_part) for each in self.parts)
        limits.refuse_too_large(size, self.step_count, limit)


def store(tx: Transaction, plan: NewPlan, request: RequestId) -> StoredPlan:
    """
    Store a plan, once for each request.

    Returns:
        The plan; if the same request stored one before, that one.

    Raises:
        RequestInvalid: Another plan has the id.
        RequestIdReused: The request id was used with other content.
        PlanNotFound: The plan of this request is gone.
    """
    now = tx.now()
    if earlier_id := requests.earlier_answer(tx, request, now):
        return existing(tx, earlier_id)
    stored = tx.plans.find(plan.id)
    if stored is None or not is_kept(tx, plan):
        stored = _stored(plan, PlanState.PENDING, "", now, now + KEPT)
        _insert(tx, plan, stored)
    requests.store_answer(tx, request, plan.id, now)
    return as_of(stored, now)


def of_request(reading: ReadTransaction, request: RequestId) -> str:
    """
    Id of the plan that a request stored before; empty for a new request, and for one without an id.

    Raises:
        RequestIdReused: The request id was used with other content.
    """
    return requests.earlier_answer(reading, request, reading.now()) or ""


def store_for(tx: Transaction, plan: NewPlan, operation: str) -> StoredPlan:
    """
    Store a plan that is made for an operation which has not started; it replaces the one that was made before.

    Raises:
        OperationNotFound: There is no such operation.
        LeaseLost: The operation has started or ended.
        RequestInvalid: Another plan has the id.
    """
    tx.lock_stack(tx.operations.stack_of(operation) or "")
    begun = tx.operations.find(operation)
    if begun is None:
        raise OperationNotFound(operation)
    if begun.state is not OperationState.PREPARING:
        raise LeaseLost(begun.stack_name or begun.stack, begun.token)
    return insert_for(tx, plan, begun)


def insert_for(tx: Transaction, plan: NewPlan, operation: Operation) -> StoredPlan:
    """
    Store the plan of an operation that is PREPARING and whose stack is locked; it replaces one that was made before.

    Raises:
        RequestInvalid: Another plan has the name.
    """
    if operation.plan:
        tx.plans.delete(operation.plan)
    stored = _stored(plan, PlanState.APPLYING, operation.id, tx.now(), None)
    _insert(tx, plan, stored)
    return stored


def take(tx: Transaction, plan_id: str, operation: str) -> StoredPlan:
    """
    Assign a plan to an operation: the one that was made for it, or one that no operation has run.

    Raises:
        PlanNotFound: There is none of that id.
        PlanUsed: Another operation ran it before.
        PlanStale: It was found to be stale.
        PlanExpired: It was not applied in time.
    """
    plan = existing(tx, plan_id)
    if plan.operation == operation:
        return plan
    refuse_unusable(plan)
    taken = replace(plan, state=PlanState.APPLYING, operation=operation)
    tx.plans.update(taken)
    return taken


def refuse_unusable(plan: StoredPlan) -> None:
    """
    Do nothing for a plan that can be applied.

    Raises:
        PlanUsed: An operation ran it before.
        PlanStale: It was found to be stale.
        PlanExpired: It was not applied in time.
    """
    if plan.operation:
        raise PlanUsed(plan.id, plan.operation)
    if plan.state is PlanState.STALE:
        raise PlanStale(plan.id, plan.problem)
    if plan.state is PlanState.EXPIRED:
        raise PlanExpired(plan.id, rfc3339(plan.expires or 0))


def mark_stale(tx: Transaction, plan_id: str, problem: str) -> None:
    """Mark a pending plan as stale, with the change that made it so; other plans stay as they are."""
    plan = tx.plans.find(plan_id)
    if plan and plan.state is PlanState.PENDING:
        tx.plans.update(replace(plan, state=PlanState.STALE, problem=sanitize.clean(problem)))


def delete(tx: Transaction, plan_id: str) -> None:
    """
    Remove a plan that no operation has run, in any state.

    Raises:
        PlanNotFound: There is none of that id.
        PlanUsed: An operation runs or ran it; the plan is retained as long as the operation.
    """
    plan = existing(tx, plan_id)
    if plan.operation:
        raise PlanUsed(plan.id, plan.operation)
    tx.plans.delete(plan_id)


def pending(reading: ReadTransaction) -> list[str]:
    """Names of the plans that can be applied, newest first."""
    plans_of_all = page(reading, None, "", START, EVERYTHING)
    return [plan.id for plan, _ in plans_of_all if plan.state is PlanState.PENDING]


def mark_applied(tx: Transaction, plan_id: str) -> None:
    """Mark a plan as applied, as its operation is finished; an empty id is of no plan."""
    if plan_id and (plan := tx.plans.find(plan_id)):
        tx.plans.update(replace(plan, state=PlanState.APPLIED))


def existing(reading: ReadTransaction, plan_id: str) -> StoredPlan:
    """
    The plan of that id, as of now.

    Raises:
        PlanNotFound: There is none.
    """
    plan = reading.plans.find(plan_id)
    if plan is None:
        raise PlanNotFound(plan_id)
    return as_of(plan, reading.now())


def as_of(plan: StoredPlan, now: int) -> StoredPlan:
    """*plan*, EXPIRED if its time has passed."""
    has_expired = plan.state is PlanState.PENDING and (plan.expires or 0) < now
    return replace(plan, state=PlanState.EXPIRED) if has_expired else plan


def is_kept(reading: ReadTransaction, plan: NewPlan) -> bool:
    """Whether a plan with this id and header is stored; its digest covers what an apply does."""
    return reading.plans.header(plan.id) == plan.message


def parts(reading: ReadTransaction, plan_id: str, views: Collection[int]) -> tuple[StoredPlan, bytes, list[Part]]:
    """
    A plan with its header in the wire format, and the parts that belong to *views*.

    Raises:
        PlanNotFound: There is none of that id.
    """
    plan = existing(reading, plan_id)
    return plan, reading.plans.header(plan_id) or b"", reading.plans.parts(plan_id, views)


def page(
    reading: ReadTransaction, target: Target | None, stack_name: str, after: PlanPlace, size: int
) -> list[tuple[StoredPlan, bytes]]:
    """
    Read one page of plans, newest first.

    Args:
        reading: The store.
        target: Only plans for this target; None for all.
        stack_name: Only plans for stacks of this name; empty for all.
        after: The last plan of the page before.
        size: Plans on the page.

    Returns:
        The plans, with their headers in the wire format; one more than the page has when more follow.
    """
    now = reading.now()
    return [(as_of(plan, now), header) for plan, header in reading.plans.page(target, stack_name, after, size + 1)]


def _stored(plan: NewPlan, state: PlanState, operation: str, now: int, expires: int | None) -> StoredPlan:
    return StoredPlan(
        plan.id,
        plan.stack,
        plan.stack_name,
        plan.target,
        plan.digest,
        plan.base_generation,
        plan.kind,
        plan.step_count,
        plan.package_digest,
        plan.baselines_digest,
        plan.rollback_of,
        plan.creates_nameless_stack,
        state=state,
        problem="",
        operation=operation,
        create_time=now,
        expires=expires,
    )


def _insert(tx: Transaction, plan: NewPlan, stored: StoredPlan) -> None:
    contents = [package.content_digest for package in plan.packages.values() if package]
    named = {plan.package_digest, plan.baselines_digest, *contents} - {"", *plan.attachments}
    lacking = tx.attachments.lacking(named) if named else []
    for digest, body in plan.attachments.items():
        attachments.store(tx, digest, 0, 1, body)
    if lacking:
        raise RequestInvalid("plan.header", f"the store has no attachment {lacking[0]}; send it first")
    if not tx.plans.insert(stored, plan.message, plan.parts):
        raise RequestInvalid("plan.header.id", f"another plan has the id {plan.id}")
    if plan.packages:
        tx.plan_packages.add(plan.id, plan.packages)
