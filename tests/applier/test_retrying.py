"""Retries: how long they wait, when they end, and that they hold no references afterwards."""

import gc
import weakref
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tenacity import AsyncRetrying, RetryCallState, retry_if_result

from applier_svc.execution.retries import repeated, stop_after
from applier_svc.execution.timeouts import Timeouts


class Caller:
    """Retries until the result is not 0; the retrying refers to it."""

    def __init__(self, answers: list[int]) -> None:
        self._answers = answers

    async def attempt(self) -> int:
        return self._answers.pop(0)

    def is_over(self, _state: RetryCallState) -> bool:
        return not self._answers


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
async def test_the_last_result_is_returned_and_no_reference_is_held() -> None:
    caller = Caller([0, 0, 7])
    retrying = AsyncRetrying(retry=retry_if_result(lambda answer: answer == 0), stop=caller.is_over)
    assert await repeated(retrying, caller.attempt) == 7
    gone = weakref.ref(caller)
    del caller, retrying
    assert gone() is None


def _after(attempt: int) -> RetryCallState:
    """The state of a retrying after so many attempts."""
    state = RetryCallState(AsyncRetrying(), None, (), {})
    state.attempt_number = attempt
    return state


def test_waits_double_up_to_the_longest_and_jitter_takes_a_part_of_them() -> None:
    whole = Timeouts(first_wait=0.5, longest_wait=3, jitter=lambda: 1.0)
    assert [whole.between_attempts(_after(attempt)) for attempt in (1, 2, 3, 4, 5000)] == [0.5, 1, 2, 3, 3]
    assert replace(whole, jitter=lambda: 0.25).between_attempts(_after(2)) == 0.25


async def test_a_repetition_ends_by_the_clock_of_the_loop() -> None:
    over, lasting = stop_after(0), stop_after(3600)
    assert (over(_after(1)), lasting(_after(1))) == (True, False)
