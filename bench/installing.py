"""Measures changes of packages beside plans of the same objects as one package."""

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2
from pkger.planner.v1 import package_pb2, planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub
from pkger.stack.v1 import repository_pb2
from pkger.stack.v1.repository_pb2_grpc import RepositoryServiceStub

from bench.cluster import Cluster, Unexpected, cluster, sources
from bench.figures import Figure, Seconds, median_of_async, seconds
from services.packages.digests import digest_of
from services.packages.index_files import (
    INDEX_FILE,
    PACKAGE_FILE,
    ListedPackage,
    PackageVersions,
    PublishedVersion,
    RepositoryIndex,
    version_folder,
    versions_file,
)
from services.packages.versions import Version
from services.repositories.texts import index_text, versions_text
from services.rpc.client import Peer

STACK = "packages"
VERSION = Version.parse("1.0.0")
OBJECTS = 50
"""Objects of one package."""

MOST = 200
"""Packages that one request installs."""


async def installing(packages: int) -> list[Figure]:
    """
    Install *packages* packages of 50 objects, then one more; and plan all of these objects as one package.

    Raises:
        Unexpected: A call had another result than the one to measure.
    """
    names = [f"package-{number:03}" for number in range(packages + 1)]
    text = "---\n".join(_objects(name) for name in names[:-1])
    few = names[: max(1, packages // 10)]
    few_text = "---\n".join(_objects(name) for name in few)
    with tempfile.TemporaryDirectory(prefix="pkger-bench-") as folder:
        _publish(Path(folder), names)
        async with cluster() as services:
            whole_new = await median_of_async(1, partial(_plan_and_apply, services, _whole(few_text)))
        async with cluster() as services:
            await services.apply(text)
            whole = await median_of_async(3, partial(services.plan, text))
        async with _with_repository(folder) as services:
            new = await median_of_async(1, partial(_plan_and_apply, services, _install(few)))
        async with _with_repository(folder) as services:
            for start in range(0, packages, MOST):
                await _plan_and_apply(services, _install(names[start : min(start + MOST, packages)]))
            calls = len(services.served("platform"))
            one = await median_of_async(3, partial(_plan, services, _install(names[-1:], validate_only=True)))
            calls = (len(services.served("platform")) - calls) // 3
    size, few_size = f"{packages:,} x {OBJECTS}", f"{len(few):,} x {OBJECTS}"
    return [
        Figure("install, plan and apply: packages that are new", few_size, seconds(new)),
        Figure("  time of it / plan and apply of one package with these objects", "", _ratio(new, whole_new), "< 1.2"),
        Figure("install, plan: one more package", size, seconds(one)),
        Figure("  time of it / plan of all as one package, nothing to do", "", _ratio(one, whole), "< 1.3"),
        Figure("  calls to the driver", "", str(calls)),
    ]


def _ratio(taken: Seconds, other: Seconds) -> str:
    return f"{taken / other:.2f}"


@asynccontextmanager
async def _with_repository(folder: str) -> AsyncIterator[Cluster]:
    """The services, with a repository in a folder."""
    async with cluster({"PKGER_REPOSITORY_FOLDERS": folder}) as services:
        async with Peer("stack", services.addresses["stack"]) as stack:
            request = repository_pb2.CreateRepositoryRequest(name="main", address=Path(folder).as_uri())
            await stack.call(RepositoryServiceStub(stack.channel).CreateRepository, request)
        yield services


def _install(names: Sequence[str], *, validate_only: bool = False) -> planner_pb2.CreatePlanRequest:
    installs = (package_pb2.PackageInstall(name=name) for name in names)
    changes = package_pb2.PackageChanges(changes=[package_pb2.PackageChange(install=each) for each in installs])
    return planner_pb2.CreatePlanRequest(
        stack=object_pb2.StackRef(name=STACK), packages=changes, validate_only=validate_only
    )


def _whole(text: str) -> planner_pb2.CreatePlanRequest:
    return planner_pb2.CreatePlanRequest(stack=object_pb2.StackRef(name=STACK), package=sources(text))


async def _plan(services: Cluster, request: planner_pb2.CreatePlanRequest) -> plan_pb2.Plan:
    """The header of a plan."""
    stub = PlannerServiceStub(services.planner.channel)
    first, *_ = [answer async for answer in services.planner.stream(stub.CreatePlan, request)]
    if not first.part.HasField("header"):
        raise Unexpected(f"there is no plan: {first}")
    return first.part.header


async def _plan_and_apply(services: Cluster, request: planner_pb2.CreatePlanRequest) -> None:
    header = await _plan(services, request)
    stub = ApplierServiceStub(services.applier.channel)
    stream = services.applier.stream(stub.ApplyPlan, applier_pb2.ApplyPlanRequest(plan_id=header.id))
    *_, last = [event async for event in stream]
    if last.finished.state != operation_pb2.OPERATION_STATE_SUCCEEDED:
        raise Unexpected(f"the apply ended otherwise: {last}")


def _publish(folder: Path, names: Sequence[str]) -> None:
    index = {}
    for name in names:
        manifest = f"apiVersion: pkger/v1\nkind: Package\nmetadata: {{name: {name}}}\nspec: {{version: {VERSION}}}\n"
        content = f"{manifest}---\n{_objects(name)}".encode()
        path = folder / version_folder(name, VERSION) / PACKAGE_FILE
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        versions = {VERSION: PublishedVersion(VERSION, digest_of({PACKAGE_FILE: content}))}
        (folder / versions_file(name)).write_text(versions_text(PackageVersions(name, versions, VERSION)))
        index[name] = ListedPackage(name, VERSION)
    (folder / INDEX_FILE).write_text(index_text(RepositoryIndex(index)))


def _objects(package: str) -> str:
    """The objects of a package: labels, and buckets with one label each."""
    texts = []
    for number in range(OBJECTS):
        kind, name = ("Label" if number % 5 == 0 else "Bucket"), f"{package}-{number}"
        label = f"  associations: [{{kind: Label, name: {package}-{number - number % 5}}}]\n" if number % 5 else ""
        texts.append(
            f"apiVersion: influxdata.com/v2alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\n"
            f"spec:\n  description: Number {number} of {package}\n{label}"
        )
    return "---\n".join(texts)
