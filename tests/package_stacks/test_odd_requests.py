"""Odd changes of packages, each with the answer that a client expects; none is an error inside a service."""

import pytest

from services.core.errors import PackageStack, PkgerError, RepositoryInvalid, RequestInvalid, SourceUndecodable
from services.packages.digests import digest_of
from tests.applier.history import check_history
from tests.apply.packages import an_object
from tests.cluster import InvalidPackage
from tests.package_stacks.client import Client, a_label, change_words, folder, plan_lines, step_words


async def test_an_update_of_all_packages_of_none_has_nothing_to_do(client: Client) -> None:
    await client.publish("p 1.0.0")
    plan = await client.plan("update-all")
    assert (plan.no_change, plan_lines(plan)) == (True, [""])
    assert (await client.run(plan)).no_change
    # As with a package of sources, the stack is there afterwards.
    assert (await client.ids(), await client.versions()) == ({}, {})


async def test_a_plan_with_nothing_to_do_changes_nothing(client: Client) -> None:
    await client.publish("p 1.0.0 [d]", "d 1.0.0")
    await client.change("install p")
    before = await client.state()
    for words in ("install p", "update p", "update-all", "update d"):
        plan = await client.plan(words)
        assert plan.no_change
        assert (await client.run(plan)).no_change
        assert await client.state() == before
    assert (await client.plan("install p", store=False)).no_change


async def test_a_package_without_objects_is_installed_and_removed(client: Client) -> None:
    await client.publish("p 1.0.0 [d]", "d 1.0.0", objects={"p": [], "d": []})
    plan = await client.change("install p")
    assert (plan.no_change, plan.steps, change_words(plan.header.packages)) == (False, [], "+d 1.0.0, +p 1.0.0")
    assert await client.versions() == {"d": "1.0.0", "p": "1.0.0"}
    await check_history(client.case)
    plan = await client.change("uninstall p")
    assert (plan.no_change, change_words(plan.header.packages)) == (False, "-p, -d")
    assert await client.versions() == {}
    await client.change("install p")
    assert await client.versions() == {"d": "1.0.0", "p": "1.0.0"}


async def test_a_mark_is_a_change_without_steps(client: Client) -> None:
    await client.publish("p 1.0.0 [d]", "d 1.0.0")
    await client.change("install p")
    plan = await client.change("install d")
    assert (plan.no_change, plan.steps, change_words(plan.header.packages)) == (False, [], "!d")
    await client.change("uninstall p")
    assert await client.versions() == {"d": "1.0.0"}
    await check_history(client.case)


async def test_packages_live_in_several_stacks_side_by_side(client: Client) -> None:
    """Each is resolved by itself, and they share equal resources as any stacks do."""
    await client.publish("p 1.0.0", "q 1.0.0 [p]", objects={"p": [an_object("Bucket", "web", "web")]})
    other = Client(client.services, client.root, stack="other")
    await client.change("install p")
    [bucket] = (await client.ids()).values()
    await other.change("install q")
    assert await other.versions() == {"p": "1.0.0", "q": "1.0.0"}
    assert (await other.ids())["Bucket:p.web"] == bucket
    await other.change("uninstall p q")
    assert bucket in {each.id for each in (await client.look()).resources}
    await client.change("uninstall p")
    assert (await client.look()).content == []


async def test_a_folder_takes_the_place_of_a_published_package_and_back(client: Client) -> None:
    await client.publish("p 1.0.0 | 1.1.0", objects={"p": [a_label("p")]})
    await client.change("install p@1.0.0")
    plan = await client.change(folder("p 1.0.0", a_label("p", "red")))
    assert step_words(plan) == ["update Label p.p"]
    [record] = await client.installed()
    assert record.repository == ""
    assert (await client.plan("update-all")).no_change
    await client.change("uninstall p")
    await client.change("install p")
    [record] = await client.installed()
    assert (record.version, record.repository) == ("1.1.0", "main")


async def test_a_folder_and_a_package_that_it_requires_come_together(client: Client) -> None:
    await client.publish("base 1.0.0")
    plan = await client.change(
        folder("p 1.0.0 [base, q]", an_object("Bucket", "raw", "raw", ["base.base", "q.q"])),
        folder("q 1.0.0", a_label("q")),
    )
    assert change_words(plan.header.packages) == "+base 1.0.0, +q 1.0.0, +p 1.0.0"
    await check_history(client.case)


@pytest.mark.parametrize("text", ["\0", "\ufeff", "a: &a [*a]\n", "---\n" * 50, "kind: Package\n" * 2, "[" * 5000])
async def test_a_folder_of_nonsense_is_a_wrong_request(client: Client, text: str) -> None:
    change = folder("p 1.0.0", a_label("p"))
    change.folder.files[0].text = text
    with pytest.raises(RequestInvalid, match=r"packages\.changes\[0\]\.folder\.files: package\.yaml"):
        await client.plan(change)
    assert (await client.look()).record is None


async def test_nonsense_behind_the_manifest_is_a_violation_or_a_wrong_request(client: Client) -> None:
    for text in ("\n---\n[1, 2]\n", "\n---\nkind: Nothing\n", "\n---\n\0", "\n---\n{{{"):
        change = folder("p 1.0.0", a_label("p"))
        change.folder.files[0].text += text
        with pytest.raises((InvalidPackage, PkgerError)) as caught:
            await client.plan(change)
        assert getattr(caught.value, "reason", "") != "INTERNAL"
    assert (await client.look()).record is None


async def test_a_file_that_is_no_text_is_refused(client: Client) -> None:
    await client.publish("p 1.0.0")
    versions = client.root / "main" / "p" / "versions.yaml"
    path = client.root / "main" / "p" / "1.0.0" / "package.yaml"
    before, wrong = path.read_bytes(), path.read_bytes() + b"# \xff\n"
    path.write_bytes(wrong)
    old, new = (digest_of({"package.yaml": each}) for each in (before, wrong))
    versions.write_text(versions.read_text().replace(old, new))
    with pytest.raises((SourceUndecodable, RepositoryInvalid), match="UTF-8"):
        await client.plan("install p")
    assert (await client.look()).record is None


async def test_a_package_that_is_named_by_a_folder_and_by_its_name_is_refused(client: Client) -> None:
    await client.publish("p 1.0.0")
    with pytest.raises(RequestInvalid, match="package p is named more than once"):
        await client.plan("install p", folder("p 1.0.0", a_label("p")))
    with pytest.raises(RequestInvalid, match="package p is named more than once"):
        await client.plan(folder("p 1.0.0", a_label("p")), folder("p 1.0.0", a_label("p")))


async def test_an_import_into_a_package_stack_needs_the_name_of_a_package(client: Client) -> None:
    """The stack service and imports decide it; a plan of packages leaves what it does not know to them."""
    await client.publish("p 1.0.0")
    await client.change("install p")
    with pytest.raises(PackageStack):
        await client.services.plan("[]", stack="packages", allow_empty=True)


async def test_packages_swap_the_names_of_their_buckets(client: Client) -> None:
    """Each keeps its own data, as the names are those of its objects; a plan that cannot be made changes nothing."""
    objects = {
        "p@1.0.0": [an_object("Bucket", "web", "one")],
        "q@1.0.0": [an_object("Bucket", "web", "two")],
        "p@2.0.0": [an_object("Bucket", "web", "two")],
        "q@2.0.0": [an_object("Bucket", "web", "three")],
    }
    await client.publish("p 1.0.0", "q 1.0.0", objects=objects)
    await client.change("install p q")
    before = await client.ids()
    await client.publish("p 2.0.0", "q 2.0.0", objects=objects)
    await client.change("update p q")
    assert await client.ids() == before
    await check_history(client.case)


async def test_a_package_that_takes_the_name_of_a_bucket_of_another_one_shares_it(client: Client) -> None:
    """Its own bucket is dropped by the plan: it is a deletion like any other, which the plan shows."""
    objects = {
        "p@1.0.0": [an_object("Bucket", "web", "one")],
        "q": [an_object("Bucket", "web", "two")],
        "p@2.0.0": [an_object("Bucket", "web", "two")],
    }
    await client.publish("p 1.0.0", "q 1.0.0", objects=objects)
    await client.change("install p q")
    before = await client.ids()
    await client.publish("p 2.0.0", "q 1.0.0", objects=objects)
    plan = await client.change("update p")
    assert plan.header.counts.irreversible == 1
    after = await client.ids()
    assert [*after.values()] == [before["Bucket:q.web"]]
    await check_history(client.case)
