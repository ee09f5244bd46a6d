"""A driver that breaks its contract in the ways listed here, and in no others (docs/simulation.md)."""

import asyncio
from collections.abc import Callable, Collection
from typing import Any

from pkger.driver.v1 import driver_pb2

from tests.simulation.draws import Draws
from tests.simulation.trace import Trace

RATE = 0.15
"""The share of answers that are spoiled."""

BAD_LISTS = tuple(f"ListResources {way}" for way in ("lacks an item", "repeats an item", "is old"))
BAD_ANSWERS = (
    *(f"ReadResources {way}" for way in ("is short", "is long", "is of another kind", "says nothing")),
    *(f"Mutate {way}" for way in ("is permuted", "is short", "is long", "is ambiguous")),
)
BAD_DESCRIBE = tuple(f"Describe {way}" for way in ("lacks a kind", "has another trait"))
"""The ways to spoil an answer, by the names that the trace counts."""

SHOWN_SECONDS = 60.0
"""
After a listing has lacked a resource, no other listing lacks it for this many seconds. An engine that depends on
listings could never find a resource that no listing contains.
"""


class BadDriver:
    """Spoils answers as they leave the platform's process; their mutations have taken effect all the same."""

    def __init__(self, draws: Draws, features: Collection[str], trace: Trace, is_calm: Callable[[], bool]) -> None:
        """*features* select the answers that are spoiled. None is spoiled once *is_calm* returns True."""
        self._draws = draws
        self._trace = trace
        self._is_calm = is_calm
        self._ways: dict[type[Any], dict[str, Callable[[Any, Any], None]]] = {}
        self._lists: dict[bytes, driver_pb2.ListResourcesResponse] = {}
        # The last time at which a listing lacked a resource, by id of the resource.
        self._lacked: dict[str, float] = {}
        if "bad_lists" in features:
            self._ways[driver_pb2.ListResourcesResponse] = {
                "lacks an item": _lack,
                "repeats an item": _repeat,
                "is old": self._age,
            }
        if "bad_answers" in features:
            self._ways[driver_pb2.ReadResourcesResponse] = {
                "is short": _shorten,
                "is long": _lengthen,
                "is of another kind": _confuse,
                "says nothing": _empty,
            }
            self._ways[driver_pb2.MutateResponse] = {
                "is permuted": _permute,
                "is short": _shorten,
                "is long": _lengthen,
                "is ambiguous": _doubt,
            }
        if "bad_describe" in features:
            self._ways[driver_pb2.DescribeResponse] = {
                "lacks a kind": _forget,
                # A platform that does not say that it fences promises that no request is later than ``settle``.
                "has another trait": _rebatch if "very_late" in features else _change,
            }

    def spoil(self, request: Any, answer: Any) -> bool:
        """Draw whether *answer* to *request* is spoiled, and spoil it; returns whether it is."""
        if isinstance(answer, driver_pb2.ListResourcesResponse):
            before = self._lists.get(request.SerializeToString(deterministic=True))
            self._lists[request.SerializeToString(deterministic=True)] = _copied(answer)
        else:
            before = None
        ways = self._ways.get(type(answer))
        name = type(answer).__name__.removesuffix("Response")
        if not ways or self._is_calm() or not self._draws.chance(f"bad {name}", RATE):
            return False
        way = self._draws.choice(f"way of bad {name}", list(ways))
        if isinstance(answer, driver_pb2.ListResourcesResponse) and not self._may_lack(ways[way], before, answer):
            return False
        self._trace.count(f"bad driver: {name} {way}")
        self._trace.say("platform", f"spoils an answer: {name} {way}")
        ways[way](before, answer)
        return True

    def _may_lack(
        self, spoiled: Callable[[Any, Any], None], before: object, answer: driver_pb2.ListResourcesResponse
    ) -> bool:
        """Whether each resource that *spoiled* removes from *answer* was in all listings of ``SHOWN_SECONDS``."""
        trial = _copied(answer)
        spoiled(before, trial)
        lacking = {each.id for each in answer.resources} - {each.id for each in trial.resources}
        now = asyncio.get_running_loop().time()
        if any(now - self._lacked.get(each, -SHOWN_SECONDS) < SHOWN_SECONDS for each in lacking):
            return False
        self._lacked |= dict.fromkeys(lacking, now)
        return True

    def _age(self, before: driver_pb2.ListResourcesResponse | None, answer: driver_pb2.ListResourcesResponse) -> None:
        if before is not None:
            answer.CopyFrom(before)


def _copied(answer: driver_pb2.ListResourcesResponse) -> driver_pb2.ListResourcesResponse:
    copy = driver_pb2.ListResourcesResponse()
    copy.CopyFrom(answer)
    return copy


def _lack(before: object, answer: driver_pb2.ListResourcesResponse) -> None:
    del answer.resources[:1]


def _repeat(before: object, answer: driver_pb2.ListResourcesResponse) -> None:
    answer.resources.extend(answer.resources[:1])


def _shorten(before: object, answer: Any) -> None:
    del answer.results[:1]


def _lengthen(before: object, answer: Any) -> None:
    answer.results.extend(answer.results[:1])


def _confuse(before: object, answer: driver_pb2.ReadResourcesResponse) -> None:
    for result in answer.results[:1]:
        if result.HasField("resource"):
            result.resource.kind = "Label" if result.resource.kind != "Label" else "Bucket"


def _empty(before: object, answer: driver_pb2.ReadResourcesResponse) -> None:
    for result in answer.results[:1]:
        result.Clear()


def _permute(before: object, answer: driver_pb2.MutateResponse) -> None:
    results = list(answer.results)
    del answer.results[:]
    answer.results.extend(reversed(results))


def _doubt(before: object, answer: driver_pb2.MutateResponse) -> None:
    for result in answer.results:
        result.ambiguous.message = "the platform lost count"


def _forget(before: object, answer: driver_pb2.DescribeResponse) -> None:
    del answer.kinds[:1]


def _rebatch(before: object, answer: driver_pb2.DescribeResponse) -> None:
    answer.max_batch_size = 1


def _change(before: object, answer: driver_pb2.DescribeResponse) -> None:
    _rebatch(before, answer)
    answer.fences = not answer.fences
