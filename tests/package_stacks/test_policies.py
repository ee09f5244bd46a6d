"""What policies and adoption mean for resources whose package leaves, or drops them."""

import json
from typing import Any

import pytest
import yaml

from services.core.errors import NameTaken
from tests.applier.drifting import drift
from tests.applier.history import check_history
from tests.applier.test_policies import set_policy
from tests.applier.world import SUCCEEDED
from tests.apply.packages import an_object
from tests.drivers.client import create
from tests.package_stacks.client import Client, a_label, change_words, step_words

WEB = {"p@1.0.0": [an_object("Bucket", "web", "web")], "p@2.0.0": [a_label("p")]}
PROTECTED = {"overrides": [{"match": {"kind": "Bucket", "names": ["p.*"]}, "protect": True}]}


async def buckets(client: Client) -> list[str]:
    return [each.id for each in (await client.look()).resources if each.kind == "Bucket"]


async def adopted_by_p(client: Client) -> str:
    """Install package p, which adopts a bucket of a person; returns its id."""
    await client.services.mutate(create("Bucket", {"name": "web", "retentionRules": []}))
    await client.publish("p 1.0.0", "d 1.0.0", objects=WEB)
    await client.change("install p d")
    [bucket] = await buckets(client)
    assert (await client.ids())["Bucket:p.web"] == bucket
    return bucket


@pytest.mark.parametrize("words", ["update p", "uninstall p"])
async def test_a_protected_resource_stays_in_the_record_and_is_found_again(client: Client, words: str) -> None:
    await client.publish("p 1.0.0", "d 1.0.0", objects=WEB)
    await client.change("install p d")
    await set_policy(client.case, **PROTECTED)
    before = (await client.ids())["Bucket:p.web"]
    await client.publish("p 1.0.0 | 2.0.0", "d 1.0.0", "e 1.0.0", objects=WEB)
    await client.change(words)
    assert (await client.ids())["Bucket:p.web"] == before
    await client.change("install e")
    assert (await client.ids())["Bucket:p.web"] == before
    await check_history(client.case, [("Bucket", "p.web")])
    if words == "update p":
        await client.change("uninstall p")
    await client.change("install p@1.0.0")
    assert (await client.ids())["Bucket:p.web"] == before
    await check_history(client.case)
    assert (await drift(client.case)).differences == {}


async def test_a_protection_that_is_lost_with_a_name_is_told(client: Client) -> None:
    await client.publish("p 1.0.0", "q 1.0.0", objects={"p": WEB["p@1.0.0"], "q": WEB["p@1.0.0"]})
    await client.change("install p q")
    await set_policy(client.case, **PROTECTED)
    before = (await client.ids())["Bucket:p.web"]
    plan = await client.plan("uninstall p")
    assert plan.warnings == [
        f"Bucket 'p.web' becomes Bucket 'q.web', and resource {before} is protected no more: overrides[0] of the policy"
        " does not match the new key; extend its match"
    ]
    both = {"kind": "Bucket", "names": ["q.web"]}
    await set_policy(client.case, overrides=[*PROTECTED["overrides"], {"match": both, "protect": True}])
    assert (await client.change("uninstall p")).warnings == []
    assert await client.ids() == {"Bucket:q.web": before}


async def test_a_protection_that_is_lifted_removes_what_no_package_has_with_the_next_plan(client: Client) -> None:
    await client.publish("p 1.0.0", "d 1.0.0", objects=WEB)
    await client.change("install p d")
    await set_policy(client.case, **PROTECTED)
    await client.change("uninstall p")
    await set_policy(client.case)
    # The first plan lifts the protection, the second one deletes.
    assert step_words(await client.change("install d")) == []
    assert step_words(await client.change("install d")) == ["delete Bucket p.web"]
    assert "Bucket:p.web" not in await client.ids()


async def test_an_adopted_resource_stays_though_its_package_left_earlier(client: Client) -> None:
    """It was protected when its package left, so it leaves the record with a later plan of another package."""
    bucket = await adopted_by_p(client)
    await set_policy(client.case, **PROTECTED)
    await client.change("uninstall p")
    await set_policy(client.case)
    await client.change("install d")
    await client.change("install d")
    assert "Bucket:p.web" not in await client.ids()
    assert await buckets(client) == [bucket]


async def test_an_adopted_resource_is_deleted_with_its_object(client: Client) -> None:
    """As in any stack: ``adopted_on_delete`` counts where the package leaves."""
    await adopted_by_p(client)
    await client.publish("p 2.0.0", "d 1.0.0", objects=WEB)
    assert "delete Bucket p.web" in step_words(await client.change("update p"))


@pytest.mark.parametrize(
    ("policy", "words", "stays"),
    [
        ({"on_remove": "orphan"}, "update p", True),
        ({"on_remove": "orphan"}, "uninstall p", False),
        ({"on_delete": "orphan"}, "update p", False),
        ({"on_delete": "orphan"}, "uninstall p", True),
        ({"overrides": [{"match": {"kind": "Bucket", "names": ["p.*"]}, "on_delete": "orphan"}]}, "uninstall p", True),
        ({"overrides": [{"match": {"kind": "Bucket", "names": ["q.*"]}, "on_delete": "orphan"}]}, "uninstall p", False),
    ],
)
async def test_policies_of_leaving(client: Client, policy: dict[str, Any], words: str, stays: bool) -> None:
    await client.publish("p 1.0.0", "d 1.0.0", objects=WEB)
    await client.change("install p d")
    await set_policy(client.case, **policy)
    await client.publish("p 2.0.0", "d 1.0.0", objects=WEB)
    await client.change(words)
    assert len(await buckets(client)) == stays
    assert "Bucket:p.web" not in await client.ids()


async def test_data_that_an_unneeded_package_shares_with_one_that_is_uninstalled_stays(client: Client) -> None:
    """The bucket has the key of the package that is named, and goes to the dependency, which stays with it."""
    objects = {"p": [an_object("Bucket", "web", "web")], "d": [an_object("Bucket", "site", "web")]}
    await client.publish("p 1.0.0", objects=objects)
    await client.change("install p")
    await client.publish("p 2.0.0 [d]", "d 1.0.0", objects=objects)
    await client.change("update p")
    before = (await client.ids())["Bucket:p.web"]
    plan = await client.change("uninstall p")
    assert change_words(plan.header.packages) == "-p"
    assert await client.ids() == {"Bucket:d.site": before}
    await client.change("uninstall d")
    assert await buckets(client) == []


async def test_a_policy_that_keeps_the_data_lets_an_unneeded_package_leave(client: Client) -> None:
    await client.publish("p 1.0.0 [d]", "d 1.0.0", objects={"d": [an_object("Bucket", "web", "web")]})
    await client.change("install p")
    await set_policy(client.case, overrides=[{"match": {"kind": "Bucket", "names": ["d.*"]}, "on_delete": "orphan"}])
    plan = await client.change("uninstall p")
    assert change_words(plan.header.packages) == "-p, -d"
    assert len(await buckets(client)) == 1


async def test_what_a_gone_package_left_goes_to_another_one_that_declares_it(client: Client) -> None:
    objects = {**WEB, "q": [an_object("Bucket", "site", "web")]}
    await client.publish("p 1.0.0", "q 1.0.0", objects=objects)
    await client.change("install p")
    await set_policy(client.case, **PROTECTED)
    before = (await client.ids())["Bucket:p.web"]
    await client.change("uninstall p")
    assert step_words(await client.change("install q")) == []
    assert await client.ids() == {"Bucket:q.site": before}
    await check_history(client.case)
    assert step_words(await client.change("install p")) == []
    assert await client.ids() == {"Bucket:q.site": before}
    assert (await client.plan("update-all")).no_change
    assert step_words(await client.change("uninstall q")) == []
    assert await client.ids() == {"Bucket:p.web": before}
    await check_history(client.case)


async def test_a_protected_bucket_that_a_version_drops_is_shared_again(client: Client) -> None:
    """The plan has to compare the package that dropped it, as the record has it under the key of this one."""
    objects = {**WEB, "q": [an_object("Bucket", "site", "web")]}
    await client.publish("p 1.0.0", "q 1.0.0", objects=objects)
    await client.change("install p")
    await set_policy(client.case, **PROTECTED)
    before = (await client.ids())["Bucket:p.web"]
    await client.publish("p 2.0.0", "q 1.0.0", objects=objects)
    await client.change("update p")
    with pytest.raises(NameTaken):
        await client.plan("install q")
    await client.change("install p q")
    assert (await client.ids())["Bucket:q.site"] == before
    assert "Bucket:p.web" not in await client.ids()
    await check_history(client.case)
    assert (await drift(client.case)).differences == {}
    assert (await client.plan("update-all")).no_change


def a_document(**policy: Any) -> dict[str, Any]:
    """The document of a package that says *policy*."""
    return {"apiVersion": "pkger/v1", "kind": "Lifecycle", "metadata": {"name": "x"}, "spec": {"policy": policy}}


def protected(item: dict[str, Any]) -> dict[str, Any]:
    """*item* with a policy that protects it."""
    return {**item, "metadata": {**item["metadata"], "lifecycle": {"protect": True}}}


async def own_policies(client: Client) -> dict[str, Any]:
    """What packages and objects say, by the name of the object; without objects of which nothing is said."""
    record = (await client.look()).record
    assert record
    entries = {each.key.name: each.own_policy_json for each in record.resources}
    return {name: json.loads(text) for name, text in entries.items() if text}


async def test_each_package_says_how_its_own_objects_are_treated(client: Client) -> None:
    rule = {"kind": "Bucket", "names": ["web"], "paths": ["/description"]}
    objects = {
        "p": [a_document(on_delete="orphan", ignore=[rule]), an_object("Bucket", "web", "web"), a_label("p")],
        "d": [a_document(drift="ignore"), protected(a_label("d"))],
    }
    await client.publish("p 1.0.0", "d 1.0.0", "e 1.0.0", objects=objects)
    await client.change("install p d")
    said = {
        "p.web": {"package": {"on_delete": "orphan", "ignore": ["/description"]}},
        "p.p": {"package": {"on_delete": "orphan"}},
        "d.d": {"package": {"drift": "ignore"}, "object": {"protect": True}},
    }
    assert await own_policies(client) == said
    # The packages that stay say what they said.
    await client.change("install e")
    assert await own_policies(client) == said
    [bucket] = await buckets(client)
    await client.change("uninstall p d")
    assert await own_policies(client) == {"d.d": said["d.d"]}
    assert await buckets(client) == [bucket]


async def test_a_version_that_says_something_else_is_an_update(client: Client) -> None:
    objects = {"p@1.0.0": [protected(a_label("p"))], "p@2.0.0": [a_document(drift="ignore"), a_label("p")]}
    await client.publish("p 1.0.0 | 2.0.0", objects=objects)
    await client.change("install p@1.0.0")
    assert await own_policies(client) == {"p.p": {"object": {"protect": True}}}
    await client.change("install p@2.0.0")
    assert await own_policies(client) == {"p.p": {"package": {"drift": "ignore"}}}
    plan = await client.services.plan(stack=client.stack, revision=1, store=True)
    assert (await client.run(plan)).state == SUCCEEDED
    assert await own_policies(client) == {"p.p": {"object": {"protect": True}}}


async def test_a_resource_of_two_packages_is_protected_if_one_of_them_says_so(client: Client) -> None:
    objects = {
        "p": [a_label("shared", display_name="shared")],
        "q": [protected(a_label("tag", display_name="shared"))],
    }
    await client.publish("p 1.0.0", "q 1.0.0", "e 1.0.0", objects=objects)
    await client.change("install p q")
    assert await own_policies(client) == {"p.shared": {"object": {"protect": True}}}
    await client.change("install e")
    assert await own_policies(client) == {"p.shared": {"object": {"protect": True}}}
    await client.change("uninstall p")
    assert await own_policies(client) == {"q.tag": {"object": {"protect": True}}}


async def test_an_export_of_packages_has_their_policies_in_its_objects(client: Client) -> None:
    objects = {"p": [a_document(on_remove="orphan"), protected(a_label("p"))], "d": [a_label("d")]}
    await client.publish("p 1.0.0", "d 1.0.0", objects=objects)
    await client.change("install p d")
    exported = (await client.services.export(stack=client.stack)).text
    documents = list(yaml.safe_load_all(exported))
    assert [each["metadata"].get("lifecycle") for each in documents] == [None, {"on_remove": "orphan", "protect": True}]
    assert {each["kind"] for each in documents} == {"Label"}
