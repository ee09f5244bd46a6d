"""Retries by the clock of the event loop, which hold no references once they are over."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState

from services.rpc.call import loop_time

Answer = TypeVar("Answer")


async def repeated(retrying: AsyncRetrying, attempt: Callable[[], Awaitable[Answer]]) -> Answer:
    """
    Retry *attempt* as *retrying* says; returns what the last attempt returns, and raises what it raises.

    A retrying refers to itself. Without the reset it keeps all that its conditions refer to, such as an operation with
    its whole plan, until the next garbage collection: 100 MB with 10,000 objects.
    """
    try:
        return await retrying(attempt)
    finally:
        retrying.iter_state.reset()


def stop_after(seconds: float) -> Callable[[RetryCallState], bool]:
    """Stop *seconds* from now, by the clock of the event loop; tenacity has a clock of its own."""
    end = loop_time() + seconds
    return lambda state: loop_time() >= end
