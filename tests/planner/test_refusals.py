"""The checks that refuse a plan: each of them, their order, and that the first refusal decides."""

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, cast

import pytest
from pkger.model.v1 import object_pb2
from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import planner_pb2
from pkger.stack.v1 import stack_pb2

import planner_svc
from planner_svc.create_plan import create_plan
from planner_svc.inputs import BaseState, PlanInputs
from planner_svc.matching.desired import Desired
from planner_svc.matching.match import ResourceHolder, match, refuse_emptying
from planner_svc.package_stack.desired_packages import PackageStackInputs
from planner_svc.request_checks import (
    refuse_missing_sources,
    refuse_nothing_desired,
)
from planner_svc.sharing.ownership import ResourceHolders
from services.core import errors
from services.core.errors import KindUnsupported, NameTaken, PackageEmpty, RequestInvalid, ResourceOwned
from services.core.model import (
    Key,
    Object,
    Package,
    PlatformTraits,
    Resource,
    ResourceKey,
    StackRecord,
    Target,
)
from services.drivers.embedded.kinds import EMBEDDED
from services.packages.installed import InstalledPackage
from services.rpc.parsed_package import ParsedPackage
from tests.apply.packages import LABEL, text
from tests.cluster import Cluster
from tests.conftest import ROOT
from tests.planner.world import World, an_object
from tests.rpc.messages import package_to_pb

ENDPOINT = an_object("NotificationEndpointSlack", "e", token="canary-8a1f")
WITHOUT_ENDPOINTS = PlatformTraits("plain", "1", {"Label": EMBEDDED.kinds["Label"]}, 10, 1)
RECORD = StackRecord("1" * 16, World().record.target, "s", 0)
NO_PACKAGES = cast("PackageStackInputs", None)
"""The requests of these tests change no packages."""

SOURCES = planner_pb2.PackageSources(sources=[parser_pb2.Source(text="x")])

MODULES = [import_module(f"planner_svc.{module.name}") for module in iter_modules(planner_svc.__path__)]
ROW = re.compile(r"^\| [^|]+ \| `([A-Z_]+)` \| `(refuse_\w+)` \|$", re.MULTILINE)
"""A row of the table of docs/reference/engine.md, "Refusals": reason and check."""

TABLE = [(check, reason) for reason, check in ROW.findall((ROOT / "docs/reference/engine.md").read_text())]


CHECKS: dict[str, Callable[..., None]] = {
    name: value for module in MODULES for name, value in vars(module).items() if name.startswith("refuse_")
}
"""All checks of the planner, by name."""

OF_IMPORTS = {"refuse_missing_names"}
"""The checks of ``PlanImport``."""

OF_PACKAGES = {"refuse_other_stacks", "refuse_earlier_revision"}
"""The checks of changes and rollbacks of installed packages."""


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the checks that run during the test, in order."""
    names: list[str] = []

    def noted(check: Callable[..., None], *args: Any, **more: Any) -> None:
        names.append(check.__name__)
        check(*args, **more)

    for module in MODULES:
        for name in vars(module).keys() & CHECKS.keys():
            monkeypatch.setattr(module, name, partial(noted, getattr(module, name)))
    return names


class GivenReader(PlanInputs):
    """Reads a package, a platform and its resources that a test gives."""

    def __init__(
        self,
        objects: Sequence[Object],
        platform: PlatformTraits = EMBEDDED,
        live: Sequence[Resource] = (),
        holders: Mapping[ResourceKey, ResourceHolders] | None = None,
    ) -> None:
        self._objects, self._traits, self._live, self._holders = objects, platform, live, holders or {}

    async def header(self, request: planner_pb2.CreatePlanRequest) -> stack_pb2.Stack:
        return stack_pb2.Stack(name="s")

    async def package(self, sources: planner_pb2.PackageSources, urls: Sequence[str] = ()) -> ParsedPackage:
        return ParsedPackage(objects=list(package_to_pb(Package(tuple(self._objects))).objects))

    async def installed(self, header: stack_pb2.Stack) -> list[InstalledPackage]:
        return []

    async def base_state(self, header: stack_pb2.Stack) -> BaseState:
        return BaseState(RECORD, self._traits, [], [])

    async def live(self, base_state: BaseState, kinds: Sequence[str]) -> list[Resource]:
        return list(self._live)

    async def holders(self, target: Target, resources: Collection[ResourceKey]) -> dict[ResourceKey, ResourceHolders]:
        return dict(self._holders)


async def test_the_table_of_refusals_has_all_checks_in_their_order(services: Cluster, called: list[str]) -> None:
    """The order decides which error a caller gets, so a change of it is visible to callers."""
    await services.apply(text(LABEL), stack="s")
    stack_id = (await services.record("s")).id
    called.clear()
    await services.plan(text(LABEL), stack_ref=object_pb2.StackRef(id=stack_id))
    assert called == [check for check, _ in TABLE]
    assert set(called) == CHECKS.keys() - OF_IMPORTS - OF_PACKAGES


@pytest.mark.parametrize(("check", "reason"), TABLE, ids=[check for check, _ in TABLE])
def test_the_table_of_refusals_has_the_reason_of_each_check(check: str, reason: str) -> None:
    [error] = re.findall(r"^Raises:\n +(\w+):", inspect.getdoc(CHECKS[check]) or "", re.MULTILINE)
    assert getattr(errors, error).reason == reason


def test_a_request_for_nothing_is_refused() -> None:
    with pytest.raises(RequestInvalid, match="desired: give a package, a revision, a snapshot, packages, or destroy"):
        refuse_nothing_desired(planner_pb2.CreatePlanRequest())
    refuse_nothing_desired(planner_pb2.CreatePlanRequest(destroy=planner_pb2.Destroy()))


def test_a_package_without_a_source_is_refused() -> None:
    empty, stack = planner_pb2.PackageSources(), object_pb2.StackRef(name="prod")
    request = planner_pb2.CreatePlanRequest(package=empty, stack=stack)
    with pytest.raises(RequestInvalid, match=r"package.sources: stack 'prod' has no URLs, so name at least one source"):
        refuse_missing_sources(request, ())
    with pytest.raises(RequestInvalid, match=r"package.sources: name at least one source"):
        refuse_missing_sources(planner_pb2.CreatePlanRequest(package=empty), ())
    refuse_missing_sources(request, ("https://example.com/p.yml",))
    refuse_missing_sources(planner_pb2.CreatePlanRequest(destroy=planner_pb2.Destroy(), stack=stack), ())


@pytest.mark.parametrize(
    ("skips", "secret_keys", "objects", "platform", "field"),
    [
        ([Key("Lable", "")], [""], [ENDPOINT], EMBEDDED, "options.skip[0].kind"),
        ([], [""], [ENDPOINT], EMBEDDED, "package"),
        ([], [""], [ENDPOINT], WITHOUT_ENDPOINTS, "secret_keys"),
    ],
)
async def test_of_several_violations_of_a_request_the_first_check_decides(
    skips: list[Key], secret_keys: list[str], objects: list[Object], platform: PlatformTraits, field: str
) -> None:
    options = planner_pb2.PlanOptions(skip=[planner_pb2.Skip(kind=each.kind, name=each.name) for each in skips])
    request = planner_pb2.CreatePlanRequest(package=SOURCES, options=options, secret_keys=secret_keys)
    with pytest.raises(RequestInvalid) as caught:
        await create_plan(request, GivenReader(objects, platform), NO_PACKAGES)
    assert caught.value.metadata["field"] == field


async def test_a_kind_that_the_platform_lacks_is_refused_before_anything_is_listed() -> None:
    with pytest.raises(KindUnsupported, match="not support kind 'NotificationEndpointSlack'"):
        await create_plan(
            planner_pb2.CreatePlanRequest(package=SOURCES), GivenReader([ENDPOINT], WITHOUT_ENDPOINTS), NO_PACKAGES
        )


async def test_a_clash_of_names_decides_before_an_owner() -> None:
    bucket = World().add("Bucket", "data")
    objects = [an_object("Bucket", "a", name="data"), an_object("Bucket", "b", name="data")]
    holders = {("Bucket", bucket.id): ResourceHolders(ResourceHolder("2" * 16, "theirs", "operation-1"))}
    for package, error in ((objects, NameTaken), (objects[:1], ResourceOwned)):
        with pytest.raises(error):
            await create_plan(
                planner_pb2.CreatePlanRequest(package=SOURCES),
                GivenReader(package, live=[bucket], holders=holders),
                NO_PACKAGES,
            )


def test_an_empty_package_empties_a_stack_only_if_that_is_allowed() -> None:
    world = World()
    world.apply(an_object("Bucket", "b"))
    for is_allowed in (True, False):
        desired = Desired(Package(()), options=planner_pb2.PlanOptions(allow_empty=is_allowed))
        matching = match(desired, world.record, world.live.values(), EMBEDDED)
        if is_allowed:
            refuse_emptying(desired, matching, world.record)
        else:
            with pytest.raises(PackageEmpty, match="all 1 resources of stack 's' would be removed"):
                refuse_emptying(desired, matching, world.record)
