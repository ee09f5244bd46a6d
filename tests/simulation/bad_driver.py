"""A driver that breaks its contract, in these ways and no others (docs/simulation.md)."""

import asyncio
from collections.abc import Callable, Collection
from typing import Any

from pkger.driver.v1 import driver_pb2

from tests.simulation.draws import Draws
from tests.simulation.trace import Trace

RATE = 0.15
"""How many answers are spoiled."""

BAD_LISTS = tuple(f"ListResources {way}" for way in ("lacks an item", "repeats an item", "is old"))
BAD_ANSWERS = (
    *(f"ReadResources {way}" for way in ("is short", "is long", "is of another kind", "says nothing")),
    *(f"Mutate {way}" for way in ("is permuted", "is short", "is long", "is ambiguous")),
)
BAD_DESCRIBE = tuple(f"Describe {way}" for way in ("lacks a kind", "has another trait"))
"""The ways, as the trace counts them."""

SHOWN_SECONDS = 60.0
"""
How long a listing shows what the one before it lacked, at least. Where nothing but listings tells what is there, nobody
can know of what they lack for ever.
"""


class BadDriver:
    """Spoils answers on their way out of the platform's process; what they are about has happened all the same."""

    def __init__(self, draws: Draws, features: Collection[str], trace: Trace, is_calm: Callable[[], bool]) -> None:
        """*features* say which answers are spoiled, as long as it is not calm."""
        self._draws = draws
        self._trace = trace
        self._is_calm = is_calm
        self._ways: dict[type[Any], dict[str, Callable[[Any, Any], None]]] = {}
        self._lists: dict[bytes, driver_pb2.ListResourcesResponse] = {}
        # When a listing lacked a resource last, by its id.
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
            self._ways[driver_pb2.DescribeResponse] = {"lacks a kind": _forget, "has another trait": _change}

    def spoil(self, request: Any, answer: Any) -> bool:
        """Spoil *answer* to *request*, or leave it as it is; whether it is spoiled."""
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
        """Whether no listing lacked a short time ago what *answer* lacks once it is *spoiled*."""
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


def _change(before: object, answer: driver_pb2.DescribeResponse) -> None:
    answer.max_batch_size = 1
    answer.fences = not answer.fences
