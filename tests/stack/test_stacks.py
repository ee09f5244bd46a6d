"""StackService: create, get, list and delete stacks, and find owners."""

import re
from base64 import urlsafe_b64encode

import pytest
from pkger.model.v1.object_pb2 import StackRef, Target
from pkger.stack.v1 import stack_pb2

from services.core.errors import (
    RequestIdReused,
    RequestInvalid,
    StackExists,
    StackLeased,
    StackMoved,
    StackNotEmpty,
    StackNotFound,
)
from services.rpc.convert.objects import entries_from_pb
from services.rpc.parts import MAX_PART_BYTES
from tests.stack.service import ELSEWHERE, HERE, Client, Clock, entry, microseconds

DAY = 24 * 3600


async def test_a_new_stack_is_empty_and_reads_back_by_id_and_by_name(service: Client, clock: Clock) -> None:
    made = await service.create("prod", description="the real one")

    assert re.fullmatch("[0-9a-f]{16}", made.id)
    assert made == stack_pb2.Stack(
        id=made.id,
        target=Target(platform="embedded", org="default"),
        name="prod",
        description="the real one",
        create_time=made.create_time,
        update_time=made.update_time,
        etag=made.etag,
    )
    assert microseconds(made) == (clock.now, clock.now)
    assert await service.get(made.id) == made
    assert await service.get_named("prod") == made


@pytest.mark.parametrize("name", ["a", "x" * 200, "two words", "Größe 測試 🚀"])
async def test_a_name_is_1_to_200_printable_characters(service: Client, name: str) -> None:
    assert (await service.create(name)).name == name


@pytest.mark.parametrize("name", [" ", "x" * 201, " a", "a ", "a\n", "a\tb", "a\0b", "\x7f", "a\u2028b", "\u200b"])
async def test_anything_else_is_no_name(service: Client, name: str) -> None:
    with pytest.raises(RequestInvalid) as created:
        await service.create(name)
    with pytest.raises(RequestInvalid) as begun:
        await service.begin(name)

    assert created.value.metadata["field"] == "name"
    assert begun.value.metadata["field"] == "stack.name"
    assert await service.names() == []


async def test_a_name_is_unique_in_its_target_only(service: Client) -> None:
    await service.create("prod")
    other = await service.create("prod", target=ELSEWHERE)

    with pytest.raises(StackExists) as raised:
        await service.create("prod")

    assert raised.value.metadata == {"stack": "prod", "org": "default"}
    assert (await service.get_named("prod", ELSEWHERE)).id == other.id


async def test_the_same_request_gets_the_same_stack(service: Client) -> None:
    made = await service.create("prod", request_id="r-1")

    assert await service.create("prod", request_id="r-1") == made
    assert await service.names() == ["prod"]


async def test_a_request_id_with_other_content_is_refused(service: Client) -> None:
    await service.create("prod", request_id="r-1")

    with pytest.raises(RequestIdReused) as raised:
        await service.create("prod", description="changed", request_id="r-1")

    assert raised.value.metadata == {"request_id": "r-1"}


async def test_a_repeated_request_does_not_bring_a_deleted_stack_back(service: Client) -> None:
    made = await service.create("prod", request_id="r-1")
    await service.delete(made.id)

    with pytest.raises(StackNotFound):
        await service.create("prod", request_id="r-1")
    assert await service.names() == []


async def test_a_request_id_is_free_again_after_a_day(service: Client, clock: Clock) -> None:
    await service.create("one", request_id="r-1")

    clock.forward(DAY + 1)

    assert (await service.create("two", request_id="r-1")).name == "two"


async def test_the_id_of_a_failed_request_can_be_used_again(service: Client) -> None:
    taken = await service.create("prod")
    with pytest.raises(StackExists):
        await service.create("prod", request_id="r-1")

    await service.delete(taken.id)

    assert (await service.create("prod", request_id="r-1")).name == "prod"


@pytest.mark.parametrize("stack_id", ["0123456789abcdef", "ABC", "x" * 1000, "a\0b"])
async def test_an_unknown_id_is_not_found(service: Client, stack_id: str) -> None:
    for call in (service.get(stack_id), service.delete(stack_id), service.begin(stack_id=stack_id)):
        with pytest.raises(StackNotFound) as raised:
            await call
        assert raised.value.metadata == {"stack": stack_id}


async def test_an_unknown_name_is_not_found(service: Client) -> None:
    await service.create("prod", target=ELSEWHERE)

    with pytest.raises(StackNotFound) as raised:
        await service.get_named("prod")

    assert raised.value.metadata == {"stack": "prod"}


async def test_a_request_that_names_no_stack_is_refused(service: Client) -> None:
    with pytest.raises(RequestInvalid) as raised:
        await service.peer.call(service.stacks.GetStack, stack_pb2.GetStackRequest())

    assert raised.value.metadata["field"] == "stack"


async def test_the_list_is_sorted_by_name_then_id_and_counts_what_stacks_own(service: Client) -> None:
    await service.apply("b", [entry("one"), entry("two")])
    await service.create("a")
    await service.apply("b", [entry("one")], target=ELSEWHERE)

    stacks = (await service.page()).stacks

    assert [(stack.name, stack.resource_count) for stack in stacks] in (
        [("a", 0), ("b", 2), ("b", 1)],
        [("a", 0), ("b", 1), ("b", 2)],
    )
    assert [(stack.name, stack.id) for stack in stacks] == sorted((stack.name, stack.id) for stack in stacks)


async def test_the_list_of_one_target_has_its_stacks_only(service: Client) -> None:
    await service.create("here", target=HERE)
    await service.create("there", target=ELSEWHERE)

    assert [stack.name for stack in (await service.page(Target(org="another"))).stacks] == ["there"]
    assert [stack.name for stack in (await service.page(Target())).stacks] == ["here"]
    assert await service.names() == ["here", "there"]


@pytest.mark.parametrize(("page_size", "sizes"), [(1, [1] * 7), (3, [3, 3, 1]), (7, [7]), (0, [7]), (1000, [7])])
async def test_pages_hold_every_stack_once(service: Client, page_size: int, sizes: list[int]) -> None:
    names = [f"stack {number}" for number in range(6)]
    for name in names:
        await service.create(name)
    await service.create("stack 3", target=ELSEWHERE)

    pages = [await service.page(page_size=page_size)]
    while token := pages[-1].next_page_token:
        pages.append(await service.page(page_size=page_size, page_token=token))

    assert [len(page.stacks) for page in pages] == sizes
    assert [stack.name for page in pages for stack in page.stacks] == sorted([*names, "stack 3"])


async def test_a_page_has_100_stacks_by_default(service: Client) -> None:
    for number in range(101):
        await service.create(f"{number:03}")

    assert len((await service.page()).stacks) == 100


async def test_a_stack_made_between_pages_moves_none_of_the_others(service: Client) -> None:
    for name in ("b", "c", "d"):
        await service.create(name)
    first = await service.page(page_size=2)

    await service.create("a")

    second = await service.page(page_token=first.next_page_token)
    assert [stack.name for stack in second.stacks] == ["d"]


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "****",
        "ü",
        urlsafe_b64encode(b"not json").decode(),
        urlsafe_b64encode(b'{"name": "a"}').decode(),
        urlsafe_b64encode(b'["a"]').decode(),
        urlsafe_b64encode(b'["a", 1]').decode(),
        urlsafe_b64encode(b'["a", "b"]').decode(),
    ],
)
async def test_a_page_token_of_another_origin_is_refused(service: Client, token: str) -> None:
    with pytest.raises(RequestInvalid) as raised:
        await service.page(page_token=token)

    assert raised.value.metadata["field"] == "page_token"


async def test_a_negative_page_size_is_refused(service: Client) -> None:
    with pytest.raises(RequestInvalid) as raised:
        await service.page(page_size=-1)

    assert raised.value.metadata["field"] == "page_size"


@pytest.mark.parametrize("is_update", [False, True])
async def test_a_description_has_at_most_2000_characters(service: Client, is_update: bool) -> None:
    stack = await service.create("prod", description="é" * 2000)
    with pytest.raises(RequestInvalid, match="description: has 2,001 characters; at most 2,000 are accepted"):
        await (
            service.update(stack.id, description="d" * 2001)
            if is_update
            else service.create("b", description="d" * 2001)
        )


async def test_a_deleted_stack_is_gone_and_its_name_is_free(service: Client) -> None:
    made = await service.create("prod")

    await service.delete(made.id)

    with pytest.raises(StackNotFound):
        await service.get(made.id)
    assert (await service.create("prod")).id != made.id


async def test_a_stack_that_owns_something_is_not_deleted(service: Client) -> None:
    stack = await service.apply("prod", [entry("one"), entry("two")])

    with pytest.raises(StackNotEmpty) as raised:
        await service.delete(stack.id)

    assert raised.value.metadata == {"stack": "prod", "count": "2"}
    assert await service.get(stack.id) == stack


async def test_a_stack_with_a_running_operation_is_not_deleted(service: Client) -> None:
    begun = await service.begin(stack_id=(await service.create("prod")).id, operation="op-7", holder="me")

    with pytest.raises(StackLeased) as raised:
        await service.delete(begun.stack.id)

    assert raised.value.metadata["operation"] == "op-7"
    await service.abandon(begun)
    await service.delete(begun.stack.id)


async def test_owners_are_found_by_kind_and_id_within_the_target(service: Client) -> None:
    prod = await service.apply("prod", [entry("one", "1"), entry("two", "2"), entry("three", "1", kind="Task")])
    other = await service.apply("other", [entry("far", "9")], target=ELSEWHERE)

    asked = [("Task", "1"), ("Bucket", "2"), ("Bucket", "2"), ("Bucket", "9"), ("Label", "1"), ("Bucket", "1")]

    assert await service.owners(asked) == [
        ("Bucket", "1", prod.id, "prod", "one"),
        ("Bucket", "2", prod.id, "prod", "two"),
        ("Task", "1", prod.id, "prod", "three"),
    ]
    assert await service.owners(asked, ELSEWHERE) == [("Bucket", "9", other.id, "other", "far")]
    assert await service.owners([]) == []


async def test_resources_are_read_in_pages_sorted_by_kind_and_name(service: Client) -> None:
    entries = [entry(f"{number:02}", kind=kind, labels=["l"]) for kind in ("Bucket", "Task") for number in range(4)]
    stack = await service.apply("prod", reversed(entries))

    pages = [await service.resources_page(name="prod", page_size=3)]
    while token := pages[-1].next_page_token:
        pages.append(await service.resources_page(stack.id, page_size=3, page_token=token))

    assert [len(page.resources) for page in pages] == [3, 3, 2]
    assert {page.generation for page in pages} == {1}
    assert tuple(read for page in pages for read in entries_from_pb(page.resources)) == tuple(entries)
    whole = await service.resources_page(stack.id)
    assert (len(whole.resources), whole.next_page_token) == (8, "")


async def test_a_page_has_1000_resources_by_default_and_5000_at_most(service: Client) -> None:
    stack = await service.apply("prod", [entry(f"{number}") for number in range(5001)])

    for page_size, length in ((0, 1000), (5000, 5000)):
        assert len((await service.resources_page(stack.id, page_size=page_size)).resources) == length
    with pytest.raises(RequestInvalid, match=r"page_size: 5,001 is .*; at most 5,000 are accepted"):
        await service.resources_page(stack.id, page_size=5001)


@pytest.mark.slow
async def test_a_page_of_resources_is_no_larger_than_1_mib(service: Client) -> None:
    entries = [entry(f"{number:04}" + "x" * 1000, "1" * 40 + str(number)) for number in range(2000)]
    stack = await service.apply("prod", [*entries, entry("y" * 2_000_000)])

    pages = [await service.resources_page(stack.id, page_size=5000)]
    while token := pages[-1].next_page_token:
        pages.append(await service.resources_page(stack.id, page_size=5000, page_token=token))

    assert [page.ByteSize() < MAX_PART_BYTES for page in pages] == [True] * (len(pages) - 1) + [False]
    assert len(pages[-1].resources) == 1
    assert sum(len(page.resources) for page in pages) == 2001


async def test_pages_of_resources_are_of_one_generation(service: Client) -> None:
    stack = await service.apply("prod", [entry("one"), entry("two")])
    first = await service.resources_page(name="prod", page_size=1)
    await service.apply("prod", [entry("one"), entry("two")])
    assert (await service.resources_page(name="prod", page_token=first.next_page_token)).resources

    await service.apply("prod", [entry("one"), entry("three")])

    with pytest.raises(StackMoved) as raised:
        await service.resources_page(stack.id, page_token=first.next_page_token)
    assert raised.value.metadata == {"stack": "prod", "expected": "1", "actual": "2"}


async def test_pages_of_resources_are_of_one_stack(service: Client) -> None:
    """A page token does not continue with another stack that has taken the name."""
    await service.apply("prod", [entry("one"), entry("two")])
    first = await service.resources_page(name="prod", page_size=1)
    await service.remove(await service.begin("prod"))
    await service.apply("prod", [entry("one"), entry("two")])

    with pytest.raises(RequestInvalid, match="belongs to another stack"):
        await service.resources_page(name="prod", page_token=first.next_page_token)


async def test_resources_of_no_stack_and_page_tokens_of_another_origin_are_refused(service: Client) -> None:
    stack = await service.create("prod")
    with pytest.raises(StackNotFound):
        await service.resources_page(name="other")
    with pytest.raises(RequestInvalid) as raised:
        await service.peer.call(service.stacks.ListResources, stack_pb2.ListResourcesRequest())
    assert raised.value.metadata["field"] == "stack"
    for token in ("x", (urlsafe_b64encode(b'["a","b"]')).decode()):
        with pytest.raises(RequestInvalid) as raised:
            await service.resources_page(stack.id, page_token=token)
        assert raised.value.metadata["field"] == "page_token"


async def test_a_stack_is_deleted_by_name(service: Client) -> None:
    await service.create("prod")
    request = stack_pb2.DeleteStackRequest(stack=StackRef(name="prod"))

    await service.peer.call(service.stacks.DeleteStack, request)

    assert await service.names() == []


async def test_a_page_of_stacks_is_no_larger_than_1_mib(service: Client) -> None:
    urls = [f"https://example.com/{'x' * 2000}/{number}" for number in range(100)]
    for name in "abcdef":
        await service.create(name, urls=urls)

    first = await service.page()
    second = await service.page(page_token=first.next_page_token)

    assert [[stack.name for stack in page.stacks] for page in (first, second)] == [["a", "b", "c", "d"], ["e", "f"]]
