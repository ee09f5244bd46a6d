"""Objects that several packages declare alike: one resource, which stays with those that still have it."""

from typing import Any

import pytest

from services.core.errors import SharedDiffers
from tests.applier.drifting import drift
from tests.applier.history import check_history, roll_back
from tests.applier.world import SUCCEEDED, end
from tests.apply.packages import a_rule, an_endpoint, an_object
from tests.drivers.client import update
from tests.package_stacks.client import Client, a_label, spec_of, step_words

PAGER = an_endpoint("PagerDuty", "pager", "pager")
UNRELATED = {"z": [a_label("z")]}


def an_env(name: str = "env", display_name: str = "env", color: str = "red") -> dict[str, Any]:
    return an_object("Label", name, display_name, color=color)


def a_bucket(display_name: str = "web", name: str = "web", **spec: Any) -> dict[str, Any]:
    return an_object("Bucket", name, display_name, **spec)


@pytest.fixture
async def both(client: Client) -> Client:
    """A client of a stack whose packages p and q have one label and one bucket, under the keys of p."""
    await client.publish("p 1.0.0", "q 1.0.0", objects={"p": [an_env(), a_bucket()], "q": [an_env(), a_bucket()]})
    await client.change("install p q")
    assert sorted(await client.ids()) == ["Bucket:p.web", "Label:p.env"]
    return client


async def in_sync(client: Client) -> None:
    """Nothing differs from the record, and a further update has nothing to do."""
    await check_history(client.case)
    assert (await drift(client.case)).differences == {}
    assert (await client.plan("update-all")).no_change


async def test_the_resource_stays_when_the_package_with_its_key_leaves(both: Client) -> None:
    """Row X10."""
    before = await both.ids()
    plan = await both.change("uninstall p")
    assert step_words(plan) == []
    assert await both.ids() == {"Bucket:q.web": before["Bucket:p.web"], "Label:q.env": before["Label:p.env"]}
    await in_sync(both)
    await both.change("uninstall q")
    assert ((await both.look()).content, await both.ids()) == ([], {})


async def test_the_resource_stays_when_the_other_package_leaves(both: Client) -> None:
    before = await both.ids()
    assert step_words(await both.change("uninstall q")) == []
    assert await both.ids() == before
    await in_sync(both)


@pytest.mark.parametrize("changed", [{"color": "blue"}, {"description": "other"}])
async def test_other_fields_are_refused_with_both_packages(client: Client, changed: dict[str, str]) -> None:
    """Row X11."""
    other = an_object("Label", "env", "env", **{"color": "red", **changed})
    await client.publish("p 1.0.0", "q 1.0.0", objects={"p": [an_env()], "q": [other]})
    await client.change("install p")
    before = await client.state()
    [field] = changed
    with pytest.raises(SharedDiffers, match=rf"Label 'q\.env' shares its name with Label 'p\.env', where {field} is"):
        await client.plan("install q")
    assert await client.state() == before


async def test_two_packages_with_one_bucket_and_other_retention_are_refused(client: Client) -> None:
    rules = [{"type": "expire", "everySeconds": 3600}]
    await client.publish("p 1.0.0", "q 1.0.0", objects={"p": [a_bucket()], "q": [a_bucket(retentionRules=rules)]})
    before = await client.state()
    with pytest.raises(SharedDiffers, match=r"'q\.web' shares .* 'p\.web', where retentionRules.*Choose versions"):
        await client.plan("install p q")
    assert await client.state() == before


async def test_a_label_of_a_package_that_stays_is_kept_where_the_other_one_leaves(client: Client) -> None:
    """Both attach a label of their own to the shared bucket."""
    own = {name: [a_label(f"own-{name}"), an_object("Bucket", "web", "web", [f"own-{name}"])] for name in "pq"}
    await client.publish("p 1.0.0", "q 1.0.0", objects=own)
    await client.change("install p q")
    [bucket] = [each for each in (await client.look()).content if each[0] == "Bucket"]
    assert bucket[2] == ("label of own-p", "label of own-q")
    await client.change("uninstall p")
    [bucket] = [each for each in (await client.look()).content if each[0] == "Bucket"]
    assert bucket[2] == ("label of own-q",)
    await in_sync(client)


async def test_a_bucket_that_one_package_drops_and_the_other_one_renames_keeps_its_data(both: Client) -> None:
    """The key that the record has leaves in the plan in which the other package changes the name."""
    before = await both.ids()
    renamed = {"p": [], "q": [an_env(display_name="stage"), a_bucket("site")]}
    await both.publish("p 2.0.0", "q 2.0.0", objects=renamed)
    plan = await both.change("update p q")
    assert step_words(plan) == ["update Label q.env", "update Bucket q.web"]
    assert await both.ids() == {"Bucket:q.web": before["Bucket:p.web"], "Label:q.env": before["Label:p.env"]}
    await in_sync(both)
    assert end(await roll_back(both.case, 1)).state == SUCCEEDED
    assert set((await both.ids()).values()) == set(before.values())
    await check_history(both.case)


@pytest.mark.parametrize("name", ["p", "q"])
async def test_a_package_that_renames_a_bucket_takes_nothing_from_the_other(both: Client, name: str) -> None:
    """Whichever has the recorded key: the data stays under the name, which the package that is not updated has."""
    before = (await both.ids())["Bucket:p.web"]
    other = {"p": "q", "q": "p"}[name]
    objects = {name: [an_env(), a_bucket("site")], other: [an_env(), a_bucket()]}
    await both.publish(f"{name} 2.0.0", f"{other} 1.0.0", objects=objects)
    plan = await both.change(f"update {name}")
    assert step_words(plan) == [f"create Bucket {name}.web"]
    assert (await both.ids())[f"Bucket:{other}.web"] == before
    await in_sync(both)


async def test_a_bucket_that_a_person_renamed_is_not_deleted_with_the_package_that_has_its_key(both: Client) -> None:
    before = await both.ids()
    [live] = [each for each in (await both.look()).resources if each.kind == "Bucket"]
    await both.services.mutate(update("Bucket", live.id, {**spec_of(live), "name": "other"}))
    plan = await both.change("uninstall p")
    assert step_words(plan) == ["update Bucket q.web"]
    assert (await both.ids())["Bucket:q.web"] == before["Bucket:p.web"]
    await in_sync(both)


async def test_a_reference_to_a_shared_object_of_a_requirement_holds_whatever_its_key_is(client: Client) -> None:
    """r requires q and not p, whose key the shared objects have."""
    shared = [an_env(), PAGER]
    own = [an_object("Bucket", "raw", "raw", ["q.env"]), a_rule("rule", "q.pager")]
    await client.publish(
        "p 1.0.0", "q 1.0.0", "r 1.0.0 [q]", "z 1.0.0", objects={"p": shared, "q": shared, "r": own, **UNRELATED}
    )
    await client.change("install p r")
    await client.change("install z")
    assert step_words(await client.change("uninstall p")) == []
    await in_sync(client)


async def test_a_reference_survives_a_requirement_that_drops_what_another_one_has(client: Client) -> None:
    """r requires both packages that declare the label; either of them may drop it, but not both."""
    objects = {"p@1.0.0": [an_env()], "q@1.0.0": [an_env()], "p@2.0.0": [], "q@2.0.0": []}
    own = [an_object("Bucket", "raw", "raw", ["q.env"])]
    await client.publish("p 1.0.0", "q 1.0.0", "r 1.0.0 [p, q]", objects={**objects, "r": own})
    await client.change("install p q r")
    before = await client.ids()
    await client.publish("p 2.0.0", "q 2.0.0", "r 1.0.0 [p, q]", objects={**objects, "r": own})
    assert (await client.conflict("update p q")).code == "BROKEN_REFERENCE"
    assert step_words(await client.change("update p")) == []
    assert (await client.ids())["Label:q.env"] == before["Label:p.env"]
    await check_history(client.case)
    assert (await client.conflict("update q")).code == "BROKEN_REFERENCE"


async def test_references_within_a_package_follow_its_shared_objects(client: Client) -> None:
    """The rule is not compared when the other package leaves, whose key its endpoint had."""
    objects = {"p": [PAGER], "q": [PAGER, a_rule("rule", "pager")], **UNRELATED}
    await client.publish("p 1.0.0", "q 1.0.0", "z 1.0.0", objects=objects)
    await client.change("install p q")
    await client.change("uninstall p")
    await client.change("install z")
    await in_sync(client)


async def test_objects_of_packages_that_are_not_compared_stay_in_record_and_revision(both: Client) -> None:
    """Also what several of them declare."""
    objects = {"p": [an_env(), a_bucket()], "q": [an_env(), a_bucket()], **UNRELATED}
    await both.publish("p 1.0.0", "q 1.0.0", "z 1.0.0", objects=objects)
    before = await both.ids()
    for words in ("install z", "uninstall z", "install z"):
        await both.change(words)
        await check_history(both.case)
    assert before.items() <= (await both.ids()).items()
    assert step_words(await both.change("uninstall p")) == []
    assert (await both.ids())["Bucket:q.web"] == before["Bucket:p.web"]
    await in_sync(both)


async def test_three_packages_share_a_resource_to_the_last(client: Client) -> None:
    names = ["p", "q", "r"]
    await client.publish(*(f"{each} 1.0.0" for each in names), objects={each: [a_bucket()] for each in names})
    await client.change("install p q r")
    [before] = (await client.ids()).values()
    for name in ("p", "r"):
        assert step_words(await client.change(f"uninstall {name}")) == []
        assert [*(await client.ids()).values()] == [before]
    assert step_words(await client.change("uninstall q")) == ["delete Bucket q.web"]


async def test_a_label_that_is_named_twice_is_two_when_the_packages_differ(client: Client) -> None:
    """Its own label and the one that it requires are one resource at first, and then two."""
    bucket = a_bucket(associations=[{"kind": "Label", "name": name} for name in ("env", "p.env")])
    objects = {
        "p@1.0.0": [an_env()],
        "p@2.0.0": [an_env(display_name="other")],
        "p@3.0.0": [],
        "q": [an_env(), bucket],
    }
    await client.publish("p 1.0.0 | 2.0.0 | 3.0.0", "q 1.0.0 [p]", objects=objects)
    await client.change("install p@1.0.0 q")
    assert sorted(await client.ids()) == ["Bucket:q.web", "Label:p.env"]
    assert (await client.conflict("install p@3.0.0")).code == "BROKEN_REFERENCE"
    plan = await client.change("install p@2.0.0")
    assert "attach Bucket q.web p.env" in step_words(plan) or "attach Bucket q.web q.env" in step_words(plan)
    [labels] = [each.label_ids for each in (await client.look()).resources if each.kind == "Bucket"]
    assert len(labels) == 2
    await check_history(client.case)
    assert (await drift(client.case)).differences == {}


async def test_an_update_that_drops_a_label_breaks_those_that_name_it_and_have_an_equal_one(client: Client) -> None:
    bucket = a_bucket(associations=[{"kind": "Label", "name": "p.env"}])
    await client.publish(
        "p 1.0.0 | 2.0.0", "q 1.0.0 [p]", objects={"p@1.0.0": [an_env()], "p@2.0.0": [], "q": [an_env(), bucket]}
    )
    await client.change("install p@1.0.0 q")
    assert (await client.conflict("install p@2.0.0")).code == "BROKEN_REFERENCE"
