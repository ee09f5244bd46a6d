"""Stacks with URLs: applied without sources, or after the given ones; through real servers."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from pkger.model.v1 import object_pb2
from pkger.planner.v1 import planner_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

import parser_svc.__main__ as parser
from services.core.errors import (
    PkgerError,
    RequestInvalid,
    SourceUndecodable,
    SourceUnreadable,
    StackNotFound,
)
from services.rpc.process import Service
from services.settings import Bounds, Settings
from tests.cluster import Cluster, InvalidPackage, cluster
from tests.transport import InMemory
from tests.web import Handler, Web, drip, redirect, serving

BUCKET = "apiVersion: influxdata.com/v2alpha1\nkind: Bucket\nmetadata: {name: %s}\nspec: {name: %s}\n"
ONE, TWO, OWN = (BUCKET % (name, name) for name in ("one", "two", "own"))
JSON = '[{"apiVersion": "influxdata.com/v2alpha1", "kind": "Label", "metadata": {"name": "red"}}]'

ANSWERS: dict[str, str | bytes | Handler] = {
    "/one.yml": ONE,
    "/two.yml": TWO,
    "/red.json": JSON,
    "/page": "<!DOCTYPE html>\n<html><body>Sign in</body></html>",
    "/never": drip,
    "/moved": redirect("/one.yml"),
}


def fetching_parser(settings: Settings) -> AbstractAsyncContextManager[Service]:
    """A parser that may fetch from this machine, with a timeout of a second."""
    return parser.opened(replace(settings, allow_private_addresses=True, bounds=Bounds(seconds=1)))


@pytest_asyncio.fixture(loop_scope="module")
async def web() -> AsyncIterator[Web]:
    async with serving(ANSWERS) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def module_services(module_folder: Path) -> AsyncIterator[Cluster]:
    """All services, with such a parser."""
    async with cluster(module_folder, {"parser": fetching_parser}, transport=InMemory()) as running:
        yield running


async def a_stack(services: Cluster, *urls: str, name: str = "prod") -> object_pb2.StackRef:
    """A new stack with URLs."""
    peer = services.peers["stack"]
    request = stack_pb2.CreateStackRequest(target=services.target(), name=name, urls=urls)
    made = (await peer.call(StackServiceStub(peer.channel).CreateStack, request)).stack
    return object_pb2.StackRef(id=made.id)


async def names(services: Cluster) -> list[str]:
    return sorted(resource.display_name for resource in await services.resources())


async def get(services: Cluster, ref: object_pb2.StackRef) -> stack_pb2.Stack:
    peer = services.peers["stack"]
    return (await peer.call(StackServiceStub(peer.channel).GetStack, stack_pb2.GetStackRequest(stack=ref))).stack


NOTHING = planner_pb2.PackageSources()


@pytest.mark.parametrize("name", ["prod", ""])
async def test_a_stack_is_applied_from_its_urls(services: Cluster, web: Web, name: str) -> None:
    urls = [f"{web.address}/{path}" for path in ("moved", "red.json")]
    ref = await a_stack(services, *urls, name=name)
    shown = await services.plan(stack_ref=ref, package=NOTHING)
    assert [step.key.name for step in shown.steps] == ["red", "one"]

    finished = await services.apply(stack_ref=ref, digest=shown.digest)

    assert (finished.generation, await names(services)) == (1, ["one", "red"])
    stack = await get(services, ref)
    assert (list(stack.sources), list(stack.urls), stack.resource_count) == (urls, urls, 2)
    assert (await services.apply(stack_ref=ref)).no_change
    assert (await get(services, ref)) == stack


async def test_named_sources_come_before_the_urls_and_make_one_package_with_them(services: Cluster, web: Web) -> None:
    url = f"{web.address}/one.yml"
    ref = await a_stack(services, url)

    await services.apply(OWN, stack_ref=ref)

    assert await names(services) == ["one", "own"]
    assert list((await get(services, ref)).sources) == ["source-0", url]
    with pytest.raises(InvalidPackage) as raised:
        await services.plan(ONE, stack="prod")
    assert raised.value.paths == ["root[1].metadata.name"]
    assert (await services.plan(stack="prod", destroy=True)).steps


async def test_a_saved_plan_has_what_was_at_the_urls(services: Cluster, web: Web) -> None:
    ref = await a_stack(services, f"{web.address}/two.yml")
    saved = await services.plan(stack_ref=ref, package=NOTHING, store=True)

    events = [event async for event in services.apply_plan(saved.name, saved.digest)]

    assert events[-1].finished.generation == 1
    assert await names(services) == ["two"]


async def test_new_urls_replace_what_the_old_ones_brought(services: Cluster, web: Web) -> None:
    ref = await a_stack(services, f"{web.address}/one.yml")
    await services.apply(stack_ref=ref)
    peer, urls = services.peers["stack"], stack_pb2.StackUrls(urls=[f"{web.address}/two.yml"])
    await peer.call(StackServiceStub(peer.channel).UpdateStack, stack_pb2.UpdateStackRequest(stack=ref, urls=urls))

    await services.apply(stack_ref=ref)

    assert await names(services) == ["two"]


@pytest.mark.parametrize("stack", ["", "prod", "new"])
async def test_an_apply_needs_sources_or_urls(services: Cluster, stack: str) -> None:
    await a_stack(services)
    for call in (services.apply(stack=stack), services.plan(stack=stack, package=NOTHING)):
        with pytest.raises(RequestInvalid) as raised:
            await call
        assert raised.value.metadata["field"] == "package.sources"
    assert await services.stack_names() == ["prod"]


async def test_a_plan_for_an_unknown_id_says_so(services: Cluster) -> None:
    with pytest.raises(StackNotFound):
        await services.plan(stack_ref=object_pb2.StackRef(id="0" * 16), package=NOTHING)


@pytest.mark.parametrize(
    ("path", "error", "text_part"),
    [
        ("nothing.yml", SourceUnreadable, "404"),
        ("never", SourceUnreadable, "there is no full answer within 1 second"),
        ("page", SourceUndecodable, ""),
    ],
)
async def test_what_cannot_be_fetched_or_is_no_package_changes_nothing(
    services: Cluster, web: Web, path: str, error: type[PkgerError], text_part: str
) -> None:
    """For example, the page of a server that requires a password, or a server that never answers."""
    ref = await a_stack(services, f"{web.address}/one.yml")
    await services.apply(stack_ref=ref)
    peer, urls = services.peers["stack"], stack_pb2.StackUrls(urls=[f"{web.address}/{path}"])
    await peer.call(StackServiceStub(peer.channel).UpdateStack, stack_pb2.UpdateStackRequest(stack=ref, urls=urls))
    before = await get(services, ref)

    for call in (services.plan(stack_ref=ref, package=NOTHING), services.apply(stack_ref=ref)):
        with pytest.raises(error) as raised:
            await call
        assert text_part in str(raised.value)
        assert "\n" not in str(raised.value)

    assert await get(services, ref) == before
    assert await names(services) == ["one"]


async def test_private_addresses_are_not_fetched_unless_allowed(tmp_path: Path, web: Web) -> None:
    async with cluster(tmp_path, transport=InMemory()) as careful:
        ref = await a_stack(careful, f"{web.address}/one.yml")
        with pytest.raises(SourceUnreadable, match="at an address that is not public"):
            await careful.apply(stack_ref=ref)
        assert await names(careful) == []
    assert not web.requests
