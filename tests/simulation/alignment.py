"""Matches the calls of two runs: a recorded fault names its call by number, and numbers differ between runs."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from tests.simulation.running import Result

_CALL = re.compile(r"^ *[0-9.]+ +[0-9]+ (?P<caller>\S+) +calls (?P<name>(?P<method>\S+) (?P=caller)/[0-9]+) of ")
_EFFECT = re.compile(r"^ *[0-9.]+ +[0-9]+ platform +(?P<name>Mutate \S+/[0-9]+) (?P<effect>[a-z]+ed\b.*|wrote .*)")
_ID = re.compile(r"\b[0-9a-f]{16}\b")

_PERIODIC = "ListAbandonedOperations"
"""The number of such a call depends on the time alone, not on the work of an applier."""


@dataclass(slots=True)
class _Call:
    """A call in a trace; *effects* are what it did to the platform, without ids."""

    name: str
    method: str
    effects: str = ""

    @property
    def signature(self) -> tuple[str, str]:
        return self.method, self.effects


def aligned(faults: Mapping[str, str], before: Result, after: Result) -> dict[str, str]:
    """
    The faults of one run at the calls of another run that correspond.

    A call corresponds to one of the same method that does the same to the platform, in the same order of calls, by the
    same service. Where there is none, the nearest call of the method is taken. Appliers count as one service: which of
    them a client asks is drawn.

    Args:
        faults: Faults by the names of calls of *before*, such as "Mutate applier0/3".
        before: The run that met them.
        after: A run of a smaller scenario.

    Returns:
        The faults by the names of calls of *after*, without those whose method is not called there.
    """
    found: dict[str, str] = {}
    old, new = _calls(before), _calls(after)
    for calls_of in sorted({_calls_of(name) for name in faults}):
        matching = _Matching(_relevant(old, *calls_of), _relevant(new, *calls_of))
        for name, fault in faults.items():
            if _calls_of(name) == calls_of and (corresponding := matching.of(name)):
                found.setdefault(corresponding, fault)
    return found


class _Matching:
    """Matches *old* calls to *new* ones."""

    def __init__(self, old: Sequence[_Call], new: Sequence[_Call]) -> None:
        self._positions = {call.name: number for number, call in enumerate(old)}
        self._old, self._new = old, new
        matcher = SequenceMatcher(None, [each.signature for each in old], [each.signature for each in new], False)
        self._blocks = [block for block in matcher.get_matching_blocks() if block.size]

    def of(self, name: str) -> str | None:
        """The name of the call that corresponds to the one of *name*."""
        if (position := self._positions.get(name)) is None:
            return None
        block = next((block for block in reversed(self._blocks) if block.a <= position), None)
        expected = block.b + position - block.a if block else position
        same = [number for number, call in enumerate(self._new) if call.method == self._old[position].method]
        return self._new[min(same, key=lambda number: abs(number - expected))].name if same else None


def _calls_of(name: str) -> tuple[str, bool]:
    """The service that makes a call, and whether it is a periodic one."""
    method, _, rest = name.partition(" ")
    return _service(rest.rpartition("/")[0]), method == _PERIODIC


def _relevant(calls: Mapping[str, Sequence[_Call]], service: str, is_periodic: bool) -> list[_Call]:
    return [call for call in calls.get(service, ()) if is_periodic or call.method != _PERIODIC]


def _service(caller: str) -> str:
    return caller.rstrip("0123456789")


def _calls(result: Result) -> Mapping[str, list[_Call]]:
    """The calls of a run by service, in order."""
    calls: defaultdict[str, list[_Call]] = defaultdict(list)
    by_name: dict[str, _Call] = {}
    for line in result.lines:
        if match := _CALL.match(line):
            call = by_name[match["name"]] = _Call(match["name"], match["method"])
            calls[_service(match["caller"])].append(call)
        elif (match := _EFFECT.match(line)) and match["name"] in by_name:
            by_name[match["name"]].effects += _ID.sub("", match["effect"])
    return calls
