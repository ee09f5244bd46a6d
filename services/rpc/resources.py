"""Reads platforms, in few calls whatever the number of resources; used by all services."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any

import grpc
from pkger.driver.v1 import driver_pb2
from pkger.driver.v1.driver_pb2_grpc import DriverServiceStub
from pkger.model.v1 import object_pb2

from services.core.check import PlatformCheck
from services.core.errors import RequestInvalid, ServiceUnavailable
from services.core.model import (
    DesiredSpec,
    Identity,
    NameUniqueness,
    Organization,
    PlatformTraits,
    Resource,
    ResourceKey,
    Spec,
)
from services.engine.outcome import Failed
from services.kinds.registry import KINDS
from services.rpc.client import Peer
from services.rpc.convert.checks import check_from_pb
from services.rpc.convert.drivers import desired_spec_fields, platform_from_pb, prepared_from_pb
from services.rpc.convert.objects import org_from_pb, resource_from_pb, unreadable_from_pb
from services.rpc.driver_answers import AnswerSize, TooMuch
from services.rpc.error_frames import forget_variables
from services.rpc.parts import parts, text_bytes

_REFERENCE_BYTES = 96
"""Most bytes of a reference, or a spec, in a message, without its longer texts."""

_NO_METHOD = grpc.StatusCode.UNIMPLEMENTED.name
"""The status of a driver that lacks an optional method."""

READ_AT_ONCE = 500
"""Most ids in one request: the response with their specs is below the message limit."""


@contextmanager
def _bounded(driver: Peer, items: list[Any]) -> Iterator[None]:
    """
    Report an answer beyond its bound as an error of *driver*.

    After any error in the block, *items* are removed: the traceback has them (``forget_variables``).
    """
    try:
        yield
    except TooMuch as error:
        items.clear()
        forget_variables(error)
        raise _unreliable(driver, str(error)) from None
    except BaseException as error:
        items.clear()
        forget_variables(error)
        raise


async def platform_traits(driver: Peer) -> PlatformTraits:
    """
    The traits of the platform of *driver*; one call for each connection, if it has all kinds.

    Raises:
        ServiceUnavailable: The driver does not answer, returns a trait that this version does not know, or traits that
            exclude each other.
    """
    stub = DriverServiceStub(driver.channel)
    described = await driver.call_once(stub.Describe, driver_pb2.DescribeRequest(), _has_all_kinds)
    try:
        platform = platform_from_pb(described)
    except RequestInvalid as error:
        field, problem = error.metadata["field"], error.metadata["problem"]
        raise _unreliable(driver, f"its description has an unknown {field}: {problem}") from error
    for kind, traits in platform.kinds.items():
        is_unique = traits.name_uniqueness is not NameUniqueness.NONE
        if traits.costly_listing and is_unique:
            raise _unreliable(driver, f"the list of {kind} is costly, but its names are unique")
        if traits.identity is Identity.NATURAL_KEY and not is_unique:
            raise _unreliable(driver, f"a {kind} is found by its name, but its names may repeat")
    return platform


def _has_all_kinds(described: driver_pb2.DescribeResponse) -> bool:
    """Whether a description may be kept: one that lacks a kind is asked for again, as it refuses packages."""
    return {each.kind for each in described.kinds} >= KINDS.keys()


async def list_resources(
    driver: Peer, org: str, kinds: Sequence[str], expected: Collection[ResourceKey] = (), is_lenient: bool = False
) -> list[Resource]:
    """
    List all resources of *kinds*, in one call, sorted by kind and id.

    A list may be incomplete, so *expected* resources that it lacks are read one by one (docs/reference/engine.md,
    "Driver answers").

    Args:
        driver: The driver.
        org: The organization.
        kinds: The kinds to list.
        expected: Resources that existed before, of any kind.
        is_lenient: Whether an invalid spec is an error only when it is used.

    Raises:
        ServiceUnavailable: The list lacks a resource that exists, or has one twice or of another kind.
        PkgerError: The resources cannot be listed; this never means that there are none.
    """
    request = driver_pb2.ListResourcesRequest(org=org, kinds=kinds)
    listed, size = list[Resource](), AnswerSize()
    with _bounded(driver, listed):
        # Leaving the block early cancels the call.
        async with aclosing(driver.stream(DriverServiceStub(driver.channel).ListResources, request)) as chunks:
            async for chunk in chunks:
                listed += size.add([_resource(driver, message, is_lenient) for message in chunk.resources])
        keys = {(resource.kind, resource.id) for resource in listed}
        if len(keys) < len(listed):
            raise _unreliable(driver, "its list has a resource twice")
        if unrequested := {kind for kind, _ in keys}.difference(kinds):
            raise _unreliable(driver, f"its list has the kind {min(unrequested)!r}, which was not requested")
        lacking = sorted({key for key in expected if key[0] in kinds} - keys)
        for resource in await read_resources(driver, org, lacking):
            if resource:
                raise _unreliable(driver, f"its list lacks {resource.kind} {resource.id}, which exists")
    return listed


async def live_resources(
    driver: Peer,
    org: str,
    kinds: Sequence[str],
    expected: Collection[ResourceKey],
    platform: PlatformTraits,
    is_lenient: bool = False,
) -> list[Resource]:
    """
    List all resources of *kinds*, and read the *expected* ones of other kinds with a costly list, in one call each.

    Calls without arguments are left out. Arguments and errors as for ``list_resources``; *platform* has the traits.
    """
    listed = await list_resources(driver, org, kinds, expected, is_lenient) if kinds else []
    costly = {kind for kind, traits in platform.kinds.items() if traits.costly_listing}.difference(kinds)
    read = await read_resources(driver, org, sorted({key for key in expected if key[0] in costly}), is_lenient)
    return [*listed, *filter(None, read)]


async def read_resources(
    driver: Peer, org: str, ids: Sequence[ResourceKey], is_lenient: bool = False
) -> list[Resource | None]:
    """
    Read the resource of each kind and id, in order; None: it certainly does not exist. *is_lenient* as for
    ``list_resources``.

    Raises:
        ServiceUnavailable: The response does not fit the request.
        PkgerError: They cannot be read; this never means that there are none.
    """
    stub = DriverServiceStub(driver.channel)
    resources_read, size = list[Resource | None](), AnswerSize()
    for start in range(0, len(ids), READ_AT_ONCE):
        some = [object_pb2.ResourceId(kind=kind, id=id_) for kind, id_ in ids[start : start + READ_AT_ONCE]]
        answer = await driver.call(stub.ReadResources, driver_pb2.ReadResourcesRequest(org=org, ids=some))
        if len(answer.results) != len(some):
            raise _unreliable(driver, f"it returned {len(answer.results)} results for {len(some)} ids")
        read = [_read(driver, ref, result, is_lenient) for ref, result in zip(some, answer.results, strict=True)]
        with _bounded(driver, resources_read):
            size.add([resource for resource in read if resource])
        resources_read += read
    return resources_read


async def prepare_specs(
    driver: Peer, org: str, desired: Sequence[DesiredSpec], platform: PlatformTraits
) -> list[Spec | Failed]:
    """
    For each spec, in order: the spec as the platform would hold it, the same object if unchanged, or a failure.

    A driver without PrepareSpecs is taken to hold specs unchanged.

    Args:
        driver: The driver.
        org: The organization.
        desired: Specs of kinds that the platform has.
        platform: The traits of the platform.

    Raises:
        ServiceUnavailable: The response does not fit the request.
        PkgerError: The call failed.
    """
    stub = DriverServiceStub(driver.channel)
    prepared, size = list[Spec | Failed](), AnswerSize()
    for some in parts(desired, _spec_bytes):
        request = driver_pb2.PrepareSpecsRequest(org=org, specs=map(desired_spec_fields, some))
        try:
            answers = (await driver.call(stub.PrepareSpecs, request)).specs
        except ServiceUnavailable as error:
            if error.status != _NO_METHOD:
                raise
            return [each.spec for each in desired]
        if len(answers) != len(some):
            raise _unreliable(driver, f"it returned {len(answers)} results for {len(some)} specs")
        if [answer.position for answer in answers] != list(range(len(some))):
            raise _unreliable(driver, "its prepared specs are out of order")
        results = [_prepared(driver, each, answer, platform) for each, answer in zip(some, answers, strict=True)]
        with _bounded(driver, prepared):
            size.add_specs(each for each in results if isinstance(each, Spec))
        prepared += results
    return prepared


def _spec_bytes(desired: DesiredSpec) -> int:
    """Estimate the size of a spec in a message."""
    references = sum(_REFERENCE_BYTES + text_bytes(each.pointer + each.kind + each.id) for each in desired.references)
    return _REFERENCE_BYTES + text_bytes(desired.spec.text) + references


def _prepared(
    driver: Peer, desired: DesiredSpec, answer: driver_pb2.PreparedSpec, platform: PlatformTraits
) -> Spec | Failed:
    what, traits = f"{desired.kind} {desired.spec.display_name!r}", platform.kinds[desired.kind]
    try:
        prepared = prepared_from_pb(desired, answer)
    except (ValueError, TypeError) as error:
        raise _unreliable(driver, f"its prepared spec of {what} is invalid: {error}") from error
    if prepared is None:
        raise _unreliable(driver, f"it returned no prepared spec of {what}")
    if isinstance(prepared, Failed) or prepared is desired.spec:
        return prepared
    if traits.unique_name(prepared.display_name) != traits.unique_name(desired.spec.display_name):
        raise _unreliable(driver, f"its prepared spec of {what} has another name, {prepared.display_name!r}")
    if paths := traits.written_secrets(prepared):
        raise _unreliable(driver, f"its prepared spec of {what} has a credential at {paths[0]}")
    return prepared


def _read(driver: Peer, ref: object_pb2.ResourceId, result: driver_pb2.ReadResult, is_lenient: bool) -> Resource | None:
    match result.WhichOneof("result"):
        case "gone":
            return None
        case "resource" if (result.resource.kind, result.resource.id) == (ref.kind, ref.id):
            return _resource(driver, result.resource, is_lenient)
        case "resource":
            returned = f"{result.resource.kind} {result.resource.id}"
            raise _unreliable(driver, f"asked for {ref.kind} {ref.id}, it returned {returned}")
        case _:
            raise _unreliable(driver, f"it returned no result for {ref.kind} {ref.id}")


def _unreliable(driver: Peer, problem: str) -> ServiceUnavailable:
    """The error for a driver that breaks its contract, which is treated as one that does not answer."""
    return ServiceUnavailable(driver.name, driver.address, problem, driver.platform, answered=True)


def _resource(driver: Peer, message: object_pb2.Resource, is_lenient: bool) -> Resource:
    """Translate a resource from *driver*; if *is_lenient*, also one with an invalid spec."""
    try:
        return resource_from_pb(message)
    except RequestInvalid as error:
        if is_lenient:
            return unreadable_from_pb(message)
        problem = f"{message.kind} {message.id} has an invalid spec: {error.metadata['problem']}"
        raise ServiceUnavailable(driver.name, driver.address, problem, driver.platform, answered=True) from error


async def list_secret_keys(driver: Peer, org: str) -> frozenset[str]:
    """
    List the keys of the secrets of the platform.

    Raises:
        PkgerError: They cannot be listed; this never means that there are none.
    """
    stub = DriverServiceStub(driver.channel)
    return frozenset((await driver.call(stub.ListSecretKeys, driver_pb2.ListSecretKeysRequest(org=org))).keys)


async def list_orgs(driver: Peer) -> list[Organization] | None:
    """
    List the organizations of the platform of *driver*, sorted by id; None if the driver cannot list them.

    Raises:
        PkgerError: They cannot be listed.
    """
    stub = DriverServiceStub(driver.channel)
    try:
        answer = await driver.call(stub.ListOrgs, driver_pb2.ListOrgsRequest())
    except ServiceUnavailable as error:
        if error.status != _NO_METHOD:
            raise
        return None
    return [org_from_pb(org) for org in answer.orgs]


async def check_platform(driver: Peer, org: str) -> PlatformCheck | None:
    """
    Check the platform, and its rights in *org*; None if the driver has no check.

    Raises:
        PkgerError: The driver does not answer.
    """
    stub = DriverServiceStub(driver.channel)
    try:
        answer = await driver.call(stub.Check, driver_pb2.CheckRequest(org=org))
    except ServiceUnavailable as error:
        if error.status != _NO_METHOD:
            raise
        return None
    return check_from_pb(answer.check)
