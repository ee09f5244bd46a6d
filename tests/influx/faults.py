"""
Faults that a real server does not produce on demand: refusals under load, lost requests and answers, delays.

A :class:`Fault` is the fault of one request; :class:`Faults` selects the requests that have it.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from tests.influx.call import Answer, refusal
from tests.influx.problem import Problem
from tests.influx.records import matches

Wait = asyncio.Event | float | None
"""An event to be set, or a number of seconds."""


class Ending(Enum):
    """The answer that the client gets."""

    WHOLE = auto()
    DROPPED = auto()
    CUT = auto()


@dataclass(frozen=True, slots=True)
class Fault:
    """
    The fault of one request. The functions below make the faults that tests need.

    Attributes:
        has_effect: Whether the request is performed.
        before: The wait before the effect.
        after: The wait between effect and answer.
        arrived: Set when the request has arrived, before any wait.
        done: Set when the request was performed.
        is_late: Whether the connection is dropped at once, and the request performed afterwards.
        answer: Sent instead of the real answer.
    """

    has_effect: bool = True
    before: Wait = None
    after: Wait = None
    arrived: asyncio.Event | None = None
    done: asyncio.Event | None = None
    is_late: bool = False
    ending: Ending = Ending.WHOLE
    answer: Answer | None = None


PLAIN = Fault()
"""No fault."""


def refused(status: int = 429, retry_after: str = "") -> Fault:
    """No effect: 429 or 503 (or another status), with Retry-After if given."""
    return Fault(has_effect=False, answer=_error(status, {"Retry-After": retry_after} if retry_after else {}))


def lost() -> Fault:
    """No effect: the connection is dropped."""
    return Fault(has_effect=False, ending=Ending.DROPPED)


def unanswered() -> Fault:
    """The request is performed, then the connection is dropped."""
    return Fault(ending=Ending.DROPPED)


def late(until: Wait = 1.0) -> Fault:
    """The connection is dropped at once; the request is performed a second later, or when the event is set."""
    return Fault(before=until, is_late=True, ending=Ending.DROPPED)


def slow(until: Wait, done: asyncio.Event | None = None) -> Fault:
    """The request is performed at once, which sets *done*; its answer is sent later."""
    return Fault(after=until, done=done)


def stuck(until: Wait, arrived: asyncio.Event | None = None) -> Fault:
    """The request, whose arrival sets *arrived*, is performed later, even if the client stops waiting."""
    return Fault(before=until, arrived=arrived)


def cut() -> Fault:
    """The request is performed; half of the body of its answer is sent, then the connection is dropped."""
    return Fault(ending=Ending.CUT)


def failed(status: int = 500) -> Fault:
    """The request is performed, and answered with an error."""
    return Fault(answer=_error(status, {}))


@dataclass(slots=True)
class _Rule:
    fault: Fault
    method: str
    path: str
    first: int
    last: int | None
    seen: int = field(default=0)

    def hits(self, method: str, path: str) -> bool:
        """Whether this request has the fault; counts the matching requests."""
        if not matches(method, path, self.method, self.path):
            return False
        self.seen += 1
        return self.first <= self.seen and (self.last is None or self.seen <= self.last)


class Faults:
    """The faults of future requests."""

    def __init__(self) -> None:
        self._rules: list[_Rule] = []

    def add(self, fault: Fault, method: str = "*", path: str = "*", nth: int = 1, times: int | None = 1) -> None:
        """
        Let some of the further requests have *fault*.

        Args:
            method: A method, ``*`` for any, ``write`` for any but GET.
            path: A pattern for the path without its query; ``*`` stands for any text, slashes too.
            nth: The first of the matching requests with the fault, counted from 1.
            times: The number of consecutive requests with the fault; None for all.
        """
        self._rules.append(_Rule(fault, method, path, nth, None if times is None else nth + times - 1))

    def clear(self) -> None:
        """Remove all faults."""
        self._rules.clear()

    def next(self, method: str, path: str) -> Fault:
        """The fault of this request, by the first matching rule."""
        hit = [rule.fault for rule in self._rules if rule.hits(method, path)]
        return hit[0] if hit else PLAIN


async def waited(wait: Wait) -> None:
    """Return when the wait is over."""
    if isinstance(wait, asyncio.Event):
        await wait.wait()
    elif wait:
        await asyncio.sleep(wait)


def _error(status: int, headers: Mapping[str, str]) -> Answer:
    codes = {429: "too many requests", 503: "unavailable"}
    answer = refusal(Problem(codes.get(status, "internal error"), "a fault that a test asked for"))
    return Answer(status, answer.body, answer.content_type, {**answer.headers, **headers})
