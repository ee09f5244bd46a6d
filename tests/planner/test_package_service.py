"""PackageService, as its clients call it: packages are searched, shown and resolved, with every wrong request."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pkger.model.v1 import package_change_pb2
from pkger.planner.v1 import package_pb2
from pkger.planner.v1.package_pb2_grpc import PackageServiceStub
from pkger.stack.v1 import repository_pb2
from pkger.stack.v1.repository_pb2_grpc import RepositoryServiceStub

from services.core.errors import (
    PackageNotFound,
    PkgerError,
    RangeInvalid,
    RepositoryInvalid,
    RepositoryNotFound,
    RepositoryUnavailable,
    RequestInvalid,
)
from tests.cluster import Cluster
from tests.packages.folders import write_repository

LABEL = "apiVersion: influxdata.com/v2alpha1\nkind: Label\nmetadata: {name: env}\n"

MAIN = (
    "base 1.0.0 | 1.1.0 | 1.2.0 yanked | 2.0.0-rc.1",
    "web 1.0.0 [base ^1] | 2.0.0 [base ^1.1, extra]",
    "early 1.0.0-alpha.1",
    "same 1.0.0 | 1.0.0+2",
    "gone 1.0.0 yanked | 1.1.0-rc.1",
)
SPARE = ("base 9.0.0", "extra 1.0.0", "lab-tools 0.1.0 [base ^8]")


class Client:
    """Calls PackageService and RepositoryService."""

    def __init__(self, services: Cluster) -> None:
        self._planner, self._stack = services.peers["planner"], services.peers["stack"]
        self._packages = PackageServiceStub(self._planner.channel)

    async def add(self, name: str, address: str, **fields: Any) -> None:
        request = repository_pb2.CreateRepositoryRequest(name=name, address=address, **fields)
        await self._stack.call(RepositoryServiceStub(self._stack.channel).CreateRepository, request)

    async def search(self, text: str = "", **fields: Any) -> package_pb2.SearchPackagesResponse:
        request = package_pb2.SearchPackagesRequest(text=text, **fields)
        return await self._planner.call(self._packages.SearchPackages, request)

    async def versions(self, name: str, **fields: Any) -> package_pb2.ListVersionsResponse:
        request = package_pb2.ListVersionsRequest(name=name, **fields)
        return await self._planner.call(self._packages.ListVersions, request)

    async def get(self, name: str, version_range: str = "", **fields: Any) -> package_pb2.GetPackageResponse:
        request = package_pb2.GetPackageRequest(name=name, version_range=version_range, **fields)
        return await self._planner.call(self._packages.GetPackage, request)

    async def resolve(self, *installs: str, pre: Sequence[str] = ()) -> package_pb2.ResolvePackagesResponse:
        """Resolve packages, each as ``NAME@RANGE``."""
        named = [each.partition("@") for each in installs]
        changes = package_pb2.PackageChanges(
            changes=[
                package_pb2.PackageChange(install=package_pb2.PackageInstall(name=name, version_range=range_))
                for name, _, range_ in named
            ],
            options=package_pb2.ResolutionOptions(prereleases=pre),
        )
        request = package_pb2.ResolvePackagesRequest(changes=changes)
        return await self._planner.call(self._packages.ResolvePackages, request)


@pytest.fixture
async def client(own_services: Cluster, tmp_path: Path) -> Client:
    """A client of services with two repositories."""
    client = Client(own_services)
    await client.add("main", write_repository(tmp_path / "main", MAIN, LABEL).as_uri(), priority=10)
    await client.add("spare", write_repository(tmp_path / "spare", SPARE, LABEL).as_uri())
    return client


def rows(answer: package_pb2.SearchPackagesResponse) -> list[str]:
    return [f"{each.repository}/{each.name} {each.latest}".rstrip() for each in answer.packages]


def changes(answer: package_pb2.ResolvePackagesResponse) -> list[str]:
    assert answer.HasField("resolution"), answer
    return [
        f"{each.name} {each.new_version} from {each.repository} for {' '.join(each.required_by) or 'itself'}"
        for each in answer.resolution.changes
    ]


async def test_all_packages_are_listed_and_of_one_name_the_first_is_the_one_that_counts(client: Client) -> None:
    answer = await client.search()
    assert rows(answer) == [
        "main/base 1.1.0",
        "spare/base 9.0.0",
        "main/early",
        "spare/extra 1.0.0",
        "main/gone",
        "spare/lab-tools 0.1.0",
        "main/same 1.0.0+2",
        "main/web 2.0.0",
    ]
    assert (list(answer.unread), answer.next_page_token) == ([], "")
    assert rows(await client.search("TOOLS")) == ["spare/lab-tools 0.1.0"]
    assert rows(await client.search("package e")) == ["main/early", "spare/extra 1.0.0"]
    assert rows(await client.search("nothing")) == []


@pytest.mark.parametrize("size", [1, 2, 6])
async def test_pages_have_every_row_once(client: Client, size: int) -> None:
    pages, token = [], ""
    while True:
        page = await client.search(page_size=size, page_token=token)
        assert 0 < len(page.packages) <= size
        pages += rows(page)
        token = page.next_page_token
        if not token:
            break
    assert pages == rows(await client.search())
    versions, token = [], ""
    while True:
        listed = await client.versions("base", page_size=size, page_token=token)
        versions += [each.version for each in listed.versions]
        token = listed.next_page_token
        if not token:
            break
    assert versions == ["2.0.0-rc.1", "1.2.0", "1.1.0", "1.0.0"]


async def test_a_page_token_belongs_to_its_list(client: Client) -> None:
    packages = (await client.search("e", page_size=1)).next_page_token
    versions = (await client.versions("base", page_size=1)).next_page_token
    assert (await client.search("e", page_token=packages)).packages
    assert (await client.versions("base", page_token=versions, repository="main")).versions
    for belongs, answer in (
        ("belongs to packages with another text", client.search("a", page_token=packages)),
        ("is not a next_page_token", client.search("e", page_token=versions)),
        ("is not a next_page_token", client.versions("base", page_token=packages)),
        ("belongs to versions of another package than same", client.versions("same", page_token=versions)),
        ("belongs to another repository than spare", client.versions("base", page_token=versions, repository="spare")),
    ):
        with pytest.raises(RequestInvalid, match=f"page_token: {belongs}"):
            await answer


async def test_patterns_and_disabled_repositories_hide_packages(own_services: Cluster, tmp_path: Path) -> None:
    client = Client(own_services)
    address = write_repository(tmp_path, SPARE).as_uri()
    await client.add("lab", address, only=["lab-*"])
    await client.add("off", address, enabled=False)
    assert rows(await client.search()) == ["lab/lab-tools 0.1.0"]
    with pytest.raises(RequestInvalid, match="repository off is disabled"):
        await client.versions("base", repository="off")
    with pytest.raises(PackageNotFound, match="the patterns of repository lab leave base out"):
        await client.versions("base", repository="lab")


async def test_a_repository_that_cannot_be_read_is_told_and_the_others_are_listed(
    client: Client, tmp_path: Path
) -> None:
    (tmp_path / "spare" / "index.yaml").write_text("<html></html>")
    answer = await client.search(refresh=True)
    assert {each.split("/")[0] for each in rows(answer)} == {"main"}
    [unread] = answer.unread
    assert unread.name == "spare"
    assert unread.problem.startswith("index.yaml: this is a web page")


async def test_versions_are_listed_with_what_the_repository_says(client: Client) -> None:
    listed = await client.versions("base")
    assert (listed.repository, listed.latest) == ("main", "1.1.0")
    yanked = listed.versions[1]
    assert (yanked.version, yanked.yank_reason, yanked.HasField("platform_range")) == ("1.2.0", "loses data", False)
    assert not listed.versions[2].HasField("yank_reason")
    assert [(each.name, each.version_range) for each in (await client.versions("web")).versions[0].requires] == [
        ("base", "^1.1"),
        ("extra", ""),
    ]
    assert [each.version for each in (await client.versions("base", repository="spare")).versions] == ["9.0.0"]


@pytest.mark.parametrize(
    ("name", "version_range", "version"),
    [
        ("base", "", "1.1.0"),
        ("base", "~1.0", "1.0.0"),
        ("base", "*", "1.1.0"),
        ("base", "1.2.0", "1.2.0"),
        ("base", ">=2.0.0-rc.1", "2.0.0-rc.1"),
        ("base", ">1.2", "2.0.0-rc.1"),
        ("early", "", "1.0.0-alpha.1"),
        ("gone", "", "1.0.0"),
        ("same", "", "1.0.0+2"),
        ("same", "1.0.0", "1.0.0+2"),
        ("same", "1.0.0+2", "1.0.0+2"),
    ],
)
async def test_the_version_that_is_shown(client: Client, name: str, version_range: str, version: str) -> None:
    package = await client.get(name, version_range)
    assert (package.version.version, package.manifest.version, package.repository) == (version, version, "main")
    assert [(each.kind, each.name) for each in package.objects] == [("Label", "env")]
    assert not package.violations


async def test_invalid_content_is_shown_with_its_violations(own_services: Cluster, tmp_path: Path) -> None:
    client = Client(own_services)
    wrong = LABEL.replace("env", "env.stage")
    await client.add("main", write_repository(tmp_path, ["base 1.0.0"], wrong).as_uri())
    package = await client.get("base")
    assert (package.manifest.name, list(package.objects)) == ("base", [])
    [violation] = package.violations
    assert violation.location.source == "base@1.0.0/package.yaml"


async def test_content_that_is_not_its_digest_is_refused(client: Client, tmp_path: Path) -> None:
    (tmp_path / "main/base/1.1.0/package.yaml").write_text("changed")
    with pytest.raises(RepositoryInvalid, match=r"base/1\.1\.0/package\.yaml: the files of 1\.1\.0 have the digest"):
        await client.get("base")


async def test_a_version_that_was_just_published_anew_is_read(client: Client, tmp_path: Path) -> None:
    """The planner has the old index files, and reads them again when the content is not what they say."""
    await client.get("base")
    write_repository(tmp_path / "main", MAIN, LABEL.replace("env", "stage"))
    assert [each.name for each in (await client.get("base")).objects] == ["stage"]


async def test_packages_are_resolved_in_order_with_their_repositories(client: Client) -> None:
    assert changes(await client.resolve("web")) == [
        "base 1.1.0 from main for web",
        "extra 1.0.0 from spare for web",
        "web 2.0.0 from main for itself",
    ]
    assert changes(await client.resolve("web@^1", "base@~1.0")) == [
        "base 1.0.0 from main for web",
        "web 1.0.0 from main for itself",
    ]
    assert changes(await client.resolve("early", pre=["early"])) == ["early 1.0.0-alpha.1 from main for itself"]
    assert await client.resolve("web", "early", pre=["early"]) == await client.resolve("early", "web", pre=["early"])


async def test_a_conflict_is_an_answer(client: Client) -> None:
    conflict = (await client.resolve("lab-tools")).conflict
    assert conflict.code == package_change_pb2.CONFLICT_CODE_NO_MATCHING_VERSION
    assert [fact.text for fact in conflict.facts] == [
        "lab-tools 0.1.0 was asked for",
        "lab-tools 0.1.0 requires base ^8",
        "base is published as 2.0.0-rc.1, 1.2.0 and 2 more versions, none of them in ^8",
    ]
    assert [list(path.packages) for path in conflict.facts[2].paths] == [["lab-tools", "base"]]
    early = (await client.resolve("early")).conflict
    assert early.code == package_change_pb2.CONFLICT_CODE_PRERELEASE_ONLY
    web = (await client.resolve("web@^2", "base@1.0")).conflict
    assert [list(each.command) for each in web.suggestions] == [["pkger", "install", "base@1.1.0", "web@^2"]]
    assert [each.name for each in web.suggestions[0].changes] == ["base", "extra", "web"]


async def test_what_a_repository_that_is_away_has_is_not_taken_from_another_one(client: Client, tmp_path: Path) -> None:
    (tmp_path / "main" / "index.yaml").unlink()
    conflict = (await client.resolve("base")).conflict
    assert conflict.code == package_change_pb2.CONFLICT_CODE_REPOSITORY_UNAVAILABLE
    with pytest.raises(RepositoryUnavailable, match=r"'main' cannot be read: index\.yaml: there is no such file"):
        await client.versions("base")
    with pytest.raises(RepositoryUnavailable):
        await client.get("extra")
    assert [each.version for each in (await client.versions("extra", repository="spare")).versions] == ["1.0.0"]


async def test_a_faulty_list_of_versions_spoils_its_package_only(client: Client, tmp_path: Path) -> None:
    (tmp_path / "main" / "base" / "versions.yaml").write_text("[")
    conflict = (await client.resolve("web")).conflict
    assert conflict.code == package_change_pb2.CONFLICT_CODE_PACKAGE_NOT_FOUND
    assert "repository main has base with a fault: base/versions.yaml: " in conflict.facts[-1].text
    assert changes(await client.resolve("same")) == ["same 1.0.0+2 from main for itself"]
    with pytest.raises(RepositoryInvalid, match=r"^repository 'main': base/versions\.yaml: "):
        await client.versions("base")


async def test_two_repositories_of_one_priority_are_ambiguous(own_services: Cluster, tmp_path: Path) -> None:
    client = Client(own_services)
    for name in ("one", "two"):
        await client.add(name, write_repository(tmp_path / name, ["base 1.0.0"]).as_uri())
    assert (await client.resolve("base")).conflict.code == package_change_pb2.CONFLICT_CODE_AMBIGUOUS_REPOSITORY
    text = "base is in one and two, which have the same priority; name one of them, or give them different priorities"
    with pytest.raises(RequestInvalid, match=f"{text}$"):
        await client.versions("base")
    assert (await client.get("base", repository="two")).repository == "two"


@pytest.mark.parametrize(
    ("method", "arguments", "fields", "error", "text"),
    [
        ("versions", ("Base",), {}, RequestInvalid, "name: a name is 1 to 63 lower-case letters"),
        ("versions", ("",), {}, RequestInvalid, "name: a name is"),
        ("versions", ("../main",), {}, RequestInvalid, "name: a name is"),
        ("versions", ("base",), {"repository": "a/b"}, RequestInvalid, "repository: a name is"),
        ("versions", ("base",), {"repository": "mian"}, RepositoryNotFound, "there is no repository 'mian'"),
        ("versions", ("bsae",), {}, PackageNotFound, r"no repository has bsae \(asked: main, spare\)"),
        ("versions", ("base",), {"page_token": "x"}, RequestInvalid, "page_token: is not a next_page_token"),
        (
            "versions",
            ("base",),
            {"page_token": "WyJiYXNlIiwibWFpbiIsIngiXQ=="},
            RequestInvalid,
            "page_token: is not a next_page_token",
        ),
        ("versions", ("base",), {"page_size": 1001}, RequestInvalid, "page_size: 1,001 is more"),
        ("search", (), {"page_token": "WyJ4Il0="}, RequestInvalid, "page_token: is not a next_page_token"),
        ("search", (), {"page_size": -1}, RequestInvalid, "page_size: must not be negative"),
        ("search", ("x" * 201,), {}, RequestInvalid, "text: "),
        ("get", ("base", "latest"), {}, RangeInvalid, "version_range: 'latest' is no part of a range"),
        ("get", ("base", "^1 ||"), {}, RangeInvalid, "version_range: "),
        ("get", ("base", "x" * 257), {}, RangeInvalid, "version_range: "),
        ("get", ("base", "^7"), {}, PackageNotFound, r"main has no base in \^7; it has 2\.0\.0-rc\.1, 1\.2\.0"),
        ("get", ("base", "1.0.0+7"), {}, PackageNotFound, r"main has no base in 1\.0\.0\+7"),
        ("resolve", (), {}, RequestInvalid, "changes.changes: there are none"),
        ("resolve", ("base", "base@1"), {}, RequestInvalid, "package base is named more than once"),
        ("resolve", ("base@>=1.0.0+3",), {}, RangeInvalid, r"changes\[0\]\.install\.version_range: "),
        ("resolve", ("web", "_"), {}, RequestInvalid, r"changes\[1\]\.install\.name: a name is"),
        ("resolve", ("web",), {"pre": ["B"]}, RequestInvalid, r"options\.prereleases\[0\]: a name is"),
        ("resolve", tuple(f"p{number}" for number in range(201)), {}, RequestInvalid, "changes.changes: there are 201"),
    ],
)
async def test_wrong_requests(
    client: Client, method: str, arguments: tuple[str, ...], fields: dict[str, Any], error: type[PkgerError], text: str
) -> None:
    with pytest.raises(error, match=text):
        await getattr(client, method)(*arguments, **fields)
