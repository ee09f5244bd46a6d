"""ExplainPackages, as its clients call it: why installed packages are there, and what holds them back."""

from typing import Any

import pytest
from pkger.model.v1 import object_pb2
from pkger.planner.v1 import package_pb2
from pkger.planner.v1.package_pb2_grpc import PackageServiceStub

from services.core.errors import PackageNotFound, PkgerError, RequestInvalid, StackNotFound
from services.core.limits import MOST_PACKAGES
from tests.cluster import Calls
from tests.package_stacks.client import Client, a_label, change_words, folder

BEFORE = ("p 1.0.0 [d ^1, e]", "d 1.0.0", "e 1.0.0 [d]", "f 1.0.0")
AFTER = ("p 1.0.0 [d ^1, e]", "d 1.0.0 | 1.5.0 | 2.0.0", "e 1.0.0 [d] | 2.0.0 [g]", "f 1.0.0 | 2.0.0", "g 1.0.0")


async def explain(client: Client, *names: str, **fields: Any) -> package_pb2.ExplainPackagesResponse:
    peer = client.services.peers["planner"]
    request = package_pb2.ExplainPackagesRequest(stack=fields.pop("stack", client.ref), names=names, **fields)
    return await peer.call(PackageServiceStub(peer.channel).ExplainPackages, request)


def summary(package: package_pb2.ExplainedPackage) -> tuple[str, ...]:
    """Name, installed, reachable and latest version, and what holds the package back."""
    return (
        package.installed.name,
        package.installed.version,
        package.reachable_version,
        package.latest,
        *(fact.text for fact in package.held_back_by),
    )


@pytest.fixture
async def updatable(client: Client) -> Client:
    """A client with installed packages, some of which have newer versions."""
    await client.publish(*BEFORE)
    await client.change("install p f")
    await client.publish(*AFTER)
    return client


async def test_all_packages_are_explained_by_name(updatable: Client) -> None:
    before = await updatable.state()
    answer = await explain(updatable, refresh=True)
    assert [*map(summary, answer.packages)] == [
        ("d", "1.0.0", "1.5.0", "2.0.0", "p 1.0.0 is installed", "p 1.0.0 requires d ^1"),
        ("e", "1.0.0", "2.0.0", "2.0.0"),
        ("f", "1.0.0", "2.0.0", "2.0.0"),
        ("p", "1.0.0", "1.0.0", "1.0.0"),
    ]
    d, _, f, _ = answer.packages
    assert [(path.start, *((each.name, each.version_range) for each in path.requirements)) for path in d.paths] == [
        ("p", ("d", "^1")),
        ("p", ("e", ""), ("d", "")),
    ]
    assert [path.requirements[1].HasField("version_range") for path in d.paths[1:]] == [False]
    assert ([*d.allowed_ranges], [*f.allowed_ranges], d.further_paths) == (["^1"], [], 0)
    assert [(path.start, len(path.requirements)) for path in f.paths] == [("f", 0)]
    assert [each.installed for each in answer.packages] == await updatable.installed()
    assert (answer.next_page_token, list(answer.unread)) == ("", [])
    assert await updatable.state() == before


@pytest.mark.parametrize("name", ["d", "e", "f", "p"])
async def test_an_update_reaches_the_version_that_was_told(updatable: Client, name: str) -> None:
    [package] = (await explain(updatable, name, refresh=True)).packages
    await updatable.change(f"update {name}")
    assert (await updatable.versions())[name] == package.reachable_version


async def test_pages_have_every_package_once(updatable: Client) -> None:
    whole = await explain(updatable, refresh=True)
    packages, token = list[package_pb2.ExplainedPackage](), ""
    while True:
        page = await explain(updatable, page_size=3, page_token=token)
        packages += page.packages
        token = page.next_page_token
        if not token:
            break
    assert packages == list(whole.packages)
    assert [each.installed.name for each in (await explain(updatable, "p", "d", "p")).packages] == ["d", "p"]


async def test_only_what_the_named_packages_lead_to_is_read(updatable: Client) -> None:
    """A list of versions that no named package leads to may be anything."""
    (updatable.root / "main" / "f" / "versions.yaml").write_text("[")
    [package] = (await explain(updatable, "e", refresh=True)).packages
    assert summary(package) == ("e", "1.0.0", "2.0.0", "2.0.0")
    [package] = (await explain(updatable, "f", refresh=True)).packages
    assert summary(package)[:4] == ("f", "1.0.0", "1.0.0", "")
    assert summary(package)[4].startswith("repository main has f with a fault: f/versions.yaml: ")


async def test_a_repository_that_cannot_be_read_does_not_stop_the_answer(client: Client) -> None:
    await client.publish("p 1.0.0")
    await client.publish("q 1.0.0", repository="spare")
    await client.change("install p q")
    await client.publish("p 1.0.0 | 2.0.0")
    (client.root / "spare" / "index.yaml").unlink()
    answer = await explain(client, refresh=True)
    problem = "index.yaml: there is no such file"
    assert [(each.name, each.problem) for each in answer.unread] == [("spare", problem)]
    assert [*map(summary, answer.packages)] == [
        ("p", "1.0.0", "2.0.0", "2.0.0"),
        ("q", "1.0.0", "1.0.0", "", f"repository spare cannot be read: {problem}"),
    ]


async def test_pins_and_folders_hold_packages_back(updatable: Client) -> None:
    pin = package_pb2.PackageChange(pin=package_pb2.PinnedPackage(name="f"))
    suspend = package_pb2.PackageChange(suspend=package_pb2.PinnedPackage(name="e"))
    await updatable.change(pin, suspend)
    await updatable.change(folder("own 0.1.0", a_label("own")))
    assert [*map(summary, (await explain(updatable, "e", "f", "own", refresh=True)).packages)] == [
        ("e", "1.0.0", "1.0.0", "2.0.0", "e is suspended at 1.0.0"),
        ("f", "1.0.0", "1.0.0", "2.0.0", "f is pinned at 1.0.0"),
        ("own", "0.1.0", "0.1.0", "", "own was installed from a folder"),
    ]


async def test_a_stack_without_packages_has_nothing_to_explain(client: Client) -> None:
    await client.publish("p 1.0.0")
    await client.change("install p")
    await client.change("uninstall p")
    assert list((await explain(client)).packages) == []


async def test_it_reads_the_record_and_no_platform(updatable: Client, calls: Calls) -> None:
    calls.methods.clear()
    await explain(updatable)
    assert set(calls.methods) == {"ExplainPackages", "GetStack", "ListPackages", "ListRepositories"}


NOWHERE = object_pb2.StackRef(name="other")


@pytest.mark.parametrize(
    ("names", "fields", "error", "text"),
    [
        (("g",), {}, PackageNotFound, "package g is not installed in stack 'packages'; ListPackages lists what is"),
        (("d", "x", "a"), {}, PackageNotFound, "package a is not installed"),
        (("D",), {}, RequestInvalid, r"names\[0\]: a name is 1 to 63"),
        (("d",) * (MOST_PACKAGES + 1), {}, RequestInvalid, "names: there are 201; at most 200 are accepted"),
        ((), {"page_size": 1001}, RequestInvalid, "page_size: 1,001 is more"),
        ((), {"page_token": "x"}, RequestInvalid, "page_token: is not a next_page_token"),
        ((), {"stack": NOWHERE}, StackNotFound, "there is no stack 'other'"),
        ((), {"stack": None}, RequestInvalid, "stack"),
    ],
)
async def test_wrong_requests(
    updatable: Client, names: tuple[str, ...], fields: dict[str, Any], error: type[PkgerError], text: str
) -> None:
    with pytest.raises(error, match=text):
        await explain(updatable, *names, **fields)


async def test_two_hundred_packages_are_explained_in_one_call(client: Client) -> None:
    """Each is held back by the one that requires it, which takes the most."""
    names = [f"p{number:03}" for number in range(MOST_PACKAGES)]
    required = [f" [{name} ^1]" for name in names[1:]] + [""]
    rows = [f"{name} 1.0.0{each}" for name, each in zip(names, required, strict=True)]
    await client.publish(*rows, objects={name: [] for name in names})
    plan = await client.change(f"install {names[0]}")
    assert len(change_words(plan.header.packages).split(", ")) == len(names)
    await client.publish(*(f"{row} | 1.1.0{each} | 2.0.0" for row, each in zip(rows, required, strict=True)))
    answer = await explain(client, page_size=1000, refresh=True)
    assert [each.reachable_version for each in answer.packages] == ["2.0.0", *["1.1.0"] * (len(names) - 1)]
    assert [fact.text for fact in answer.packages[-1].held_back_by] == [
        "p198 1.0.0 is installed",
        "p198 1.0.0 requires p199 ^1",
    ]
