"""Imports an existing resource into a stack (docs/reference/engine.md, "Matching" and "Policies")."""

from pkger.applier.v1 import applier_pb2
from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from pkger.model.v1 import object_pb2

from services.core.errors import RequestInvalid, ResourceNotFound
from services.core.model import Baseline, InventoryEntry, Key, Origin, PlatformTraits, Resource, Target
from services.kinds.format.names import check_meta_name
from services.kinds.generated_names import generated_name
from services.kinds.kind_words import unknown_kind
from services.kinds.policy import resolved
from services.kinds.registry import ACCEPTED, kinds_meant
from services.rpc.client import Peer, Platforms
from services.rpc.convert.objects import baseline_to_pb, entry_fields, target_from_pb
from services.rpc.requests import content_digest
from services.rpc.resources import platform_traits, read_record, read_resources


async def import_resource(
    request: applier_pb2.ImportResourceRequest, store: Peer, platforms: Platforms
) -> applier_pb2.ImportResourceResponse:
    """
    Read the resource and record it as an entry of the stack.

    Raises:
        PkgerError: As applier.proto lists them; nothing is recorded.
    """
    if request.name:
        check_meta_name(request.name, "name")
    if not request.resource_id:
        raise RequestInvalid("resource_id", "must not be empty")
    record = await read_record(store, target_from_pb(request.target), request.stack)
    driver = platforms.driver(record.target.platform)
    found = await _resource(driver, record.target, request, await platform_traits(driver))
    key = Key(found.kind, request.name or generated_name(found))
    entry = InventoryEntry(key, found.id, Origin.ADOPTED, policy=resolved(record.policy, key).text)
    recorded = object_pb2.InventoryEntry(**entry_fields(entry))
    answer = await store.call(
        JournalServiceStub(store.channel).RecordImport,
        journal_pb2.RecordImportRequest(
            stack_id=record.id,
            entry=recorded,
            baseline=baseline_to_pb(Baseline(key, found.spec.text, found.references)),
            request=journal_pb2.RequestKey(id=request.request_id, digest=content_digest(request)),
        ),
    )
    return applier_pb2.ImportResourceResponse(entry=recorded, generation=answer.generation)


async def _resource(
    driver: Peer, target: Target, request: applier_pb2.ImportResourceRequest, platform: PlatformTraits
) -> Resource:
    kinds = [kind for kind in _kinds(request.kind) if kind in platform.kinds]
    for found in await read_resources(driver, target.org, [(kind, request.resource_id) for kind in kinds]):
        if found:
            return found
    raise ResourceNotFound(target.platform, target.org, [f"{request.kind} {request.resource_id}"])


def _kinds(word: str) -> tuple[str, ...]:
    """The kinds that *word* names: one, or those of a family."""
    if word not in ACCEPTED:
        raise RequestInvalid("kind", unknown_kind(word))
    return kinds_meant(word)
