"""Reads lists that are returned in pages."""

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, TypeVar

import grpc

from services.rpc.client import Peer

Page = TypeVar("Page")
Item = TypeVar("Item")


async def pages(peer: Peer, method: "grpc.aio.UnaryUnaryMultiCallable[Any, Page]", request: Any) -> AsyncIterator[Page]:
    """
    Read all pages of a list in order, with one call each.

    Args:
        peer: The service.
        method: A method with page tokens.
        request: The request for the first page; the next pages are requested with the same fields.

    Raises:
        PkgerError: The error of the method.
    """
    while True:
        page: Any = await peer.call(method, request)
        yield page
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


async def first_items(
    peer: Peer,
    method: "grpc.aio.UnaryUnaryMultiCallable[Any, Page]",
    request: Any,
    items_of: Callable[[Page], Iterable[Item]],
    most: int | None,
) -> tuple[list[Item], bool]:
    """
    The first items of a list, and whether there may be more.

    Args:
        peer: The service.
        method: A method with page tokens.
        request: The request for the first page, with its page size; a page may have fewer items.
        items_of: The items of a page that count.
        most: Number of items to return at most; None: all.

    Raises:
        PkgerError: As the method.
    """
    items: list[Item] = []
    page: Any
    async for page in pages(peer, method, request):
        items += items_of(page)
        if most is not None and len(items) >= most:
            return items[:most], bool(page.next_page_token or items[most:])
    return items, False
