"""StackService.ListRevisions: the histories of several stacks in one call."""

import pytest
from pkger.model.v1 import object_pb2
from pkger.stack.v1 import stack_pb2

from services.core.errors import RequestInvalid
from tests.stack.service import Client, entry


async def histories(service: Client, *stack_ids: str, page_size: int = 0) -> list[tuple[str, int, str]]:
    """Stack, number and first source of all revisions of some stacks, read page by page."""
    request = stack_pb2.ListRevisionsRequest(stack_ids=stack_ids, page_size=page_size)
    found: list[tuple[str, int, str]] = []
    while True:
        page = await service.peer.call(service.stacks.ListRevisions, request)
        assert len(page.revisions) <= (page_size or 50)
        found += [(each.stack_id, each.number, each.sources[0]) for each in page.revisions]
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token


async def applied(service: Client, name: str, times: int) -> str:
    """Make a stack with *times* revisions; return its id."""
    for number in range(1, times + 1):
        begun = await service.begin(name)
        await service.record(begun, [entry(f"{name}-{number}")], [f"{name}-{number}.yml"])
    return (await service.get_named(name)).id


async def test_histories_are_sorted_by_stack_and_newest_first_on_pages_of_any_size(service: Client) -> None:
    made = {await applied(service, name, times): (name, times) for name, times in (("a", 3), ("b", 1), ("c", 2))}
    idle = (await service.create("idle")).id
    expected = [
        (stack_id, number, f"{name}-{number}.yml")
        for stack_id, (name, times) in sorted(made.items())
        for number in range(times, 0, -1)
    ]

    [first, *others] = sorted(made)
    for size in (0, 1, 2, 3, 6):
        assert await histories(service, *made, idle, "f" * 16, *made, page_size=size) == expected
        assert await histories(service, *others, page_size=size) == [each for each in expected if each[0] != first]
        assert await histories(service, idle, page_size=size) == []


async def test_the_history_of_one_stack_includes_its_id(service: Client) -> None:
    stack_id = await applied(service, "a", 2)
    request = stack_pb2.ListRevisionsRequest(stack=object_pb2.StackRef(id=stack_id))
    page = await service.peer.call(service.stacks.ListRevisions, request)
    assert [(each.stack_id, each.number) for each in page.revisions] == [(stack_id, 2), (stack_id, 1)]


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (stack_pb2.ListRevisionsRequest(stack_ids=["1"] * 1001), "stack_ids"),
        (stack_pb2.ListRevisionsRequest(stack_ids=["1"], stack=object_pb2.StackRef(id="1")), "stack"),
        (stack_pb2.ListRevisionsRequest(stack_ids=["1"], page_token="WzFd"), "page_token"),
        (stack_pb2.ListRevisionsRequest(stack_ids=["1"], page_size=-1), "page_size"),
    ],
)
async def test_an_invalid_list_of_stacks_is_refused(
    service: Client, request_: stack_pb2.ListRevisionsRequest, field: str
) -> None:
    with pytest.raises(RequestInvalid) as raised:
        await service.peer.call(service.stacks.ListRevisions, request_)
    assert raised.value.metadata["field"] == field
