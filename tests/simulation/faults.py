"""
The faults that calls meet, within the bounds that the engine assumes of networks and platforms.

Faults keep to the contract (docs/simulation.md). Without one of these bounds, a simulation would report violations that
are no defects:

- gRPC duplicates no message; only the caller retries a call.
- A request arrives at a platform within ``settle`` after it was sent (driver.proto). A platform that fences may get it
  later: once a higher token was shown there, by a raise or by an applier that took over, it refuses the request.
- A mutation that was refused stays refused. One that took effect under a key is never refused under that key; the
  embedded platform ensures that by itself.
- Answers of one stream arrive in order; answers of different calls may overtake each other.
- A jump of the store's clock may end a lease that its holder still relies on (docs/reference/engine.md, "Restored
  stores"). That clock jumps only where the platform fences, and refuses the writes of that holder.
- A connection without traffic ends after ``KEEPALIVE_SECONDS``.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from tests.simulation.draws import Draws

SHORTEST_DELAY, LONGEST_DELAY = 0.0001, 0.03
"""Latency of one message, in seconds."""

SLOW_SECONDS = 8.0
"""Longest latency of a slow message."""

VERY_LATE_SECONDS = 60.0
"""Longest latency of a write without an answer, to a platform that fences."""

KEEPALIVE_SECONDS = 60.0
"""Seconds after which a call on a dead connection fails, with or without a deadline."""

NONE = ""
LOST = "lost"
SILENT = "silent"
ANSWER_LOST = "answer_lost"
ANSWER_SILENT = "answer_silent"
SLOW = "slow"
SLOW_ANSWER = "slow_answer"
LATE = "late"
CODES = tuple(f"code_{code}" for code in ("UNKNOWN", "INTERNAL", "UNIMPLEMENTED", "PERMISSION_DENIED"))
"""Faults in which something between the services answers in place of the peer."""

INTRUDER = "something between the services"
"""The message of such an answer."""

REFUSED = "refused"
THROTTLED = "throttled"
OF_MUTATIONS = (LOST, ANSWER_LOST, REFUSED, THROTTLED)
"""Faults of single mutations that a scenario names; none is drawn."""

BY_FEATURE: Mapping[str, tuple[str, ...]] = {
    "net": (LOST, SILENT, ANSWER_LOST, ANSWER_SILENT),
    "slow": (SLOW, SLOW_ANSWER),
    "late": (LATE,),
    "codes": CODES,
}
"""The faults that each feature switches on."""

WORDS = frozenset(fault for faults in BY_FEATURE.values() for fault in faults)

RATE, WRITE_RATE = 0.03, 0.08
"""The share of calls, and of writes to a platform, that meet a fault while faults are on."""


@dataclass(slots=True)
class Faults:
    """
    Decides which fault a call meets.

    Attributes:
        kinds: The faults that may be drawn.
        noted: Faults by call, such as "Mutate applier0/1"; None: they are drawn (docs/simulation.md).
        met: The faults that calls met, by call.
        is_over: Whether they have stopped for good.
    """

    draws: Draws
    kinds: Collection[str]
    noted: Mapping[str, str] | None = None
    met: dict[str, str] = field(default_factory=dict)
    is_over: bool = False
    _calls: dict[str, int] = field(default_factory=dict)

    def of_call(self, method: str, caller: str) -> tuple[str, str]:
        """The name of the next call of *method* by *caller*, and the fault that it meets."""
        label = f"{method} {caller}"
        number = self._calls[label] = self._calls.get(label, -1) + 1
        name = f"{label}/{number}"
        drawn = self.draws.fraction(f"fault {label}")
        kind = self.draws.fraction(f"kind of fault {label}")
        if self.is_over:
            return name, NONE
        if self.noted is not None:
            fault = self.noted.get(name, NONE)
        elif self.kinds and drawn < (WRITE_RATE if method == "Mutate" else RATE):
            kinds = sorted(self.kinds)
            fault = kinds[int(kind * len(kinds))]
        else:
            fault = NONE
        if fault:
            self.met[name] = fault
        return name, fault
