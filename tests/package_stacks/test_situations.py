"""Situations of package stacks: rows of the specification that need the services."""

import shutil
from collections.abc import Sequence
from typing import Any

import pytest
from pkger.model.v1 import object_pb2, plan_pb2
from pkger.planner.v1 import package_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core.errors import (
    PackageStack,
    RepositoryInUse,
    RepositoryInvalid,
    RepositoryNotFound,
    RequestInvalid,
    StackMoved,
    StackNotFound,
)
from services.core.model import Undo
from tests.applier.drifting import drift
from tests.applier.faulty import ItemFault
from tests.applier.history import check_history, numbers, package_of, roll_back
from tests.applier.test_policies import set_policy
from tests.applier.world import BLOCKED, ROLLED_BACK, SUCCEEDED, end
from tests.apply.packages import an_endpoint, an_object, text
from tests.drivers.client import create, delete, update
from tests.package_stacks.client import Client, a_label, change_words, folder, spec_of, step_words
from tests.snapshots import stored_export


def a_bucket(name: str, display_name: str = "", labels: Sequence[str] = (), **spec: Any) -> dict[str, Any]:
    return an_object("Bucket", name, display_name or name, labels, **spec)


def a_dashboard(name: str, labels: Sequence[str] = (), **spec: Any) -> dict[str, Any]:
    return an_object("Dashboard", name, name, labels, **spec)


@pytest.mark.parametrize("change", ["gains", "loses", "is gone"])
async def test_a_plan_runs_as_shown_whatever_the_repository_has_meanwhile(client: Client, change: str) -> None:
    """Row T48."""
    await client.publish("d 1.4.0")
    plan = await client.plan("install d")
    match change:
        case "gains":
            await client.publish("d 1.4.0 | 1.5.0")
        case "loses":
            await client.publish("d 1.3.0")
            shutil.rmtree(client.root / "main" / "d" / "1.4.0")
        case _:
            shutil.rmtree(client.root / "main")
    assert (await client.run(plan)).state == SUCCEEDED
    assert await client.versions() == {"d": "1.4.0"}
    assert [each.key.name for each in (await package_of(client.case, 1)).objects] == ["d.d"]


@pytest.mark.parametrize("is_new", [True, False])
async def test_the_second_of_two_plans_of_one_state_is_refused(client: Client, is_new: bool) -> None:
    """Row T49."""
    await client.publish("a 1.0.0", "b 1.0.0", "c 1.0.0")
    if not is_new:
        await client.change("install c")
    first, second = await client.plan("install a"), await client.plan("install b")
    assert (await client.run(first)).state == SUCCEEDED
    before = await client.state()
    with pytest.raises(StackMoved):
        await client.run(second)
    assert await client.state() == before


async def test_what_an_undo_gave_up_is_deleted_with_the_next_change_of_any_package(faulty: Client) -> None:
    """Row U11: the label of an install that was rolled back stays, as its deletion is refused."""
    assert faulty.driver
    objects = {"b": [a_label("b"), a_bucket("reserved", "_system")]}
    await faulty.publish("a 1.0.0", "b 1.0.0", "c 1.0.0", objects=objects)
    await faulty.change("install c")
    plan = await faulty.plan("install b")
    assert step_words(plan) == ["create Label b.b", "create Bucket b.reserved"]
    faulty.driver.fail({2: ItemFault.REJECT}, lasting=True)
    assert (await faulty.run(plan)).state == BLOCKED
    faulty.driver.heal()
    blocked = await faulty.services.newest_operation()
    recovered = await faulty.case.recover(blocked.id, _0="skip")
    assert recovered[-1].finished.state == ROLLED_BACK
    assert await faulty.versions() == {"c": "1.0.0"}
    assert {each[0] for each in (await faulty.look()).content} == {"Label"}
    assert len((await faulty.look()).content) == 2
    plan = await faulty.change("install a")
    assert step_words(plan) == ["create Label a.a", "delete Label b.b"]
    assert sorted(await faulty.ids()) == ["Label:a.a", "Label:c.c"]
    assert len((await faulty.look()).content) == 2
    await check_history(faulty.case)


async def test_a_repository_of_installed_packages_is_not_removed(client: Client) -> None:
    """Row R05b."""
    await client.publish("p 1.0.0 [d]", "d 1.0.0")
    await client.publish("q 1.0.0", repository="spare")
    await client.change("install p")
    before = await client.state()
    with pytest.raises(RepositoryInUse) as raised:
        await client.remove_repository("main")
    assert (raised.value.code, str(raised.value.reason)) == ("FAILED_PRECONDITION", "REPOSITORY_IN_USE")
    assert raised.value.metadata == {"repository": "main", "packages": "d of packages; p of packages"}
    await client.remove_repository("spare")
    assert await client.state() == before
    await client.change("uninstall p")
    await client.remove_repository("main")
    with pytest.raises(RepositoryNotFound):
        await client.remove_repository("main")


CHANGED = "the installed version of d is published with other content than it had, and stays"
ANEW = {"d": [a_label("other")]}
"""The content under which versions of D are published again."""


async def test_content_that_was_published_anew_is_not_installed(client: Client) -> None:
    """Row R06b: what is installed stays, whatever a plan does to it that reads what is published of it."""
    packages = ("d 1.0.0", "p 1.0.0 [d ^1]", "q 1.0.0 [d]")
    await client.publish(*packages)
    await client.change("install d q")
    [before] = [each for each in await client.installed() if each.name == "d"]
    await client.publish(*packages, objects=ANEW)
    for words in ("install d", "install d@^1", "update d", "update d@1.0.0", "update-all", "install q", "update q"):
        plan = await client.plan(words)
        assert (plan.steps, plan.warnings) == ([], [CHANGED])
    plan = await client.change("install p")
    assert (change_words(plan.header.packages), plan.warnings) == ("+p 1.0.0", [CHANGED])
    assert [each for each in await client.installed() if each.name == "d"] == [before]
    assert "Label:d.d" in await client.ids()
    assert (await client.change("install d")).no_change


async def test_resources_of_a_version_that_was_published_anew_are_restored_as_they_were(client: Client) -> None:
    """Also after a suspension, whose end applies the package again."""
    await client.publish("d 1.0.0")
    await client.change("install d")
    await client.publish("d 1.0.0", objects=ANEW)
    d = package_pb2.PinnedPackage(name="d")
    await client.change(package_pb2.PackageChange(suspend=d))
    await client.change(package_pb2.PackageChange(resume=d))
    [live] = (await client.look()).resources
    await client.services.mutate(delete("Label", live.id))
    assert step_words(await client.change("install d")) == ["create Label d.d"]
    await check_history(client.case)


async def test_a_version_is_another_one_in_another_repository_only_if_that_is_named(client: Client) -> None:
    await client.publish("d 1.0.0")
    await client.change("install d")
    await client.publish("d 1.0.0", objects=ANEW, repository="spare", priority=1)
    plan = await client.plan("install spare/d")
    assert (plan.steps, plan.warnings[0]) == ([], CHANGED)
    await client.change("uninstall d")
    with pytest.raises(RepositoryInvalid, match="repository 'spare': "):
        await client.plan("install d")
    await client.change("install spare/d")
    assert [*await client.ids()] == ["Label:d.other"]


async def install_and_leave(client: Client, words: str) -> None:
    """Install D 1.0.0, leave it by *words*, and publish it anew."""
    await client.publish("d 1.0.0", "p 1.0.0 [d ~1.0]")
    await client.change("install d")
    await client.publish("d 1.0.0 | 2.0.0", "p 1.0.0 [d ~1.0]")
    await client.change(words)
    await client.publish("d 1.0.0 | 2.0.0", "p 1.0.0 [d ~1.0]", objects=ANEW)


@pytest.mark.parametrize(
    ("leave", "words"),
    [
        ("uninstall d", "install d@1.0.0"),
        ("uninstall d", "install d@^1"),
        ("uninstall d", "install p"),
        ("update d", "install d@1.0.0"),
        ("update d", "install p"),
    ],
)
async def test_a_version_that_the_stack_had_is_refused_with_other_content(
    client: Client, leave: str, words: str
) -> None:
    """Row R06b: it would be installed anew."""
    await install_and_leave(client, leave)
    before = await client.state()
    with pytest.raises(
        RepositoryInvalid, match=r"1\.0\.0 is published with the digest .*, and had .* before"
    ) as raised:
        await client.plan(words, allow_downgrade=True)
    faulty = ("main", "d/versions.yaml", "VERSION_CHANGED")
    assert tuple(raised.value.metadata[key] for key in ("repository", "file", "fault")) == faulty
    assert await client.state() == before
    # The publisher restores it.
    await client.publish("d 1.0.0 | 2.0.0", "p 1.0.0 [d ~1.0]")
    await client.change(words, allow_downgrade=True)
    assert (await client.versions())["d"] == "1.0.0"


async def test_a_version_that_the_stack_had_with_other_content_is_chosen_by_no_name(client: Client) -> None:
    """Another version, another stack, and a folder under the same version are not refused."""
    await install_and_leave(client, "uninstall d")
    await client.change("install d")
    assert await client.versions() == {"d": "2.0.0"}
    await client.change("uninstall d")
    await client.change(folder("d 1.0.0", a_label("own")))
    await client.change("uninstall d")
    await Client(client.services, client.root, stack="other").change("install d@1.0.0")


async def test_a_version_of_a_folder_is_not_one_that_was_published(client: Client) -> None:
    await client.change(folder("d 1.0.0", a_label("own")))
    await client.change("uninstall d")
    await client.publish("d 1.0.0")
    await client.change("install d")
    assert [*await client.ids()] == ["Label:d.d"]


async def test_a_version_that_no_retained_revision_has_is_new(client: Client) -> None:
    await install_and_leave(client, "uninstall d")
    await set_policy(client.case, history=1)
    await client.change(folder("own 1.0.0", a_label("own")))
    await client.change("install d@1.0.0")
    assert "Label:d.other" in await client.ids()


async def test_a_package_that_fails_takes_all_others_with_it(faulty: Client) -> None:
    """Row X01: of three packages the platform refuses the second, and a new stack is gone."""
    objects = {
        "a": [a_label("a"), a_bucket("own")],
        "b": [a_label("b"), a_bucket("reserved", "_system")],
        "c": [a_label("c"), a_dashboard("board", ["b.b"])],
    }
    await faulty.publish("a 1.0.0", "b 1.0.0 [a]", "c 1.0.0 [b]", "d 1.0.0", objects=objects)
    finished = await faulty.run(await faulty.plan("install c"))
    assert finished.state == ROLLED_BACK
    snapshot = await faulty.look()
    assert (snapshot.content, snapshot.record, await faulty.installed()) == ([], None, [])
    await faulty.change("install d")
    before = await faulty.state()
    finished = await faulty.run(await faulty.plan("install c"))
    assert finished.state == ROLLED_BACK
    assert await faulty.state() == before


LABELLED = {
    "d@1.0.0": [a_label("env"), a_label("other")],
    "d@2.0.0": [a_label("other")],
    "p@1.0.0": [a_dashboard("board", ["d.env"])],
    "p@2.0.0": [a_dashboard("board", ["d.other"])],
    "q": [a_bucket("reserved", "_system")],
}


async def test_an_association_goes_before_the_label_that_an_update_drops(faulty: Client) -> None:
    """Row X03."""
    await faulty.publish("d 1.0.0", "p 1.0.0 [d]", objects=LABELLED)
    await faulty.change("install p d")
    before, packages = await faulty.look(), await faulty.installed()
    await faulty.publish("d 2.0.0", "p 2.0.0 [d ^2]", "q 1.0.0", objects=LABELLED)
    plan = await faulty.plan("update p d; install q")
    words = step_words(plan)
    assert words.index("detach Dashboard p.board d.env") < words.index("delete Label d.env")
    assert (await faulty.run(plan)).state == ROLLED_BACK
    # What was deleted and is created again has another id.
    assert ((await faulty.look()).content, await faulty.installed()) == (before.content, packages)
    plan = await faulty.change("update p d")
    assert [each[2] for each in (await faulty.look()).content if each[0] == "Dashboard"] == [("label of other",)]
    await check_history(faulty.case)


async def test_a_label_of_a_package_that_is_not_compared_is_detached(client: Client) -> None:
    await client.publish("d 1.0.0", "p 1.0.0 [d]", objects=LABELLED)
    await client.change("install p d")
    await client.publish("d 1.0.0", "p 2.0.0 [d]", objects=LABELLED)
    plan = await client.change("update p")
    assert step_words(plan) == ["detach Dashboard p.board d.env", "attach Dashboard p.board d.other"]
    assert [each[2] for each in (await client.look()).content if each[0] == "Dashboard"] == [("label of other",)]
    await check_history(client.case)
    await client.publish("d 1.0.0", "p 3.0.0 [d]", objects={**LABELLED, "p": [a_dashboard("board")]})
    assert step_words(await client.change("update p")) == ["detach Dashboard p.board d.other"]
    assert (await drift(client.case)).differences == {}


async def test_a_label_that_an_installed_package_uses_is_not_dropped(client: Client) -> None:
    """Row X04: the package that uses it is not compared."""
    await client.publish("d 1.0.0", "p 1.0.0 [d]", objects=LABELLED)
    await client.change("install p d")
    await client.publish("d 2.0.0", "p 1.0.0 [d]", objects=LABELLED)
    before = await client.state()
    conflict = await client.conflict("update d")
    assert (conflict.code, conflict.answer.package) == ("BROKEN_REFERENCE", "p")
    [fact] = conflict.answer.facts
    assert "p 1.0.0" in fact.text
    assert "'d'" in fact.text
    assert "'env'" in fact.text
    assert await client.state() == before


async def test_deletions_that_cannot_be_undone_follow_the_creations_of_all_packages(faulty: Client) -> None:
    """Row X05."""
    objects = {
        "d@1.0.0": [a_label("d"), a_bucket("data")],
        "d@2.0.0": [a_label("d")],
        "p": [a_dashboard("board"), a_bucket("reserved", "_system")],
    }
    await faulty.publish("d 1.0.0", objects=objects)
    await faulty.change("install d")
    await faulty.publish("d 2.0.0", "p 1.0.0", objects=objects)
    before = await faulty.state()
    assert faulty.driver
    faulty.driver.heal()
    plan = await faulty.plan("update d; install p")
    assert [str(each.key) for each in plan.steps if each.undo is Undo.NONE] == ["Bucket 'd.data'"]
    assert (await faulty.run(plan)).state == ROLLED_BACK
    assert not [each for each in faulty.driver.sent if each.delete.kind == "Bucket"]
    assert await faulty.state() == before


async def test_a_bucket_that_moves_to_another_package_keeps_its_data(client: Client) -> None:
    """Row X09."""
    objects = {"p@1.0.0": [a_bucket("web")], "p@2.0.0": [], "d@1.0.0": [], "d@2.0.0": [a_bucket("web")]}
    await client.publish("p 1.0.0", "d 1.0.0", objects=objects)
    await client.change("install p d")
    [before] = (await client.ids()).values()
    await client.publish("p 2.0.0", "d 2.0.0", objects=objects)
    assert step_words(await client.change("update p d")) == []
    assert await client.ids() == {"Bucket:d.web": before}
    await check_history(client.case)


async def test_a_dashboard_that_moves_to_another_package_keeps_its_resource(client: Client) -> None:
    """Names of dashboards may repeat."""
    objects = {"p@1.0.0": [a_dashboard("web")], "p@2.0.0": [], "d@1.0.0": [], "d@2.0.0": [a_dashboard("web")]}
    await client.publish("p 1.0.0", "d 1.0.0", objects=objects)
    await client.change("install p d")
    [before] = (await client.ids()).values()
    await client.publish("p 2.0.0", "d 2.0.0", objects=objects)
    assert step_words(await client.change("update p d")) == []
    assert await client.ids() == {"Dashboard:d.web": before}


async def test_equal_dashboards_of_two_packages_are_two_resources(client: Client) -> None:
    await client.publish("p 1.0.0", "d 1.0.0", objects={"p": [a_dashboard("web")], "d": [a_dashboard("web")]})
    await client.change("install p d")
    assert len(set((await client.ids()).values())) == 2
    await client.change("uninstall p")
    assert [*await client.ids()] == ["Dashboard:d.web"]


async def test_an_adopted_bucket_stays_when_its_package_leaves(client: Client) -> None:
    """Row X12."""
    await client.services.mutate(create("Bucket", {"name": "web", "retentionRules": []}))
    [person] = (await client.look()).resources
    await client.publish("p 1.0.0", "d 1.0.0", objects={"p": [a_bucket("web"), a_label("p")]})
    await client.change("install p d")
    assert (await client.ids())["Bucket:p.web"] == person.id
    await client.change("uninstall p")
    assert [*await client.ids()] == ["Label:d.d"]
    assert person.id in {each.id for each in (await client.look()).resources}
    # It is found again by its name.
    await client.change("install p")
    assert (await client.ids())["Bucket:p.web"] == person.id
    await check_history(client.case)


@pytest.mark.parametrize("words", ["uninstall p", "update p"])
async def test_a_dependency_with_data_stays(client: Client, words: str) -> None:
    """Row X13."""
    objects = {"d": [a_bucket("data")]}
    await client.publish("p 1.0.0 [d]", "d 1.0.0", objects=objects)
    await client.change("install p")
    await client.publish("p 1.0.0 [d] | 2.0.0", "d 1.0.0", objects=objects)
    before = (await client.ids())["Bucket:d.data"]
    plan = await client.change(words)
    assert [each.name for each in plan.header.packages] == ["p"]
    assert plan.warnings == [
        "package d is required by nothing, and stays with its data; `pkger uninstall d` removes both"
    ]
    assert (await client.ids())["Bucket:d.data"] == before
    assert step_words(await client.change("uninstall d")) == ["delete Bucket d.data"]


async def test_a_dependency_without_data_of_its_own_is_removed(client: Client) -> None:
    """Adopted buckets and those that another package declares, too, are not deleted, so they keep nobody."""
    await client.services.mutate(create("Bucket", {"name": "adopted", "retentionRules": []}))
    objects = {"d": [a_bucket("adopted"), a_bucket("both")], "q": [a_bucket("both")]}
    await client.publish("p 1.0.0 [d]", "d 1.0.0", "q 1.0.0", objects=objects)
    await client.change("install p q")
    buckets = {each.id for each in (await client.look()).resources if each.kind == "Bucket"}
    plan = await client.change("uninstall p")
    assert change_words(plan.header.packages) == "-p, -d"
    assert {each.id for each in (await client.look()).resources if each.kind == "Bucket"} == buckets
    assert [*await client.ids()] == ["Bucket:q.both"]


async def test_a_chain_of_unneeded_dependencies_stays_from_the_first_with_data(client: Client) -> None:
    """What a package requires that stays for its data stays as well."""
    objects = {"e": [a_bucket("data", labels=["d.d"])]}
    await client.publish("p 1.0.0 [e]", "e 1.0.0 [d]", "d 1.0.0", objects=objects)
    await client.change("install p")
    plan = await client.change("uninstall p")
    assert change_words(plan.header.packages) == "-p"
    assert await client.versions() == {"d": "1.0.0", "e": "1.0.0"}


async def test_each_revision_of_a_stack_is_restored_without_a_repository(client: Client) -> None:
    """Row X14."""
    objects = {
        "base@1.0.0": [a_label("env"), a_bucket("raw", labels=["env"])],
        "base@2.0.0": [a_label("env", "red"), a_bucket("raw", labels=["env"], description="as it comes")],
        "team": [a_dashboard("board", ["base.env"])],
        "more": [an_object("Label", "env", "label of env")],
    }
    await client.publish("base 1.0.0", "team 1.0.0 [base]", "more 1.0.0", objects=objects)
    kept = []

    async def keep() -> None:
        snapshot = await client.look()
        kept.append((await client.installed(), snapshot.content, (await client.ids()).get("Bucket:base.raw")))

    for words in ("install base", "install team", "install more"):
        await client.change(words)
        await keep()
    del objects["more"]
    await client.publish("base 2.0.0", "team 1.0.0 [base]", objects=objects)
    for words in ("uninstall more", "update base"):
        await client.change(words)
        await keep()
    shutil.rmtree(client.root / "main")
    # Revisions 2 and 4 are equal.
    for number in (2, 4, 1, 5, 3):
        assert end(await roll_back(client.case, number)).state == SUCCEEDED
        packages, content, bucket = kept[number - 1]
        assert await client.installed() == packages
        assert (await client.look()).content == content
        assert (await client.ids())["Bucket:base.raw"] == bucket
        assert (await drift(client.case)).differences == {}
        await check_history(client.case)
    assert (await numbers(client.case))[0] == 9


async def test_a_plain_stack_is_refused_until_it_is_empty(client: Client) -> None:
    """Row X15 is not there yet: the package would take the objects over."""
    await client.services.apply(text(a_bucket("web")), stack="packages")
    await client.publish("fleet 1.0.0", objects={"fleet": [a_bucket("web")]})
    before = await client.state()
    with pytest.raises(PackageStack, match="has objects of no package, such as Bucket 'web'"):
        await client.plan("install fleet")
    assert await client.state() == before


async def test_an_empty_stack_becomes_a_package_stack(client: Client) -> None:
    await client.services.apply(text(a_bucket("web")), stack="packages")
    await client.services.apply("[]", stack="packages", allow_empty=True)
    await client.publish("fleet 1.0.0")
    await client.change("install fleet")
    assert await client.versions() == {"fleet": "1.0.0"}


async def test_resources_of_other_packages_are_left_as_a_person_edited_them(client: Client) -> None:
    """Row X16."""
    await client.publish("p 1.0.0", "q 1.0.0", objects={"q": [a_label("q", "red")]})
    await client.change("install q")
    [live] = (await client.look()).resources
    await client.services.mutate(update("Label", live.id, {**spec_of(live), "color": "blue"}))
    assert step_words(await client.change("install p")) == ["create Label p.p"]
    assert (await drift(client.case)).statuses == {("Label", "q.q"): "drifted"}
    assert step_words(await client.change("install q")) == ["update Label q.q"]
    assert (await drift(client.case)).differences == {}


async def test_a_resource_of_another_package_that_a_person_deleted_is_left_out(client: Client) -> None:
    await client.publish("p 1.0.0", "q 1.0.0")
    await client.change("install q")
    [live] = (await client.look()).resources
    await client.services.mutate(delete("Label", live.id))
    before = await client.ids()
    assert step_words(await client.change("install p")) == ["create Label p.p"]
    assert before.items() <= (await client.ids()).items()
    assert step_words(await client.change("install q")) == ["create Label q.q"]
    await check_history(client.case)


async def test_a_package_of_sources_is_refused_by_a_package_stack(client: Client) -> None:
    """Row X17."""
    await client.publish("p 1.0.0")
    await client.change("install p")
    before = await client.state()
    problem = "has installed packages; change these, or use another stack"
    with pytest.raises(PackageStack, match=problem):
        await client.services.plan(text(a_bucket("web")), stack="packages", store=True)
    with pytest.raises(PackageStack, match=problem):
        await client.services.apply(text(a_bucket("web")), stack="packages")
    assert await client.state() == before


async def test_a_package_stack_is_neither_in_a_snapshot_nor_restored_from_one(client: Client) -> None:
    await client.publish("p 1.0.0")
    await client.change("install p")
    before = await client.state()
    problem = "has installed packages, which an export does not have; keep their versions instead"
    with pytest.raises(PackageStack, match=problem):
        await stored_export(client.services, "packages")
    problem = "has installed packages, and a snapshot has objects of no package; restore it into another stack"
    with pytest.raises(PackageStack, match=problem):
        await client.services.plan(stack="packages", snapshot="sha256:" + 64 * "0")
    with pytest.raises(RequestInvalid, match=r"options\.keep_others: packages are changed as a whole"):
        await client.plan("uninstall p", keep_others=True)
    with pytest.raises(RequestInvalid, match=r"options\.keep_others: packages are changed as a whole"):
        await client.services.plan(stack="packages", revision=1, keep_others=True)
    assert await client.state() == before


async def test_a_rollback_that_brings_packages_back_keeps_no_others(client: Client) -> None:
    await client.publish("p 1.0.0")
    await client.change("install p")
    await client.change("uninstall p")
    with pytest.raises(RequestInvalid, match=r"options\.keep_others: packages are changed as a whole"):
        await client.services.plan(stack="packages", revision=1, keep_others=True)


async def test_a_whole_stack_is_uninstalled(client: Client) -> None:
    await client.publish("p 1.0.0 [d]", "d 1.0.0", objects={"d": [a_bucket("data")]})
    await client.change("install p")
    assert (await client.services.uninstall("packages")).state == SUCCEEDED
    snapshot = await client.look()
    assert (snapshot.content, snapshot.record) == ([], None)
    with pytest.raises(StackNotFound):
        await client.services.record("packages")
    await client.change("install p")
    assert await client.versions() == {"d": "1.0.0", "p": "1.0.0"}


async def test_a_rollback_to_a_revision_without_packages_uninstalls_them(client: Client) -> None:
    await client.publish("p 1.0.0", "q 1.0.0", objects={"p": [a_bucket("web")]})
    await client.change("install p q")
    packages = await client.installed()
    await client.change("uninstall p q")
    assert end(await roll_back(client.case, 1)).state == SUCCEEDED
    assert await client.installed() == packages
    await check_history(client.case)
    assert end(await roll_back(client.case, 2)).state == SUCCEEDED
    assert (await client.installed(), (await client.look()).content) == ([], [])


async def test_a_revision_from_before_the_packages_is_refused(client: Client) -> None:
    await client.services.apply(text(a_bucket("web")), stack="packages")
    await client.services.apply("[]", stack="packages", allow_empty=True)
    await client.publish("p 1.0.0")
    await client.change("install p")
    before = await client.state()
    with pytest.raises(PackageStack, match="and revision 1 is from before; uninstall the packages first"):
        await roll_back(client.case, 1)
    assert await client.state() == before


async def test_a_stack_that_is_kept_takes_packages_again(client: Client) -> None:
    await client.publish("p 1.0.0", "q 1.0.0", objects={"p": [a_bucket("web")]})
    await client.change("install p q")
    keep = plan_pb2.AFTER_UNINSTALL_KEEP
    assert (await client.services.uninstall("packages", after_uninstall=keep)).state == SUCCEEDED
    assert (await client.versions(), await client.ids()) == ({}, {})
    await client.change("install q")
    assert await client.versions() == {"q": "1.0.0"}
    await check_history(client.case)


async def test_what_is_protected_when_a_stack_is_uninstalled_is_found_again(client: Client) -> None:
    await client.publish("p 1.0.0", "q 1.0.0", objects={"p": [a_bucket("web")]})
    await client.change("install p q")
    before = await client.ids()
    await set_policy(client.case, protect=True)
    assert (await client.services.uninstall("packages")).state == SUCCEEDED
    assert (await client.versions(), await client.ids()) == ({}, before)
    await client.change("install q")
    assert await client.ids() == before
    await client.change("install p")
    assert await client.ids() == before
    await check_history(client.case)


async def test_an_adopted_bucket_that_two_packages_declare_stays_when_both_leave(client: Client) -> None:
    await client.services.mutate(create("Bucket", {"name": "web", "retentionRules": []}))
    await client.publish("p 1.0.0", "q 1.0.0", objects={"p": [a_bucket("web")], "q": [a_bucket("web")]})
    await client.change("install p q")
    [person] = (await client.ids()).values()
    await client.change("uninstall p")
    await client.change("uninstall q")
    assert await client.ids() == {}
    assert [each.id for each in (await client.look()).resources] == [person]


async def test_secrets_of_packages_are_those_of_the_organization(client: Client) -> None:
    pager = an_endpoint("PagerDuty", "pager", "pager")
    await client.publish("p 1.0.0", "q 1.0.0", objects={"p": [pager]})
    assert (await client.plan("install p q")).missing_secrets == ["routing-key"]
    plan = await client.plan("install p", secret_keys=["routing-key"])
    assert plan.missing_secrets == []
    assert (await client.run(plan, secrets={"routing-key": "value"})).state == SUCCEEDED
    assert (await client.plan("install q")).missing_secrets == []
    await client.change("uninstall p")
    assert await client.services.secret_keys() == ["routing-key"]


async def test_a_forgotten_resource_of_a_package_is_found_again(client: Client) -> None:
    """Also after plans that do not compare its package; drift and rollbacks leave it as it is."""
    await client.publish("p 1.0.0", "q 1.0.0", "r 1.0.0", objects={"q": [a_bucket("web"), a_label("q")]})
    await client.change("install q")
    before = await client.ids()
    peer, key = client.services.peers["stack"], object_pb2.ObjectKey(kind="Bucket", name="q.web")
    request = stack_pb2.ForgetResourceRequest(stack=client.ref, key=key)
    await peer.call(StackServiceStub(peer.channel).ForgetResource, request)
    for words in ("install p", "install r", "uninstall r"):
        await client.change(words)
        assert "Bucket:q.web" not in await client.ids()
        assert (await drift(client.case)).differences == {}
    assert end(await roll_back(client.case, 2)).state == SUCCEEDED
    assert "Bucket:q.web" not in await client.ids()
    assert step_words(await client.change("install q")) == []
    assert before.items() <= (await client.ids()).items()
    await check_history(client.case)
