"""What platforms can do and hold, and which stacks own it, as every service asks: few calls, whatever the number."""

from collections.abc import Collection, Sequence

import grpc
from pkger.driver.v1 import driver_pb2
from pkger.driver.v1.driver_pb2_grpc import DriverServiceStub
from pkger.model.v1 import object_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

from services.core.check import PlatformCheck
from services.core.errors import RequestInvalid, ServiceUnavailable, StackMoved
from services.core.model import (
    NameUniqueness,
    Organization,
    PlatformTraits,
    Resource,
    ResourceKey,
    Spec,
    StackRecord,
    Target,
    WantedSpec,
)
from services.engine.outcome import Failed
from services.rpc.client import Peer
from services.rpc.convert.checks import check_from_pb
from services.rpc.convert.drivers import platform_from_pb, prepared_from_pb, wanted_spec_fields
from services.rpc.convert.objects import org_from_pb, resource_from_pb, stack_from_pb, target_to_pb, unreadable_from_pb
from services.rpc.paging import pages
from services.rpc.parts import parts, text_bytes

LISTED_AT_ONCE = 5000
"""Entries of a record on a page: as many as a page may have (stack.proto)."""

RECORD_ATTEMPTS = 5
"""How often a record is read anew that changes while it is read."""

_REFERENCE_BYTES = 96
"""Most bytes that a reference, or a spec, takes in a message beside its longer texts."""

READ_AT_ONCE = 500
"""Most ids in one request: its answer holds their specs and stays below the message limit."""


async def platform_traits(driver: Peer) -> PlatformTraits:
    """
    What the platform of *driver* can do.

    Raises:
        ServiceUnavailable: The driver does not answer, describes a kind in words that this version does not know, or
            with traits that no kind can have together.
    """
    stub = DriverServiceStub(driver.channel)
    described = await driver.call(stub.Describe, driver_pb2.DescribeRequest())
    try:
        platform = platform_from_pb(described)
    except RequestInvalid as error:
        field, problem = error.metadata["field"], error.metadata["problem"]
        raise _unreliable(driver, f"its description has an unknown {field}: {problem}") from error
    for kind, traits in platform.kinds.items():
        if traits.costly_listing and traits.name_uniqueness is not NameUniqueness.NONE:
            raise _unreliable(driver, f"the listing of {kind} is costly, and its names are unique: names are listed")
    return platform


async def list_resources(
    driver: Peer, org: str, kinds: Sequence[str], known: Collection[ResourceKey] = (), is_lenient: bool = False
) -> list[Resource]:
    """
    All resources of *kinds*, in one call, sorted by kind and id.

    Absence from a listing is a question: what it lacks of *known* is read by itself (docs/reference/engine.md, "Driver
    answers").

    Args:
        driver: The driver.
        org: The organisation.
        kinds: What is listed.
        known: Resources that were there once, of any kind.
        is_lenient: Whether a spec that is none is an error only for who reads it.

    Raises:
        ServiceUnavailable: The listing lacks what is there, names something twice, or of another kind.
        PkgerError: They cannot be listed; that never means that there are none.
    """
    request = driver_pb2.ListResourcesRequest(org=org, kinds=kinds)
    listed = [
        _resource(driver, message, is_lenient)
        async for chunk in driver.stream(DriverServiceStub(driver.channel).ListResources, request)
        for message in chunk.resources
    ]
    found = {(resource.kind, resource.id) for resource in listed}
    if len(found) < len(listed):
        raise _unreliable(driver, "its listing names a resource twice")
    if strange := {kind for kind, _ in found}.difference(kinds):
        raise _unreliable(driver, f"its listing has the kind {min(strange)!r}, which was not asked for")
    lacking = sorted({key for key in known if key[0] in kinds} - found)
    for resource in await read_resources(driver, org, lacking):
        if resource:
            raise _unreliable(driver, f"its listing lacks {resource.kind} {resource.id}, which is there")
    return listed


async def live_resources(
    driver: Peer,
    org: str,
    kinds: Sequence[str],
    known: Collection[ResourceKey],
    platform: PlatformTraits,
    is_lenient: bool = False,
) -> list[Resource]:
    """
    All resources of *kinds*, and those of *known* that are of another kind with a costly listing, in a call each.

    Nothing is called where there is nothing to ask. Arguments and errors as of ``list_resources``; *platform* is what
    the platform can do.
    """
    listed = await list_resources(driver, org, kinds, known, is_lenient) if kinds else []
    costly = {kind for kind, traits in platform.kinds.items() if traits.costly_listing}.difference(kinds)
    read = await read_resources(driver, org, sorted({key for key in known if key[0] in costly}), is_lenient)
    return [*listed, *filter(None, read)]


async def read_resources(
    driver: Peer, org: str, ids: Sequence[ResourceKey], is_lenient: bool = False
) -> list[Resource | None]:
    """
    The resource of each kind and id, in order; None for what certainly does not exist; *is_lenient* as of a listing.

    Raises:
        ServiceUnavailable: The driver answers something else than was asked.
        PkgerError: They cannot be read; that never means that there are none.
    """
    stub = DriverServiceStub(driver.channel)
    found: list[Resource | None] = []
    for start in range(0, len(ids), READ_AT_ONCE):
        some = [object_pb2.ResourceId(kind=kind, id=id_) for kind, id_ in ids[start : start + READ_AT_ONCE]]
        answer = await driver.call(stub.ReadResources, driver_pb2.ReadResourcesRequest(org=org, ids=some))
        if len(answer.results) != len(some):
            raise _unreliable(driver, f"it gave {len(answer.results)} answers to {len(some)} questions")
        found += [_read(driver, asked, result, is_lenient) for asked, result in zip(some, answer.results, strict=True)]
    return found


async def prepare_specs(
    driver: Peer, org: str, wanted: Sequence[WantedSpec], platform: PlatformTraits
) -> list[Spec | Failed]:
    """
    What the platform would hold of each spec, in order, or why it would not hold it; a spec as it is where it would.

    A driver of before PrepareSpecs holds specs as they are, as far as it can tell.

    Args:
        driver: The driver.
        org: The organisation.
        wanted: Specs of kinds that the platform has.
        platform: What the platform can do.

    Raises:
        ServiceUnavailable: The driver answers something else than was asked.
        PkgerError: It does not tell.
    """
    stub = DriverServiceStub(driver.channel)
    found: list[Spec | Failed] = []
    for some in parts(wanted, _wanted_bytes):
        request = driver_pb2.PrepareSpecsRequest(org=org, specs=map(wanted_spec_fields, some))
        try:
            answers = (await driver.call(stub.PrepareSpecs, request)).specs
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                raise
            return [each.spec for each in wanted]
        if len(answers) != len(some):
            raise _unreliable(driver, f"it gave {len(answers)} answers to {len(some)} specs")
        if [answer.position for answer in answers] != list(range(len(some))):
            raise _unreliable(driver, "its answers to specs are out of order")
        found += [_prepared(driver, each, answer, platform) for each, answer in zip(some, answers, strict=True)]
    return found


def _wanted_bytes(wanted: WantedSpec) -> int:
    """Estimate the size of a spec in a message."""
    references = sum(_REFERENCE_BYTES + text_bytes(each.pointer + each.kind + each.id) for each in wanted.references)
    return _REFERENCE_BYTES + text_bytes(wanted.spec.text) + references


def _prepared(
    driver: Peer, wanted: WantedSpec, answer: driver_pb2.PreparedSpec, platform: PlatformTraits
) -> Spec | Failed:
    what, traits = f"{wanted.kind} {wanted.spec.display_name!r}", platform.kinds[wanted.kind]
    try:
        prepared = prepared_from_pb(wanted, answer)
    except (ValueError, TypeError) as error:
        raise _unreliable(driver, f"what it would hold of {what} is no spec: {error}") from error
    if prepared is None:
        raise _unreliable(driver, f"it does not tell what it would hold of {what}")
    if isinstance(prepared, Failed) or prepared is wanted.spec:
        return prepared
    if traits.unique_name(prepared.display_name) != traits.unique_name(wanted.spec.display_name):
        raise _unreliable(driver, f"it would hold {what} under another name, {prepared.display_name!r}")
    if paths := traits.written_secrets(prepared):
        raise _unreliable(driver, f"it would hold a credential at {paths[0]} of {what}")
    return prepared


def _read(
    driver: Peer, asked: object_pb2.ResourceId, result: driver_pb2.ReadResult, is_lenient: bool
) -> Resource | None:
    match result.WhichOneof("result"):
        case "gone":
            return None
        case "resource" if (result.resource.kind, result.resource.id) == (asked.kind, asked.id):
            return _resource(driver, result.resource, is_lenient)
        case "resource":
            given = f"{result.resource.kind} {result.resource.id}"
            raise _unreliable(driver, f"asked for {asked.kind} {asked.id}, it gave {given}")
        case _:
            raise _unreliable(driver, f"it says nothing of {asked.kind} {asked.id}")


def _unreliable(driver: Peer, problem: str) -> ServiceUnavailable:
    """A driver that breaks its contract counts as one that does not answer."""
    return ServiceUnavailable(driver.name, driver.address, problem, driver.platform)


def _resource(driver: Peer, message: object_pb2.Resource, is_lenient: bool) -> Resource:
    """A resource as *driver* gives it; if *is_lenient*, with a spec that is none as well."""
    try:
        return resource_from_pb(message)
    except RequestInvalid as error:
        if is_lenient:
            return unreadable_from_pb(message)
        problem = f"{message.kind} {message.id} has a spec that is none: {error.metadata['problem']}"
        raise ServiceUnavailable(driver.name, driver.address, problem, driver.platform) from error


async def list_secret_keys(driver: Peer, org: str) -> frozenset[str]:
    """
    Keys of the secrets that the platform holds.

    Raises:
        PkgerError: They cannot be listed; that never means that there are none.
    """
    stub = DriverServiceStub(driver.channel)
    return frozenset((await driver.call(stub.ListSecretKeys, driver_pb2.ListSecretKeysRequest(org=org))).keys)


async def list_orgs(driver: Peer) -> list[Organization] | None:
    """
    The organisations of the platform of *driver*, sorted by id; None where the driver does not tell.

    Raises:
        PkgerError: They cannot be listed.
    """
    stub = DriverServiceStub(driver.channel)
    try:
        answer = await driver.call(stub.ListOrgs, driver_pb2.ListOrgsRequest())
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
            raise
        return None
    return [org_from_pb(org) for org in answer.orgs]


async def check_platform(driver: Peer, org: str) -> PlatformCheck | None:
    """
    What the driver finds at its platform, in *org* as far as rights go; None where the driver does not look.

    Raises:
        PkgerError: The driver does not answer.
    """
    stub = DriverServiceStub(driver.channel)
    try:
        answer = await driver.call(stub.Check, driver_pb2.CheckRequest(org=org))
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
            raise
        return None
    return check_from_pb(answer.check)


async def find_owners(
    stack: Peer, target: Target, resources: Collection[tuple[str, str]]
) -> dict[tuple[str, str], stack_pb2.Ownership]:
    """
    Who owns which of the *resources*, given and told by kind and id; one call, and none when there is nothing to ask.

    Raises:
        PkgerError: The stack service does not tell.
    """
    owners, _ = await find_holders(stack, target, resources)
    return owners


async def find_holders(
    stack: Peer, target: Target, resources: Collection[tuple[str, str]]
) -> tuple[dict[tuple[str, str], stack_pb2.Ownership], dict[tuple[str, str], list[stack_pb2.Ownership]]]:
    """
    Who owns which of the *resources*, and who uses them, the oldest user first; as ``find_owners`` otherwise.

    Raises:
        PkgerError: The stack service does not tell.
    """
    if not resources:
        return {}, {}
    refs = [object_pb2.ResourceId(kind=kind, id=id_) for kind, id_ in resources]
    request = stack_pb2.FindOwnersRequest(target=target_to_pb(target), resources=refs)
    answer = await stack.call(StackServiceStub(stack.channel).FindOwners, request)
    users: dict[tuple[str, str], list[stack_pb2.Ownership]] = {}
    for user in answer.users:
        users.setdefault((user.resource.kind, user.resource.id), []).append(user)
    return {(owner.resource.kind, owner.resource.id): owner for owner in answer.owners}, users


async def read_header(stack: Peer, target: Target, ref: object_pb2.StackRef) -> stack_pb2.Stack:
    """
    A stack without what it owns.

    Args:
        stack: The stack service.
        target: Where a name is looked up.
        ref: The stack.

    Raises:
        StackNotFound: There is none.
        PkgerError: The stack service does not tell.
    """
    request = stack_pb2.GetStackRequest(target=target_to_pb(target), stack=ref)
    return (await stack.call(StackServiceStub(stack.channel).GetStack, request)).stack


async def read_stack(
    stack: Peer, target: Target, ref: object_pb2.StackRef, known: stack_pb2.Stack | None = None
) -> tuple[stack_pb2.Stack, list[object_pb2.InventoryEntry]]:
    """
    A stack and all that it owns, of one generation.

    Args:
        stack: The stack service.
        target: Where a name is looked up.
        ref: The stack.
        known: The stack as it was read a moment ago; None: not yet.

    Raises:
        StackNotFound: There is none.
        StackMoved: It changes faster than it can be read.
        PkgerError: The stack service does not tell.
    """
    headers = [known] if known else []

    async def read() -> tuple[stack_pb2.Stack, list[object_pb2.InventoryEntry]]:
        header = headers.pop() if headers else await read_header(stack, target, ref)
        listing = stack_pb2.ListResourcesRequest(stack=object_pb2.StackRef(id=header.id), page_size=LISTED_AT_ONCE)
        entries: list[object_pb2.InventoryEntry] = []
        if not header.resource_count:
            return header, entries
        async for page in pages(stack, StackServiceStub(stack.channel).ListResources, listing):
            if page.generation != header.generation:
                raise StackMoved(header.name or header.id, header.generation, page.generation)
            entries += page.resources
        return header, entries

    retrying = AsyncRetrying(
        retry=retry_if_exception_type(StackMoved), stop=stop_after_attempt(RECORD_ATTEMPTS), reraise=True
    )
    return await retrying(read)


async def read_record(stack: Peer, target: Target, ref: object_pb2.StackRef) -> StackRecord:
    """What planners need of a stack; arguments and errors as of ``read_stack``."""
    return stack_from_pb(*await read_stack(stack, target, ref))
