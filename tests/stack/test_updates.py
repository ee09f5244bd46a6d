"""StackService: stacks without a name, their URLs, updates with etags, and which stacks are listed."""

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest
from pkger.model.v1.object_pb2 import StackRef, Target
from pkger.stack.v1 import stack_pb2

from services.core.errors import (
    EncodingInvalid,
    OperationUnfinished,
    RequestIdReused,
    RequestInvalid,
    StackChanged,
    StackExists,
    StackNotFound,
)
from stack_svc.rules.urls import LONGEST, MOST, checked_urls
from tests.stack.service import ELSEWHERE, Client, Clock, entry, microseconds, service_in_memory

YML, JSON = "https://example.com/package.yml", "http://example.com/package.json?ref=1"


@pytest.fixture
async def plain(tmp_path: Path, clock: Clock) -> AsyncIterator[Client]:
    async with service_in_memory(tmp_path / "stack.db", clock) as client:
        yield client


async def test_a_stack_without_a_name_is_like_any_other(service: Client) -> None:
    one, two = await service.create("", urls=[YML]), await service.create("")
    assert one.id != two.id

    kept = await service.record(await service.begin(stack_id=one.id), [entry("one")])

    assert (kept.name, kept.generation, kept.resource_count, list(kept.urls)) == ("", 1, 1, [YML])
    assert (await service.owners([("Bucket", "id-one")]))[0][2:4] == (one.id, "")
    assert {stack.id for stack in (await service.page()).stacks} == {one.id, two.id}
    named = await service.update(one.id, name="prod")
    assert await service.get_named("prod") == named
    assert (await service.update(one.id, name="")).name == ""
    await service.delete(two.id)
    assert [stack.id for stack in (await service.page(names=[""])).stacks] == [one.id]


async def test_a_request_without_a_name_makes_one_stack(service: Client) -> None:
    made = await service.create("", request_id="r-1")

    assert await service.create("", request_id="r-1") == made
    with pytest.raises(RequestIdReused):
        await service.create("", request_id="r-1", urls=[YML])
    assert len((await service.page()).stacks) == 1


async def test_urls_are_kept_in_order_and_not_fetched(service: Client) -> None:
    made = await service.create("prod", urls=[YML, JSON])

    assert list(made.urls) == [YML, JSON]
    assert await service.get(made.id) == made


@pytest.mark.parametrize(
    ("urls", "place", "problem"),
    [
        (["package.yml"], 0, "http and https addresses only"),
        ([YML, "file:///etc/passwd"], 1, "http and https addresses only"),
        (["ftp://example.com/p.yml"], 0, "http and https addresses only"),
        (["https://user:word@example.com/p.yml"], 0, "no user name or password"),
        (["https:///p.yml"], 0, "http and https addresses only"),
        (["https://example.com/a\nb.yml"], 0, "no address"),
        (["https://[1/p.yml"], 0, "no address"),
        ([""], 0, "http and https addresses only"),
        ([YML, JSON, YML], 2, "the same as urls[0]"),
        (["https://example.com/" + "x" * LONGEST], 0, "at most 2,048 characters"),
    ],
)
async def test_a_url_that_the_parser_would_not_fetch_is_refused(
    plain: Client, urls: list[str], place: int, problem: str
) -> None:
    made = await plain.create("prod", urls=[JSON])
    with pytest.raises(RequestInvalid) as created:
        await plain.create("other", urls=urls)
    with pytest.raises(RequestInvalid) as updated:
        await plain.update(made.id, name="renamed", urls=urls)

    assert created.value.metadata["field"] == f"urls[{place}]"
    assert updated.value.metadata["field"] == f"urls.urls[{place}]"
    assert problem in created.value.metadata["problem"]
    assert "word" not in str(created.value).replace("password", "")
    assert list((await plain.page()).stacks) == [made]


async def test_a_stack_has_at_most_100_urls(plain: Client) -> None:
    urls = [f"https://example.com/{number}.yml" for number in range(MOST + 1)]
    assert len((await plain.create("prod", urls=urls[:-1])).urls) == MOST
    with pytest.raises(RequestInvalid, match="at most 100 URLs, and not 101"):
        await plain.create("other", urls=urls)


@pytest.mark.parametrize("name", ["p.jsonnet", "p.JSONNET", "p" + quote(".j", safe="").replace(".", "%2e") + "sonnet"])
async def test_urls_of_programs_are_accepted_where_programs_are_evaluated(plain: Client, name: str) -> None:
    url = f"https://example.com/{name}"
    with pytest.raises(EncodingInvalid) as raised:
        await plain.create("prod", urls=[YML, url])

    assert raised.value.metadata == {"source": url, "encoding": "jsonnet"}
    assert await plain.names() == []
    assert checked_urls([url], "urls", allow_jsonnet=True) == (url,)


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "other"},
        {"name": ""},
        {"description": "x"},
        {"description": ""},
        {"urls": [JSON, YML]},
        {"urls": []},
        {"name": "other", "description": "x", "urls": [JSON]},
    ],
)
async def test_an_update_changes_what_it_names_and_nothing_else(
    service: Client, clock: Clock, changes: dict[str, object]
) -> None:
    await service.create("prod", description="text", urls=[YML])
    made = await service.apply("prod", [entry("one")], ["a.yml"])
    clock.forward(5)

    updated = await service.update(made.id, etag=made.etag, **changes)  # type: ignore[arg-type]

    assert updated.etag != made.etag
    assert microseconds(updated) == (microseconds(made)[0], clock.now)
    expected = stack_pb2.Stack()
    expected.CopyFrom(made)
    expected.etag = updated.etag
    expected.update_time.CopyFrom(updated.update_time)
    for field, value in changes.items():
        expected.ClearField(field)  # type: ignore[arg-type]
        expected.MergeFrom(stack_pb2.Stack(**{field: value}))  # type: ignore[arg-type]
    assert updated == expected
    assert await service.get(made.id) == updated


async def test_an_update_that_changes_nothing_moves_nothing(service: Client, clock: Clock) -> None:
    made = await service.create("prod", description="text", urls=[YML])
    clock.forward(5)

    assert await service.update(made.id) == made
    assert await service.update(made.id, name="prod", description="text", urls=[YML]) == made


async def test_each_change_of_a_stack_changes_its_etag(service: Client) -> None:
    etags = [(made := await service.create("prod")).etag]
    for changes in ({"name": "a"}, {"name": "prod"}, {"description": "x"}, {"urls": [YML]}):
        etags.append((await service.update(made.id, **changes)).etag)
    etags.append((await service.apply("prod", [entry("one")])).etag)
    assert len({*etags}) == len(etags)

    await service.apply("prod", [entry("one")])
    assert (await service.get(made.id)).etag == etags[-1]

    for etag in (*etags[:-1], "x"):
        with pytest.raises(StackChanged) as raised:
            await service.update(made.id, name="other", etag=etag)
        assert raised.value.metadata == {"stack": "prod", "expected": etag, "actual": etags[-1]}
    assert (await service.get(made.id)).etag == etags[-1]


async def test_a_repeated_update_takes_effect_once(service: Client) -> None:
    """Also with the old name, which the update replaced, and after another client changed the stack."""
    made = await service.create("prod")
    by_name = StackRef(name="prod")
    renamed = await service.update("", name="other", etag=made.etag, request_id="r-1", stack=by_name)

    assert await service.update("", name="other", etag=made.etag, request_id="r-1", stack=by_name) == renamed
    with pytest.raises(RequestIdReused):
        await service.update("", name="third", etag=made.etag, request_id="r-1", stack=by_name)
    changed = await service.update(made.id, description="x")
    assert await service.update("", name="other", etag=made.etag, request_id="r-1", stack=by_name) == changed
    await service.delete(made.id)
    with pytest.raises(StackNotFound):
        await service.update("", name="other", etag=made.etag, request_id="r-1", stack=by_name)


@pytest.mark.parametrize("name", [" ", "x" * 201, " a", "a\n", "a\nb", "\u200b"])
async def test_a_stack_is_renamed_to_a_name_only(plain: Client, name: str) -> None:
    made = await plain.create("prod")
    with pytest.raises(RequestInvalid) as raised:
        await plain.update(made.id, name=name, description="x")
    assert raised.value.metadata["field"] == "name"
    assert await plain.get(made.id) == made
    assert (await plain.update(made.id, name="x" * 200)).name == "x" * 200


async def test_a_name_is_unique_and_case_sensitive(service: Client) -> None:
    prod, other = await service.create("prod"), await service.create("other")
    await service.create("free", target=ELSEWHERE)
    with pytest.raises(StackExists) as raised:
        await service.update(other.id, name="prod", description="x")
    assert raised.value.metadata == {"stack": "prod", "org": "default"}
    assert await service.get(other.id) == other

    assert (await service.update(other.id, name="Prod")).name == "Prod"
    assert (await service.update(prod.id, name="free")).name == "free"
    with pytest.raises(StackExists):
        await service.create("Prod")


async def test_a_first_apply_keeps_its_name_from_others_and_is_no_stack_yet(service: Client, clock: Clock) -> None:
    made, first = await service.create("prod"), await service.begin("first", steps=None)
    with pytest.raises(StackExists):
        await service.update(made.id, name="first")
    with pytest.raises(StackNotFound):
        await service.update(first.stack.id, name="second")

    clock.forward(3600)

    assert (await service.update(made.id, name="first")).name == "first"
    await service.begin("second")
    clock.forward(3600)
    with pytest.raises(OperationUnfinished):
        await service.update(made.id, name="second")


async def test_a_stack_is_updated_while_an_operation_runs_on_it(service: Client) -> None:
    begun = await service.begin(stack_id=(await service.create("prod", urls=[YML])).id)

    await service.update(begun.stack.id, name="other", description="x", urls=[JSON])

    ended = await service.record(begun, [entry("one")])
    assert (ended.name, ended.description, list(ended.urls), ended.generation) == ("other", "x", [JSON], 1)


async def test_stacks_are_listed_by_ids_names_and_patterns(service: Client) -> None:
    ids = {name: (await service.create(name)).id for name in ("api-dev", "api-prod", "web", "")}
    there = await service.create("api-prod", target=ELSEWHERE)

    async def listed(**filters: object) -> list[str]:
        return [stack.name for stack in (await service.page(**filters)).stacks]  # type: ignore[arg-type]

    assert await listed(glob="api-*") == ["api-dev", "api-prod", "api-prod"]
    assert await listed(glob="api-????", target=Target()) == ["api-prod"]
    assert await listed(names=["web", "none"], ids=[ids["api-dev"], "0" * 16]) == ["api-dev", "web"]
    assert await listed(ids=[there.id], target=Target()) == []
    assert await listed(ids=[""]) == []
    assert await listed(names=["", "web"]) == ["", "web"]


async def test_pages_of_a_pattern_hold_every_stack_once(service: Client) -> None:
    for number in range(7):
        await service.create(f"{'ab'[number % 2]}{number}")

    first = await service.page(glob="a*", page_size=3)
    second = await service.page(glob="a*", page_size=3, page_token=first.next_page_token)

    assert [stack.name for page in (first, second) for stack in page.stacks] == ["a0", "a2", "a4", "a6"]
    assert not second.next_page_token


async def test_too_much_to_list_is_refused(plain: Client) -> None:
    for filters, field in (
        ({"ids": map(str, range(1001))}, "stack_ids"),
        ({"names": map(str, range(1001))}, "names"),
        ({"glob": "x" * 401}, "name_glob"),
    ):
        with pytest.raises(RequestInvalid) as raised:
            await plain.page(**filters)
        assert raised.value.metadata["field"] == field
