"""Plans: those that wait to be applied, and those that operations run; each is applied at most once (engine.md 7)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sqlite_utils

from services.core.errors import PlanExpired, PlanNotFound, PlanStale, PlanUsed, RequestInvalid
from services.core.model import OperationKind, Target
from stack_svc import requests
from stack_svc.leases import SECOND, rfc3339

KEPT = 24 * 3600 * SECOND
"""How long a plan can be applied, in microseconds (planner.proto)."""

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
    """

    name: str
    stack: str
    stack_name: str
    target: Target
    digest: str
    base_generation: int
    kind: OperationKind
    step_count: int


@dataclass(frozen=True, slots=True)
class NewPlan(Header):
    """A plan to be stored; ``message`` is its header in the wire format, the rest as in journal.proto."""

    message: bytes
    body: bytes
    content: bytes


@dataclass(frozen=True, slots=True)
class StoredPlan(Header):
    """
    A plan as the store has it.

    Attributes:
        state: What became of it, as of the time it was read.
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


@dataclass(frozen=True, slots=True)
class Work:
    """Header and body of a plan in their wire format: what an apply needs of it."""

    header: bytes
    body: bytes


def store(db: sqlite_utils.Database, plan: NewPlan, request_id: str, request_digest: str, now: int) -> StoredPlan:
    """
    Keep a plan, once for each request id (an empty one gives no such protection), and drop those that expired unused.

    Returns:
        The plan; the one that the same request stored before, if it did.

    Raises:
        RequestInvalid: Another plan has the name.
        RequestIdReused: The request id was used with other content.
        PlanNotFound: The plan of this request is gone.
    """
    if made := of_request(db, request_id, request_digest, now):
        return existing(db, made, now)
    db.execute("DELETE FROM plans WHERE operation IS NULL AND expires < ?", [now])
    if not is_kept(db, plan):
        _insert(db, plan, PlanState.PENDING, None, now, now + KEPT)
    if request_id:
        requests.remember(db, request_id, [request_digest], plan.name, now)
    return existing(db, plan.name, now)


def of_request(db: sqlite_utils.Database, request_id: str, request_digest: str, now: int) -> str:
    """
    Name of the plan that a request stored before; empty for a new request, and for one without an id.

    Raises:
        RequestIdReused: The request id was used with other content.
    """
    return (request_id and requests.earlier_answer(db, request_id, [request_digest], now)) or ""


def insert_running(db: sqlite_utils.Database, plan: NewPlan, operation: str, now: int) -> None:
    """
    Keep the plan that an operation made for itself.

    Raises:
        RequestInvalid: Another plan has the name.
    """
    _insert(db, plan, PlanState.APPLYING, operation, now, None)


def take(db: sqlite_utils.Database, name: str, operation: str, now: int) -> StoredPlan:
    """
    Let an operation run a plan that none ran before.

    Raises:
        PlanNotFound: There is none of that name.
        PlanUsed: An operation ran it before.
        PlanStale: It was found to be stale.
        PlanExpired: It was not applied in time.
    """
    plan = existing(db, name, now)
    refuse_unusable(plan)
    db.execute("UPDATE plans SET state = 'APPLYING', operation = ? WHERE name = ?", [operation, name])
    return plan


def refuse_unusable(plan: StoredPlan) -> None:
    """
    Do nothing for a plan that can be applied.

    Raises:
        PlanUsed: An operation ran it before.
        PlanStale: It was found to be stale.
        PlanExpired: It was not applied in time.
    """
    if plan.operation:
        raise PlanUsed(plan.name, plan.operation)
    if plan.state is PlanState.STALE:
        raise PlanStale(plan.name, plan.problem)
    if plan.state is PlanState.EXPIRED:
        raise PlanExpired(plan.name, rfc3339(plan.expires or 0))


def mark_stale(db: sqlite_utils.Database, name: str, problem: str) -> None:
    """Note what changed since a plan was made; one that is not pending, or gone, is left alone."""
    db.execute("UPDATE plans SET state = 'STALE', problem = ? WHERE name = ? AND state = 'PENDING'", [problem, name])


def mark_applied(db: sqlite_utils.Database, operation: str) -> None:
    """The operation is finished, and with it its plan, if it has one."""
    db.execute("UPDATE plans SET state = 'APPLIED' WHERE operation = ?", [operation])


def find(db: sqlite_utils.Database, name: str, now: int) -> StoredPlan | None:
    """The plan of that name."""
    return next((_plan(row, now) for row in db.query("SELECT * FROM plans WHERE name = ?", [name])), None)


def existing(db: sqlite_utils.Database, name: str, now: int) -> StoredPlan:
    """
    The plan of that name.

    Raises:
        PlanNotFound: There is none.
    """
    plan = find(db, name, now)
    if plan is None:
        raise PlanNotFound(name)
    return plan


def is_kept(db: sqlite_utils.Database, plan: NewPlan) -> bool:
    """Whether a plan with this name, header and body is stored; the content follows from those."""
    row = db.execute("SELECT header, body FROM plan_bodies WHERE plan = ?", [plan.name]).fetchone()
    return bool(row == (plan.message, plan.body))


def work(db: sqlite_utils.Database, name: str) -> Work:
    """
    Header and body of the plan of that name.

    Raises:
        PlanNotFound: There is none.
    """
    row = db.execute("SELECT header, body FROM plan_bodies WHERE plan = ?", [name]).fetchone()
    if row is None:
        raise PlanNotFound(name)
    return Work(*row)


def content(db: sqlite_utils.Database, name: str) -> bytes:
    """The compressed content of the plan of that name; empty when none is stored."""
    row = db.execute("SELECT content FROM plan_bodies WHERE plan = ?", [name]).fetchone()
    return bytes(row[0]) if row else b""


def page(
    db: sqlite_utils.Database, target: Target | None, stack_name: str, after: Place, size: int, now: int
) -> list[tuple[StoredPlan, bytes]]:
    """
    Read one page of plans, newest first.

    Args:
        db: The store.
        target: Only plans for this target; None for all.
        stack_name: Only plans for stacks of this name; empty for all.
        after: The last plan of the page before.
        size: Plans on the page.
        now: The time.

    Returns:
        The plans, with their headers in the wire format; one more than the page has when more follow.
    """
    where, values = ["(create_time, name) < (?, ?)"], [*after]
    if target:
        where, values = [*where, "platform = ? AND org = ?"], [*values, target.platform, target.org]
    if stack_name:
        where, values = [*where, "stack_name = ?"], [*values, stack_name]
    rows = db.query(
        f"""
        SELECT plans.*, header FROM plans JOIN plan_bodies ON plan = name
        WHERE {" AND ".join(where)} ORDER BY create_time DESC, name DESC LIMIT ?
        """,  # noqa: S608
        [*values, size + 1],
    )
    return [(_plan(row, now), row["header"]) for row in rows]


def _insert(
    db: sqlite_utils.Database, plan: NewPlan, state: PlanState, operation: str | None, now: int, expires: int | None
) -> None:
    if find(db, plan.name, now):
        raise RequestInvalid("plan", f"there is another plan of the name {plan.name}")
    db.table("plans").insert(
        {
            "name": plan.name,
            "stack": plan.stack,
            "stack_name": plan.stack_name,
            "platform": plan.target.platform,
            "org": plan.target.org,
            "digest": plan.digest,
            "base_generation": plan.base_generation,
            "kind": plan.kind,
            "step_count": plan.step_count,
            "state": state,
            "operation": operation,
            "create_time": now,
            "expires": expires,
        }
    )
    db.execute(
        "INSERT INTO plan_bodies (plan, header, body, content) VALUES (?, ?, ?, ?)",
        [plan.name, plan.message, plan.body, plan.content],
    )


def _plan(row: dict[str, Any], now: int) -> StoredPlan:
    state = PlanState(row["state"])
    if state is PlanState.PENDING and row["expires"] < now:
        state = PlanState.EXPIRED
    return StoredPlan(
        name=row["name"],
        stack=row["stack"],
        stack_name=row["stack_name"],
        target=Target(row["platform"], row["org"]),
        digest=row["digest"],
        base_generation=row["base_generation"],
        kind=OperationKind(row["kind"]),
        step_count=row["step_count"],
        state=state,
        problem=row["problem"],
        operation=row["operation"] or "",
        create_time=row["create_time"],
        expires=row["expires"],
    )
