"""SnapshotService: snapshots with their contents, lists of them, and what a delete leaves."""

from typing import Any

import pytest
from pkger.model.v1.operation_pb2 import OPERATION_STATE_CANCELLED, OPERATION_STATE_FAILED
from pkger.stack.v1 import snapshot_pb2
from pkger.stack.v1.snapshot_pb2_grpc import SnapshotServiceStub

from services.core.errors import ArtifactGone, RequestInvalid, SnapshotNotFound
from services.kinds.attachment import text_digest
from services.rpc.parts import MAX_PART_BYTES
from tests.stack.action_sets import (
    begin,
    create,
    delete_snapshot,
    finish,
    get_snapshot,
    make_snapshot,
    manifest,
    new_action_set,
    start,
)
from tests.stack.service import Client, Clock

DAY = 24 * 3600
UNKNOWN = f"sha256:{'0' * 64}"


async def page(service: Client, **fields: Any) -> snapshot_pb2.ListSnapshotsResponse:
    request = snapshot_pb2.ListSnapshotsRequest(**fields)
    return await service.peer.call(SnapshotServiceStub(service.peer.channel).ListSnapshots, request)


async def has_text(service: Client, clock: Clock, text: str) -> bool:
    """Whether an attachment is still stored after a sweep a day later."""
    clock.forward(DAY + 1)
    await service.sweep()
    assert service.store
    return not await service.store.read(lambda tx: tx.attachments.lacking([text_digest(text)]))


async def test_a_snapshot_is_read_with_its_contents_in_parts(service: Client, clock: Clock) -> None:
    run = await create(service, "backup")
    texts = ["ü" * MAX_PART_BYTES, "", "second"]
    made = await make_snapshot(service, run, "prod", *texts)
    first, *contents = await get_snapshot(service, made)
    assert first.snapshot == snapshot_pb2.Snapshot(
        id=made,
        manifest_json=manifest("prod", *texts),
        action_set="backup",
        stack_name="prod",
        object_count=2,
        bytes=2 * MAX_PART_BYTES + 6,
        create_time=first.snapshot.create_time,
    )
    assert first.snapshot.create_time.ToMicroseconds() == clock.now
    digests = list(dict.fromkeys(part.content.digest for part in contents))
    assert digests == [text_digest(text) for text in texts]
    joined = {
        digest: "".join(part.content.text for part in contents if part.content.digest == digest) for digest in digests
    }
    assert list(joined.values()) == texts
    assert max(part.ByteSize() for part in contents) < MAX_PART_BYTES
    assert await get_snapshot(service, made, without_contents=True) == [first]


async def test_snapshots_are_listed_newest_first_without_deleted_ones(service: Client, clock: Clock) -> None:
    run = await create(service, "backup")
    made = []
    for stack, name in (("prod", "one"), ("edge", "two"), ("", "three"), ("prod", "four")):
        clock.forward(1)
        made.append(await make_snapshot(service, run, stack, "text", phase_name=name))
    assert await delete_snapshot(service, made[0])

    async def ids(**fields: Any) -> list[str]:
        return [each.id for each in (await page(service, **fields)).snapshots]

    assert await ids() == [made[3], made[2], made[1]]
    assert await ids(stack_name="prod") == [made[3]]
    newest = await page(service, page_size=2)
    assert await ids(page_token=newest.next_page_token) == [made[1]]
    assert not any(each.manifest_json for each in newest.snapshots)


@pytest.mark.parametrize(("fields", "field"), [({"page_size": 501}, "page_size"), ({"page_token": "x"}, "page_token")])
async def test_a_page_that_cannot_be_read_is_refused(service: Client, fields: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestInvalid) as raised:
        await page(service, **fields)
    assert raised.value.metadata["field"] == field


@pytest.mark.parametrize("snapshot", ["", "sha256:1", f"SHA256:{'0' * 64}", f"sha256:{'A' * 64}"])
async def test_what_is_no_id_is_refused(service: Client, snapshot: str) -> None:
    for call in (get_snapshot(service, snapshot), delete_snapshot(service, snapshot)):
        with pytest.raises(RequestInvalid):
            await call


async def test_a_snapshot_that_does_not_exist_is_not_found(service: Client) -> None:
    for call in (get_snapshot(service, UNKNOWN), delete_snapshot(service, UNKNOWN)):
        with pytest.raises(SnapshotNotFound):
            await call


async def test_the_author_of_a_delete_has_a_bound(service: Client) -> None:
    run = await create(service, "backup")
    made = await make_snapshot(service, run, "prod", "text")
    with pytest.raises(RequestInvalid):
        await delete_snapshot(service, made, "x" * 201)


async def test_a_deleted_snapshot_is_gone_at_once_and_its_contents_with_the_last_user(
    service: Client, clock: Clock
) -> None:
    maker = await create(service, "backup")
    made = await make_snapshot(service, maker, "prod", "text")
    await finish(service, maker)
    users = [await create(service, name, snapshots=[made]) for name in ("one", "two")]

    assert await delete_snapshot(service, made, "delete-backup")
    deleted_at = clock.now
    assert not await delete_snapshot(service, made, "other")

    run = await begin(service)
    with pytest.raises(ArtifactGone) as raised:
        await start(service, run, new_action_set("three", snapshots=[made]))
    assert raised.value.metadata["deleted_by"] == "delete-backup"
    for user, state in zip(users, (OPERATION_STATE_FAILED, OPERATION_STATE_CANCELLED), strict=True):
        first, content = await get_snapshot(service, made)
        assert (first.snapshot.deleted_by, content.content.text) == ("delete-backup", "text")
        assert first.snapshot.delete_time.ToMicroseconds() == deleted_at
        assert await has_text(service, clock, "text")
        heir, _ = await service.claim(user.operation)
        await finish(service, heir, state)
    with pytest.raises(ArtifactGone) as raised:
        await get_snapshot(service, made)
    assert raised.value.metadata["deleted_by"] == "delete-backup"
    [known] = await get_snapshot(service, made, without_contents=True)
    assert known == first
    assert not await delete_snapshot(service, made)
    assert not await has_text(service, clock, "text")


async def test_the_contents_of_an_unused_snapshot_go_with_its_delete(service: Client, clock: Clock) -> None:
    run = await create(service, "backup")
    first, second = [await make_snapshot(service, run, name, "text", f"of {name}") for name in ("one", "two")]
    await finish(service, run)
    assert await delete_snapshot(service, first)
    with pytest.raises(ArtifactGone):
        await get_snapshot(service, first)
    assert [await has_text(service, clock, text) for text in ("of one", "of two", "text")] == [False, True, True]
    assert await delete_snapshot(service, second)
    assert not await has_text(service, clock, "text")
