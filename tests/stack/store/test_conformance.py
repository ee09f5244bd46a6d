"""
The guarantees of every store (docs/reference/engine.md, "Store"): the laws of its methods, races with one winner,
sweeps.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from services.core.errors import StackNotFound
from services.core.model import InventoryEntry, Key, OperationKind, Origin, Target
from services.engine.operation import OperationState
from stack_svc.store.definitions import START as FIRST_DEFINITION
from stack_svc.store.definitions import StoredDefinition
from stack_svc.store.inventory import NamelessStack
from stack_svc.store.journal import Row
from stack_svc.store.leases import RELEASED, Lease
from stack_svc.store.locks import LockedTooLateError
from stack_svc.store.operations import START as FIRST_OPERATION
from stack_svc.store.operations import Blocks, Operation, OperationFilter
from stack_svc.store.owners import RECORDED, Owner
from stack_svc.store.plans import START as FIRST_PLAN
from stack_svc.store.plans import Part, PlanState
from stack_svc.store.repositories import START as FIRST_REPOSITORY
from stack_svc.store.repositories import Repository, RepositoryChanges
from stack_svc.store.requests import StoredAnswer
from stack_svc.store.stacks import START as FIRST_STACK
from stack_svc.store.stacks import Stack, StackFilter, StackName, State
from stack_svc.store.store import ReadTransaction, RetentionLimits, Store, Swept, Transaction
from tests.stack.service import Clock
from tests.stack.store.strict import BrokenRuleError, Late
from tests.stack.store.values import HEADER, HERE, a_plan, a_stack, an_entry, an_operation, with_stack

LARGE = 2**63 - 1
FIRST_ENTRY = Key("", "")
ALL = StackFilter()


async def test_a_stack_reads_back_as_it_was_written(store: Store) -> None:
    stack = a_stack(description="ü\n")
    assert await store.write(lambda tx: tx.stacks.insert(stack))
    for choice in ("s1", StackName(HERE, "prod")):
        assert await store.read(lambda tx, choice=choice: tx.stacks.find(choice)) == stack  # type: ignore[misc]
    assert await store.read(lambda tx: tx.leases.of("s1")) == Lease()

    record = replace(stack.record, generation=LARGE, sources=("a.yml", "ü"))
    changed = replace(
        stack,
        record=record,
        state=State.PENDING,
        create_time=LARGE - 1,
        update_time=LARGE,
        resource_count=7,
        package_count=8,
    )
    await store.write(lambda tx: tx.stacks.update(changed))
    assert await store.read(lambda tx: tx.stacks.find("s1")) == changed

    await store.write(lambda tx: tx.stacks.delete("s1"))
    assert await store.read(lambda tx: (tx.stacks.find("s1"), tx.leases.of("s1"))) == (None, None)


async def test_an_edit_of_a_stack_changes_only_fields_that_users_set(store: Store) -> None:
    there, nameless = a_stack("s3", "free", Target(org="there")), a_stack("s2", "")
    await with_stack(store, nameless, there)
    stack = a_stack(resource_count=3)
    await store.write(lambda tx: tx.stacks.update(stack))
    record = replace(stack.record, name="free", urls=("https://a.example/ü.yml", "b"), generation=9, sources=("s",))
    edited = replace(stack, record=record, description="ü", version=LARGE, update_time=LARGE, resource_count=7)

    assert await store.write(lambda tx: tx.stacks.edit(edited))

    kept = replace(edited, record=replace(record, generation=0, sources=()), resource_count=3)
    assert await store.read(lambda tx: tx.stacks.find("s1")) == kept
    assert await store.read(lambda tx: tx.stacks.find(StackName(HERE, "prod"))) is None
    renamed = replace(nameless, record=replace(nameless.record, name="free"), description="other")
    assert not await store.write(lambda tx: tx.stacks.edit(renamed))
    assert await store.read(lambda tx: tx.stacks.find("s2")) == nameless
    unnamed = replace(kept, record=replace(kept.record, name=""))
    assert await store.write(lambda tx: tx.stacks.edit(unnamed))
    assert await store.write(lambda tx: tx.stacks.edit(renamed))


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        (StackFilter(), "0123456"),
        (StackFilter(ids=["s1", "s9", ""]), "1"),
        (StackFilter(names=["b", "B", "none"]), "34"),
        (StackFilter(names=[""]), "06"),
        (StackFilter(names=["b"], ids=["s6"], glob="a?"), "246"),
        (StackFilter(glob="*"), "0123456"),
        (StackFilter(glob="?"), "1345"),
        (StackFilter(glob="b"), "4"),
        (StackFilter(glob="*b"), "24"),
        (StackFilter(glob="[*"), "5"),
        (StackFilter(glob="[ab]"), ""),
        (StackFilter(Target(org="there"), glob="*"), "56"),
        (StackFilter(Target(org="there"), ids=["s1", "s6"]), "6"),
        (StackFilter(glob="*a*a*a*a*a*a*a*a*a*a*b"), ""),
    ],
)
async def test_stacks_are_chosen_by_id_by_name_or_by_a_pattern(store: Store, wanted: StackFilter, ids: str) -> None:
    there = Target(org="there")
    named = [("0", "", HERE), ("1", "a", HERE), ("2", "ab", HERE), ("3", "B", HERE), ("4", "b", HERE)]
    for number, name, target in [*named, ("5", "[", there), ("6", "", there)]:
        stack = a_stack(f"s{number}", name, target)
        assert await store.write(lambda tx, stack=stack: tx.stacks.insert(stack))  # type: ignore[misc]
    found = await store.read(lambda tx: tx.stacks.page(wanted, FIRST_STACK, 9))
    assert sorted(stack.record.id for stack in found) == [f"s{number}" for number in ids]
    assert [(stack.record.name, stack.record.id) for stack in found] == sorted(
        (stack.record.name, stack.record.id) for stack in found
    )


@pytest.mark.parametrize(
    ("other", "is_added"),
    [
        (a_stack("s1", "other"), False),
        (a_stack("s2", "prod"), False),
        (a_stack("s2", "Prod"), True),
        (a_stack("s2", "prod", Target(org="there")), True),
        (a_stack("s2", "prod", Target(platform="other")), True),
    ],
)
async def test_ids_and_names_of_stacks_are_unique(store: Store, other: Stack, is_added: bool) -> None:
    await with_stack(store)
    assert await store.write(lambda tx: tx.stacks.insert(other)) is is_added
    found = await store.read(lambda tx: tx.stacks.page(ALL, FIRST_STACK, 9))
    assert len(found) == 1 + is_added


async def test_any_number_of_stacks_have_no_name_and_are_found_by_id(store: Store) -> None:
    for stack_id in ("s1", "s2"):
        stackless = a_stack(stack_id, "", state=State.STACKLESS)
        assert await store.write(lambda tx, stack=stackless: tx.stacks.insert(stack))  # type: ignore[misc]
    assert await store.read(lambda tx: tx.stacks.find(StackName(HERE, ""))) is None
    assert await store.read(lambda tx: tx.stacks.page(ALL, FIRST_STACK, 9)) == []


NAMES = ["A", "Z", "a", "é", "\ufb00", "\U00010400"]
"""Names in the order of code points, in which languages, UTF-16 and comparisons without case differ."""


async def test_lists_are_in_the_order_of_code_points_and_start_after_a_key(store: Store) -> None:
    for number, name in enumerate(reversed(NAMES)):
        await store.write(lambda tx, n=number, name=name: tx.stacks.insert(a_stack(f"s{n}", name)))  # type: ignore[misc]
    entries = [an_entry(name) for name in NAMES]
    await store.write(lambda tx: tx.inventory.change("s0", HERE, [], list(reversed(entries))))

    found = await store.read(lambda tx: tx.stacks.page(StackFilter(HERE), FIRST_STACK, 9))
    assert [stack.record.name for stack in found] == NAMES
    behind = (found[2].record.name, found[2].record.id)
    assert await store.read(lambda tx: tx.stacks.page(StackFilter(HERE), behind, 2)) == found[3:5]
    assert await store.read(lambda tx: tx.stacks.page(StackFilter(Target(org="there")), FIRST_STACK, 9)) == []
    assert await store.read(lambda tx: tx.inventory.page("s0", FIRST_ENTRY, 9)) == entries
    assert await store.read(lambda tx: tx.inventory.page("s0", entries[1].key, 2)) == entries[2:4]


async def test_a_lease_reads_back_as_it_was_written(store: Store) -> None:
    await with_stack(store)
    lease = Lease("ü/1", "operation-1", LARGE, LARGE - 1, LARGE - 2, LARGE - 3, LARGE - 4)
    await store.write(lambda tx: tx.leases.put("s1", lease))
    assert await store.read(lambda tx: tx.leases.of("s1")) == lease


async def test_the_last_operations_on_a_stack_are_found_by_their_leases(store: Store) -> None:
    """Their order does not depend on clocks."""
    finished = {"state": OperationState.SUCCEEDED}
    for name, stack, token, time in (("a", "s1", 7, 50), ("b", "s1", 9, 40), ("c", "s2", 8, 60), ("d", "s1", 8, 45)):
        made = an_operation(name, stack, token=token, create_time=time, update_time=99, **finished)
        assert await store.write(lambda tx, made=made: tx.operations.insert(made))  # type: ignore[misc]

    def names(reading: ReadTransaction, token: int) -> list[str]:
        return [operation.id for operation in reading.operations.since("s1", token)]

    assert await store.read(lambda tx: names(tx, 8)) == ["d", "b"]
    assert await store.read(lambda tx: names(tx, 0)) == ["a", "d", "b"]
    assert await store.read(lambda tx: names(tx, 10)) == []
    last = await store.read(lambda tx: tx.operations.last_on("s1"))
    assert last
    assert last.id == "b"
    assert await store.read(lambda tx: tx.operations.last_on("s3")) is None


async def test_an_operation_reads_back_as_it_was_written(store: Store) -> None:
    made = an_operation(stackless=True)
    assert await store.write(lambda tx: tx.operations.insert(made))
    assert await store.read(lambda tx: tx.operations.find("operation-1")) == made
    assert await store.read(lambda tx: tx.operations.stack_of("operation-1")) == "s1"
    assert await store.read(lambda tx: tx.operations.stack_of("operation-2")) is None
    changed = replace(
        made,
        state=OperationState.BLOCKED,
        holder="you",
        token=LARGE,
        update_time=LARGE,
        rolling_back=True,
        sealed=True,
        cancel_requested=True,
        cause="ü",
        step_count=3,
        done_count=2,
        position=4,
        last_seq=5,
        last_event=b"\0\xff",
    )
    await store.write(lambda tx: tx.operations.update(changed))
    await store.write(lambda tx: tx.operations.block("operation-1", Blocks(2, 3, b"\0steps")))
    found = await store.read(lambda tx: tx.operations.find("operation-1"))
    assert found == replace(changed, blocks=Blocks(2, 3))
    assert await store.read(lambda tx: tx.operations.unfinished_on("s1")) == found
    assert await store.read(lambda tx: tx.operations.blocked_steps("operation-1")) == b"\0steps"
    await store.write(lambda tx: tx.operations.unblock("operation-1"))
    assert await store.read(lambda tx: tx.operations.find("operation-1")) == changed
    assert await store.read(lambda tx: tx.operations.blocked_steps("operation-1")) == b""


async def test_a_stack_has_one_unfinished_operation(store: Store) -> None:
    assert await store.write(lambda tx: tx.operations.insert(an_operation()))
    for other in (an_operation(stack="s2"), an_operation("operation-2")):
        assert not await store.write(lambda tx, other=other: tx.operations.insert(other))  # type: ignore[misc]
    await store.write(lambda tx: tx.operations.update(an_operation(state=OperationState.FAILED)))
    assert await store.read(lambda tx: tx.operations.unfinished_on("s1")) is None
    assert await store.write(lambda tx: tx.operations.insert(an_operation("operation-2")))


async def test_operations_are_listed_newest_first_by_stack_target_state_kind_and_time(store: Store) -> None:
    made = [
        an_operation("operation-1", "s1", create_time=1, update_time=1, state=OperationState.FAILED),
        an_operation("operation-2", "s1", create_time=2, update_time=2, kind=OperationKind.UNINSTALL),
        an_operation("operation-3", "s2", create_time=2, update_time=2),
        an_operation("operation-4", "s4", create_time=3, update_time=3, target=Target(org="there")),
    ]
    for operation in made:
        await store.write(lambda tx, operation=operation: tx.operations.insert(operation))  # type: ignore[misc]

    async def names(*, after: tuple[int, str] = FIRST_OPERATION, most: int = 9, **wanted: Any) -> str:
        found = await store.read(lambda tx: tx.operations.page(OperationFilter(**wanted), after, most))
        return "".join(operation.id[-1] for operation in found)

    assert await names() == "4321"
    assert await names(most=2) == "43"
    assert await names(after=(2, "operation-3")) == "21"
    assert await names(stack="s1") == "21"
    assert await names(target=Target()) == "321"
    assert await names(target=Target(org="there")) == "4"
    assert await names(target=Target("lab", "there")) == ""
    assert await names(target=Target(), stack="s1", states=[OperationState.FAILED]) == "1"
    assert await names(states=[OperationState.FAILED]) == "1"
    assert await names(kinds=[OperationKind.UNINSTALL]) == "2"
    assert await names(since=2, until=3) == "32"


async def test_operations_whose_lease_is_free_are_abandoned_oldest_first(store: Store) -> None:
    leases = {
        "over": Lease("me", "", 1, 10, 99),
        "ends now": Lease("me", "", 1, 10, 100),
        "set back": Lease("me", "", 1, 10, 111),
        "held": Lease("me", "", 1, 10, 110),
        "given back": Lease("me", "", 1, 10, 0),
    }
    for number, (name, lease) in enumerate(leases.items()):
        operation = an_operation(f"operation-{name}", name, create_time=9 - number, update_time=9)

        def add(tx: Transaction, name: str = name, lease: Lease = lease, operation: Operation = operation) -> None:
            assert tx.stacks.insert(a_stack(name, name))
            assert tx.operations.insert(operation)
            tx.leases.put(name, lease)

        await store.write(add)
    expected = [f"operation-{name}" for name in ("given back", "set back", "over")]
    assert await store.read(lambda tx: tx.operations.abandoned(100, 9)) == expected
    assert await store.read(lambda tx: tx.operations.abandoned(100, 2)) == expected[:2]
    blocked = an_operation("operation-over", "over", state=OperationState.BLOCKED)
    await store.write(lambda tx: tx.operations.update(blocked))
    assert await store.read(lambda tx: tx.operations.abandoned(100, 9)) == expected[:2]


async def test_a_journal_is_read_in_order(store: Store) -> None:
    rows = [
        Row(0, 7, 2, b"records", b"events of 1 and 2", 10),
        Row(1, LARGE, 3, b"", b"event 3", LARGE),
        Row(2, 7, 3, b"\0\xff", b"", 12),
        Row(3, 7, 4, b"", b"event 4", 13),
    ]
    await store.write(lambda tx: tx.operations.insert(an_operation()))
    for row in rows:
        await store.write(lambda tx, row=row: tx.journal.append("operation-1", row))  # type: ignore[misc]

    assert await store.read(lambda tx: tx.journal.rows("operation-1")) == rows
    assert await store.read(lambda tx: tx.journal.row("operation-1", 2)) == rows[2]
    assert await store.read(lambda tx: tx.journal.row("operation-1", 4)) is None
    assert await store.read(lambda tx: tx.journal.rows("operation-2")) == []

    async def after(seq: int, most_bytes: int = 99) -> tuple[list[int], bool]:
        found, has_more = await store.read(lambda tx: tx.journal.rows_after("operation-1", seq, most_bytes))
        return [row.position for row in found], has_more

    assert await after(0) == ([0, 1, 3], False)
    assert await after(1) == ([0, 1, 3], False)
    assert await after(2) == ([1, 3], False)
    assert await after(4) == ([], False)
    assert await after(0, 1) == ([0], True)
    assert await after(0, 18) == ([0, 1], True)
    assert await after(3, 1) == ([3], False)


async def test_an_inventory_reads_back_as_it_was_written(store: Store) -> None:
    await with_stack(store)
    label = (Key("Label", "ü"), Key("Label", "b"))
    entries = [
        an_entry("one", associations=label, origin=Origin.ADOPTED),
        an_entry("two", is_pending_delete=True, own_policy='{"object":{"drift":"ignore"}}'),
        InventoryEntry(Key("Task", "one"), "id-one", Origin.CREATED, policy='{"protect":true}'),
    ]
    await store.write(lambda tx: tx.inventory.change("s1", HERE, [], entries))
    assert await store.read(lambda tx: tx.inventory.page("s1", FIRST_ENTRY, 9)) == entries
    wanted = [entries[2].key, Key("Task", "none"), entries[0].key]
    found = await store.read(lambda tx: tx.inventory.entries("s1", wanted))
    assert sorted(found) == sorted([entries[0], entries[2]])
    changed = entries[0]._replace(resource_id="id-three", associations=(), own_policy='{"package":{"protect":true}}')
    gone = [entries[1].key, Key("Task", "none")]
    await store.write(lambda tx: tx.inventory.change("s1", HERE, gone, [changed]))
    assert await store.read(lambda tx: tx.inventory.page("s1", FIRST_ENTRY, 9)) == [changed, entries[2]]


async def test_stacks_without_a_name_are_found_by_their_entries(store: Store) -> None:
    old, new = a_stack("s2", "", create_time=7, update_time=7), a_stack("s3", "", create_time=8, update_time=8)
    pending, there = a_stack("s4", "", state=State.PENDING), a_stack("s5", "", target=Target(org="there"))
    await with_stack(store, old, new, pending, there)
    for stack in ("s1", "s2", "s3", "s4"):
        entries = [
            an_entry("one", f"id-{stack}"),
            an_entry("two", is_pending_delete=True),
            an_entry("used", "u", origin=Origin.SHARED),
        ]
        await store.write(lambda tx, stack=stack, entries=entries: tx.inventory.change(stack, HERE, [], entries))  # type: ignore[misc]

    async def found(*keys: Key) -> list[NamelessStack]:
        return await store.read(lambda tx: tx.inventory.of_nameless(HERE, keys))

    one, two, used = (an_entry(name).key for name in ("one", "two", "used"))
    shared = an_entry("used", "u", origin=Origin.SHARED)
    assert await found(used, one) == [
        NamelessStack(stack, 2, [an_entry("one", f"id-{stack}"), shared]) for stack in ("s3", "s2")
    ]
    assert await found(two, Key("Task", "one")) == []


async def test_objects_of_a_stack_swap_their_resources(store: Store) -> None:
    await with_stack(store)
    before = [an_entry("one", "1"), an_entry("two", "2")]
    swapped = [an_entry("one", "2"), an_entry("two", "1")]
    for entries in (before, swapped):
        await store.write(lambda tx, entries=entries: tx.inventory.change("s1", HERE, [], entries))  # type: ignore[misc]
    assert await store.read(lambda tx: tx.inventory.page("s1", FIRST_ENTRY, 9)) == swapped


async def test_an_item_has_one_owner(store: Store) -> None:
    await with_stack(store, a_stack("s2", "other"))
    assert await store.write(lambda tx: tx.owners.take("s1", HERE, "o1", {"n:b": "two", "n:a": "one"}, 7)) == []
    one, two = Owner("n:a", "one", "s1", "prod", "o1", 7), Owner("n:b", "two", "s1", "prod", "o1", 7)

    wanted = {"n:c": "three", "n:b": "mine", "n:a": "mine"}
    for operation in ("o2", RECORDED):
        refused = await store.write(lambda tx, name=operation: tx.owners.take("s2", HERE, name, wanted, 8))  # type: ignore[misc]
        assert refused == [one, two]

    asked = ["n:b", "n:a", "n:c", "n:a", "n"]
    assert await store.read(lambda tx: tx.owners.of(HERE, asked)) == [one, two]
    there = Target(org="there")
    assert await store.write(lambda tx: tx.owners.take("s2", there, "o2", {"n:a": "mine"}, 8)) == []
    assert await store.read(lambda tx: tx.owners.of(HERE, asked)) == [one, two]


async def test_a_recorded_item_stays_recorded_when_an_operation_claims_it(store: Store) -> None:
    await with_stack(store)
    await store.write(lambda tx: tx.owners.take("s1", HERE, RECORDED, {"i:1": "one"}, 7))
    assert await store.write(lambda tx: tx.owners.take("s1", HERE, "o1", {"i:1": "another", "i:2": "two"}, 8)) == []
    kept, claimed = Owner("i:1", "one", "s1", "prod", RECORDED, 7), Owner("i:2", "two", "s1", "prod", "o1", 8)
    assert await store.read(lambda tx: tx.owners.of(HERE, ["i:1", "i:2"])) == [kept, claimed]

    await store.write(lambda tx: tx.owners.drop("s1", "o1"))

    assert await store.read(lambda tx: tx.owners.of(HERE, ["i:1", "i:2"])) == [kept]


async def test_a_claimed_item_becomes_recorded(store: Store) -> None:
    await with_stack(store)
    await store.write(lambda tx: tx.owners.take("s1", HERE, "o1", {"i:1": "", "i:2": "two"}, 7))
    assert await store.write(lambda tx: tx.owners.take("s1", HERE, RECORDED, {"i:1": "one"}, 9)) == []
    await store.write(lambda tx: tx.owners.drop("s1", "o1"))
    assert await store.read(lambda tx: tx.owners.of(HERE, ["i:1", "i:2"])) == [
        Owner("i:1", "one", "s1", "prod", RECORDED, 7)
    ]


async def test_two_objects_of_a_stack_do_not_share_an_item(store: Store) -> None:
    await with_stack(store)
    await store.write(lambda tx: tx.owners.take("s1", HERE, RECORDED, {"i:1": "one"}, 7))
    [owner] = await store.write(lambda tx: tx.owners.take("s1", HERE, RECORDED, {"i:1": "two", "i:2": "two"}, 8))
    assert (owner.what, owner.name) == ("i:1", "one")

    def swap(tx: Transaction) -> list[Owner]:
        tx.owners.release("s1", HERE, ["i:1"])
        return tx.owners.take("s1", HERE, RECORDED, {"i:1": "two"}, 8)

    assert await store.write(swap) == []


async def test_a_stack_releases_only_its_own_items(store: Store) -> None:
    await with_stack(store, a_stack("s2", "other"))
    await store.write(lambda tx: tx.owners.take("s1", HERE, "o1", {"n:a": "", "n:b": ""}, 7))
    await store.write(lambda tx: tx.owners.release("s2", HERE, ["n:a"]))
    await store.write(lambda tx: tx.owners.release("s1", HERE, ["n:b", "n:c"]))
    assert [each.what for each in await store.read(lambda tx: tx.owners.of(HERE, ["n:a", "n:b"]))] == ["n:a"]


async def test_the_inventory_of_a_stack_is_removed_with_it(store: Store) -> None:
    await with_stack(store)
    await store.write(lambda tx: tx.inventory.change("s1", HERE, [], [an_entry("one", "1")]))
    await store.write(lambda tx: tx.owners.take("s1", HERE, RECORDED, {"i:1": "one"}, 7))
    await store.write(lambda tx: tx.stacks.delete("s1"))
    assert await store.read(lambda tx: tx.inventory.page("s1", FIRST_ENTRY, 9)) == []
    assert await store.read(lambda tx: tx.owners.of(HERE, ["i:1"])) == []


async def test_a_plan_reads_back_as_it_was_written(store: Store) -> None:
    plan = a_plan()
    parts = [Part(0, b"remarks", b""), Part(1, b"\0one", b"masked"), Part(1, b"two", b""), Part(4, b"four", b"")]
    assert await store.write(lambda tx: tx.plans.insert(plan, HEADER, parts))
    assert await store.read(lambda tx: tx.plans.find("plan-1")) == plan
    assert await store.read(lambda tx: tx.plans.header("plan-1")) == HEADER
    assert await store.read(lambda tx: tx.plans.parts("plan-1", {4, 1, 0})) == parts
    assert await store.read(lambda tx: tx.plans.parts("plan-1", {1})) == parts[1:3]
    assert not await store.write(lambda tx: tx.plans.insert(plan, HEADER, ()))
    assert await store.read(lambda tx: (tx.plans.find("x"), tx.plans.header("x"), tx.plans.parts("x", {0}))) == (
        None,
        None,
        [],
    )
    await store.write(lambda tx: tx.operations.insert(an_operation()))
    taken = replace(plan, state=PlanState.STALE, problem="ü", operation="operation-1")
    await store.write(lambda tx: tx.plans.update(taken))
    assert await store.read(lambda tx: tx.plans.find("plan-1")) == taken
    operation = await store.read(lambda tx: tx.operations.find("operation-1"))
    assert operation
    assert operation.plan == "plan-1"
    other = a_plan("plan-2", operation="operation-1", expires=None)
    assert not await store.write(lambda tx: tx.plans.insert(other, HEADER, ()))


async def test_plans_are_listed_newest_first_by_target_and_stack(store: Store) -> None:
    for number, (name, org) in enumerate([("a", "default"), ("b", "default"), ("a", "there"), ("a", "default")]):
        plan = a_plan(f"plan-{number}", stack_name=name, target=Target(org=org), create_time=number)
        await store.write(lambda tx, plan=plan: tx.plans.insert(plan, HEADER, ()))  # type: ignore[misc]

    async def numbers(target: Target | None, stack: str, after: tuple[int, str] = FIRST_PLAN) -> str:
        found = await store.read(lambda tx: tx.plans.page(target, stack, after, 3))
        assert all(header == HEADER for _, header in found)
        return "".join(plan.id[-1] for plan, _ in found)

    assert await numbers(None, "") == "321"
    assert await numbers(None, "", (1, "plan-1")) == "0"
    assert await numbers(HERE, "") == "310"
    assert await numbers(HERE, "a") == "30"


async def test_a_request_has_one_answer_until_that_expires(store: Store) -> None:
    first, second = StoredAnswer("d1", "r1", 10), StoredAnswer("d2", "r2", 20)
    assert await store.write(lambda tx: tx.requests.put("r", first, 5)) is None
    assert await store.write(lambda tx: tx.requests.put("r", second, 10)) == first
    assert await store.read(lambda tx: tx.requests.find("r")) == first
    assert await store.write(lambda tx: tx.requests.put("r", second, 11)) is None
    assert await store.read(lambda tx: tx.requests.find("r")) == second
    await store.write(lambda tx: tx.requests.forget("r2"))
    assert await store.read(lambda tx: tx.requests.find("r")) is None


def a_definition(name: str = "backup", **fields: Any) -> StoredDefinition:
    definition = StoredDefinition("Blueprint", name, "Backs up", "sha256:1", '{"a":"größe"}', 5, 6)
    return replace(definition, **fields)


async def test_a_definition_reads_back_as_it_was_written(store: Store) -> None:
    definition = a_definition(update_time=LARGE)
    assert await store.write(lambda tx: tx.definitions.insert(definition))
    assert await store.read(lambda tx: tx.definitions.find("Blueprint", "backup")) == definition
    assert await store.read(lambda tx: tx.definitions.find("ConfigMap", "backup")) is None
    assert not await store.write(lambda tx: tx.definitions.insert(a_definition(etag="sha256:2")))
    assert await store.write(lambda tx: tx.definitions.insert(a_definition(kind="ConfigMap")))

    assert await store.write(lambda tx: tx.definitions.delete("Blueprint", "backup"))
    assert await store.read(lambda tx: tx.definitions.find("Blueprint", "backup")) is None
    assert not await store.write(lambda tx: tx.definitions.delete("Blueprint", "backup"))


async def test_a_definition_is_replaced_if_it_has_the_etag(store: Store) -> None:
    await store.write(lambda tx: tx.definitions.insert(a_definition()))
    new = a_definition(description="", etag="sha256:2", body="{}", create_time=8, update_time=9)
    assert not await store.write(lambda tx: tx.definitions.replace(new, "sha256:3"))
    assert await store.write(lambda tx: tx.definitions.replace(new, "sha256:1"))
    assert await store.read(lambda tx: tx.definitions.find("Blueprint", "backup")) == replace(new, create_time=5)
    assert not await store.write(lambda tx: tx.definitions.replace(replace(new, name="none"), "sha256:2"))


async def test_a_definition_never_changes_before_it_was_created(store: Store) -> None:
    """A clock may be set back."""
    await store.write(lambda tx: tx.definitions.insert(a_definition()))
    await store.write(lambda tx: tx.definitions.replace(a_definition(etag="sha256:2", update_time=2), "sha256:1"))
    assert await store.read(lambda tx: tx.definitions.find("Blueprint", "backup")) == a_definition(etag="sha256:2")


async def test_definitions_are_listed_by_kind_and_name_without_bodies(store: Store) -> None:
    stored = [a_definition("b"), a_definition("a", kind="ConfigMap"), a_definition("a"), a_definition("c")]
    for each in stored:
        await store.write(lambda tx, each=each: tx.definitions.insert(each))  # type: ignore[misc]
    listed = [replace(stored[place], body="") for place in (2, 0, 3, 1)]
    assert await store.read(lambda tx: tx.definitions.page("", FIRST_DEFINITION, 9)) == listed
    assert await store.read(lambda tx: tx.definitions.page("", ("Blueprint", "b"), 1)) == listed[2:3]
    assert await store.read(lambda tx: tx.definitions.page("ConfigMap", FIRST_DEFINITION, 9)) == listed[3:]
    assert await store.read(lambda tx: tx.definitions.page("Job", FIRST_DEFINITION, 9)) == []


def a_repository(name: str = "main", **fields: Any) -> Repository:
    repository = Repository(name, "https://packages.example.com/", 0, (), True, 5, 6)
    return replace(repository, **fields)


async def test_a_repository_reads_back_as_it_was_written(store: Store) -> None:
    repository = a_repository(
        address="file:///größe", priority=-7, only=("web-*", "base"), is_enabled=False, update_time=LARGE
    )
    assert await store.write(lambda tx: tx.repositories.insert(repository))
    assert await store.read(lambda tx: tx.repositories.find("main")) == repository
    assert await store.read(lambda tx: tx.repositories.find("Main")) is None
    assert not await store.write(lambda tx: tx.repositories.insert(a_repository()))

    assert await store.write(lambda tx: tx.repositories.delete("main"))
    assert await store.read(lambda tx: tx.repositories.find("main")) is None
    assert not await store.write(lambda tx: tx.repositories.delete("main"))


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        (RepositoryChanges(), {}),
        (RepositoryChanges(address="http://127.0.0.1:8000"), {"address": "http://127.0.0.1:8000"}),
        (RepositoryChanges(priority=0), {"priority": 0}),
        (RepositoryChanges(only=()), {"only": ()}),
        (RepositoryChanges(only=("b", "a-*")), {"only": ("b", "a-*")}),
        (RepositoryChanges(is_enabled=False), {"is_enabled": False}),
        (
            RepositoryChanges("file:///a", -(2**31), ("c",), False),
            {"address": "file:///a", "priority": -(2**31), "only": ("c",), "is_enabled": False},
        ),
    ],
)
async def test_a_change_of_a_repository_keeps_its_other_fields(
    store: Store, changes: RepositoryChanges, fields: dict[str, Any]
) -> None:
    repository, other = a_repository(priority=3, only=("web-*",)), a_repository("other")
    for each in (repository, other):
        await store.write(lambda tx, each=each: tx.repositories.insert(each))  # type: ignore[misc]
    changed = replace(repository, **fields, update_time=9)
    assert await store.write(lambda tx: tx.repositories.change("main", changes, 9)) == changed
    assert await store.read(lambda tx: tx.repositories.page(FIRST_REPOSITORY, 9)) == [changed, other]

    assert await store.write(lambda tx: tx.repositories.change("none", changes, 9)) is None


async def test_a_repository_never_changes_before_it_was_created(store: Store) -> None:
    """A clock may be set back."""
    await store.write(lambda tx: tx.repositories.insert(a_repository()))
    changed = await store.write(lambda tx: tx.repositories.change("main", RepositoryChanges(priority=1), 2))
    assert changed == a_repository(priority=1)


async def test_changes_of_one_repository_at_the_same_time_all_take_effect(opened: Callable[[], Any]) -> None:
    changes = [RepositoryChanges(priority=1), RepositoryChanges(only=("a",)), RepositoryChanges(is_enabled=False)]
    async with opened() as first, opened() as second:
        await first.write(lambda tx: tx.repositories.insert(a_repository()))
        writes = (
            store.write(lambda tx, each=each: tx.repositories.change("main", each, 7))
            for each, store in zip(changes, (first, second, first), strict=True)
        )
        await asyncio.gather(*writes)
        found = await second.read(lambda tx: tx.repositories.find("main"))
    assert found == a_repository(priority=1, only=("a",), is_enabled=False, update_time=7)


async def test_repositories_are_listed_by_name_from_a_name_on(store: Store) -> None:
    for name in ("b", "a-b", "a", "c"):
        await store.write(lambda tx, name=name: tx.repositories.insert(a_repository(name)))  # type: ignore[misc]
    found = await store.read(lambda tx: tx.repositories.page(FIRST_REPOSITORY, 9))
    assert [each.name for each in found] == ["a", "a-b", "b", "c"]
    assert await store.read(lambda tx: tx.repositories.page(("a",), 2)) == found[1:3]


async def test_work_that_raises_leaves_nothing_behind(store: Store) -> None:
    def work(tx: Transaction) -> None:
        tx.stacks.insert(a_stack())
        raise StackNotFound("prod")

    with pytest.raises(StackNotFound):
        await store.write(work)
    assert await store.read(lambda tx: tx.stacks.find("s1")) is None


async def test_committed_writes_are_visible_to_all_and_work_reads_one_snapshot(opened: Callable[[], Any]) -> None:
    loop = asyncio.get_running_loop()
    async with opened() as first, opened() as second:

        def work(tx: ReadTransaction) -> tuple[Stack | None, Stack | None]:
            before = tx.stacks.find("s1")
            write = second.write(lambda other: other.stacks.insert(a_stack()))
            asyncio.run_coroutine_threadsafe(write, loop).result()
            return before, tx.stacks.find("s1")

        assert await first.read(work) == (None, None)
        assert await first.read(lambda tx: tx.stacks.find("s1")) == a_stack()


async def test_a_transaction_has_one_time_which_it_reads_after_its_locks(store: Store, clock: Clock) -> None:
    def times(tx: Transaction) -> tuple[int, int]:
        first = tx.now()
        clock.forward(1)
        return first, tx.now()

    first, again = await store.write(times)
    assert first == again
    assert await store.read(lambda tx: tx.now()) == first + 1_000_000

    def locks_late(tx: Transaction) -> None:
        tx.now()
        tx.lock_stack("s1")

    with pytest.raises(LockedTooLateError):
        await store.write(locks_late)


async def test_lock_stack_returns_the_stack(store: Store) -> None:
    await with_stack(store)
    assert await store.write(lambda tx: tx.lock_stack(StackName(HERE, "prod"))) == a_stack()
    assert await store.write(lambda tx: tx.lock_stack("s2")) is None


Race = Callable[[Transaction, int], bool]

RACES: dict[str, Race] = {
    "a name": lambda tx, n: tx.stacks.insert(a_stack(f"s{n}")),
    "an operation": lambda tx, n: tx.operations.insert(an_operation(holder=str(n))),
    "a stack": lambda tx, n: tx.operations.insert(an_operation(f"operation-{n}", "s")),
    "a plan": lambda tx, n: tx.plans.insert(a_plan(digest=str(n)), HEADER, ()),
    "a request": lambda tx, n: tx.requests.put("r", StoredAnswer("d", str(n), 9), 1) is None,
    "a repository": lambda tx, n: tx.repositories.insert(a_repository(priority=n)),
    "something": lambda tx, n: not tx.owners.take(f"t{n}", HERE, "", {"s:key": ""}, 1),
}


@pytest.mark.parametrize("about", RACES)
async def test_one_of_many_writers_wins(opened: Callable[[], Any], about: str) -> None:
    async with opened() as first, opened() as second:
        for number in range(8):
            stack = a_stack(f"t{number}", f"t{number}")
            await first.write(lambda tx, stack=stack: tx.stacks.insert(stack))
        stores = (first, second) * 4
        race = RACES[about]
        writes = (store.write(lambda tx, n=n: race(tx, n)) for n, store in enumerate(stores))
        assert sorted(await asyncio.gather(*writes)) == [False] * 7 + [True]


async def test_one_of_many_takes_a_lease(opened: Callable[[], Any]) -> None:
    def take(tx: Transaction, holder: str) -> bool:
        assert tx.lock_stack("s1")
        now, lease = tx.now(), tx.leases.of("s1")
        assert lease
        if lease.expires >= now:
            return False
        tx.leases.put("s1", Lease(holder, "o", lease.token + 1, 10, now + 10))
        return True

    async with opened() as first, opened() as second:
        await with_stack(first)
        writes = (store.write(lambda tx, n=n: take(tx, str(n))) for n, store in enumerate((first, second) * 4))
        assert sum(await asyncio.gather(*writes)) == 1
        lease = await first.read(lambda tx: tx.leases.of("s1"))
        assert lease
        assert lease.token == 1


async def test_a_sweep_removes_rows_that_are_not_needed_in_batches(store: Store, clock: Clock) -> None:
    now = clock.now
    over, held = Lease("me", "", 1, 10, now - 1), Lease("me", "", 1, 10, now)

    def fill(tx: Transaction) -> None:
        for n in range(3):
            tx.requests.put(f"old {n}", StoredAnswer("d", "r", now - 1), 1)
            tx.plans.insert(a_plan(f"plan-old {n}", expires=now - 1), HEADER, ())
            finished = an_operation(
                f"operation-f{n}", f"f{n}", state=OperationState.SUCCEEDED, update_time=now - 10 + n
            )
            tx.operations.insert(finished)
            tx.journal.append(finished.id, Row(1, 1, 1, b"", b"e", 1))
            tx.stacks.insert(a_stack(f"d{n}", "", state=State.STACKLESS))
            tx.leases.put(f"d{n}", over)
            tx.operations.insert(an_operation(f"operation-dead {n}", f"d{n}"))
            tx.requests.put(f"dead {n}", StoredAnswer("d", f"operation-dead {n}", now + 1), 1)
        tx.stacks.insert(a_stack("p", "pending", state=State.PENDING))
        tx.leases.put("p", held)
        tx.operations.insert(an_operation("operation-p", "p"))
        tx.stacks.insert(a_stack("a", "applying", state=State.PENDING))
        tx.leases.put("a", over)
        tx.operations.insert(an_operation("operation-a", "a", state=OperationState.APPLYING))
        tx.stacks.insert(a_stack("active", "active"))
        tx.plans.insert(a_plan("plan-new", expires=now), HEADER, ())
        tx.plans.insert(a_plan("plan-used", expires=None, operation="operation-f2"), HEADER, ())
        tx.requests.put("new", StoredAnswer("d", "r", now), 1)

    await store.write(fill)
    limits = RetentionLimits(operations=2, batch=2)
    first = await store.sweep(limits)
    second = await store.sweep(limits)
    third = await store.sweep(limits)

    assert (first.requests, first.plans, first.ended, first.stacks) == (2, 2, 2, 2)
    assert first.is_full(limits)
    assert (second.requests, second.plans, second.ended, second.stacks) == (1, 1, 1, 1)
    total = first.operations + second.operations + third.operations
    # Of six finished operations, the two that ended last are retained.
    assert total == 4
    kept = await store.read(lambda tx: tx.operations.page(OperationFilter(), FIRST_OPERATION, 99))
    assert {each.id for each in kept if each.state is OperationState.FAILED} <= {
        f"operation-dead {n}" for n in range(3)
    }
    assert {each.id for each in kept if each.state is not OperationState.FAILED} == {"operation-p", "operation-a"}
    assert await store.sweep(limits) == Swept()
    assert [await store.read(lambda tx, r=r: tx.requests.find(r)) for r in ("old 0", "dead 0")] == [None, None]  # type: ignore[misc]
    assert await store.read(lambda tx: tx.requests.find("new"))
    assert await store.read(lambda tx: tx.plans.find("plan-new"))
    assert await store.read(lambda tx: tx.journal.rows("operation-f0")) == []
    for stack, is_there in (("p", True), ("a", True), ("active", True), ("d0", False)):
        assert (await store.read(lambda tx, s=stack: tx.stacks.find(s)) is not None) is is_there  # type: ignore[misc]


async def test_a_sweep_releases_the_lease_of_an_operation_that_it_ends(store: Store, clock: Clock) -> None:
    """A lease that ends later than its duration allows is over, and its holder must not renew it."""
    far = Lease("me", "operation-dead", 1, 10, clock.now + 11)

    def fill(tx: Transaction) -> None:
        tx.stacks.insert(a_stack("s", "s", state=State.ACTIVE))
        tx.leases.put("s", far)
        tx.operations.insert(an_operation("operation-dead", "s"))

    await store.write(fill)
    assert (await store.sweep(RetentionLimits())).ended == 1
    assert await store.read(lambda tx: tx.leases.of("s")) == replace(far, expires=RELEASED)


async def filled(store: Store, clock: Clock, *operations: tuple[str, str, int, int]) -> None:
    """Finished operations by name, stack, seconds since their end, and bytes of their events."""

    def fill(tx: Transaction) -> None:
        tx.stacks.insert(a_stack("there", "there"))
        for name, stack, seconds, size in operations:
            ended = clock.now - seconds * 1_000_000
            tx.operations.insert(an_operation(name, stack, state=OperationState.SUCCEEDED, update_time=ended))
            tx.journal.append(name, Row(1, 1, 1, b"", bytes(size), 1))

    await store.write(fill)


async def swept(store: Store, limits: RetentionLimits) -> list[str]:
    """Names of the operations that are retained by all sweeps, newest first."""
    while (await store.sweep(limits)).is_full(limits):
        pass
    kept = await store.read(lambda tx: tx.operations.page(OperationFilter(), FIRST_OPERATION, 99))
    return [each.id for each in sorted(kept, key=lambda each: each.update_time, reverse=True)]


async def test_finished_operations_are_retained_until_the_first_limit(store: Store, clock: Clock) -> None:
    """Their stack has been removed, so none is retained as its last one."""
    await filled(store, clock, *((f"operation-{n}", "gone", 10 * n, 10_000) for n in range(9)))
    assert len(await swept(store, RetentionLimits())) == 9
    assert len(await swept(store, RetentionLimits(age=70_000_000))) == 8
    assert len(await swept(store, RetentionLimits(bytes=60_000))) == 5
    assert await swept(store, RetentionLimits(operations=3)) == ["operation-0", "operation-1", "operation-2"]
    assert await swept(store, RetentionLimits(operations=1, age=0, bytes=1)) == []


async def test_the_last_operation_of_a_stack_is_always_retained(store: Store, clock: Clock) -> None:
    await filled(
        store,
        clock,
        ("operation-large", "gone", 1, 100_000),
        ("operation-new", "gone", 2, 10),
        ("operation-last", "there", 30, 100_000),
        ("operation-older", "there", 40, 10),
    )
    for limits in (RetentionLimits(operations=1), RetentionLimits(age=10_000_000), RetentionLimits(bytes=110_000)):
        assert "operation-last" in await swept(store, limits)
    assert await swept(store, RetentionLimits(operations=1, age=0, bytes=1)) == ["operation-last"]


async def test_a_sweep_ends_when_it_has_removed_enough(store: Store, clock: Clock) -> None:
    """Calls wait for a sweep, so it is bounded; a single operation may exceed the bound."""
    await filled(store, clock, *((f"operation-{n}", "gone", 10 * n, 10_000) for n in range(6)))
    limits = RetentionLimits(operations=1, batch_bytes=15_000)
    first = await store.sweep(limits)
    assert (first.operations, first.is_full(limits)) == (2, True)
    single = RetentionLimits(operations=1, batch_bytes=1)
    assert ((await store.sweep(single)).operations, len(await swept(store, single))) == (1, 1)


async def test_a_strict_store_detects_work_that_breaks_the_rules(store: Store) -> None:
    """Otherwise the suites that run on it would prove nothing."""
    await with_stack(store)

    def reads_its_own_write(tx: Transaction) -> Lease | None:
        tx.lock_stack("s1")
        tx.leases.put("s1", Lease("me"))
        return tx.leases.of("s1")

    assert await Late(store).write(reads_its_own_write) == Lease()
    assert await store.read(lambda tx: tx.leases.of("s1")) == Lease("me")
    with pytest.raises(BrokenRuleError, match="not locked"):
        await Late(store).write(lambda tx: tx.leases.put("s1", Lease()))
