"""RepositoryService: create, list, update and delete repositories; names, addresses and patterns that are refused."""

from collections.abc import Iterable
from typing import Any

import pytest
from pkger.stack.v1 import repository_pb2
from pkger.stack.v1.repository_pb2_grpc import RepositoryServiceStub

from services.core.errors import RepositoryExists, RepositoryInUse, RepositoryNotFound, RequestIdReused, RequestInvalid
from services.core.limits import LONGEST_ADDRESS
from stack_svc.rules.repositories import MOST_PATTERNS, checked_patterns
from stack_svc.rules.repository_addresses import address_warnings, checked_address
from stack_svc.store.store import Transaction
from tests.stack.service import Client, Clock
from tests.stack.store.values import a_package

HTTPS = "https://packages.example.com/pkger"


async def create(service: Client, name: str = "main", address: str = HTTPS, **fields: Any) -> repository_pb2.Repository:
    request = repository_pb2.CreateRepositoryRequest(name=name, address=address, **fields)
    stub = RepositoryServiceStub(service.peer.channel)
    return (await service.peer.call(stub.CreateRepository, request)).repository


async def update(service: Client, name: str = "main", **changes: Any) -> repository_pb2.Repository:
    request = repository_pb2.UpdateRepositoryRequest(name=name, **changes)
    stub = RepositoryServiceStub(service.peer.channel)
    return (await service.peer.call(stub.UpdateRepository, request)).repository


async def delete(service: Client, name: str = "main") -> None:
    request = repository_pb2.DeleteRepositoryRequest(name=name)
    await service.peer.call(RepositoryServiceStub(service.peer.channel).DeleteRepository, request)


async def page(service: Client, size: int = 0, token: str = "") -> repository_pb2.ListRepositoriesResponse:
    request = repository_pb2.ListRepositoriesRequest(page_size=size, page_token=token)
    return await service.peer.call(RepositoryServiceStub(service.peer.channel).ListRepositories, request)


def patterns(*texts: str) -> repository_pb2.NamePatterns:
    return repository_pb2.NamePatterns(patterns=texts)


async def test_a_repository_has_the_fields_of_its_request_or_their_defaults(service: Client, clock: Clock) -> None:
    plain = await create(service)
    assert (plain.name, plain.address, plain.priority, list(plain.only), plain.enabled) == ("main", HTTPS, 0, [], True)
    assert plain.create_time == plain.update_time
    assert plain.create_time.ToMicroseconds() == clock.now

    other = await create(service, "lab", "file:///srv/lab", priority=-3, only=["web-*", "base"], enabled=False)
    assert (other.priority, list(other.only), other.enabled) == (-3, ["web-*", "base"], False)
    assert list((await page(service)).repositories) == [other, plain]


async def test_repositories_are_listed_in_pages(service: Client) -> None:
    assert list((await page(service)).repositories) == []
    names = [f"r{number}" for number in range(5)]
    for name in reversed(names):
        await create(service, name)
    pages = [await page(service, 2)]
    while token := pages[-1].next_page_token:
        pages.append(await page(service, 2, token))
    assert [[each.name for each in one.repositories] for one in pages] == [names[:2], names[2:4], names[4:]]


@pytest.mark.parametrize(("size", "token", "field"), [(1001, "", "page_size"), (0, "nonsense", "page_token")])
async def test_a_page_that_cannot_be_read_is_refused(service: Client, size: int, token: str, field: str) -> None:
    with pytest.raises(RequestInvalid) as raised:
        await page(service, size, token)
    assert raised.value.metadata["field"] == field


async def test_an_update_changes_the_fields_that_it_has(service: Client, clock: Clock) -> None:
    repository = await create(service, priority=5, only=["web-*"])
    clock.forward(1)

    changed = await update(service, priority=0)
    assert (changed.priority, list(changed.only), changed.address) == (0, ["web-*"], HTTPS)
    assert changed.create_time == repository.create_time
    assert changed.update_time.ToMicroseconds() == clock.now

    clock.forward(1)
    assert await update(service) == changed
    changed = await update(service, address="file:///srv", only=patterns("base"), enabled=False)
    assert (changed.address, list(changed.only), changed.enabled) == ("file:///srv", ["base"], False)
    changed = await update(service, only=patterns(), enabled=True)
    assert (list(changed.only), changed.enabled, changed.address) == ([], True, "file:///srv")
    assert list((await page(service)).repositories) == [changed]


async def test_a_name_that_is_taken_or_unknown_is_refused(service: Client) -> None:
    repository = await create(service)
    with pytest.raises(RepositoryExists, match=r"^a repository 'main' already exists; choose another name"):
        await create(service, address="https://other.example.com")
    for call in (update(service, "mian", priority=1), update(service, "mian"), delete(service, "mian")):
        with pytest.raises(RepositoryNotFound, match=r"^there is no repository 'mian'; ListRepositories lists"):
            await call
    assert list((await page(service)).repositories) == [repository]


async def test_a_name_is_free_again_after_a_deletion(service: Client) -> None:
    await create(service, priority=3)
    await delete(service)
    with pytest.raises(RepositoryNotFound):
        await delete(service)
    assert (await create(service)).priority == 0


async def test_a_repository_of_installed_packages_stays_at_its_address(service: Client) -> None:
    main, lab = await create(service), await create(service, "lab")
    stack = await service.create("")
    fleet = await service.create("fleet")

    def install(tx: Transaction) -> None:
        tx.packages.change(stack.id, {"base": a_package("base")})
        tx.packages.change(fleet.id, {name: a_package(name) for name in ("base", "web")})

    assert service.store
    await service.store.write(install)

    for call in (delete(service), update(service, address="https://other.example.com", priority=3)):
        with pytest.raises(RepositoryInUse) as raised:
            await call
        uses = ["base of fleet", f"base of {stack.id}", "web of fleet"]
        assert sorted(raised.value.metadata["packages"].split("; ")) == sorted(uses)
        assert raised.value.metadata["repository"] == "main"
    assert list((await page(service)).repositories) == [lab, main]

    assert (await update(service, address=HTTPS, priority=2, enabled=False)).priority == 2
    moved = await update(service, address="https://other.example.com", force=True)
    assert moved.address == "https://other.example.com"
    assert (await update(service, "lab", address="file:///srv")).address == "file:///srv"
    await delete(service, "lab")
    for stack_id in [each.id for each in (await service.page()).stacks]:
        await service.delete(stack_id)
    await delete(service)


async def test_an_error_names_ten_of_many_packages(service: Client) -> None:
    await create(service)
    stack = await service.create("fleet")
    packages = {f"p{number}": a_package(f"p{number}") for number in range(11)}
    assert service.store
    await service.store.write(lambda tx: tx.packages.change(stack.id, packages))
    with pytest.raises(RepositoryInUse) as raised:
        await delete(service)
    assert raised.value.metadata["packages"].count(" of fleet") == 10


async def test_a_request_takes_effect_once(service: Client) -> None:
    repository = await create(service, request_id="r-1")
    assert await create(service, request_id="r-1") == repository
    with pytest.raises(RequestIdReused):
        await create(service, "other", request_id="r-1")

    changed = await update(service, priority=1, request_id="r-2")
    latest = await update(service, priority=2)
    assert changed.priority == 1
    assert await update(service, priority=1, request_id="r-2") == latest
    with pytest.raises(RequestIdReused):
        await update(service, priority=3, request_id="r-2")

    await delete(service)
    with pytest.raises(RepositoryNotFound):
        await create(service, request_id="r-1")


NO_NAMES = ["", "Main", "a.b", "a/b", "-a", "a-", "a" * 64, "größe", "a\x1b[31m", "a b", "*"]


@pytest.mark.parametrize("name", NO_NAMES)
async def test_a_name_has_the_form_of_names_of_packages(service: Client, name: str) -> None:
    for call in (create(service, name), update(service, name, priority=1), delete(service, name)):
        with pytest.raises(RequestInvalid, match=r"^name: a repository's name is 1 to 63 lower-case letters") as raised:
            await call
        assert not name.isprintable() or len(name) < 3 or name not in str(raised.value)
    assert list((await page(service)).repositories) == []


async def test_credentials_are_not_accepted_yet(service: Client) -> None:
    basic = repository_pb2.BasicCredentials(user_name="me", password="hunter2")
    await create(service)
    for credentials in (
        repository_pb2.RepositoryCredentials(basic=basic),
        repository_pb2.RepositoryCredentials(bearer="hunter2"),
        repository_pb2.RepositoryCredentials(),
    ):
        for call in (create(service, "other", credentials=credentials), update(service, credentials=credentials)):
            with pytest.raises(RequestInvalid, match=r"^credentials: are not accepted yet; use a ") as raised:
                await call
            assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    "address",
    [
        HTTPS,
        "https://packages.example.com",
        "HTTPS://packages.example.com:8443/a/b/",
        "https://größe.example/pakete",
        "https://example.com/a@b/c%20d",
        "http://127.0.0.1:8000",
        "http://[::1]:8000/",
        "http://raw_files.internal/",
        "file:///srv/packages",
        "file:///srv/my%20packages/",
        "https://example.com/" + "x" * (LONGEST_ADDRESS - 20),
    ],
)
async def test_an_address_is_kept_as_it_was_written(service: Client, address: str) -> None:
    assert (await create(service, address=address)).address == address
    assert (await update(service, address=address)).address == address


NO_ADDRESSES = {
    "": "must not be empty; write https://HOST/PATH",
    "packages": "is no address of a repository; write https://HOST/PATH",
    "/srv/packages": "is no address of a repository; write https://HOST/PATH, http://HOST/PATH, or file:///PATH",
    "example.com/packages": "is no address",
    "https:/example.com": "is no address",
    "https:me:hunter2@example.com": "is no address",
    "ftp://example.com/": "is no address",
    "git+https://example.com/": "is no address",
    "https://": "has no valid host and port",
    "https:///packages": "has no valid host and port",
    "https://example.com:99999/": "has no valid host and port",
    "https://example.com:x/": "has no valid host and port",
    "https://example.com:+1/": "has no valid host and port",
    "https://[::1/": "has no valid host and port",
    "https://[::x]/": "has no valid host and port",
    "https://me%3Ahunter2%40example.com/": "has no valid host and port",
    "https://<host>/": "has no valid host and port",
    "https://me:hunter2@example.com/": "must have no user name or password; write the host alone",
    "https://hunter2@example.com/": "must have no user name or password",
    "https://@example.com/": "must have no user name or password",
    "http://me:hunter2@127.0.0.1:8000/?x#y": "must have no user name or password",
    "file://me:hunter2@host/srv": "must have no user name or password",
    "https://example.com?token=hunter2": "must have no query",
    "https://example.com/packages?": "must have no query",
    "https://example.com/packages#hunter2": "must have no fragment",
    "file:///srv#x": "must have no fragment",
    "https://example.com/a b": "must have no space, backslash or control character",
    " https://example.com/": "must have no space",
    "https://example.com\\@other/": "must have no space, backslash",
    "https://example.com/\x1b[31m": "must have no space, backslash or control character",
    "https://example.com/\n": "must have no space, backslash or control character",
    "https://example.com/\u202e": "must have no space, backslash or control character",
    "file://localhost/srv": "a folder is on the machine of the planner; write file:///PATH",
    "file://srv/packages": "a folder is on the machine of the planner",
    "file:/srv": "is no address",
    "file://": "names no folder",
    "file:///": "names no folder",
    "file:////srv": "the path must have no empty name",
    "file:///srv/../etc": "the path must have no empty name, '.', '..'",
    "file:///srv/%2e%2E/etc": "the path must have no empty name, '.', '..'",
    "file:///srv/./x": "the path must have no empty name",
    "file:///srv/a%5Cb": "the path must have no empty name",
    "file:///srv/a%00": "the path must have no empty name",
    "file:///srv/%ff": "the path is no UTF-8 text",
}


@pytest.mark.parametrize("address", NO_ADDRESSES, ids=repr)
def test_an_address_of_another_form_is_refused_and_not_quoted(address: str) -> None:
    with pytest.raises(RequestInvalid) as raised:
        checked_address(address)
    assert raised.value.metadata["field"] == "address"
    assert raised.value.metadata["problem"].startswith(NO_ADDRESSES[address])
    assert "hunter2" not in str(raised.value)
    assert str(raised.value).isprintable()


async def test_a_refused_address_writes_nothing(service: Client) -> None:
    repository = await create(service)
    faulty = "https://me:hunter2@example.com/"
    long = "https://example.com/" + "x" * LONGEST_ADDRESS
    for address in (faulty, long, ""):
        for call in (create(service, "other", address), update(service, address=address, priority=7)):
            with pytest.raises(RequestInvalid, match=r"^address: ") as raised:
                await call
            assert len(str(raised.value)) < 200
    assert list((await page(service)).repositories) == [repository]


@pytest.mark.parametrize(
    ("address", "is_warned_of"),
    [(HTTPS, False), ("file:///srv", False), ("", False), ("http://127.0.0.1:8000", True), ("HTTP://a.example", True)],
)
def test_an_address_without_encryption_is_warned_of(address: str, is_warned_of: bool) -> None:
    assert [warning.startswith("the address is http, so") for warning in address_warnings(address)] == (
        [True] * is_warned_of
    )


async def test_responses_have_the_warnings_about_a_new_address(service: Client) -> None:
    stub = RepositoryServiceStub(service.peer.channel)
    new = repository_pb2.CreateRepositoryRequest(name="main", address="http://127.0.0.1:8000")
    assert len((await service.peer.call(stub.CreateRepository, new)).warnings) == 1
    for change, count in ({"address": "http://127.0.0.1:9000"}, 1), ({"address": HTTPS}, 0), ({"priority": 1}, 0):
        request = repository_pb2.UpdateRepositoryRequest(name="main", **change)
        assert len((await service.peer.call(stub.UpdateRepository, request)).warnings) == count


NO_PATTERNS = [
    "",
    "**",
    "a*b",
    "*-dashboards",
    "Web-*",
    "web?",
    "-*",
    "a b*",
    "x" * 64,
    "x" * 64 + "*",
    "a\x1b*",
    "a/*",
]


@pytest.mark.parametrize("pattern", NO_PATTERNS)
async def test_a_pattern_that_can_match_no_name_is_refused(service: Client, pattern: str) -> None:
    with pytest.raises(RequestInvalid, match=r"^only\[1\]: is no pattern: write the name of a package"):
        await create(service, only=["base", pattern])
    await create(service)
    with pytest.raises(RequestInvalid, match=r"^only\.patterns\[1\]: is no pattern"):
        await update(service, only=patterns("base", pattern))


@pytest.mark.parametrize(
    ("faulty", "problem"),
    [
        (["a", "b", "a"], r"^only\[2\]: is the same as only\[0\]; remove one of them$"),
        ([f"p{number}" for number in range(MOST_PATTERNS + 1)], "^only: a repository has at most 100 patterns"),
    ],
)
def test_patterns_are_few_and_differ(faulty: Iterable[str], problem: str) -> None:
    with pytest.raises(RequestInvalid, match=problem):
        checked_patterns([*faulty], "only")


def test_patterns_are_names_and_beginnings_of_names() -> None:
    accepted = ("base-labels", "web-*", "w*", "*", "x" * 63, "x" * 63 + "*")
    assert checked_patterns(accepted, "only") == accepted
