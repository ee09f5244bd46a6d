"""Laws about changes of packages, in worlds where packages share resources and name objects of each other."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.errors import DependencyCycle, NameTaken, SharedDiffers
from tests.applier.drifting import drift
from tests.applier.history import check_history, roll_back
from tests.applier.world import SUCCEEDED, Snapshot, end
from tests.cluster import InvalidPackage, Shown
from tests.package_stacks.client import Client, Conflict, a_label, change_words, folder, step_words
from tests.package_stacks.worlds import NAMES, Published, changes, published

CONSENT: dict[str, Any] = {"update_dependencies": True, "allow_downgrade": True, "cascade": True}


@pytest.fixture
def orgs() -> Iterator[int]:
    return count(1)


def fresh(client: Client, orgs: Iterator[int]) -> Client:
    """The client with an empty stack."""
    client.services = client.services.in_org(f"org-{next(orgs)}")
    return client


async def attempt(client: Client, words: str) -> Shown | None:
    """The plan of a change; None if there is none: nothing has changed then."""
    before, refusal = await client.state(), ""
    plan: Shown | None = None
    try:
        plan = await client.plan(words, **CONSENT)
    except NameTaken as taken:
        refusal = str(taken)
    except (Conflict, InvalidPackage, DependencyCycle, SharedDiffers):
        pass
    assert await client.state() == before
    # Resources that packages of the stack have are shared. An object can only wait for a name that the plan sets free.
    assert "on the platform has it" not in refusal
    return plan


def content(snapshot: Snapshot) -> Counter[tuple[str, str, frozenset[str]]]:
    """Kind, name and names of labels of each resource."""
    return Counter((kind, _name(spec), frozenset(labels)) for kind, spec, labels, _ in snapshot.content)


def _name(spec: str) -> str:
    return str(json.loads(spec)["name"])


async def buckets(client: Client) -> dict[str, str]:
    """The ids of the buckets by their names."""
    return {_name(each.spec_json): each.id for each in (await client.look()).resources if each.kind == "Bucket"}


rollbacks = st.integers(1, 3)
"""Rollbacks by the number of revisions."""


@given(world=published(), acts=st.lists(changes | rollbacks, min_size=1, max_size=4))
async def test_the_platform_has_what_the_installed_packages_declare(
    client: Client, orgs: Iterator[int], world: Published, acts: Sequence[str | int]
) -> None:
    """
    Resources, labels, record, revision and drift, after each change and each rollback.

    A bucket keeps its data as long as an installed package has it under the same name.
    """
    fresh(client, orgs)
    await client.publish(*world.rows(), objects=world.objects())
    versions: dict[int, dict[str, str]] = {}
    for act in acts:
        before, packages = await buckets(client), await client.versions()
        if isinstance(act, str):
            plan = await attempt(client, act)
            if plan is None:
                continue
            finished = await client.run(plan)
            assert finished.no_change == plan.no_change
        elif max(versions, default=0) > act:
            number = max(versions) - act
            finished = end(await roll_back(client.case, number))
            assert await client.versions() == versions[number]
        else:
            continue
        assert (finished.state, finished.leftover_count) == (SUCCEEDED, 0), finished
        installed = await client.versions()
        assert content(await client.look()) == world.content(installed)
        after = await buckets(client)
        staying = {name for _, _, name in world.buckets(packages) & world.buckets(installed)}
        assert {name: after[name] for name in staying} == {name: before[name] for name in staying}
        record = (await client.look()).record
        if record:
            versions[record.stack.revision] = installed
            await check_history(client.case)
            assert (await drift(client.case)).differences == {}


@given(world=published(), words=st.lists(changes, min_size=1, max_size=2), last=changes)
async def test_a_plan_that_was_applied_leaves_nothing_to_do(
    client: Client, orgs: Iterator[int], world: Published, words: Sequence[str], last: str
) -> None:
    """Also for an update of all packages, which compares every object."""
    fresh(client, orgs)
    await client.publish(*world.rows(), objects=world.objects())
    for each in (*words, last):
        if plan := await attempt(client, each):
            await client.run(plan)
    if not last.startswith("uninstall") and plan:
        again = await attempt(client, last)
        assert again
        assert (again.no_change, change_words(again.header.packages)) == (True, "")
    for name in await client.versions():
        again = await attempt(client, f"install {name}")
        assert again
        assert not again.steps


@given(world=published(), words=changes, names=st.permutations(NAMES))
async def test_the_order_of_names_changes_nothing(
    client: Client, orgs: Iterator[int], world: Published, words: str, names: Sequence[str]
) -> None:
    fresh(client, orgs)
    await client.publish(*world.rows(), objects=world.objects())
    if plan := await attempt(client, "install b c"):
        await client.run(plan)
    verb, *packages = words.split()
    other = " ".join([verb, *sorted(packages, key=lambda each: names.index(each[0]))])
    first, second = await attempt(client, words), await attempt(client, other)
    assert (first and first.digest) == (second and second.digest)
    assert (first and change_words(first.header.packages)) == (second and change_words(second.header.packages))


@given(world=published(), names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
async def test_an_uninstall_undoes_an_install(
    client: Client, orgs: Iterator[int], world: Published, names: Sequence[str]
) -> None:
    """Of packages that were not there, beside others; what they share with these stays with its id."""
    fresh(client, orgs)
    await client.publish(*world.rows(["1.0.0"]), objects=world.objects())
    if plan := await attempt(client, "install a b"):
        await client.run(plan)
    packages = await client.installed()
    new = [name for name in names if name not in {each.name for each in packages}]
    before, ids = await client.look(), await client.ids()
    if not new or not (plan := await attempt(client, f"install {' '.join(new)}")):
        return
    await client.run(plan)
    # Dependencies with data stay unless they are named.
    added = sorted((await client.versions()).keys() - {each.name for each in packages})
    await client.change(f"uninstall {' '.join(added)}")
    after = await client.look()
    assert after.content == before.content
    assert await client.installed() == packages
    assert after.recorded_content == before.recorded_content
    assert await client.ids() == ids
    if packages:
        await check_history(client.case)


@given(world=published())
async def test_a_folder_that_is_installed_twice_has_nothing_to_do(
    client: Client, orgs: Iterator[int], world: Published
) -> None:
    fresh(client, orgs)
    await client.publish(*world.rows(["1.0.0"]), objects=world.objects())
    release = world.releases["d", "1.0.0"]
    change = folder(f"d 1.0.0 [{', '.join(release.requires)}]".replace(" []", ""), *release.objects)
    try:
        await client.change(change)
    except (InvalidPackage, Conflict, SharedDiffers):
        return
    again = await client.plan(change)
    assert (again.no_change, again.steps, change_words(again.header.packages)) == (True, [], "")
    assert (await client.plan("update-all")).no_change


async def test_a_folder_is_installed_again_and_again(client: Client) -> None:
    """As one develops it: the version stays, and the content changes."""
    await client.publish("base 1.0.0")
    await client.change(folder("p 1.0.0 [base]", a_label("p")))
    [before] = [each for each in await client.installed() if each.name == "p"]
    plan = await client.change(folder("p 1.0.0 [base]", a_label("p", "red")))
    assert step_words(plan) == ["update Label p.p"]
    [after] = [each for each in await client.installed() if each.name == "p"]
    assert (after.version, after.repository) == ("1.0.0", "")
    assert after.content_digest != before.content_digest
    assert (await client.plan(folder("p 1.0.0 [base]", a_label("p", "red")))).no_change
    plan = await client.change(folder("p 1.1.0", a_label("p", "red")))
    assert change_words(plan.header.packages) == "^p 1.1.0, -base"
