"""Plans in SQLite."""

from collections.abc import Collection, Iterable
from typing import Any

import sqlite_utils

from services.core.model import OperationKind, Target
from stack_svc.store.plans import Part, PlanPlace, PlanState, StoredPlan


class SqlitePlans:
    """Plans of one transaction."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def find(self, plan_id: str) -> StoredPlan | None:
        """Read one plan."""
        return next(map(_plan, self._db.query("SELECT * FROM plans WHERE id = ?", [plan_id])), None)

    def header(self, plan_id: str) -> bytes | None:
        """Read the header of a plan."""
        row = self._db.execute("SELECT header FROM plan_headers WHERE plan = ?", [plan_id]).fetchone()
        return row[0] if row else None

    def parts(self, name: str, views: Collection[int]) -> list[Part]:
        """Read parts of a plan."""
        places = ", ".join("?" * len(views))
        rows = self._db.execute(
            f"SELECT view, part, masked_part FROM plan_parts WHERE plan = ? AND view IN ({places}) ORDER BY number",  # noqa: S608
            [name, *views],
        )
        return [Part(*row) for row in rows]

    def page(
        self, target: Target | None, stack_name: str, after: PlanPlace, most: int
    ) -> list[tuple[StoredPlan, bytes]]:
        """Read a page of plans."""
        where, values = ["(create_time, id) < (?, ?)"], [*after]
        if target:
            where, values = [*where, "platform = ? AND org = ?"], [*values, target.platform, target.org]
        if stack_name:
            where, values = [*where, "stack_name = ?"], [*values, stack_name]
        rows = self._db.query(
            f"""
            SELECT plans.*, header FROM plans JOIN plan_headers ON plan = id
            WHERE {" AND ".join(where)} ORDER BY create_time DESC, id DESC LIMIT ?
            """,  # noqa: S608
            [*values, most],
        )
        return [(_plan(row), row["header"]) for row in rows]

    def insert(self, plan: StoredPlan, header: bytes, parts: Iterable[Part]) -> bool:
        """Add a plan."""
        added = self._db.execute(
            """
            INSERT INTO plans (id, stack, stack_name, platform, org, digest, base_generation, kind, step_count,
                package_digest, baselines_digest, rollback_of, creates_nameless_stack, state, problem, operation,
                create_time, expires)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
            """,
            [
                plan.id,
                plan.stack,
                plan.stack_name,
                plan.target.platform,
                plan.target.org,
                plan.digest,
                plan.base_generation,
                plan.kind,
                plan.step_count,
                plan.package_digest,
                plan.baselines_digest,
                plan.rollback_of,
                plan.creates_nameless_stack,
                plan.state,
                plan.problem,
                plan.operation or None,
                plan.create_time,
                plan.expires,
            ],
        )
        if not added.rowcount:
            return False
        self._db.execute("INSERT INTO plan_headers (plan, header) VALUES (?, ?)", [plan.id, header])
        self._db.conn.executemany(
            "INSERT INTO plan_parts (plan, number, view, part, masked_part) VALUES (?, ?, ?, ?, ?)",
            ((plan.id, number, *part) for number, part in enumerate(parts)),
        )
        return True

    def update(self, plan: StoredPlan) -> None:
        """Write the fields of a plan that change."""
        self._db.execute(
            "UPDATE plans SET state = ?, problem = ?, operation = ? WHERE id = ?",
            [plan.state, plan.problem, plan.operation or None, plan.id],
        )

    def delete(self, plan_id: str) -> None:
        """Remove a plan."""
        self._db.execute("DELETE FROM plans WHERE id = ?", [plan_id])


def _plan(row: dict[str, Any]) -> StoredPlan:
    return StoredPlan(
        id=row["id"],
        stack=row["stack"],
        stack_name=row["stack_name"],
        target=Target(row["platform"], row["org"]),
        digest=row["digest"],
        base_generation=row["base_generation"],
        kind=OperationKind(row["kind"]),
        step_count=row["step_count"],
        package_digest=row["package_digest"],
        baselines_digest=row["baselines_digest"],
        rollback_of=row["rollback_of"],
        creates_nameless_stack=bool(row["creates_nameless_stack"]),
        state=PlanState(row["state"]),
        problem=row["problem"],
        operation=row["operation"] or "",
        create_time=row["create_time"],
        expires=row["expires"],
    )
