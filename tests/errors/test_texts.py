"""
Every reason with one example text as ``pkger`` prints it, in texts.txt, where all error texts can be reviewed together.

Most errors come from running services; errors that need a special platform, or time, are constructed.
``pytest tests/errors --update-golden`` rewrites the file.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.driver.v1 import driver_pb2
from pkger.driver.v1.driver_pb2_grpc import DriverServiceStub
from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from pkger.model.v1 import object_pb2, plan_pb2
from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import package_pb2, planner_pb2
from pkger.planner.v1.package_pb2_grpc import PackageServiceStub
from pkger.stack.v1 import repository_pb2, stack_pb2
from pkger.stack.v1.repository_pb2_grpc import RepositoryServiceStub
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.cli.errors import failed
from services.core import errors
from services.core.errors import PkgerError, Reason
from services.rpc.client import Peer
from tests.apply.packages import an_endpoint, an_object, text
from tests.cluster import Cluster, cluster
from tests.drivers.client import create, update

GOLDEN = Path(__file__).parent / "texts.txt"

TARGET = object_pb2.Target(platform="embedded", org="default")
RED = an_object("Label", "red", "Red", color="#ff0000")
RAW = an_object("Bucket", "raw", "Readings")

CONSTRUCTED: dict[Reason, PkgerError] = {
    Reason.KIND_UNSUPPORTED: errors.KindUnsupported("lab", "Dashboard"),
    Reason.INTERNAL: errors.Internal("0c9d1f52"),
    Reason.UNAUTHENTICATED: errors.Unauthenticated(),
    Reason.TOO_MANY_CALLS: errors.TooManyCalls("local", 100),
    Reason.OPERATION_UNFINISHED: errors.OperationUnfinished("fleet", "0123456789abcdef", "BLOCKED"),
    Reason.PLAN_EXPIRED: errors.PlanExpired("0123456789abcdef", "2026-01-02T00:00:00Z"),
    Reason.PLAN_TOO_LARGE: errors.PlanTooLarge(70_000_000, 67_108_864),
    Reason.REPOSITORY_UNAVAILABLE: errors.RepositoryUnavailable("main", "https://packages.example.com: no answer"),
    Reason.PACKAGE_STACK: errors.PackageStack(
        "fleet", "has installed packages, and therefore no URLs; change its packages, or use another stack"
    ),
    Reason.PACKAGE_PINNED: errors.PackagePinned("fleet", ["base-labels", "web-buckets"]),
    Reason.REPOSITORY_IN_USE: errors.RepositoryInUse("main", ["base-labels of fleet", "web-buckets of user"]),
    Reason.DEFINITION_NOT_FOUND: errors.DefinitionNotFound("Blueprint", "backup"),
    Reason.DEFINITION_CHANGED: errors.DefinitionChanged("Blueprint", "backup", "sha256:1", "sha256:2"),
    Reason.ACTION_SET_NOT_FOUND: errors.ActionSetNotFound("backup-x7k2p"),
    Reason.ACTION_SET_EXISTS: errors.ActionSetExists("backup-x7k2p"),
    Reason.ACTION_SET_UNFINISHED: errors.ActionSetUnfinished("backup-x7k2p", "0123456789abcdef", "APPLYING"),
    Reason.ACTION_SET_NOT_COMPLETE: errors.ActionSetNotComplete("backup-x7k2p", "failed"),
    Reason.ACTION_SET_HAS_SNAPSHOTS: errors.ActionSetHasSnapshots("backup-x7k2p", ["sha256:1", "sha256:2"]),
    Reason.ARTIFACT_GONE: errors.ArtifactGone("stackBackup", "sha256:1", "delete-backup-x7k2p"),
    Reason.SNAPSHOT_NOT_FOUND: errors.SnapshotNotFound("sha256:1"),
    Reason.SNAPSHOT_CORRUPT: errors.SnapshotCorrupt("sha256:1", "its package does not have the digest sha256:2"),
    Reason.LIMIT_REACHED: errors.LimitReached("applier", 64),
    Reason.ORG_UNKNOWN: errors.OrgUnknown("influx", "acme", "organization name 'acme' not found"),
}
"""Errors that do not occur in this test: they need another platform, a port, a defect, a crash, a day, or packages."""


@pytest.fixture
async def services(tmp_path: Path) -> AsyncIterator[Cluster]:
    """Services with two stacks: fleet owns a label and a bucket, user shares the label."""
    async with cluster(tmp_path) as running:
        await running.apply(text(RED, RAW), stack="fleet")
        await running.apply(text(RED), stack="user")
        yield running


def call(services: Cluster, peer: str, stub: Any, method: str, request: Any) -> Awaitable[Any]:
    return services.peers[peer].call(getattr(stub(services.peers[peer].channel), method), request)


def of_repositories(services: Cluster, method: str, request: Any) -> Awaitable[Any]:
    return call(services, "stack", RepositoryServiceStub, method, request)


def of_stacks(services: Cluster, method: str, request: Any) -> Awaitable[Any]:
    return call(services, "stack", StackServiceStub, method, request)


def of_journal(services: Cluster, method: str, request: Any) -> Awaitable[Any]:
    return call(services, "stack", JournalServiceStub, method, request)


def named(name: str) -> object_pb2.StackRef:
    return object_pb2.StackRef(target=TARGET, name=name)


async def begin(services: Cluster, operation: str, stack: str) -> journal_pb2.BeginOperationResponse:
    request = journal_pb2.BeginOperationRequest(
        stack=named(stack),
        create_missing=True,
        operation_id=operation,
        kind=plan_pb2.OPERATION_KIND_APPLY,
        holder="applier-1",
        ttl=Duration(seconds=600),
    )
    peer = services.peers["stack"]
    [answer] = [each async for each in peer.stream(JournalServiceStub(peer.channel).BeginOperation, request)]
    return answer


async def applied(services: Cluster, name: str, digest: str = "") -> None:
    async for _ in services.apply_plan(name, digest):
        pass


async def imported(services: Cluster, bucket: str) -> None:
    wanted = applier_pb2.ResourceImport(kind="Bucket", id=bucket, name="mine")
    request = applier_pb2.ImportResourcesRequest(stack=named("user"), resources=[wanted])
    applier = services.peers["applier"]
    async for _ in applier.stream(ApplierServiceStub(applier.channel).ImportResources, request):
        pass


async def saved(services: Cluster, stack: str, *objects: dict[str, Any]) -> str:
    plan = await services.plan(text(*objects), stack=stack, store=True)
    return plan.header.id


async def source_too_large(services: Cluster) -> None:
    await services.plan("[" * 200 + "]" * 200)


async def source_unreadable(services: Cluster) -> None:
    sources = planner_pb2.PackageSources(sources=[parser_pb2.Source(url="http://127.0.0.1:1/fleet.yml")])
    await services.plan(package=sources)


async def encoding_invalid(services: Cluster) -> None:
    source = parser_pb2.Source(name="fleet.jsonnet", text="[]", encoding=parser_pb2.ENCODING_JSONNET)
    await services.plan(package=planner_pb2.PackageSources(sources=[source]))


async def stack_exists(services: Cluster) -> None:
    await of_stacks(services, "CreateStack", stack_pb2.CreateStackRequest(target=TARGET, name="fleet"))


async def stack_not_empty(services: Cluster) -> None:
    await of_stacks(services, "DeleteStack", stack_pb2.DeleteStackRequest(stack=named("fleet")))


async def request_id_reused(services: Cluster) -> None:
    for name in ("one", "two"):
        request = stack_pb2.CreateStackRequest(
            target=TARGET, name=name, request_id="5f0c6f0e-9d0b-4a39-8f2e-0f3f2c1d7a10"
        )
        await of_stacks(services, "CreateStack", request)


async def stack_changed(services: Cluster) -> None:
    request = stack_pb2.UpdateStackRequest(stack=named("fleet"), etag="abc", description="new")
    await of_stacks(services, "UpdateStack", request)


async def revision_not_found(services: Cluster) -> None:
    peer, request = services.peers["stack"], stack_pb2.GetRevisionRequest(stack=named("fleet"), number=9)
    async for _ in peer.stream(StackServiceStub(peer.channel).GetRevision, request):
        pass


async def stack_leased(services: Cluster) -> None:
    for operation in ("0000000000000001", "0000000000000002"):
        await begin(services, operation, "busy")


async def lease_lost(services: Cluster) -> None:
    begun = await begin(services, "0000000000000003", "losing")
    request = journal_pb2.RenewLeaseRequest(
        token=begun.token - 1, ttl=Duration(seconds=30), operation_id="0000000000000003"
    )
    await of_journal(services, "RenewLease", request)


async def token_stale(services: Cluster) -> None:
    for token in (8, 7):
        fence = driver_pb2.Fence(scope="0123456789abcdef", token=token, operation_id=f"operation-{token}")
        request = driver_pb2.MutateRequest(org="default", fence=fence)
        await call(services, "platform", DriverServiceStub, "Mutate", request)


async def stack_moved(services: Cluster) -> None:
    await services.apply(text(RAW | {"metadata": {"name": "a"}} | {"spec": {"name": "Moved"}}), stack="moving")
    name = await saved(services, "moving", an_object("Bucket", "b", "Moved too"))
    await services.apply(text(an_object("Bucket", "c", "Moved since")), stack="moving")
    await applied(services, name)


async def plan_stale(services: Cluster) -> None:
    await services.apply(text(an_object("Bucket", "a", "Stale", description="old")), stack="stale")
    name = await saved(services, "stale", an_object("Bucket", "a", "Stale", description="new"))
    [bucket] = [each for each in await services.resources() if each.display_name == "Stale"]
    await services.mutate(update("Bucket", bucket.id, {"name": "Stale", "description": "by hand"}))
    await applied(services, name)


async def plan_used(services: Cluster) -> None:
    name = await saved(services, "used", an_object("Bucket", "a", "Used"))
    await applied(services, name)
    await applied(services, name)


async def digest_mismatch(services: Cluster) -> None:
    await applied(services, await saved(services, "shown", an_object("Bucket", "a", "Shown")), "sha256:" + "0" * 64)


async def resource_owned(services: Cluster) -> None:
    [bucket] = [each for each in await services.resources() if each.display_name == "Readings"]
    await imported(services, bucket.id)


async def resource_not_found(services: Cluster) -> None:
    await imported(services, "0123456789abcdef")


async def dependency_cycle(services: Cluster) -> None:
    await services.apply(text(an_object("Label", "a", "First"), an_object("Label", "b", "Second")), stack="cycle")
    await services.plan(text(an_object("Label", "a", "Second"), an_object("Label", "b", "First")), stack="cycle")


async def values_missing(services: Cluster) -> None:
    region = an_object("Label", "region", "") | {"spec": {"name": {"envRef": {"key": "region"}}}}
    await services.apply(text(region, an_endpoint("Slack", "chat", "Chat")), stack="values", allow_missing=False)


async def replacement_refused(services: Cluster) -> None:
    await services.mutate(create("Bucket", {"name": "Theirs", "schemaType": "implicit"}, "key"))
    await services.plan(text(an_object("Bucket", "theirs", "Theirs", schemaType="explicit")), stack="replacing")


async def in_use(services: Cluster) -> None:
    """A person has attached a label of a stack to a resource of another stack."""
    await services.apply(text(an_object("Label", "tag", "Tag")), stack="tags")
    [tag] = [each for each in await services.resources() if each.display_name == "Tag"]
    [bucket] = [each for each in await services.resources() if each.display_name == "Readings"]
    attach = driver_pb2.AttachLabel(kind="Bucket", id=bucket.id, label_id=tag.id)
    await services.mutate(driver_pb2.Mutation(attach=attach))
    await services.plan(text(an_object("Label", "other", "Other")), stack="tags")


async def repository_exists(services: Cluster) -> None:
    request = repository_pb2.CreateRepositoryRequest(name="main", address="https://packages.example.com")
    await of_repositories(services, "CreateRepository", request)
    await of_repositories(services, "CreateRepository", request)


async def repository_not_found(services: Cluster) -> None:
    await of_repositories(services, "DeleteRepository", repository_pb2.DeleteRepositoryRequest(name="mian"))


async def of_packages(services: Cluster, method: str, request: Any) -> None:
    """Call PackageService, with one repository, whose index lists a package that it has not."""
    with TemporaryDirectory() as folder:
        Path(folder, "index.yaml").write_text("{apiVersion: pkger/v1, kind: RepositoryIndex, packages: [{name: base}]}")
        spare = repository_pb2.CreateRepositoryRequest(name="spare", address=Path(folder).as_uri())
        await of_repositories(services, "CreateRepository", spare)
        try:
            stub = PackageServiceStub(services.peers["planner"].channel)
            await services.peers["planner"].call(getattr(stub, method), request)
        finally:
            delete = repository_pb2.DeleteRepositoryRequest(name="spare")
            await of_repositories(services, "DeleteRepository", delete)


async def service_unavailable(services: Cluster) -> None:
    async with Peer("stack", "127.0.0.1:1") as peer:
        await peer.call(StackServiceStub(peer.channel).ListStacks, stack_pb2.ListStacksRequest(), seconds=1)


PROVOKED: dict[Reason, Callable[[Cluster], Awaitable[Any]]] = {
    Reason.CONTENT_REFUSED: lambda services: services.plan(text(an_object("Bucket", "m", "_mine"))),
    Reason.DELETES_EXCEEDED: lambda services: services.apply(text(RED), stack="fleet", max_deletes=0),
    Reason.DEPENDENCY_CYCLE: dependency_cycle,
    Reason.DIGEST_MISMATCH: digest_mismatch,
    Reason.ENCODING_INVALID: encoding_invalid,
    Reason.IN_USE: in_use,
    Reason.LEASE_LOST: lease_lost,
    Reason.NAME_TAKEN: lambda services: services.plan(text(RED, an_object("Label", "crimson", "RED"))),
    Reason.OPERATION_NOT_FOUND: lambda services: services.cancel("0123456789abcdef"),
    Reason.PACKAGE_NOT_FOUND: lambda services: of_packages(
        services, "ListVersions", package_pb2.ListVersionsRequest(name="bsae", repository="spare")
    ),
    Reason.PACKAGE_EMPTY: lambda services: services.plan(text(), stack="fleet"),
    Reason.PLAN_NOT_FOUND: lambda services: services.stored_plan("0123456789abcdef"),
    Reason.PLAN_STALE: plan_stale,
    Reason.PLAN_USED: plan_used,
    Reason.PLATFORM_UNKNOWN: lambda services: services.plan(text(RED), platform="moon"),
    Reason.REPLACEMENT_REFUSED: replacement_refused,
    Reason.REPOSITORY_EXISTS: repository_exists,
    Reason.REPOSITORY_INVALID: lambda services: of_packages(
        services, "ListVersions", package_pb2.ListVersionsRequest(name="base", repository="spare")
    ),
    Reason.REPOSITORY_NOT_FOUND: repository_not_found,
    Reason.RANGE_INVALID: lambda services: of_packages(
        services, "GetPackage", package_pb2.GetPackageRequest(name="base", version_range="~>1")
    ),
    Reason.REQUEST_ID_REUSED: request_id_reused,
    Reason.REQUEST_INVALID: lambda services: services.plan(text(RED), skip=[planner_pb2.Skip(kind="Lable")]),
    Reason.RESOURCE_NOT_FOUND: resource_not_found,
    Reason.RESOURCE_OWNED: resource_owned,
    Reason.REVISION_NOT_FOUND: revision_not_found,
    Reason.SERVICE_UNAVAILABLE: service_unavailable,
    Reason.SHARED_DIFFERS: lambda services: services.plan(
        text(an_object("Label", "red", "Red", color="#00ff00")), stack="user"
    ),
    Reason.SOURCE_TOO_LARGE: source_too_large,
    Reason.SOURCE_UNDECODABLE: lambda services: services.plan("kind: Label\n  spec: {"),
    Reason.SOURCE_UNREADABLE: source_unreadable,
    Reason.STACK_CHANGED: stack_changed,
    Reason.STACK_EXISTS: stack_exists,
    Reason.STACK_LEASED: stack_leased,
    Reason.STACK_MOVED: stack_moved,
    Reason.STACK_NOT_EMPTY: stack_not_empty,
    Reason.STACK_NOT_FOUND: lambda services: services.record("fleat"),
    Reason.TOKEN_STALE: token_stale,
    Reason.VALUES_MISSING: values_missing,
}
"""The call that makes services answer with each reason."""


def printed(error: PkgerError) -> str:
    """The error as the command line prints it, without the parts that differ between runs."""
    shown = f"Error: {failed(error).format_message()}"
    shown = re.sub(r"\b[0-9a-f]{16}\b", "ID", shown)
    shown = re.sub(r"\b[0-9a-f]{64}\b", "DIGEST", shown)
    shown = re.sub(r"\b\d{4}(-\d\d){2}T[\d:.]+Z", "TIME", shown)
    return shown


async def test_each_reason_has_a_text_that_says_what_is_wrong_and_what_to_do(
    services: Cluster, request: pytest.FixtureRequest
) -> None:
    """All texts are compared at once, so that a changed text is reviewed beside the others."""
    found: dict[Reason, PkgerError] = dict(CONSTRUCTED)
    for reason, provoke in PROVOKED.items():
        with pytest.raises(PkgerError) as raised:
            await provoke(services)
        assert raised.value.reason is reason, printed(raised.value)
        found[reason] = raised.value
    assert set(found) == set(Reason)
    texts = "\n".join(f"{reason}\n{printed(found[reason])}\n" for reason in sorted(found))
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(texts)
    assert texts == GOLDEN.read_text()
