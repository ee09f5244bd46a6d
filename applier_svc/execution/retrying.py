"""Repetitions by the clock of the loop, which hold nothing once they have an answer."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState

from services.rpc.call import loop_time

Answer = TypeVar("Answer")


async def repeated(retrying: AsyncRetrying, attempt: Callable[[], Awaitable[Answer]]) -> Answer:
    """
    What *attempt* returns at last, as *retrying* repeats it; raises what that raises.

    A retrying refers to itself, and so would keep what its conditions can reach, such as an operation with its whole
    plan, until the garbage collector gets to it: 100 MB with 10,000 objects.
    """
    try:
        return await retrying(attempt)
    finally:
        retrying.iter_state.reset()


def stop_after(seconds: float) -> Callable[[RetryCallState], bool]:
    """Repeat no more once *seconds* from now have passed; tenacity would look at a clock of its own."""
    end = loop_time() + seconds
    return lambda state: loop_time() >= end
