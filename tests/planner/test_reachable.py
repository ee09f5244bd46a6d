"""What a resolution reads of repositories, over real HTTP: each file once, nothing beside, and within its bounds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from aiohttp import web
from pkger.stack.v1 import repository_pb2
from pkger.stack.v1.repository_pb2_grpc import RepositoryServiceStub

from planner_svc.packages.inputs import PackageInputs
from planner_svc.packages.reachable import TooManyVersions, reachable
from planner_svc.repositories.index_cache import FRESH_SECONDS
from planner_svc.resolution.model import (
    Conflict,
    ConflictCode,
    PackageRequest,
    Repository,
    Request,
    Resolution,
    WarningCode,
)
from planner_svc.resolution.resolve import resolve
from services.core.errors import RequestInvalid
from services.packages.installed import InstalledPackage
from services.packages.versions import Version
from tests.cluster import Cluster
from tests.packages.folders import repository_files
from tests.packages.resolving import published
from tests.packages.rows import package
from tests.planner.test_repositories import Publisher, publishing

REQUEST = Request((PackageRequest("top"),))


class Repositories:
    """Two repositories at addresses, of which ``main`` comes first."""

    def __init__(self, services: Cluster, main: Publisher, spare: Publisher) -> None:
        self.main, self.spare = main, spare
        self._stack = services.peers["stack"]
        self.inputs = PackageInputs(services.peers["parser"], self._stack, main.source)

    def publish(self, main: list[str], spare: list[str]) -> None:
        for publisher, packages in ((self.main, main), (self.spare, spare)):
            publisher.files = dict(repository_files([published(*package(text)) for text in packages]))

    async def configure(self) -> None:
        for name, publisher, priority in (("main", self.main, 1), ("spare", self.spare, 0)):
            request = repository_pb2.CreateRepositoryRequest(
                name=name, address=f"{publisher.server.address}/some/folder", priority=priority
            )
            await self._stack.call(RepositoryServiceStub(self._stack.channel).CreateRepository, request)

    async def rank(self, name: str, priority: int) -> None:
        request = repository_pb2.UpdateRepositoryRequest(name=name, priority=priority)
        await self._stack.call(RepositoryServiceStub(self._stack.channel).UpdateRepository, request)

    async def read(self, *, refresh: bool = False, max_bytes: int = 2**20) -> dict[str, Repository]:
        return {each.name: each for each in await reachable(self.inputs, REQUEST, {}, refresh, max_bytes=max_bytes)}

    async def answer(self) -> Resolution | Conflict:
        return resolve((await self.read()).values(), (), REQUEST)


@pytest.fixture
async def repositories(own_services: Cluster) -> AsyncIterator[Repositories]:
    async with AsyncExitStack() as running:
        main, spare = [await running.enter_async_context(publishing()) for _ in range(2)]
        both = Repositories(own_services, main, spare)
        both.publish(
            ["top 1.0.0 [left, right] | 0.9.0 [old]", "left 1.0.0 [base ^1]", "right 1.0.0 [base]", "other 1.0.0"],
            ["base 1.0.0 [old]", "left 2.0.0", "old 1.0.0", "other 2.0.0"],
        )
        await both.configure()
        yield both


async def test_each_package_that_is_met_is_one_request_to_the_repository_that_serves_it(
    repositories: Repositories,
) -> None:
    both = await repositories.read()
    assert sorted(both["main"].packages) == ["left", "right", "top"]
    assert {name for name, each in both["spare"].packages.items() if each.versions} == {"base", "old"}
    assert repositories.main.asked() == [
        "index.yaml", "top/versions.yaml", "left/versions.yaml", "right/versions.yaml",
    ]  # fmt: skip
    assert sorted(repositories.spare.asked()) == ["base/versions.yaml", "index.yaml", "old/versions.yaml"]


async def test_a_second_resolution_within_a_minute_asks_nothing_and_later_ones_ask_what_changed(
    repositories: Repositories,
) -> None:
    first = await repositories.read()
    repositories.main.asked(), repositories.spare.asked()
    assert await repositories.read() == first
    assert repositories.main.asked() == repositories.spare.asked() == []
    repositories.main.now = FRESH_SECONDS + 1
    await repositories.read()
    assert sorted(repositories.spare.asked()) == ["base/versions.yaml?", "index.yaml?", "old/versions.yaml?"]
    await repositories.read(refresh=True)
    assert sorted(repositories.spare.asked()) == ["base/versions.yaml?", "index.yaml?", "old/versions.yaml?"]


@pytest.fixture
def slow(repositories: Repositories) -> asyncio.Event:
    """The index of ``spare`` is sent once this event is set."""
    gate = asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        await gate.wait()
        return web.Response(body=repositories.spare.files["index.yaml"])

    repositories.spare.answers["index.yaml"] = answer
    return gate


def set_after_main(repositories: Repositories, gate: asyncio.Event) -> None:
    """Set *gate* when the index of ``main`` is sent."""

    async def answer(request: web.Request) -> web.Response:
        gate.set()
        return web.Response(body=repositories.main.files["index.yaml"])

    repositories.main.answers["index.yaml"] = answer


@pytest.mark.usefixtures("slow")
async def test_a_repository_that_nothing_comes_from_is_not_waited_for(repositories: Repositories) -> None:
    repositories.publish(["top 1.0.0 [base]", "base 1.0.0"], ["base 2.0.0"])
    async with asyncio.timeout(10):
        assert (await repositories.inputs.serving("base", "", refresh=True)).name == "main"
        assert (await repositories.inputs.serving("base", "main", refresh=True)).name == "main"
        both = await reachable(repositories.inputs, REQUEST, {}, refresh=True, warning_seconds=0.1)
    answer = resolve(both, (), REQUEST)
    assert isinstance(answer, Resolution)
    assert [f"{each.name} {each.new} {each.repository}" for each in answer.changes] == [
        "base 1.0.0 main",
        "top 1.0.0 main",
    ]
    assert [(each.code, each.repository) for each in answer.warnings] == [
        (WarningCode.REPOSITORY_UNAVAILABLE, "spare"),
    ]


@pytest.mark.parametrize("is_resolution", [True, False])
async def test_a_repository_that_something_comes_from_is_waited_for(
    repositories: Repositories, slow: asyncio.Event, is_resolution: bool
) -> None:
    set_after_main(repositories, slow)
    if is_resolution:
        both = await reachable(repositories.inputs, REQUEST, {}, refresh=True, warning_seconds=0)
        assert both[1].packages["base"].versions
    else:
        assert (await repositories.inputs.serving("base", "", refresh=True)).name == "spare"


@pytest.mark.usefixtures("slow")
async def test_a_search_waits_for_a_moment_and_tells_what_it_did_not_read(repositories: Repositories) -> None:
    async with asyncio.timeout(10):
        main, spare = await repositories.inputs.listings(refresh=True, seconds=0.3)
    assert main.index
    assert (spare.index, spare.problem) == (None, "there is no answer within 0.3 seconds; try again later")


async def test_of_equal_priorities_either_may_have_the_package(repositories: Repositories, slow: asyncio.Event) -> None:
    await repositories.rank("spare", 1)
    repositories.publish(["base 1.0.0"], ["base 1.0.0"])
    set_after_main(repositories, slow)
    with pytest.raises(RequestInvalid, match="base is in main and spare, which have the same priority"):
        await repositories.inputs.serving("base", "", refresh=True)


async def test_a_repository_that_stops_to_answer_is_away_for_all_of_its_packages(repositories: Repositories) -> None:
    async def broken(request: web.Request) -> web.Response:
        raise web.HTTPServiceUnavailable

    repositories.main.answers["left/versions.yaml"] = broken
    both = await repositories.read()
    assert "answered 503" in (both["main"].problem or "")
    answer = resolve(both.values(), (), REQUEST)
    assert isinstance(answer, Conflict)
    assert answer.code is ConflictCode.REPOSITORY_UNAVAILABLE


async def test_a_fault_is_a_fault_of_its_package(repositories: Repositories) -> None:
    repositories.main.files["left/versions.yaml"] = b"["
    both = await repositories.read()
    assert list(both["main"].faults) == ["left"]
    assert both["main"].faults["left"].startswith("left/versions.yaml: ")
    answer = resolve(both.values(), (), REQUEST)
    assert isinstance(answer, Conflict)
    assert (answer.code, answer.package) == (ConflictCode.PACKAGE_NOT_FOUND, "left")


async def test_the_memory_of_what_is_read_is_bounded(repositories: Repositories) -> None:
    with pytest.raises(TooManyVersions):
        await repositories.read(max_bytes=3_000)
    asked = [*repositories.main.asked(), *repositories.spare.asked()]
    assert "base/versions.yaml" not in asked
    answer = await repositories.answer()
    assert isinstance(answer, Resolution)
    assert [each.name for each in answer.changes] == ["old", "base", "left", "right", "top"]


async def test_installed_packages_that_stay_are_read_only_where_they_are_required(repositories: Repositories) -> None:
    installed = {
        name: InstalledPackage(name, Version.parse("1.0.0"), "spare" if name == "base" else "main")
        for name in ("base", "other")
    }
    whole = await reachable(repositories.inputs, REQUEST, installed, refresh=False, staying=installed.keys())
    spare = {
        name for each in whole if each.name == "spare" for name, package in each.packages.items() if package.versions
    }
    assert spare == {"base", "old"}
    assert "other/versions.yaml" not in repositories.main.asked()
