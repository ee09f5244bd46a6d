"""Changes of packages that are refused: each with one sentence, and nothing is written."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pkger.model.v1 import object_pb2
from pkger.planner.v1 import package_pb2, planner_pb2
from pkger.stack.v1 import repository_pb2, stack_pb2
from pkger.stack.v1.repository_pb2_grpc import RepositoryServiceStub
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core.errors import (
    PackageStack,
    PkgerError,
    RangeInvalid,
    RepositoryInvalid,
    RequestInvalid,
    SourceTooLarge,
    StackNotFound,
)
from tests.apply.packages import an_object, text
from tests.cluster import InvalidPackage
from tests.package_stacks.client import Client, a_label, folder

WORLD = ("p 1.0.0 [d ^1]", "d 1.0.0 | 2.0.0", "x 1.0.0 [nowhere]", "old 1.0.0")
PATH = "package.yaml"

CONFLICTS: Mapping[str, tuple[str, str]] = {
    "install missing": ("PACKAGE_NOT_FOUND", "no repository has missing"),
    "install x": ("PACKAGE_NOT_FOUND", "nothing has nowhere, which x 1.0.0 requires"),
    "install gone/old": ("REPOSITORY_UNKNOWN", "gone"),
    "install d@^9": ("NO_MATCHING_VERSION", "d"),
    "uninstall d": ("REQUIRED_BY", "d cannot be uninstalled: p 1.0.0 requires it"),
    "uninstall missing": ("NOT_INSTALLED", "missing is not installed"),
    "update missing": ("NOT_INSTALLED", "missing is not installed"),
}


@pytest.mark.parametrize("words", CONFLICTS)
async def test_a_conflict_is_one_sentence(client: Client, words: str) -> None:
    code, sentence = CONFLICTS[words]
    await client.publish(*WORLD)
    await client.change("install p")
    before = await client.state()
    conflict = await client.conflict(words)
    assert conflict.code == code
    assert sentence in conflict.answer.text
    assert "\n" not in conflict.answer.text
    assert await client.state() == before


async def test_a_package_in_two_repositories_is_ambiguous(client: Client) -> None:
    for repository in ("main", "other"):
        await client.publish("p 1.0.0", repository=repository)
    conflict = await client.conflict("install p")
    assert conflict.code == "AMBIGUOUS_REPOSITORY"
    assert "main and other" in conflict.answer.facts[-1].text
    assert (await client.look()).record is None


async def test_an_installed_package_stays_where_it_comes_from(client: Client) -> None:
    """Its content is not that of the repository that is named, which may not even be there."""
    await client.publish(*WORLD)
    await client.publish("p 1.0.0", repository="other", priority=-1)
    await client.change("install p")
    before = await client.state()
    other_content = "the installed version of p is published with other content than it had, and stays"
    for repository, warnings in (("gone", []), ("other", [other_content])):
        plan = await client.plan(f"install {repository}/p")
        assert plan.no_change
        remedy = f"uninstall it first to have it from {repository}"
        assert plan.warnings == [*warnings, f"package p stays as it was installed from repository main; {remedy}"]
    assert await client.state() == before
    await client.change("uninstall p")
    await client.change("install other/p")
    assert (await client.installed())[0].repository == "other"


async def test_a_package_of_a_removed_repository_is_held_back(client: Client) -> None:
    await client.publish("p 1.0.0")
    await client.change("install p")
    await client.publish("p 2.0.0")
    peer = client.services.peers["stack"]
    update = repository_pb2.UpdateRepositoryRequest(name="main", enabled=False)
    await peer.call(RepositoryServiceStub(peer.channel).UpdateRepository, update)
    plan = await client.plan("update p")
    assert plan.no_change
    [held_back] = plan.parts.remarks.held_back
    assert held_back.name == "p"
    assert "main" in held_back.facts[-1].text
    assert (await client.conflict("update p@2.0.0")).code == "REPOSITORY_UNKNOWN"


REQUESTS: Mapping[str, tuple[Sequence[str], type[PkgerError], str]] = {
    "nothing": ([], RequestInvalid, r"packages\.changes: there are none; name at least one package"),
    "twice": (["uninstall p; install p"], RequestInvalid, "package p is named more than once"),
    "uninstalled twice": (["uninstall p", "uninstall p"], RequestInvalid, "package p is named more than once"),
    "a name": (["install Not_a_name"], RequestInvalid, r"packages\.changes\[0\]\.install\.name: a name is"),
    "a range": (["install p@latest"], RangeInvalid, r"packages\.changes\[0\]\.install\.version_range: "),
    "too many": (
        [f"install {' '.join(f'p{number}' for number in range(201))}"],
        RequestInvalid,
        "there are 201; at mo",
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
async def test_a_wrong_request_is_one_sentence(client: Client, name: str) -> None:
    words, error, sentence = REQUESTS[name]
    await client.publish(*WORLD)
    await client.change("install p")
    before = await client.state()
    with pytest.raises(error, match=sentence) as caught:
        await client.plan(*words)
    assert "\n" not in str(caught.value)
    assert await client.state() == before


async def test_objects_cannot_be_skipped(client: Client) -> None:
    await client.publish(*WORLD)
    with pytest.raises(RequestInvalid, match=r"options\.skip: packages are changed as a whole"):
        await client.plan("install p", skip=[planner_pb2.Skip(kind="Label", name="p.p")])
    with pytest.raises(RequestInvalid, match="stack: name it by id, or by name with its target"):
        await client.plan("install p", stack_ref=object_pb2.StackRef())


async def test_a_stack_with_urls_is_refused(client: Client) -> None:
    await client.publish(*WORLD)
    peer = client.services.peers["stack"]
    create = stack_pb2.CreateStackRequest(
        target=client.services.target(), name="packages", urls=["https://e.com/p.yml"]
    )
    await peer.call(StackServiceStub(peer.channel).CreateStack, create)
    before = await client.state()
    with pytest.raises(PackageStack, match="'packages' has URLs, so its objects come from there; install the packages"):
        await client.plan("install p")
    assert await client.state() == before


async def test_a_stack_with_objects_of_no_package_is_refused(client: Client) -> None:
    await client.publish(*WORLD)
    await client.services.apply(text(a_label("p")), stack="packages")
    before = await client.state()
    with pytest.raises(PackageStack, match="'packages' has objects of no package, such as Label 'p'; install"):
        await client.plan("install p")
    assert await client.state() == before


async def test_a_stack_that_is_not_there_is_refused_by_its_id(client: Client) -> None:
    await client.publish(*WORLD)
    with pytest.raises(StackNotFound):
        await client.plan("install p", stack_ref=object_pb2.StackRef(id="no-such-stack"))


async def test_content_that_is_not_its_digest_is_refused(client: Client) -> None:
    await client.publish(*WORLD)
    path = client.root / "main" / "d" / "1.0.0" / PATH
    path.write_text(path.read_text() + "\n# changed\n")
    with pytest.raises(
        RepositoryInvalid, match=r"'main': d/1\.0\.0/package\.yaml: the files of 1\.0\.0 have the digest"
    ):
        await client.plan("install p")
    assert (await client.look()).record is None


async def test_a_version_whose_file_is_not_there_is_refused(client: Client) -> None:
    await client.publish(*WORLD)
    (client.root / "main" / "d" / "1.0.0" / PATH).unlink()
    with pytest.raises(RepositoryInvalid, match=r"'main': d/1\.0\.0/package\.yaml: "):
        await client.plan("install p")
    assert (await client.look()).record is None


WRONG: Mapping[str, tuple[Sequence[dict[str, Any]], str]] = {
    "a rule": ([an_object("Label", "env", "e")], "the name 'e' is too short"),
    "an object that a requirement lacks": (
        [an_object("Bucket", "raw", "raw", ["d.none"])],
        "the package 'd' has no label with the metadata.name 'none'; it has d",
    ),
    "a package that is not required": (
        [an_object("Bucket", "raw", "raw", ["old.old"])],
        "'old.old' is an object of the package 'old', and the manifest",
    ),
    "an object that is not there": ([an_object("Bucket", "raw", "raw", ["none"])], "none"),
    "two objects of one key": ([a_label("a"), a_label("a", display_name="other")], "a"),
}


@pytest.mark.parametrize("name", WRONG)
async def test_violations_name_the_file_of_the_version(client: Client, name: str) -> None:
    objects, sentence = WRONG[name]
    await client.publish(*WORLD, objects={"p": objects})
    await client.change("install old")
    before = await client.state()
    with pytest.raises(InvalidPackage) as caught:
        await client.plan("install p")
    assert 'source: "p@1.0.0/package.yaml"' in str(caught.value)
    assert sentence in str(caught.value).replace("\\'", "'")
    assert await client.state() == before


async def test_all_violations_of_all_packages_are_returned(client: Client) -> None:
    wrong = [an_object("Label", "env", "e")]
    await client.publish("a 1.0.0", "b 1.0.0", "c 1.0.0", objects={"a": wrong, "b": wrong})
    with pytest.raises(InvalidPackage) as caught:
        await client.plan("install a b c")
    assert len(caught.value.paths) == 2


async def test_two_objects_of_one_package_with_one_name_are_refused(client: Client) -> None:
    objects = [an_object("Bucket", "a", "web"), an_object("Bucket", "b", "web")]
    await client.publish("p 1.0.0", objects={"p": objects})
    with pytest.raises((InvalidPackage, PkgerError), match="web") as caught:
        await client.plan("install p")
    assert getattr(caught.value, "reason", "") != "INTERNAL"
    assert (await client.look()).record is None


def _big(size: int) -> str:
    return "\n# " + "x" * size


async def test_packages_that_are_too_large_together_are_refused(client: Client) -> None:
    """Each of them may be as large as one package."""
    half = 4 * 1024**2
    changes = []
    for name in ("a", "b"):
        change = folder(f"{name} 1.0.0", a_label(name))
        change.folder.files[0].text += _big(half)
        changes.append(change)
    with pytest.raises(SourceTooLarge, match=r"change fewer at once\): exceeds the limit for bytes of 8,388,608"):
        await client.plan(*changes)
    assert (await client.look()).record is None


async def test_more_packages_than_a_plan_may_change_are_refused(client: Client) -> None:
    """Dependencies count as well."""
    first, second = ([f"{name}{number}" for number in range(100)] for name in ("a", "b"))
    await client.publish(
        f"p 1.0.0 [{', '.join(first)}]",
        f"a0 1.0.0 [{', '.join(second)}]",
        *(f"{name} 1.0.0" for name in [*first[1:], *second]),
    )
    with pytest.raises(
        SourceTooLarge, match=r"change fewer at once\): .* packages, with those that they require, of 200"
    ):
        await client.plan("install p")
    assert (await client.look()).record is None
    await client.plan("install a0")


FOLDERS: Mapping[str, tuple[Mapping[str, str], str]] = {
    "empty": ({}, r"package\.yaml is missing; it has the manifest"),
    "another file": ({"other.yaml": "x"}, r"package\.yaml is missing"),
    "no manifest": ({PATH: "kind: Label"}, r"package\.yaml: "),
    "no YAML": ({PATH: "{"}, r"package\.yaml: "),
    "a path": ({"../package.yaml": "x"}, r"\.\./package\.yaml"),
}


@pytest.mark.parametrize("name", FOLDERS)
async def test_a_wrong_folder_is_refused(client: Client, name: str) -> None:
    files, sentence = FOLDERS[name]
    messages = [package_pb2.PackageFile(path=path, text=content) for path, content in files.items()]
    change = package_pb2.PackageChange(folder=package_pb2.PackageFolder(files=messages))
    with pytest.raises(RequestInvalid, match=rf"packages\.changes\[0\]\.folder\.files: .*{sentence}"):
        await client.plan(change)
    assert (await client.look()).record is None


async def test_a_version_for_another_server_is_not_installed(client: Client) -> None:
    change = folder("p 1.0.0", a_label("p"))
    file = change.folder.files[0]
    file.text = file.text.replace("spec:\n", "spec:\n  platform: '>=99'\n", 1)
    conflict = await client.conflict(change)
    assert conflict.code == "PLATFORM"
    assert (await client.look()).record is None


async def test_a_folder_whose_requirement_is_nowhere_is_refused(client: Client) -> None:
    conflict = await client.conflict(folder("p 1.0.0 [d]", a_label("p")))
    assert conflict.code == "PACKAGE_NOT_FOUND"
    assert (await client.look()).record is None
