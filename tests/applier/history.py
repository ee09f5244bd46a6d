"""The history of a stack, as a client sees it."""

import json
from collections.abc import Collection, Sequence
from typing import Any

from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from pkger.model.v1 import object_pb2, plan_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from tests.applier.world import Case, Events
from tests.cluster import after_begun, with_options


async def revisions(case: Case) -> Sequence[stack_pb2.Revision]:
    """All revisions of the stack, newest first, read page by page."""
    peer, found = case.services.peers["stack"], list[stack_pb2.Revision]()
    request = stack_pb2.ListRevisionsRequest(page_size=7, **_named(case))
    while True:
        page = await peer.call(StackServiceStub(peer.channel).ListRevisions, request)
        found += page.revisions
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token


async def numbers(case: Case) -> list[int]:
    """Numbers of all revisions, newest first."""
    return [each.number for each in await revisions(case)]


async def package_of(case: Case, number: int) -> stack_pb2.RevisionObjects:
    """The objects of a revision."""
    peer, found = case.services.peers["stack"], stack_pb2.RevisionObjects()
    request = stack_pb2.GetRevisionRequest(number=number, **_named(case))
    async for answer in peer.stream(StackServiceStub(peer.channel).GetRevision, request):
        found.MergeFrom(answer.objects)
    return found


async def difference(case: Case, old: int, new: int) -> plan_pb2.PlanDiffs:
    """The differences between two revisions."""
    peer, found = case.services.peers["stack"], plan_pb2.PlanDiffs()
    request = stack_pb2.DiffRevisionsRequest(old=old, new=new, **_named(case))
    async for answer in peer.stream(StackServiceStub(peer.channel).DiffRevisions, request):
        found.MergeFrom(answer.diffs)
    return found


async def roll_back(case: Case, number: int, **more: Any) -> Events:
    """All events of a rollback to a revision."""
    peer = case.services.peers["applier"]
    fields = with_options({"allow_missing": True, **more})
    request = applier_pb2.RollbackStackRequest(revision=number, **_named(case), **fields)
    stream = peer.stream(ApplierServiceStub(peer.channel).RollbackStack, request)
    return await case.collected(after_begun(stream))


async def baselines(case: Case) -> dict[tuple[str, str], journal_pb2.Baseline]:
    """The baselines of the stack, by kind and name."""
    peer, record = case.services.peers["stack"], (await case.look()).record
    assert record
    answer = await peer.call(
        JournalServiceStub(peer.channel).ListBaselines, journal_pb2.ListBaselinesRequest(stack_id=record.stack.id)
    )
    assert answer.generation == record.stack.generation
    return {(each.key.kind, each.key.name): each for each in answer.baselines}


async def check_history(case: Case, protected: Collection[tuple[str, str]] = ()) -> None:
    """
    Check that the baseline of each entry equals its live resource, and that the record names the newest revision.

    Objects in *protected*, by kind and name, have left the package, so the revision does not have them.
    """
    snapshot = await case.look()
    assert snapshot.record
    stack, found = snapshot.record.stack, await revisions(case)
    assert (stack.revision, stack.package_digest) == (found[0].number, found[0].package_digest)
    live = {(each.kind, each.id): each for each in snapshot.resources}
    kept = await baselines(case)
    assert kept.keys() == {(each.key.kind, each.key.name) for each in snapshot.record.resources}
    for entry in snapshot.record.resources:
        resource, baseline = live[entry.key.kind, entry.resource_id], kept[entry.key.kind, entry.key.name]
        assert json.loads(baseline.spec_json) == json.loads(resource.spec_json)
        assert list(baseline.references) == list(resource.references)
        assert not entry.lacks_baseline
    package = await package_of(case, stack.revision)
    assert {(each.key.kind, each.key.name) for each in package.objects} == kept.keys() - {*protected}


def _named(case: Case) -> dict[str, Any]:
    return {"stack": object_pb2.StackRef(target=object_pb2.Target(org=case.org), name=case.stack)}
