"""Installed packages: they change at the end of an operation that succeeded, as its plan says; lists and revisions."""

from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import manifest_pb2
from pkger.model.v1.object_pb2 import ORIGIN_ADOPTED, InventoryEntry, ObjectKey, StackRef
from pkger.model.v1.operation_pb2 import (
    OPERATION_STATE_BLOCKED,
    OPERATION_STATE_FAILED,
    OPERATION_STATE_ROLLED_BACK,
    OPERATION_STATE_SUCCEEDED,
    OperationState,
)
from pkger.model.v1.package_change_pb2 import (
    PACKAGE_ACTION_MARK,
    PACKAGE_ORIGIN_DEPENDENCY,
    PACKAGE_ORIGIN_MANUAL,
    InstalledPackage,
    PlannedPackage,
)
from pkger.stack.v1 import stack_pb2

from services.core.errors import PackageStack, RequestInvalid, RevisionNotFound, ServiceUnavailable, StackNotFound
from services.kinds.attachment import compressed, text_digest
from services.packages.package_text import KeptPackage, package_text
from services.rpc.convert.packages import installed_from_pb
from services.rpc.parts import MAX_PART_BYTES
from stack_svc.store.store import ReadTransaction, RetentionLimits, Store, Swept, Transaction
from tests.stack.service import Begun, Client, Clock, a_plan, entry, service_in_memory, start_request
from tests.stack.store.strict import WRITES

T = TypeVar("T")

DAY = 24 * 3600
OLD, NEW = "kind: Label # old", "kind: Label # new"


def package(name: str, version: str = "1.0.0", content: str = "", **fields: Any) -> InstalledPackage:
    return InstalledPackage(
        name=name,
        version=version,
        repository="main",
        origin=PACKAGE_ORIGIN_MANUAL,
        content_digest=content and text_digest(content),
        **fields,
    )


def recorded(*packages: InstalledPackage) -> list[PlannedPackage]:
    """The changes of a plan after which the record has *packages*."""
    return [PlannedPackage(name=each.name, record=each) for each in packages]


def removed(*names: str) -> list[PlannedPackage]:
    return [PlannedPackage(name=name) for name in names]


BASE, WEB = package("base"), package("web", requires=[manifest_pb2.Requirement(name="base", version_range="^1")])


async def attach(service: Client, *texts: str) -> None:
    """Store *texts* as attachments."""
    for text in texts:
        request = journal_pb2.StoreAttachmentRequest(digest=text_digest(text), count=1, body=compressed(text))
        await service.peer.call(service.journal.StoreAttachment, request)


async def lacking(service: Client, *texts: str) -> list[str]:
    """Those of *texts* that the store has no more."""
    assert service.store
    digests = await service.store.read(lambda tx: tx.attachments.lacking(list(map(text_digest, texts))))
    return [text for text in texts if text_digest(text) in digests]


async def begun(
    service: Client, changes: Iterable[PlannedPackage], name: str = "prod", steps: int = 0, **header: Any
) -> Begun:
    """An operation that runs a plan with *changes* of packages."""
    operation = await service.begin(name, steps=None)
    plan = a_plan(steps, operation.operation, packages=changes, **header)
    await service.store_plan(plan, operation=operation.operation)
    await service.start(operation, plan=plan.header.id)
    return operation


async def changed(service: Client, changes: Iterable[PlannedPackage], **header: Any) -> stack_pb2.Stack:
    """The stack after an operation that made nothing but *changes* of packages."""
    return await service.record(await begun(service, changes, **header))


async def page(
    service: Client, name: str = "prod", page_size: int = 0, token: str = ""
) -> stack_pb2.ListPackagesResponse:
    request = stack_pb2.ListPackagesRequest(stack=StackRef(name=name), page_size=page_size, page_token=token)
    return await service.peer.call(service.stacks.ListPackages, request)


async def packages(service: Client, name: str = "prod") -> list[InstalledPackage]:
    return list((await page(service, name)).packages)


async def revision(service: Client, number: int) -> list[stack_pb2.GetRevisionResponse]:
    """All parts of a revision."""
    request = stack_pb2.GetRevisionRequest(stack=StackRef(name="prod"), number=number)
    return [part async for part in service.peer.stream(service.stacks.GetRevision, request)]


async def test_packages_change_with_the_end_of_an_operation(service: Client) -> None:
    operation = await begun(service, recorded(WEB, BASE))
    before = await service.page()
    assert list(before.stacks) == []

    stack = await service.record(operation)

    assert (stack.generation, stack.revision, stack.package_count) == (1, 1, 2)
    assert await page(service) == stack_pb2.ListPackagesResponse(packages=[BASE, WEB], generation=1)
    assert [each.package_count for each in (await service.page()).stacks] == [2]

    moved = package("base", "1.1.0", pinned=True, suspended=True, requested_range="^1")
    assert (await changed(service, [*recorded(moved), *removed("web", "none")])).package_count == 1
    assert await packages(service) == [moved]
    kept = await service.apply("prod", [entry("one")])
    assert (kept.generation, kept.package_count) == (3, 1)
    assert await packages(service) == [moved]


async def test_a_record_counts_whatever_the_action_is(service: Client) -> None:
    await changed(service, recorded(BASE))
    marked = InstalledPackage(name="base", version="1.0.0", origin=PACKAGE_ORIGIN_DEPENDENCY)
    stack = await changed(service, [PlannedPackage(name="base", action=PACKAGE_ACTION_MARK, record=marked)])
    assert (stack.generation, stack.revision) == (2, 2)
    assert await packages(service) == [marked]


async def test_a_plan_that_leaves_the_packages_as_they_are_changes_nothing(service: Client, clock: Clock) -> None:
    before = await changed(service, recorded(BASE, WEB))
    clock.forward(1)
    assert await changed(service, [*recorded(BASE), *removed("none")]) == before


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        (OPERATION_STATE_ROLLED_BACK, {"record": journal_pb2.Record(platform_changed=True)}),
        (OPERATION_STATE_ROLLED_BACK, {"abandon": journal_pb2.Abandon()}),
        (OPERATION_STATE_BLOCKED, {"abandon": journal_pb2.Abandon()}),
        (OPERATION_STATE_SUCCEEDED, {"abandon": journal_pb2.Abandon()}),
        (OPERATION_STATE_FAILED, {"abandon": journal_pb2.Abandon()}),
    ],
)
async def test_an_operation_that_does_not_record_success_leaves_the_packages(
    service: Client, state: OperationState.ValueType, outcome: dict[str, Any]
) -> None:
    before = await changed(service, recorded(BASE))
    if state == OPERATION_STATE_FAILED:
        operation = await service.begin("prod", steps=None)
        plan = a_plan(0, operation.operation, packages=recorded(WEB))
        await service.store_plan(plan, operation=operation.operation)
    else:
        operation = await begun(service, [*recorded(WEB), *removed("base")])

    await service.finish(operation, state, **outcome)

    assert await packages(service) == [BASE]
    after = await service.get(before.id)
    assert (after.package_count, after.revision) == (1, 1)


async def test_packages_end_as_planned_although_something_was_left(service: Client) -> None:
    first = await begun(service, recorded(BASE, WEB), steps=1)
    await service.record(first, [entry("one")])
    operation = await begun(service, removed("base", "web"), steps=1)
    await service.advance(operation, seal=True)
    left = entry("one")._replace(is_pending_delete=True)
    await service.record(operation, [left])
    assert await packages(service) == []
    assert (await service.get(operation.stack.id)).package_count == 0


async def test_packages_are_removed_with_their_stack(service: Client) -> None:
    stack = await changed(service, recorded(BASE))
    await service.delete(stack.id)
    with pytest.raises(StackNotFound):
        await packages(service)
    stack = await service.create("prod")
    assert (stack.package_count, await packages(service)) == (0, [])

    await changed(service, recorded(BASE))
    await service.remove(await begun(service, removed("base")))
    with pytest.raises(StackNotFound):
        await packages(service)


async def test_a_stack_with_packages_has_no_urls(service: Client) -> None:
    stack = await changed(service, recorded(BASE))
    url = "https://packages.example.com/a.yml"
    with pytest.raises(PackageStack, match="and therefore no URLs; change its packages") as raised:
        await service.update(stack.id, urls=[url])
    assert raised.value.metadata["stack"] == "prod"
    assert "`pkger install`" in raised.value.cli_hint
    assert (await service.update(stack.id, urls=[], description="text")).description == "text"

    await changed(service, removed("base"))
    assert list((await service.update(stack.id, urls=[url])).urls) == [url]


async def renamed(service: Client, stack: stack_pb2.Stack, name: str, new_name: str) -> None:
    key = ObjectKey(kind="Bucket", name=name)
    request = stack_pb2.RenameResourceRequest(stack=StackRef(id=stack.id), key=key, new_name=new_name)
    await service.peer.call(service.stacks.RenameResource, request)


async def imported(service: Client, stack: stack_pb2.Stack, name: str) -> None:
    key = ObjectKey(kind="Bucket", name=name)
    entries = [InventoryEntry(key=key, resource_id=f"id-{name}", origin=ORIGIN_ADOPTED)]
    baselines = [journal_pb2.Baseline(key=key, spec_json="{}")]
    request = journal_pb2.RecordImportRequest(stack_id=stack.id, entries=entries, baselines=baselines)
    await service.peer.call(service.journal.RecordImport, request)


@pytest.mark.parametrize("name", ["one", "base", "base.", ".one", "web.one", "bas.one"])
async def test_objects_of_a_stack_with_packages_have_names_of_these(service: Client, name: str) -> None:
    stack = await service.record(await begun(service, recorded(BASE)), [entry("base.one")])
    with pytest.raises(PackageStack, match=f"has no object '{name}': names are PACKAGE.NAME of an"):
        await renamed(service, stack, "base.one", name)
    with pytest.raises(PackageStack):
        await imported(service, stack, name)
    with pytest.raises(RequestInvalid, match=r"^new_name: 'two.three' is no "):
        await renamed(service, stack, "base.one", "base.two.three")
    await renamed(service, stack, "base.one", "base.two")
    await imported(service, stack, "base.three")
    assert [each.key.name for each in await service.resources(stack.id)] == ["base.three", "base.two"]


async def test_packages_are_listed_in_pages_by_name(service: Client) -> None:
    names = ["a", "a-b", "b", "c", "d"]
    stack = await changed(service, recorded(*map(package, reversed(names))))
    pages = [await page(service, page_size=2)]
    while token := pages[-1].next_page_token:
        pages.append(await page(service, page_size=2, token=token))
    assert [[each.name for each in one.packages] for one in pages] == [names[:2], names[2:4], names[4:]]
    assert {one.generation for one in pages} == {stack.generation}
    by_id = stack_pb2.ListPackagesRequest(stack=StackRef(id=stack.id))
    assert list((await service.peer.call(service.stacks.ListPackages, by_id)).packages) == await packages(service)


@pytest.mark.parametrize(("size", "token", "field"), [(1001, "", "page_size"), (0, "WzFd", "page_token")])
async def test_a_page_that_cannot_be_read_is_refused(service: Client, size: int, token: str, field: str) -> None:
    await service.create("prod")
    with pytest.raises(RequestInvalid) as raised:
        await page(service, page_size=size, token=token)
    assert raised.value.metadata["field"] == field


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ([PlannedPackage()], "[0].name"),
        ([*recorded(BASE), *removed("base")], "[1].name"),
        ([PlannedPackage(name="web", record=BASE)], "[0].record.name"),
        (recorded(package("base", "1.0")), "[0].record"),
        (recorded(package("base", requested_range="~>1")), "[0].record"),
        (recorded(package("base", digest="\0")), "[0].record.digest"),
        (recorded(InstalledPackage(name="base", version="1.0.0", repository="x" * 1025)), "[0].record.repository"),
    ],
)
async def test_packages_that_cannot_be_recorded_are_refused(
    service: Client, changes: list[PlannedPackage], field: str
) -> None:
    with pytest.raises(RequestInvalid) as raised:
        await service.store_plan(a_plan(0, packages=changes))
    assert raised.value.metadata["field"] == f"plan.header.packages{field}"
    assert list((await service.plans()).plans) == []


async def test_contents_are_stored_before_the_plan_or_with_it(service: Client) -> None:
    plan = a_plan(0, packages=recorded(package("base", content=OLD), package("web", content=NEW)))
    with pytest.raises(RequestInvalid, match=f"has no attachment {text_digest(OLD)}; send it first"):
        await service.store_plan(plan)
    await attach(service, OLD)
    sent = journal_pb2.Attachment(digest=text_digest(NEW), body=compressed(NEW))
    request = journal_pb2.StorePlanRequest(plan=plan, attachments=[sent])
    await service.peer.call(service.journal.StorePlan, request)
    assert await lacking(service, OLD, NEW) == []


async def test_a_plan_with_packages_is_stored_before_it_is_started(service: Client) -> None:
    """A plan that is stored with the start of its operation has nothing to do."""
    operation = await service.begin("prod", steps=None)
    idle = a_plan(0, operation.operation, no_change=True, packages=removed("base"))
    request = start_request(operation)
    request.start.idle_plan.CopyFrom(idle)
    with pytest.raises(RequestInvalid) as raised:
        await service.peer.call(service.journal.AdvanceOperation, request)
    assert raised.value.metadata["field"] == "start.idle_plan"


async def test_contents_stay_while_a_package_or_a_revision_names_them(service: Client, clock: Clock) -> None:
    async def later() -> list[str]:
        clock.forward(DAY + 1)
        await service.sweep(operations=0)
        return await lacking(service, OLD, NEW)

    await attach(service, OLD)
    stack = await changed(service, recorded(package("base", content=OLD)))
    assert await later() == [NEW]
    await attach(service, NEW)
    await changed(service, recorded(package("base", content=NEW)))
    assert await later() == []
    assert await later() == []
    await service.delete(stack.id)
    assert await later() == [OLD, NEW]


async def test_a_revision_begins_with_its_packages(service: Client) -> None:
    texts = [package_text(KeptPackage((), packages=tuple(map(installed_from_pb, each)))) for each in ([BASE, WEB], [])]
    await attach(service, *texts)
    await changed(service, recorded(BASE, WEB), package_digest=text_digest(texts[0]))
    await changed(service, removed("base", "web"), package_digest=text_digest(texts[1]))

    header, listed = await revision(service, 1)
    assert (header.revision.number, list(listed.packages.packages)) == (1, [BASE, WEB])
    assert [each.WhichOneof("part") for each in await revision(service, 2)] == ["revision"]


async def test_no_part_of_a_revision_with_many_packages_is_above_1_mib(service: Client) -> None:
    required = [manifest_pb2.Requirement(name=f"package-{number:050}", version_range="^1") for number in range(100)]
    many = [package(f"package-{number:050}", requires=required) for number in range(200)]
    text = package_text(KeptPackage((), packages=tuple(map(installed_from_pb, many))))
    await attach(service, text)
    await changed(service, recorded(*many), package_digest=text_digest(text))

    _, *parts = await revision(service, 1)

    assert len(parts) > 1
    assert max(part.ByteSize() for part in parts) < MAX_PART_BYTES
    assert [each for part in parts for each in part.packages.packages] == many


class Faults:
    """
    A store that fails at one write of a transaction.

    Attributes:
        at: The write that fails, from 0; None: none does.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.at: int | None = None

    async def write(self, work: Callable[[Transaction], T]) -> T:
        return await self._store.write(lambda tx: work(_FaultyTransaction(tx, self.at)))

    async def read(self, work: Callable[[ReadTransaction], T]) -> T:
        return await self._store.read(work)

    async def sweep(self, limits: RetentionLimits) -> Swept:
        return await self._store.sweep(limits)

    async def close(self) -> None:
        await self._store.close()


class _FaultyTransaction:
    def __init__(self, tx: Transaction, at: int | None) -> None:
        self._tx = tx
        self._at = at
        self._writes = count()

    def write(self) -> None:
        if next(self._writes) == self._at:
            raise ServiceUnavailable("stack", "stack.db", "disk I/O error", answered=True)

    def __getattr__(self, name: str) -> Any:
        part = getattr(self._tx, name)
        return _FaultyTable(part, WRITES[name], self.write) if name in WRITES else part


class _FaultyTable:
    def __init__(self, table: Any, writes: set[str], write: Callable[[], None]) -> None:
        self._table = table
        self._writes = writes
        self._write = write

    def __getattr__(self, name: str) -> Any:
        if name in self._writes:
            self._write()
        return getattr(self._table, name)


async def test_a_fault_at_any_write_of_the_end_leaves_all_as_it_was(tmp_path: Path, clock: Clock) -> None:
    stores: list[Faults] = []

    def wrapped(store: Store) -> Store:
        stores.append(Faults(store))
        return stores[0]

    async with service_in_memory(tmp_path / "stack.db", clock, wrapped) as service:
        await attach(service, OLD, NEW)
        first = await begun(service, recorded(package("base", content=OLD), WEB), steps=1)
        stack = await service.record(first, [entry("one")])
        operation = await begun(service, [*recorded(package("base", "2.0.0", NEW)), *removed("web")], steps=1)
        record = await service.changes_to(stack.id, [entry("two")])

        async def seen() -> object:
            return await service.get(stack.id), await page(service), await service.resources(stack.id)

        before = await seen()
        for number in count():
            stores[0].at = number
            try:
                await service.finish(operation, OPERATION_STATE_SUCCEEDED, record=record)
                break
            except ServiceUnavailable:
                stores[0].at = None
                assert await seen() == before
                with pytest.raises(RevisionNotFound):
                    await revision(service, 2)

        assert number >= 10
        stack = await service.get(stack.id)
        assert (stack.generation, stack.revision, stack.package_count, stack.resource_count) == (2, 2, 1, 1)
        assert [(each.name, each.version) for each in await packages(service)] == [("base", "2.0.0")]
        assert [each.key.name for each in await service.resources(stack.id)] == ["two"]
