"""Repositories over HTTP and in folders: what is read, asked for again, and refused."""

import asyncio
import gzip
import hashlib
import logging
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from aiohttp import web

from planner_svc.repositories.index_cache import FAILED_SECONDS, FRESH_SECONDS, IndexCache
from planner_svc.repositories.reader import RepositoryReader, RepositorySource, VersionFiles
from planner_svc.repositories.transport import REQUESTS, WebTransport, transport_of
from services.core.errors import RepositoryInvalid, RepositoryUnavailable
from services.fetching import Fetcher
from services.packages.digests import digest_of
from services.packages.index_files import RepositoryFault
from services.packages.versions import Version
from services.settings import Bounds, SettingInvalid, load
from tests.web import Handler, Web, drip, packed, redirect, serving

INDEX = "apiVersion: pkger/v1\nkind: RepositoryIndex\npackages:\n- {name: base, latest: 1.0.0+1}\n- {name: other}\n"
PACKAGE = b"apiVersion: pkger/v1\nkind: Package\nmetadata: {name: base}\nspec: {version: 1.0.0+1, files: [a/b.yaml]}\n"
LABEL = b"apiVersion: influxdata.com/v2alpha1\nkind: Label\nmetadata: {name: env}\n"
CONTENT = {"package.yaml": PACKAGE, "a/b.yaml": LABEL}
VERSION = Version.parse("1.0.0+1")
PACKAGE_PATH = "base/1.0.0+1/package.yaml"

ANYBODY = Fetcher(may_ask=lambda address: True)


def versions_text(content: Mapping[str, bytes] = CONTENT, name: str = "base") -> str:
    return (
        f"apiVersion: pkger/v1\nkind: PackageVersions\nname: {name}\nlatest: 1.0.0+1\nversions:\n"
        f"- version: 1.0.0+1\n  digest: {digest_of(content)}\n  files: [{', '.join(content)}]\n"
    )


def good() -> dict[str, bytes]:
    """The files of a repository without faults."""
    own = {f"base/1.0.0+1/{path}": data for path, data in CONTENT.items()}
    return own | {"index.yaml": INDEX.encode(), "base/versions.yaml": versions_text().encode()}


class Publisher:
    """
    A server of a repository, with ETags; tests change its files and how it answers.

    Attributes:
        files: Its files by path.
        answers: What it answers instead, by path.
        requests: Path and If-None-Match of each request, in order.
        source: Reads from it.
    """

    def __init__(self) -> None:
        self.files = good()
        self.answers: dict[str, Handler] = {}
        self.requests: list[tuple[str, str]] = []
        self.now = 0.0
        self.source = RepositorySource(fetcher=ANYBODY, cache=IndexCache(clock=lambda: self.now))
        self.server = Web()
        self.seconds = 5.0

    @property
    def reader(self) -> RepositoryReader:
        address = f"{self.server.address}/some/folder"
        return RepositoryReader("main", address, WebTransport(address, ANYBODY, self.seconds), self.source)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path.removeprefix("/some/folder/")
        etag = request.headers.get("If-None-Match", "")
        self.requests.append((request.raw_path.removeprefix("/some/folder/"), etag))
        if path in self.answers:
            return await self.answers[path](request)
        if path not in self.files:
            raise web.HTTPNotFound
        own = f'"{hashlib.sha256(self.files[path]).hexdigest()}"'
        if etag == own:
            return web.Response(status=304)
        return web.Response(body=self.files[path], headers={"ETag": own})

    def asked(self) -> list[str]:
        """The paths of the requests since the last call; with ``?`` if conditional."""
        paths = [path + ("?" if etag else "") for path, etag in self.requests]
        self.requests.clear()
        return paths


@asynccontextmanager
async def publishing() -> AsyncIterator[Publisher]:
    publisher = Publisher()
    application = web.Application()
    application.router.add_route("GET", "/{path:.*}", publisher.answer)
    runner = web.AppRunner(application, access_log=None, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    publisher.server.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield publisher
    finally:
        await runner.cleanup()


@pytest.fixture
async def publisher() -> AsyncIterator[Publisher]:
    async with publishing() as running:
        yield running


class Fault(NamedTuple):
    fault: str
    file: str
    problem: str


async def fault(reader: RepositoryReader, package: str = "base", version: str = "1.0.0+1", digest: str = "") -> Fault:
    with pytest.raises(RepositoryInvalid) as raised:
        await reader.version(package, Version.parse(version), recorded_digest=digest)
    metadata = raised.value.metadata
    assert metadata["repository"] == "main"
    return Fault(metadata["fault"], metadata["file"], metadata["problem"])


async def unavailable(reader: RepositoryReader) -> str:
    with pytest.raises(RepositoryUnavailable) as raised:
        await reader.version("base", VERSION)
    assert raised.value.metadata["repository"] == "main"
    return raised.value.metadata["problem"]


async def test_a_version_is_read_with_its_files(publisher: Publisher) -> None:
    version = await publisher.reader.version("base", VERSION)
    assert isinstance(version, VersionFiles)
    assert version.files == CONTENT
    assert version.manifest.version == version.published.version == VERSION
    assert publisher.asked() == [
        "index.yaml",
        "base/versions.yaml",
        "base/1.0.0%2B1/package.yaml",
        "base/1.0.0%2B1/a/b.yaml",
    ]


async def test_index_files_are_asked_for_again_after_a_minute_and_conditionally(publisher: Publisher) -> None:
    """Row R11: 304 is enough."""
    first = await publisher.reader.versions("base")
    assert publisher.asked() == ["index.yaml", "base/versions.yaml"]
    publisher.now = FRESH_SECONDS
    assert await publisher.reader.versions("base") is first
    assert publisher.asked() == []
    publisher.now += 1
    assert await publisher.reader.versions("base") is first
    assert publisher.asked() == ["index.yaml?", "base/versions.yaml?"]
    assert await publisher.reader.versions("base") is first
    assert publisher.asked() == []
    assert await publisher.reader.versions("base", refresh=True) is first
    assert publisher.asked() == ["index.yaml?", "base/versions.yaml?"]


async def test_calls_at_the_same_time_send_one_request(publisher: Publisher) -> None:
    read = await asyncio.gather(*(publisher.reader.versions("base") for _ in range(20)))
    assert len({id(each) for each in read}) == 1
    assert publisher.asked() == ["index.yaml", "base/versions.yaml"]


async def test_a_changed_index_is_read_and_an_equal_one_without_etag_is_kept(publisher: Publisher) -> None:
    first = await publisher.reader.index()
    publisher.now = FRESH_SECONDS + 1

    async def without_etag(request: web.Request) -> web.Response:
        return web.Response(body=publisher.files["index.yaml"])

    publisher.answers["index.yaml"] = without_etag
    assert await publisher.reader.index() is first
    publisher.files["index.yaml"] = INDEX.replace("other", "third").encode()
    assert await publisher.reader.index() is first
    assert list((await publisher.reader.index(refresh=True)).packages) == ["base", "third"]


async def test_an_older_index_takes_no_ones_place(publisher: Publisher) -> None:
    await publisher.reader.index()
    publisher.now = FRESH_SECONDS + 1
    publisher.answers["index.yaml"] = _status(503)
    assert "answered 503" in await unavailable(publisher.reader)
    del publisher.answers["index.yaml"]
    assert "answered 503" in await unavailable(publisher.reader)
    publisher.now += FAILED_SECONDS + 1
    publisher.files["index.yaml"] = b"["
    assert (await fault(publisher.reader)).fault == RepositoryFault.INDEX_INVALID
    publisher.files["index.yaml"] = INDEX.encode()
    await publisher.reader.index()


async def test_calls_that_wait_for_a_failure_share_it(publisher: Publisher) -> None:
    """Otherwise each of them would wait for a timeout of its own, one after the other."""
    publisher.answers["index.yaml"] = _status(503)
    texts = await asyncio.gather(*(unavailable(publisher.reader) for _ in range(20)))
    assert len(set(texts)) == 1
    assert publisher.asked() == ["index.yaml"]
    with pytest.raises(RepositoryUnavailable):
        await publisher.reader.index(refresh=True)
    assert publisher.asked() == ["index.yaml"]


async def test_the_memory_of_indexes_is_bounded() -> None:
    cache = IndexCache(max_bytes=10_000, clock=lambda: 0.0)
    async with publishing() as publisher:
        publisher.source = RepositorySource(fetcher=ANYBODY, cache=cache)
        names = [f"p{number}" for number in range(10)]
        listed = "".join(f"- {{name: {name}}}\n" for name in names)
        publisher.files["index.yaml"] = (INDEX.partition("- ")[0] + listed).encode()
        publisher.files |= {f"{name}/versions.yaml": versions_text(name=name).encode() for name in names}
        for name in names:
            await publisher.reader.versions(name)
            assert 0 < cache.size <= 10_000
        publisher.asked()
        await publisher.reader.versions(names[-1])
        assert publisher.asked() == []
        await publisher.reader.versions(names[0])
        assert publisher.asked() == ["p0/versions.yaml"]


def _status(status: int) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status, text="not now")

    return answer


async def test_what_is_not_listed_is_missing(publisher: Publisher) -> None:
    package = await fault(publisher.reader, "none")
    assert (package.fault, package.file) == (RepositoryFault.PACKAGE_MISSING, "index.yaml")
    version = await fault(publisher.reader, version="1.0.0")
    assert (version.fault, version.file) == (
        RepositoryFault.VERSION_MISSING,
        "base/versions.yaml",
    )


@pytest.mark.parametrize("status", [404, 410])
@pytest.mark.parametrize("path", ["index.yaml", "base/versions.yaml", PACKAGE_PATH, "base/1.0.0+1/a/b.yaml"])
async def test_a_file_that_is_not_there_is_named(publisher: Publisher, path: str, status: int) -> None:
    publisher.answers[path] = _status(status)
    missing = await fault(publisher.reader)
    assert (missing.fault, missing.file) == (RepositoryFault.FILE_MISSING, path)


async def test_the_first_fault_is_told(publisher: Publisher) -> None:
    """Everything is wrong; what is corrected makes way for the next fault."""
    broken = {
        "index.yaml": b"<!DOCTYPE html>",
        "base/versions.yaml": b"",
        PACKAGE_PATH: b"a: [",
    }
    publisher.files = dict(broken)
    order = []
    for path, repaired in (
        ("index.yaml", INDEX.encode()),
        ("base/versions.yaml", versions_text().encode()),
        ("base/1.0.0+1/a/b.yaml", LABEL),
        (PACKAGE_PATH, PACKAGE),
    ):
        first = await fault(publisher.reader)
        order.append((first.fault, first.file))
        publisher.files[path] = repaired
    assert order == [
        ("INDEX_INVALID", "index.yaml"),
        ("INDEX_INVALID", "base/versions.yaml"),
        ("FILE_MISSING", "base/1.0.0+1/a/b.yaml"),
        ("DIGEST_MISMATCH", PACKAGE_PATH),
    ]
    assert (await publisher.reader.version("base", VERSION)).files == CONTENT


async def test_a_faulty_list_spoils_its_own_package_only(publisher: Publisher) -> None:
    publisher.files["other/versions.yaml"] = b"kind: Other\n"
    assert (await fault(publisher.reader, "other")).file == "other/versions.yaml"
    assert (await publisher.reader.version("base", VERSION)).files == CONTENT


async def test_nothing_is_parsed_before_its_digest_is_checked(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("the file was parsed")

    monkeypatch.setattr("planner_svc.repositories.reader.manifest_of", fail)
    publisher.files["base/1.0.0+1/a/b.yaml"] = LABEL + b"# other\n"
    wrong = await fault(publisher.reader)
    assert (wrong.fault, wrong.file) == (RepositoryFault.DIGEST_MISMATCH, PACKAGE_PATH)


async def test_another_digest_than_the_recorded_one_is_a_change(publisher: Publisher) -> None:
    with pytest.raises(RepositoryInvalid) as raised:
        await publisher.reader.version("base", VERSION, recorded_digest=f"sha256:{'0' * 64}")
    assert (raised.value.metadata["fault"], raised.value.metadata["file"]) == (
        RepositoryFault.VERSION_CHANGED,
        "base/versions.yaml",
    )
    assert publisher.asked() == ["index.yaml", "base/versions.yaml"]
    assert (await publisher.reader.version("base", VERSION, digest_of(CONTENT))).files == CONTENT


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        (
            PACKAGE.replace(b"+1", b"+2"),
            "the manifest is of base 1.0.0+2, and this is the folder of base 1.0.0+1",
        ),
        (
            PACKAGE.replace(b"base", b"other"),
            "the manifest is of other 1.0.0+1, and this is the folder of base 1.0.0+1",
        ),
        (PACKAGE.replace(b"files: [a/b.yaml]", b"files: []"), "files of the manifest differ from base/versions.yaml"),
        (PACKAGE.replace(b", files", b", requires: [{name: a}], files"), "requires of the manifest differ"),
        (PACKAGE.replace(b", files", b", platform: '1', files"), "platform of the manifest differ"),
        (PACKAGE.replace(b"[a/b.yaml]", b"[a/b.yaml, package.yaml]"), "the files of the manifest list package.yaml"),
        (LABEL, "the file has no manifest"),
        (b"\xff", "the file is no UTF-8 text"),
        (b"a: &a [*a]", "line 1"),
    ],
)
async def test_a_manifest_that_is_not_as_listed_is_refused(publisher: Publisher, manifest: bytes, problem: str) -> None:
    content = {**CONTENT, "package.yaml": manifest}
    publisher.files[PACKAGE_PATH] = manifest
    publisher.files["base/versions.yaml"] = versions_text(content).encode()
    wrong = await fault(publisher.reader)
    assert (wrong.fault, wrong.file) == (RepositoryFault.MANIFEST_MISMATCH, PACKAGE_PATH)
    assert wrong.problem.startswith(problem)


async def test_sizes_are_bounded(publisher: Publisher) -> None:
    publisher.source = RepositorySource(fetcher=ANYBODY, bounds=Bounds(bytes=len(PACKAGE) + len(LABEL) - 1))
    large = await fault(publisher.reader)
    assert (large.fault, large.file) == (RepositoryFault.TOO_LARGE, "base/1.0.0+1/a/b.yaml")
    assert large.problem.startswith("with this file, the version has more than")
    publisher.source = RepositorySource(fetcher=ANYBODY, max_index_bytes=len(INDEX) - 1)
    assert (await fault(publisher.reader)).fault == RepositoryFault.TOO_LARGE
    publisher.source = RepositorySource(fetcher=ANYBODY)
    publisher.answers["index.yaml"] = packed(gzip.compress(bytes(200 * 2**20)))
    bomb = await fault(publisher.reader)
    assert (bomb.fault, bomb.file) == (RepositoryFault.TOO_LARGE, "index.yaml")
    publisher.answers["index.yaml"] = packed(gzip.compress(INDEX.encode()))
    publisher.files["base/versions.yaml"] = b" " * (4 * 2**20 + 1)
    assert (await fault(publisher.reader)).file == "base/versions.yaml"


async def _half(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "100"})
    await response.prepare(request)
    await response.write(b"apiVersion")
    assert request.transport
    request.transport.close()
    return response


async def _silent(request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def _circle(request: web.Request) -> web.StreamResponse:
    return web.Response(status=302, headers={"Location": request.path})


@pytest.mark.parametrize("path", ["index.yaml", "base/versions.yaml", "base/1.0.0+1/a/b.yaml"])
@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (_silent, "there is no full answer within 1 seconds"),
        (drip, "there is no full answer within 1 seconds"),
        (_half, "the answer is cut off or broken; try again"),
        (_status(206), "the server answered 206 Partial Content"),
        (_status(500), "the server answered 500 Internal Server Error: not now"),
        (_status(403), "the server answered 403 Forbidden"),
        (redirect("file:///etc/passwd"), "leads to file:///etc/passwd; "),
        (redirect("https://user:secret@example.com/"), "leads to https://example.com/; "),
        (_circle, "leads through more than 10 redirects"),
        (packed(b"no gzip"), "is declared as gzip, but is invalid"),
        (packed(b"", "br"), "is packed as br"),
    ],
)
async def test_a_server_without_a_usable_answer_is_unavailable(
    publisher: Publisher, answer: Handler, problem: str, path: str
) -> None:
    publisher.seconds = 0.5
    publisher.answers = {path: answer}
    text = await unavailable(publisher.reader)
    assert problem in text
    assert "secret" not in text


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        text = await unavailable(RepositorySource(fetcher=ANYBODY).reader("main", address))
    assert "nothing listens at 127.0.0.1" in text


async def test_private_machines_are_not_asked(publisher: Publisher, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    text = await unavailable(RepositorySource.of(load({})).reader("main", publisher.server.address))
    assert "at an address that is not public" in text
    assert publisher.asked() == []


async def test_redirects_to_this_machine_are_not_followed(
    publisher: Publisher, caplog: pytest.LogCaptureFixture
) -> None:
    """The first server stands for a public one, the second for one of the network of the planner."""
    caplog.set_level(logging.ERROR)
    async with serving({"/index.yaml": INDEX}) as inside:
        publisher.answers["index.yaml"] = redirect(f"{inside.address.replace('127.0.0.1', '127.0.0.2')}/index.yaml")
        reader = RepositorySource(fetcher=Fetcher(may_ask=lambda ip: ip != "127.0.0.2")).reader(
            "main", f"{publisher.server.address}/some/folder"
        )
        assert "it redirects to a server at an address that is not public" in await unavailable(reader)
        assert inside.requests == []


async def test_no_more_than_eight_requests_run_at_the_same_time(publisher: Publisher) -> None:
    running, most = 0, 0

    async def slow(request: web.Request) -> web.Response:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return web.Response(status=404)

    names = [f"p{number}" for number in range(30)]
    publisher.files["index.yaml"] = (
        INDEX.partition("- ")[0] + "".join(f"- {{name: {each}}}\n" for each in names)
    ).encode()
    publisher.answers = {f"{each}/versions.yaml": slow for each in names}
    address = f"{publisher.server.address}/some/folder"
    readers = [publisher.source.reader("main", address) for _ in names]
    await asyncio.gather(
        *(reader.versions(name) for reader, name in zip(readers, names, strict=True)), return_exceptions=True
    )
    assert most == REQUESTS


async def test_files_that_are_swapped_between_reads_are_never_mixed(publisher: Publisher) -> None:
    """Two contents of one version: a reader gets one of them as a whole, or a fault."""
    contents = [CONTENT, {"package.yaml": PACKAGE + b"# 2\n", "a/b.yaml": LABEL + b"# 2\n"}]
    seen = set()
    turn = 0

    def swapping(path: str) -> Handler:
        async def answer(request: web.Request) -> web.Response:
            nonlocal turn
            turn += 1
            content = contents[turn // 5 % 2]
            if turn % 11 == 0:
                raise web.HTTPNotFound
            return web.Response(body=versions_text(content) if path == "" else content[path])

        return answer

    publisher.answers = {"base/versions.yaml": swapping("")}
    publisher.answers |= {f"base/1.0.0+1/{path}": swapping(path) for path in CONTENT}
    for _ in range(60):
        try:
            version = await publisher.reader.version("base", VERSION, refresh=True)
        except RepositoryInvalid as invalid:
            seen.add(invalid.metadata["fault"])
        else:
            assert version.files in contents
            seen.add("read")
    assert seen == {"read", "DIGEST_MISMATCH", "FILE_MISSING"}


def folder_of(root: Path, files: Mapping[str, bytes]) -> Path:
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    return root


async def test_a_folder_below_an_allowed_one_is_read(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "allowed" / "a repository", good())
    for folders in (None, (tmp_path / "allowed",), (tmp_path / "other", folder)):
        reader = RepositorySource(folders=folders).reader("main", folder.as_uri())
        assert (await reader.version("base", VERSION)).files == CONTENT


@pytest.mark.parametrize("folders", ["", "{}/allowed", "{}/al", "{}/allowed/in"])
async def test_other_folders_are_refused(tmp_path: Path, folders: str) -> None:
    folder = folder_of(tmp_path / "allowed2", good())
    source = RepositorySource.of(load({"PKGER_REPOSITORY_FOLDERS": folders.format(tmp_path)}))
    with pytest.raises(RepositoryUnavailable, match="PKGER_REPOSITORY_FOLDERS"):
        source.reader("main", folder.as_uri())
    with pytest.raises(RepositoryUnavailable, match="has a part"):
        source.reader("main", f"file://{tmp_path}/allowed/../allowed2")


async def test_links_out_of_an_allowed_folder_are_refused(tmp_path: Path) -> None:
    folder_of(tmp_path / "outside", good())
    (tmp_path / "allowed").mkdir()
    (tmp_path / "allowed" / "repository").symlink_to("../outside")
    reader = RepositorySource(folders=(tmp_path / "allowed",)).reader("main", f"file://{tmp_path}/allowed/repository")
    assert "a link leads out" in await unavailable(reader)


async def test_links_out_of_a_repository_are_refused(tmp_path: Path) -> None:
    """Row F09, also for links that stay within the allowed folder."""
    folder = folder_of(tmp_path / "repository", good())
    (tmp_path / "outside.yaml").write_bytes(PACKAGE)
    (folder / PACKAGE_PATH).unlink()
    (folder / PACKAGE_PATH).symlink_to("../../../outside.yaml")
    for folders in (None, (tmp_path,)):
        wrong = await fault(RepositorySource(folders=folders).reader("main", folder.as_uri()))
        assert (wrong.fault, wrong.file) == (RepositoryFault.PATH_REFUSED, PACKAGE_PATH)


def test_the_allowed_folders_have_absolute_paths() -> None:
    assert load({"PKGER_REPOSITORY_FOLDERS": "/a/../b:/c/"}).repository_folders == (Path("/b"), Path("/c"))
    with pytest.raises(SettingInvalid, match="write absolute paths"):
        load({"PKGER_REPOSITORY_FOLDERS": "packages"})


async def test_a_folder_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    reader = RepositorySource(folders=None).reader("main", f"{tmp_path.as_uri()}/none")
    assert "No such file or directory" in await unavailable(reader)


@pytest.mark.parametrize(
    "address",
    [
        "https://user:secret@example.com/a",
        "https://example.com/a?secret=1",
        "https://example.com/a#secret",
        "ftp://example.com/a",
        "file://host/a",
        "file:a",
        "https:///a",
        "https://[a",
        "example.com/a",
        "",
    ],
)
def test_addresses_of_other_forms_are_refused(address: str) -> None:
    with pytest.raises(Exception, match="write https://HOST/PATH, http://HOST/PATH or file:///PATH") as raised:
        transport_of(address, None, ANYBODY)
    assert "user" not in str(raised.value).replace("has no user", "")
    assert "secret@" not in str(raised.value)
