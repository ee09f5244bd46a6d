"""
The guarantees of every store for the history of stacks: attachments, packages, revisions, baselines, drift detections.
"""

from dataclasses import replace
from typing import Any

import pytest

from services.core.drift import DriftCounts
from services.core.model import LABEL, Baseline, Key, OperationKind, Reference
from services.packages.installed import InstalledPackage, PackageOrigin, versions_in
from services.packages.manifest import Requirement
from services.packages.ranges import Range
from services.packages.versions import Version
from stack_svc.store.drift_checks import DriftCheck
from stack_svc.store.packages import PackageChanges, PackageUser
from stack_svc.store.revisions import NEWEST, Revision
from stack_svc.store.store import ReadTransaction, RetentionLimits, Store, Transaction
from tests.stack.service import Clock
from tests.stack.store.values import HEADER, HERE, a_package, a_plan, a_stack, an_entry, with_stack

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


async def test_attachments_that_are_not_complete_are_lacking(store: Store) -> None:
    def fill(tx: Transaction) -> None:
        put(tx, "whole", b"")
        tx.attachments.put("half", 0, b"", 1)

    await store.write(fill)
    asked = ["whole", "none", "half"]
    assert await store.read(lambda tx: tx.attachments.lacking(asked)) == ["half", "none"]
    assert await store.read(lambda tx: tx.attachments.lacking([])) == []


@pytest.mark.parametrize("field", ["package_digest", "baselines_digest", "revision", "package", "planned", "content"])
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
        elif field == "package":
            tx.packages.change("s1", {"base": a_package("base", content_digest="named")})
        elif field == "planned":
            tx.plans.insert(a_plan(expires=None), HEADER, ())
            tx.plan_packages.add("plan-1", {"base": a_package("base", content_digest="named"), "web": None})
        elif field == "content":
            tx.revisions.add("s1", a_revision(1))
            tx.revision_contents.add("s1", 1, {"named", "gone"})
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


async def test_the_contents_of_a_revision_are_removed_with_it(store: Store, clock: Clock) -> None:
    await with_stack(store)

    def fill(tx: Transaction) -> None:
        for digest in ("old", "both", "new"):
            put(tx, digest, b"", now=clock.now)
        for number, digests in ((1, {"old", "both"}), (2, {"both", "new"})):
            tx.revisions.add("s1", a_revision(number))
            tx.revision_contents.add("s1", number, digests)

    async def stored() -> list[str]:
        clock.now += DAY + 1
        await store.sweep(RetentionLimits())
        lacking = await store.read(lambda tx: tx.attachments.lacking(["old", "both", "new"]))
        return [digest for digest in ("old", "both", "new") if digest not in lacking]

    await store.write(fill)
    assert await stored() == ["old", "both", "new"]
    await store.write(lambda tx: tx.revisions.prune("s1", 2))
    assert await stored() == ["both", "new"]
    await store.write(lambda tx: tx.stacks.delete("s1"))
    assert await stored() == []


FULL = InstalledPackage(
    "full",
    Version.parse("1.4.0-rc.1+2"),
    "main",
    PackageOrigin.DEPENDENCY,
    True,
    True,
    versions_in("^1.2"),
    (Requirement("base", Range.parse(">=1 <3")), Requirement("any")),
    "sha256:files",
    "sha256:text",
)
PLAIN = InstalledPackage("plain", Version.parse("0.1.0"))
"""A package of a folder, of which nothing else is known."""


async def test_packages_read_back_as_they_were_written(store: Store) -> None:
    await with_stack(store, a_stack("s2", "other"))
    exact = replace(PLAIN, name="exact", requested=Version.parse("1.0.0+3"))
    every: PackageChanges = {"plain": PLAIN, "full": FULL, "exact": exact}
    await store.write(lambda tx: tx.packages.change("s1", every))

    def page(after: str = "", most: int = 9, stack: str = "s1") -> Any:
        return store.read(lambda tx: tx.packages.page(stack, (after,), most))

    assert await page() == [exact, FULL, PLAIN]
    assert await page(most=2) == [exact, FULL]
    assert await page("full") == [PLAIN]
    assert await page(stack="s2") == []

    moved = replace(FULL, version=Version.parse("2.0.0"), requires=(), is_pinned=False)
    await store.write(lambda tx: tx.packages.change("s1", {"full": moved, "plain": None, "none": None, "new": PLAIN}))
    assert await page() == [exact, moved, replace(PLAIN, name="new")]
    await store.write(lambda tx: tx.stacks.delete("s1"))
    assert await page() == []


async def test_the_users_of_a_repository_are_stacks_with_a_package_of_it(store: Store) -> None:
    await with_stack(store, a_stack("s2", ""))

    def fill(tx: Transaction) -> None:
        tx.packages.change("s2", {name: a_package(name) for name in ("a", "b")})
        tx.packages.change("s1", {"b": a_package("b"), "a": a_package("a", repository="lab"), "folder": PLAIN})

    await store.write(fill)
    main = [PackageUser("a", "s2", ""), PackageUser("b", "s1", "prod"), PackageUser("b", "s2", "")]
    assert await store.read(lambda tx: tx.packages.users_of("main", 9)) == main
    assert await store.read(lambda tx: tx.packages.users_of("main", 2)) == main[:2]
    assert await store.read(lambda tx: tx.packages.users_of("none", 9)) == []


async def test_the_packages_of_a_plan_are_removed_with_it(store: Store) -> None:
    changes: PackageChanges = {"full": FULL, "gone": None, "plain": PLAIN}

    def fill(tx: Transaction) -> None:
        for name in ("plan-1", "plan-2"):
            tx.plans.insert(a_plan(name), HEADER, ())
        tx.plan_packages.add("plan-1", changes)

    await store.write(fill)
    assert await store.read(lambda tx: tx.plan_packages.of("plan-1")) == changes
    assert await store.read(lambda tx: tx.plan_packages.of("plan-2")) == {}
    await store.write(lambda tx: tx.plans.delete("plan-1"))
    assert await store.read(lambda tx: tx.plan_packages.of("plan-1")) == {}


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
