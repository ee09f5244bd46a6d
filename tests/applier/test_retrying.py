"""What is left of a repetition that is over: nothing, even where the garbage collector never comes."""

import gc
import weakref
from collections.abc import Iterator

import pytest
from tenacity import AsyncRetrying, RetryCallState, retry_if_result

from applier_svc.execution.retrying import repeated


class Caller:
    """Somebody who tries until there is an answer other than 0, and is what the repetition can reach."""

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
async def test_the_last_answer_is_returned_and_the_caller_let_go() -> None:
    caller = Caller([0, 0, 7])
    retrying = AsyncRetrying(retry=retry_if_result(lambda answer: answer == 0), stop=caller.is_over)
    assert await repeated(retrying, caller.attempt) == 7
    gone = weakref.ref(caller)
    del caller, retrying
    assert gone() is None
