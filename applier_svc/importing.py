"""Imports existing resources into a stack (docs/reference/engine.md, "Matching" and "Policies")."""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import NamedTuple

from pkger.applier.v1 import applier_pb2
from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from pkger.model.v1 import object_pb2

from services.core.errors import RequestInvalid, ResourceNotFound
from services.core.model import (
    Baseline,
    InventoryEntry,
    Key,
    Origin,
    PlatformTraits,
    Resource,
    StackRecord,
    Target,
)
from services.core.text_lists import listed
from services.kinds.format.names import check_meta_name
from services.kinds.generated_names import generated_name
from services.kinds.kind_words import unknown_kind
from services.kinds.policy import NO_OWN_POLICY, OwnPolicy, resolved
from services.kinds.policy_reading import checked_own
from services.kinds.registry import ACCEPTED, kinds_meant
from services.rpc.call import MESSAGE_LIMIT
from services.rpc.client import Peer, Platforms
from services.rpc.convert.objects import baseline_to_pb, entry_fields, stack_from_pb
from services.rpc.parts import cut
from services.rpc.request_digest import content_digest
from services.rpc.resources import list_resources, platform_traits, read_resources
from services.rpc.stack_records import read_stack

_SHOWN = 10
"""How many resources of one name an error lists at most."""


class _Selector(NamedTuple):
    """
    A resource to import.

    Attributes:
        field: Its field in the request.
        word: Its kind, or a family, as in the request.
        value: Its id, or its display name.
        is_id: Whether *value* is an id only.
        name: ``metadata.name`` of its object; empty: a generated one.
        own_policy: What package and object themselves say.
    """

    field: str
    word: str
    value: str
    is_id: bool
    name: str = ""
    own_policy: OwnPolicy = NO_OWN_POLICY

    def __str__(self) -> str:
        return f"{self.word} {self.value}" if self.is_id else f"{self.word} with id or name {self.value!r}"


async def import_resources(
    request: applier_pb2.ImportResourcesRequest, store: Peer, platforms: Platforms
) -> AsyncIterator[applier_pb2.ImportResourcesResponse]:
    """
    Read the resources and record them as entries of the stack, all or none.

    Raises:
        PkgerError: As applier.proto lists them; nothing is recorded.
    """
    selectors = _selectors(request)
    header, stored = await read_stack(store, request.stack)
    _check_names(selectors, has_packages=bool(header.package_count))
    record = stack_from_pb(header, stored)
    driver = platforms.driver(record.target.platform)
    resources = await _resources(driver, record.target, selectors, await platform_traits(driver))
    imports = [_import(each, resource, record) for each, resource in zip(selectors, resources, strict=True)]
    entries = [object_pb2.InventoryEntry(**entry_fields(entry)) for entry, _ in imports]
    recording = journal_pb2.RecordImportRequest(
        stack_id=record.id,
        entries=entries,
        baselines=[baseline_to_pb(baseline) for _, baseline in imports],
        request=journal_pb2.RequestKey(id=request.request_id, digest=content_digest(request)),
    )
    if recording.ByteSize() > MESSAGE_LIMIT:
        problem = f"{len(entries):,} resources do not fit into one message between the services; import fewer at a time"
        raise RequestInvalid("resources", problem)
    answer = await store.call(JournalServiceStub(store.channel).RecordImport, recording)
    for part in cut(applier_pb2.ImportResourcesResponse(entries=entries)):
        part.generation = answer.generation
        yield part


def _selectors(request: applier_pb2.ImportResourcesRequest) -> list[_Selector]:
    """
    Read and check the resources of a request.

    Raises:
        RequestInvalid: It names none, or a kind or a name is invalid.
    """
    if not request.resources:
        raise RequestInvalid("resources", "name at least one resource")
    return [_selector(f"resources[{position}]", each) for position, each in enumerate(request.resources)]


def _check_names(selectors: Iterable[_Selector], *, has_packages: bool) -> None:
    """
    Check the names of objects. In a stack with packages they are PACKAGE.NAME; the store checks the package.

    Raises:
        RequestInvalid: A name is none.
    """
    for each in selectors:
        own_name = each.name.partition(".")[2] if has_packages and "." in each.name else each.name
        if own_name:
            check_meta_name(own_name, f"{each.field}.name")


def _selector(field: str, message: applier_pb2.ResourceImport) -> _Selector:
    if message.kind not in ACCEPTED:
        raise RequestInvalid(f"{field}.kind", unknown_kind(message.kind))
    which = message.WhichOneof("resource") or "id"
    if not (value := getattr(message, which)):
        raise RequestInvalid(f"{field}.{which}", "must not be empty")
    return _Selector(field, message.kind, value, which == "id", message.name, _own_policy(field, message))


def _own_policy(field: str, message: applier_pb2.ResourceImport) -> OwnPolicy:
    try:
        return checked_own(message.own_policy_json)
    except ValueError as error:
        raise RequestInvalid(f"{field}.own_policy_json", str(error)) from None


async def _resources(
    driver: Peer, target: Target, selectors: Sequence[_Selector], platform: PlatformTraits
) -> list[Resource]:
    """The resource of each of *selectors*: by its id, else by its name; one call lists the kinds of all names."""
    ids = dict.fromkeys((kind, each.value) for each in selectors for kind in _kinds(each, platform))
    read = {(each.kind, each.id): each for each in await read_resources(driver, target.org, list(ids)) if each}
    chosen = [
        next((read[kind, each.value] for kind in _kinds(each, platform) if (kind, each.value) in read), None)
        for each in selectors
    ]
    named = {
        position: each
        for position, (each, resource) in enumerate(zip(selectors, chosen, strict=True))
        if resource is None and not each.is_id
    }
    kinds = sorted({kind for each in named.values() for kind in _kinds(each, platform)})
    by_name: defaultdict[tuple[str, str], list[Resource]] = defaultdict(list)
    for resource in await list_resources(driver, target.org, kinds) if kinds else []:
        by_name[resource.kind, platform.kinds[resource.kind].compared_name(resource.spec.display_name)].append(resource)
    for position, each in named.items():
        chosen[position] = _named_resource(each, by_name, platform)
    if missing := [str(each) for each, resource in zip(selectors, chosen, strict=True) if resource is None]:
        raise ResourceNotFound(target.platform, target.org, missing)
    return [resource for resource in chosen if resource]


def _named_resource(
    selector: _Selector, by_name: Mapping[tuple[str, str], Sequence[Resource]], platform: PlatformTraits
) -> Resource | None:
    """
    The only resource with the name of *selector*, as the platform compares names; None: there is none.

    *by_name* has the live resources by kind and compared name.

    Raises:
        RequestInvalid: Several resources have the name; it lists their ids.
    """
    named = [
        each
        for kind in _kinds(selector, platform)
        for each in by_name.get((kind, platform.kinds[kind].compared_name(selector.value)), ())
    ]
    if not named[1:]:
        return named[0] if named else None
    ids = listed([f"{each.kind} {each.id}" for each in named], _SHOWN)
    raise RequestInvalid(
        f"{selector.field}.id_or_name", f"{len(named):,} resources have the name {selector.value!r}: {ids}; give an id"
    )


def _import(selector: _Selector, resource: Resource, record: StackRecord) -> tuple[InventoryEntry, Baseline]:
    key = Key(resource.kind, selector.name or generated_name(resource))
    own = selector.own_policy
    policy = resolved(record.policy, key, own).text
    entry = InventoryEntry(key, resource.id, Origin.ADOPTED, policy=policy, own_policy=own.text)
    return entry, Baseline(key, resource.spec.text, resource.references)


def _kinds(selector: _Selector, platform: PlatformTraits) -> list[str]:
    """The kinds of the platform that *selector* names: one kind, or the kinds of a family."""
    return [kind for kind in kinds_meant(selector.word) if kind in platform.kinds]
