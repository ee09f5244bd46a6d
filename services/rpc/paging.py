"""Reads lists that are returned in pages."""

from collections.abc import AsyncIterator
from typing import Any, TypeVar

import grpc

from services.rpc.client import Peer

Page = TypeVar("Page")


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
