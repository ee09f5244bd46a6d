"""The list of the checks that refuse a plan: its content, its order, and that the first refusal decides."""

import pytest
from pkger.model.v1 import object_pb2
from pkger.planner.v1 import planner_pb2

from planner_svc.matching import Holder, match
from planner_svc.refusals import CHECKS, FACTS, Asked, Matched, Sourced, run_checks
from planner_svc.sharing import Holders
from services.core.errors import KindUnsupported, NameTaken, PackageEmpty, RequestInvalid, ResourceOwned
from services.core.model import Desired, Key, Object, Package, PlatformTraits, StackRecord
from services.drivers.embedded.kinds import EMBEDDED
from tests.planner.world import World, an_object

ENDPOINT = an_object("NotificationEndpointSlack", "e", token="canary-8a1f")
WITHOUT_ENDPOINTS = PlatformTraits("plain", "1", {"Label": EMBEDDED.kinds["Label"]}, 10, 1)
RECORD = StackRecord("1" * 16, World().record.target, "s", 0)


def test_the_order_of_the_checks() -> None:
    """The order decides which error a caller gets, so a change of it is visible to callers."""
    assert [check.name for check in CHECKS] == [
        "nothing is desired",
        "no objects find the stack",
        "a package has no sources",
        "a skip names no kind",
        "the package holds credentials",
        "a secret cannot be written",
        "the platform lacks a kind",
        "objects and resources clash by name",
        "an empty package takes all",
        "the policy adopts nothing",
        "the policy shares nothing",
        "another operation claims a resource",
        "the platform refuses content",
        "a reference leads to nothing",
        "a shared resource differs",
        "another stack uses what is replaced",
        "an unowned resource would be replaced",
        "two objects have one name",
        "a name is not free in time",
        "objects exchange their names",
        "another stack uses what is deleted",
    ]


def test_checks_are_listed_in_the_order_of_their_facts() -> None:
    """Otherwise the list would not show the order in which the checks run."""
    positions = [FACTS.index(check.facts) for check in CHECKS]
    assert positions == sorted(positions)


def test_a_request_for_nothing_is_refused() -> None:
    with pytest.raises(RequestInvalid, match="desired: give a package, a revision, or destroy"):
        run_checks(planner_pb2.CreatePlanRequest())
    run_checks(planner_pb2.CreatePlanRequest(destroy=planner_pb2.Destroy()))


def test_a_package_without_a_source_is_refused() -> None:
    empty, stack = planner_pb2.PackageSources(), object_pb2.StackRef(name="prod")
    request = planner_pb2.CreatePlanRequest(package=empty, stack=stack)
    with pytest.raises(RequestInvalid, match=r"package.sources: stack 'prod' has no URLs, so name at least one source"):
        run_checks(Sourced(request, ()))
    with pytest.raises(RequestInvalid, match=r"package.sources: name at least one source"):
        run_checks(Sourced(planner_pb2.CreatePlanRequest(package=empty), ()))
    run_checks(Sourced(request, ("https://example.com/p.yml",)))
    run_checks(Sourced(planner_pb2.CreatePlanRequest(destroy=planner_pb2.Destroy(), stack=stack), ()))


@pytest.mark.parametrize(
    ("skips", "secret_keys", "objects", "platform", "field"),
    [
        ([Key("Lable", "")], [""], [ENDPOINT], EMBEDDED, "skip[0].kind"),
        ([], [""], [ENDPOINT], EMBEDDED, "package"),
        ([], [""], [], WITHOUT_ENDPOINTS, "secret_keys"),
    ],
)
def test_of_several_violations_of_a_request_the_first_check_decides(
    skips: list[Key], secret_keys: list[str], objects: list[Object], platform: PlatformTraits, field: str
) -> None:
    desired = Desired(Package(tuple(objects)), secret_keys=frozenset(secret_keys))
    with pytest.raises(RequestInvalid) as caught:
        run_checks(Asked(desired, RECORD, platform, skips))
    assert caught.value.metadata["field"] == field


def test_a_kind_that_the_platform_lacks_is_refused_before_anything_is_listed() -> None:
    with pytest.raises(KindUnsupported, match="not support kind 'NotificationEndpointSlack'"):
        run_checks(Asked(Desired(Package((ENDPOINT,))), RECORD, WITHOUT_ENDPOINTS))


def test_a_clash_of_names_decides_before_an_owner() -> None:
    world = World()
    bucket = world.add("Bucket", "data")
    package = Package((an_object("Bucket", "a", name="data"), an_object("Bucket", "b", name="data")))
    holders = {("Bucket", bucket.id): Holders(Holder("2" * 16, "theirs", "operations/1"))}
    for objects, error in ((package.objects, NameTaken), (package.objects[:1], ResourceOwned)):
        desired = Desired(Package(objects))
        matching = match(desired, RECORD, world.live.values(), EMBEDDED)
        with pytest.raises(error):
            run_checks(Matched(desired, RECORD, matching, holders))


def test_an_empty_package_empties_a_stack_only_if_that_is_allowed() -> None:
    world = World()
    world.apply(an_object("Bucket", "b"))
    for is_allowed in (True, False):
        desired = Desired(Package(()), allow_empty=is_allowed)
        matched = Matched(desired, world.record, match(desired, world.record, world.live.values(), EMBEDDED), {})
        if is_allowed:
            run_checks(matched)
        else:
            with pytest.raises(PackageEmpty, match="all 1 resources of stack 's' would be removed"):
                run_checks(matched)
