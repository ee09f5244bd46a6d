"""Stacks from before there were revisions and baselines: their first apply makes both."""

import sqlite3
from pathlib import Path

from tests.applier.history import check_history, numbers
from tests.applier.world import SUCCEEDED, Case, World, end, world
from tests.apply.packages import EVERY_KIND, RENAMED, text

PACKAGE = text(*EVERY_KIND)


def forget_history(folder: Path) -> None:
    """Remove revisions and baselines from the store, as in one of an older version."""
    with sqlite3.connect(folder / "stack.db") as db:
        db.execute("DELETE FROM baselines")
        db.execute("DELETE FROM revisions")
        db.execute("DELETE FROM attachments")
        db.execute("UPDATE plans SET package_digest = '', baselines_digest = ''")
        db.execute("UPDATE stacks SET revision = 0, package_digest = ''")
    db.close()


def rows(folder: Path) -> dict[str, int]:
    """How many rows each table of the store has."""
    with sqlite3.connect(folder / "stack.db") as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {table: db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in tables}
    db.close()
    return found


async def old_case(folder: Path) -> None:
    async with world(folder) as before:
        case = Case(before.services, before.driver, "org")
        assert end(await case.apply(PACKAGE)).state == SUCCEEDED
    forget_history(folder)


def again(running: World) -> Case:
    return Case(running.services, running.driver, "org")


async def test_the_first_apply_makes_history_also_when_it_has_nothing_else_to_do(tmp_path: Path) -> None:
    await old_case(tmp_path)
    async with world(tmp_path) as running:
        case = again(running)
        before = (await case.look()).record
        assert before
        assert (before.stack.revision, before.stack.generation, await numbers(case)) == (0, 1, [])
        assert all(entry.lacks_baseline for entry in before.resources)
        assert (await case.plan(PACKAGE)).no_change

        finished = end(await case.apply(PACKAGE))

        assert (finished.state, finished.no_change, finished.generation) == (SUCCEEDED, True, 1)
        assert await numbers(case) == [1]
        after = (await case.look()).record
        assert after
        assert after.stack.update_time == before.stack.update_time
        await check_history(case)


async def test_the_first_apply_that_changes_something_gives_the_rest_its_baseline_too(tmp_path: Path) -> None:
    await old_case(tmp_path)
    async with world(tmp_path) as running:
        case = again(running)
        assert end(await case.apply(text(RENAMED, *EVERY_KIND[1:]))).state == SUCCEEDED
        assert await numbers(case) == [1]
        await check_history(case)


async def test_what_is_skipped_gets_its_baseline_when_it_is_applied(tmp_path: Path) -> None:
    await old_case(tmp_path)
    async with world(tmp_path) as running:
        case = again(running)
        await case.apply(PACKAGE, skip=[{"kind": "Task"}])
        assert end(await case.apply(PACKAGE)).no_change
        await check_history(case)


async def test_an_apply_with_nothing_to_do_writes_no_more_than_its_operation(tmp_path: Path) -> None:
    async with world(tmp_path) as running:
        case = again(running)
        await case.apply(PACKAGE)
        await case.apply(PACKAGE)
        before = rows(tmp_path)
        await case.apply(PACKAGE)
        after = rows(tmp_path)
    changed = {table for table in after if after[table] != before.get(table)}
    assert changed == {"operations", "journal", "plans", "plan_bodies"}
