"""The guarantees of every store for action sets, their reservations and their snapshots."""

from dataclasses import replace
from typing import Any

import pytest

from services.actions.definitions import ActionObject
from services.core.model import OperationKind, Target
from services.engine.operation import OperationState
from stack_svc.store.action_sets import ActionSetFilter, Progress, StoredActionSet
from stack_svc.store.operations import START as FIRST_OPERATION
from stack_svc.store.operations import Operation
from stack_svc.store.reservations import Reservation
from stack_svc.store.snapshots import START as FIRST_SNAPSHOT
from stack_svc.store.snapshots import StoredSnapshot
from stack_svc.store.stacks import StackName
from stack_svc.store.store import RetentionLimits, Store, Transaction
from tests.stack.service import Clock
from tests.stack.store.values import HERE, an_operation

DAY = 24 * 3600 * 1_000_000
THERE = Target(org="there")
PROD = StackName(HERE, "prod")


async def with_run(store: Store, name: str, time: int = 10, **fields: Any) -> tuple[StoredActionSet, Operation]:
    """An action set *name*, whose operation has the id ``o-NAME``; *fields* are fields of either."""
    of_operation = {key: fields.pop(key) for key in ("state", "parent", "author") if key in fields}
    operation = an_operation(
        f"o-{name}",
        f"s-{name}",
        stackless=True,
        stack_name="",
        kind=OperationKind.ACTION,
        create_time=time,
        update_time=time,
        action_set=name,
        **{"state": OperationState.APPLYING, **of_operation},
    )
    action_set = StoredActionSet(name, operation.id, **{"phase_count": 3, **fields})

    def add(tx: Transaction) -> None:
        assert tx.operations.insert(operation)
        tx.operations.update(operation)
        assert tx.action_sets.insert(action_set, b"\0body")

    await store.write(add)
    return action_set, operation


async def end(store: Store, operation: Operation, state: OperationState = OperationState.SUCCEEDED) -> None:
    await store.write(lambda tx: tx.operations.update(replace(operation, state=state)))


async def test_an_action_set_reads_back_as_it_was_written(store: Store) -> None:
    objects = (ActionObject("Stack", "prod", "", "influxdb", "acme"), ActionObject("Bucket", 'b"ü', "prod", "p", "o"))
    made, operation = await with_run(
        store,
        "nightly",
        predecessor="before",
        blueprints=("a", "b"),
        objects=objects,
        labels={'ü"k': "v\n", "b": ""},
        ttl=5,
        parent="o-parent",
    )
    assert await store.read(lambda tx: tx.action_sets.find("nightly")) == made
    assert await store.read(lambda tx: tx.action_sets.body("nightly")) == b"\0body"
    assert await store.read(lambda tx: tx.action_sets.find("other")) is None
    assert await store.read(lambda tx: tx.action_sets.body("other")) == b""
    assert await store.read(lambda tx: tx.operations.find("o-nightly")) == operation
    await store.write(lambda tx: tx.action_sets.begin("nightly"))
    begun = replace(made, has_begun=True)
    assert await store.read(lambda tx: tx.action_sets.page(ActionSetFilter(), FIRST_OPERATION, 9)) == [
        (begun, operation)
    ]
    assert not await store.write(lambda tx: tx.action_sets.insert(made, b""))
    await store.write(lambda tx: tx.operations.delete("o-nightly"))
    assert await store.read(lambda tx: (tx.action_sets.find("nightly"), tx.operations.find("o-nightly"))) == (
        None,
        None,
    )


@pytest.mark.parametrize(
    ("criteria", "names"),
    [
        ({}, "dcba"),
        ({"stack": PROD}, "da"),
        ({"stack": StackName(THERE, "prod")}, "c"),
        ({"blueprint": "backup"}, "ca"),
        ({"blueprint": "back"}, ""),
        ({"predecessor": "a"}, "b"),
        ({"labels": {"why": "ü"}}, "ca"),
        ({"labels": {"why": "ü", 'k"': "1"}}, "c"),
        ({"labels": {"why": ""}}, ""),
        ({"progress": [Progress(OperationState.APPLYING, False)]}, "a"),
        ({"progress": [Progress(OperationState.APPLYING, True)]}, "b"),
        ({"progress": [Progress(OperationState.APPLYING), Progress(OperationState.CANCELLED)]}, "dba"),
        ({"progress": [Progress(OperationState.FAILED)]}, ""),
    ],
)
async def test_action_sets_are_listed_newest_first(store: Store, criteria: dict[str, Any], names: str) -> None:
    prod = ActionObject("Stack", "prod", "", HERE.platform, HERE.org)
    resource = ActionObject("Bucket", "prod", "prod", HERE.platform, HERE.org)
    await with_run(store, "a", 1, objects=[prod], blueprints=["backup", "x"], labels={"why": "ü"})
    await with_run(store, "b", 2, objects=[resource], predecessor="a", has_begun=True)
    there, labels = ActionObject("Stack", "prod", "", THERE.platform, THERE.org), {"why": "ü", 'k"': "1"}
    succeeded, cancelled = OperationState.SUCCEEDED, OperationState.CANCELLED
    await with_run(store, "c", 3, objects=[there], blueprints=["backup"], labels=labels, state=succeeded)
    await with_run(store, "d", 3, objects=[resource, prod], state=cancelled)

    listed = await store.read(lambda tx: tx.action_sets.page(ActionSetFilter(**criteria), FIRST_OPERATION, 9))
    assert "".join(each.name for each, _ in listed) == names
    if listed:
        after = (listed[0][1].create_time, listed[0][1].id)
        rest = await store.read(lambda tx: tx.action_sets.page(ActionSetFilter(**criteria), after, 1))
        assert rest == listed[1:2]


async def test_unfinished_action_sets_are_counted(store: Store) -> None:
    _, ended = await with_run(store, "a")
    await with_run(store, "b", state=OperationState.BLOCKED)
    await store.write(lambda tx: tx.operations.insert(an_operation(kind=OperationKind.ACTION)))
    assert await store.read(lambda tx: tx.action_sets.unfinished_count()) == 2
    await end(store, ended)
    assert await store.read(lambda tx: tx.action_sets.unfinished_count()) == 1


async def test_a_stack_is_reserved_once_by_its_id_or_by_its_name(store: Store) -> None:
    for name in ("a", "b"):
        await with_run(store, name)
    new = StackName(HERE, "new")
    by_id, by_name = Reservation(PROD, "s1", "o-a", "a", 7), Reservation(new, "", "o-a", "a", 8)
    for made in (by_id, by_name):
        assert await store.write(lambda tx, made=made: tx.reservations.insert(made))  # type: ignore[misc]
    for other in (
        Reservation(PROD, "s2", "o-b", "b", 9),
        Reservation(StackName(HERE, "other"), "s1", "o-b", "b", 9),
        Reservation(new, "s3", "o-b", "b", 9),
    ):
        assert not await store.write(lambda tx, other=other: tx.reservations.insert(other))  # type: ignore[misc]
    elsewhere = Reservation(StackName(THERE, "new"), "", "o-b", "b", 9)
    assert await store.write(lambda tx: tx.reservations.insert(elsewhere))

    async def of(stack: str, named: StackName) -> Reservation | None:
        return await store.read(lambda tx: tx.reservations.of(stack, named))

    assert await of("s1", StackName(HERE, "renamed")) == by_id
    assert await of("", PROD) == by_id
    assert await of("s3", new) == by_name
    assert await of("", StackName(HERE, "")) is None
    assert await of("s4", StackName(THERE, "prod")) is None
    assert await store.read(lambda tx: tx.reservations.of_operation("o-a")) == [by_name, by_id]
    await store.write(lambda tx: tx.reservations.drop("o-a"))
    assert await of("s1", PROD) is None
    assert await of("", StackName(THERE, "new")) == elsewhere
    await store.write(lambda tx: tx.operations.delete("o-b"))
    assert await of("", StackName(THERE, "new")) is None


def a_snapshot(name: str, operation: str = "o-a", **fields: Any) -> StoredSnapshot:
    return replace(StoredSnapshot(name, f"manifest of {name}", operation, operation[2:], "prod", 3, 4, 10), **fields)


async def with_snapshot(store: Store, made: StoredSnapshot, *contents: str) -> None:
    assert await store.write(lambda tx: tx.snapshots.insert(made, contents))


async def known(store: Store, *names: str) -> str:
    found = await store.read(lambda tx: [tx.snapshots.find(name) for name in names])
    return "".join(each.id for each in found if each)


async def test_a_snapshot_reads_back_as_it_was_written(store: Store) -> None:
    _, maker = await with_run(store, "a")
    made = a_snapshot("x", bytes=2**62)
    await with_snapshot(store, made, "d1", "d2", "d1")
    assert not await store.write(lambda tx: tx.snapshots.insert(made, []))
    assert await store.read(lambda tx: tx.snapshots.find("x")) == made
    assert await store.read(lambda tx: tx.snapshots.find("y")) is None
    listed = replace(made, manifest="")
    assert await store.read(lambda tx: tx.snapshots.page("", FIRST_SNAPSHOT, 9)) == [listed]
    assert await store.read(lambda tx: tx.snapshots.used_by("o-a")) == [listed]
    assert await store.read(lambda tx: tx.snapshots.made_by("o-a")) == ["x"]

    assert await store.write(lambda tx: tx.snapshots.delete("x", 11, "ü"))
    assert not await store.write(lambda tx: tx.snapshots.delete("x", 12, "other"))
    assert not await store.write(lambda tx: tx.snapshots.delete("y", 12, "other"))
    assert await store.read(lambda tx: tx.snapshots.find("x")) == replace(made, delete_time=11, deleted_by="ü")
    assert await store.read(lambda tx: tx.snapshots.page("", FIRST_SNAPSHOT, 9)) == []
    assert await store.read(lambda tx: tx.snapshots.made_by("o-a")) == []
    assert await store.read(lambda tx: tx.snapshots.is_used("x"))
    await end(store, maker)
    assert not await store.read(lambda tx: tx.snapshots.is_used("x"))


async def test_snapshots_are_listed_newest_first(store: Store) -> None:
    await with_run(store, "a")
    for name, time, stack in (("x", 1, "prod"), ("y", 2, ""), ("z", 2, "prod"), ("v", 3, "prod ")):
        await with_snapshot(store, a_snapshot(name, create_time=time, stack_name=stack))

    async def names(stack: str = "", after: tuple[int, str] = FIRST_SNAPSHOT, most: int = 9) -> str:
        return "".join(each.id for each in await store.read(lambda tx: tx.snapshots.page(stack, after, most)))

    assert await names() == "vzyx"
    assert await names(after=(2, "z"), most=1) == "y"
    assert await names("prod") == "zx"


async def test_only_snapshots_that_are_there_can_be_used(store: Store) -> None:
    for name in ("a", "b"):
        await with_run(store, name)
    for name in ("x", "y"):
        await with_snapshot(store, a_snapshot(name))
    await store.write(lambda tx: tx.snapshots.delete("y", 11, ""))
    assert await store.write(lambda tx: tx.snapshots.use("o-b", ["z", "y", "x"])) == ["y", "z"]
    assert await store.read(lambda tx: tx.snapshots.used_by("o-b")) == []
    for _ in range(2):
        assert await store.write(lambda tx: tx.snapshots.use("o-b", ["x", "x"])) == []
    assert [each.id for each in await store.read(lambda tx: tx.snapshots.used_by("o-b"))] == ["x"]


async def stored_contents(store: Store, clock: Clock, *digests: str) -> list[str]:
    """Those of *digests* that are stored after a sweep a day later."""
    clock.now += DAY + 1
    await store.sweep(RetentionLimits())
    lacking = await store.read(lambda tx: tx.attachments.lacking(digests))
    return [digest for digest in digests if digest not in lacking]


def put_attachments(tx: Transaction, *digests: str) -> None:
    for digest in digests:
        tx.attachments.put(digest, 0, b"", tx.now())
        tx.attachments.complete(digest, 1)


async def test_contents_are_kept_until_the_last_unfinished_user_of_a_deleted_snapshot_has_ended(
    store: Store, clock: Clock
) -> None:
    await store.write(lambda tx: put_attachments(tx, "own", "both", "other"))
    _, maker = await with_run(store, "a", clock.now)
    _, user = await with_run(store, "b", clock.now)
    await with_snapshot(store, a_snapshot("x"), "own", "both")
    await with_snapshot(store, a_snapshot("y"), "both", "other")
    assert await store.write(lambda tx: tx.snapshots.use("o-b", ["x"])) == []
    for operation in (maker, user):
        await store.write(lambda tx: tx.snapshots.delete("x", 11, ""))
        assert await stored_contents(store, clock, "own", "both", "other") == ["own", "both", "other"]

        def finish(tx: Transaction, operation: Operation = operation) -> None:
            tx.snapshots.release(operation.id)
            tx.operations.update(replace(operation, state=OperationState.FAILED))

        await store.write(finish)
    assert await stored_contents(store, clock, "own", "both", "other") == ["both", "other"]
    assert await known(store, "x", "y") == "xy"
    await store.write(lambda tx: tx.snapshots.delete("y", 12, ""))
    assert await stored_contents(store, clock, "own", "both", "other") == []


async def test_a_deleted_snapshot_outlives_its_maker_only_while_it_is_used(store: Store) -> None:
    _, maker = await with_run(store, "a")
    _, user = await with_run(store, "b")
    for name in ("x", "y"):
        await with_snapshot(store, a_snapshot(name))
    assert await store.write(lambda tx: tx.snapshots.use("o-b", ["x"])) == []
    await end(store, maker)
    for name in ("x", "y"):
        await store.write(lambda tx, name=name: tx.snapshots.delete(name, 11, ""))  # type: ignore[misc]

    await store.write(lambda tx: tx.operations.delete("o-a"))

    assert await known(store, "x", "y") == "x"
    found = await store.read(lambda tx: tx.snapshots.find("x"))
    assert found == a_snapshot("x", operation="", action_set="", delete_time=11)

    def finish(tx: Transaction) -> None:
        tx.operations.update(replace(user, state=OperationState.SUCCEEDED))
        tx.snapshots.release("o-b")

    await store.write(finish)
    assert await known(store, "x") == ""


async def test_a_sweep_keeps_the_newest_action_sets_and_those_whose_snapshots_are_needed(
    store: Store, clock: Clock
) -> None:
    succeeded, now = OperationState.SUCCEEDED, clock.now
    for number, name in enumerate("abcd"):
        await with_run(store, name, now + number, state=succeeded)
    await with_run(store, "e", now - 5)
    await with_run(store, "f", now, ttl=2, state=OperationState.CANCELLED)
    await with_run(store, "g", now, ttl=2)
    await with_run(store, "h", now, ttl=2, state=OperationState.BLOCKED)
    await with_snapshot(store, a_snapshot("x", "o-a"))
    await with_snapshot(store, a_snapshot("y", "o-b"))
    assert await store.write(lambda tx: tx.snapshots.use("o-e", ["y"])) == []
    await store.write(lambda tx: tx.snapshots.delete("y", 1, ""))

    async def left(most: int = 1000, kept: int = 0) -> str:
        limits = RetentionLimits(operations=kept, action_sets=most)
        swept = await store.sweep(limits)
        page = await store.read(lambda tx: tx.action_sets.page(ActionSetFilter(), FIRST_OPERATION, 99))
        assert swept.operations == 0
        return "".join(sorted(each.name for each, _ in page))

    assert await left() == "abcdefgh"
    clock.now += 2
    assert await left() == "abcdefgh"
    clock.now += 1
    assert await left() == "abcdegh"
    assert await left(most=1) == "abdegh"
    assert await store.write(lambda tx: tx.snapshots.delete("x", 1, ""))
    assert await left(most=1) == "bdegh"
    await end(store, an_operation("o-e", "s-e", action_set="e", update_time=now))
    assert await left(most=1) == "dgh"
    assert await known(store, "x", "y") == ""


async def test_operations_of_an_unfinished_action_set_are_kept(store: Store, clock: Clock) -> None:
    _, run = await with_run(store, "a")
    child = an_operation("child", parent=run.id, state=OperationState.FAILED, update_time=clock.now)
    # One that ended before it started has no action set, and goes as any other.
    early = an_operation("early", "s-early", kind=OperationKind.ACTION, state=OperationState.FAILED)
    for operation in (child, early):
        await store.write(lambda tx, operation=operation: tx.operations.insert(operation))  # type: ignore[misc]
    found = await store.read(lambda tx: tx.operations.find("child"))
    assert found == child
    assert (await store.sweep(RetentionLimits(operations=0))).operations == 1
    await end(store, run)
    assert (await store.sweep(RetentionLimits(operations=0))).operations == 1
    assert await store.read(lambda tx: tx.operations.find("child")) is None
