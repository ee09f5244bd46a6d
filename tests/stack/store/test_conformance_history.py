"""The guarantees of every store for the history of stacks: attachments, revisions, baselines, drift detections."""

from dataclasses import replace

import pytest

from services.core.drift import DriftCounts
from services.core.model import LABEL, Baseline, Key, OperationKind, Reference
from stack_svc.store.drift_checks import DriftCheck
from stack_svc.store.revisions import NEWEST, Revision
from stack_svc.store.store import ReadTransaction, RetentionLimits, Store, Transaction
from tests.stack.service import Clock
from tests.stack.store.values import HEADER, HERE, a_plan, a_stack, an_entry, with_stack

DAY = RetentionLimits().attachment_age


def a_revision(number: int, digest: str = "") -> Revision:
    return Revision(number, OperationKind.APPLY, digest, ("a.yml", "ü"), "ann", f"operation-{number}", 1, 0, number)


def put(tx: Transaction, digest: str, *bodies: bytes, now: int = 1) -> None:
    for number, body in enumerate(bodies):
        tx.attachments.put(digest, number, body, now)
    tx.attachments.complete(digest, len(bodies))


async def test_an_attachment_exists_once_it_is_complete(store: Store) -> None:
    await store.write(lambda tx: tx.attachments.put("d", 1, b"second", 5))

    def look(reading: ReadTransaction) -> tuple[bool, set[int]]:
        return reading.attachments.has("d"), set(reading.attachments.numbers("d"))

    assert await store.read(look) == (False, {1})
    assert not await store.write(lambda tx: tx.attachments.keep("d", 6))
    await store.write(lambda tx: tx.attachments.put("d", 1, b"other", 7))
    await store.write(lambda tx: tx.attachments.put("d", 0, b"first", 7))
    await store.write(lambda tx: tx.attachments.put("d", 9, b"of another cut", 7))
    await store.write(lambda tx: tx.attachments.complete("d", 2))

    assert await store.read(look) == (True, {0, 1})
    assert await store.read(lambda tx: tx.attachments.parts("d")) == {0: b"first", 1: b"other"}
    assert await store.write(lambda tx: tx.attachments.keep("d", 8))
    assert await store.read(lambda tx: (tx.attachments.has("e"), tx.attachments.numbers("e"))) == (False, set())


@pytest.mark.parametrize("field", ["package_digest", "baselines_digest", "revision"])
async def test_an_attachment_that_nothing_names_is_removed_after_its_time(
    store: Store, clock: Clock, field: str
) -> None:
    await with_stack(store)

    def fill(tx: Transaction) -> None:
        put(tx, "named", b"", now=clock.now)
        put(tx, "nameless", b"", now=clock.now)
        tx.attachments.put("half", 0, b"", clock.now)
        if field == "revision":
            tx.revisions.add("s1", a_revision(1, "named"))
        else:
            tx.plans.insert(a_plan(expires=None, **{field: "named"}), HEADER, ())

    await store.write(fill)
    clock.now += DAY
    assert (await store.sweep(RetentionLimits())).attachments == 0
    clock.now += 1
    assert (await store.sweep(RetentionLimits())).attachments == 2
    names = ("named", "nameless")
    assert await store.read(lambda tx: [tx.attachments.has(each) for each in names]) == [True, False]
    assert await store.read(lambda tx: tx.attachments.numbers("half")) == set()


async def test_an_attachment_that_is_kept_again_starts_a_new_period(store: Store, clock: Clock) -> None:
    await store.write(lambda tx: put(tx, "d", b"", now=clock.now))
    clock.now += DAY + 1
    assert await store.write(lambda tx: tx.attachments.keep("d", tx.now()))
    assert (await store.sweep(RetentionLimits())).attachments == 0


async def test_revisions_are_read_newest_first_and_pruned_oldest_first(store: Store) -> None:
    await with_stack(store, a_stack("s2", "other"))

    def fill(tx: Transaction) -> None:
        for number in range(1, 6):
            tx.revisions.add("s1", a_revision(number))
        tx.revisions.add("s2", a_revision(1))
        tx.revisions.prune("s1", 3)

    await store.write(fill)

    def look(reading: ReadTransaction) -> tuple[list[Revision], list[Revision], tuple[int, int]]:
        revisions = reading.revisions
        return revisions.page("s1", NEWEST, 2), revisions.page("s1", 4, 9), revisions.bounds("s1")

    assert await store.read(look) == ([a_revision(5), a_revision(4)], [a_revision(3)], (3, 5))
    assert await store.read(lambda tx: (tx.revisions.find("s1", 2), tx.revisions.find("s2", 1))) == (
        None,
        a_revision(1),
    )
    assert await store.read(lambda tx: tx.revisions.bounds("none")) == (0, 0)
    await store.write(lambda tx: tx.stacks.delete("s1"))
    assert await store.read(lambda tx: tx.revisions.page("s1", NEWEST, 9)) == []


async def test_a_baseline_is_removed_with_its_entry_only(store: Store) -> None:
    await with_stack(store)
    first, second = an_entry("a"), an_entry("b")
    rule = Baseline(
        first.key, '{"name":"ü"}', (Reference("/endpoint", "Endpoint", "id-1"),), (Key(LABEL, "l"), Key(LABEL, "m"))
    )
    plain = Baseline(second.key, "{}")

    def fill(tx: Transaction) -> None:
        tx.inventory.change("s1", HERE, [], [first, second])
        tx.baselines.put("s1", [rule, plain])

    await store.write(fill)
    keys = [second.key, Key("Bucket", "none"), first.key]
    assert sorted(await store.read(lambda tx: tx.baselines.of("s1", keys))) == [rule, plain]
    assert await store.read(lambda tx: tx.baselines.page("s1", Key("", ""), 1)) == [rule]
    assert await store.read(lambda tx: tx.baselines.page("s1", first.key, 9)) == [plain]
    assert await store.read(lambda tx: tx.baselines.lacking("s1", keys)) == [Key("Bucket", "none")]

    await store.write(lambda tx: tx.baselines.put("s1", [Baseline(first.key, "", missing_labels=())]))
    await store.write(lambda tx: tx.baselines.rebind("s1", {"id-1": "id-2", "other": "id-3"}))
    changed = rule._replace(missing_labels=(), references=(Reference("/endpoint", "Endpoint", "id-2"),))
    assert await store.read(lambda tx: tx.baselines.of("s1", [first.key])) == [changed]

    # An entry that is updated keeps its baseline; the baseline of a removed entry is removed, too.
    moved = first._replace(resource_id="id-new", policy='{"protect":true}')
    await store.write(lambda tx: tx.inventory.change("s1", HERE, [second.key], [moved]))
    assert await store.read(lambda tx: tx.baselines.page("s1", Key("", ""), 9)) == [changed]


async def test_the_last_drift_detection_replaces_the_one_before(store: Store) -> None:
    await with_stack(store)
    drift_check = DriftCheck(5, 2, DriftCounts(gone=1, in_sync=7))
    assert await store.read(lambda tx: tx.drift_checks.find("s1")) is None
    await store.write(lambda tx: tx.drift_checks.put("s1", drift_check))
    later = replace(drift_check, time=6, counts=DriftCounts())
    await store.write(lambda tx: tx.drift_checks.put("s1", later))
    assert await store.read(lambda tx: tx.drift_checks.find("s1")) == later
    await store.write(lambda tx: tx.stacks.delete("s1"))
    assert await store.read(lambda tx: tx.drift_checks.find("s1")) is None
