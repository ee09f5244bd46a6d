"""
What goes wrong with calls, and the bounds within which it does: what the engine assumes of networks and platforms.

Faults stay within the contract (docs/simulation.md). Without one of the bounds below, a simulation reports what is no
defect:

- gRPC duplicates no message; only who calls repeats a call.
- A request to a platform arrives ``settle`` after it was sent at the latest (driver.proto), unless the platform fences:
  it refuses what comes after a raised token, or that of who took the operation over, was shown.
- A mutation that was refused stays refused, and one that took effect under a key is never refused under that key: the
  embedded platform keeps to it by itself.
- The answers of one stream overtake each other never, those of different calls do.
- When the clock of the store jumps, a lease may be over at once that its holder still counts on
  (docs/reference/engine.md, "Restored stores"): it
  jumps where the platform fences only, and what that holder sends within one lease is refused there.
- A connection on which nothing is heard ends after ``KEEPALIVE_SECONDS``.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from tests.simulation.draws import Draws

SHORTEST_DELAY, LONGEST_DELAY = 0.0001, 0.03
"""Of one message, in seconds."""

SLOW_SECONDS = 8.0
"""What a slow message takes at most."""

VERY_LATE_SECONDS = 60.0
"""How late a write that got no answer may arrive at a platform that fences."""

KEEPALIVE_SECONDS = 60.0
"""After that long a call on a dead connection fails, whether it has a deadline or not."""

NONE = ""
LOST = "lost"
SILENT = "silent"
ANSWER_LOST = "answer_lost"
ANSWER_SILENT = "answer_silent"
SLOW = "slow"
SLOW_ANSWER = "slow_answer"
LATE = "late"
CODES = tuple(f"code_{code}" for code in ("UNKNOWN", "INTERNAL", "UNIMPLEMENTED", "PERMISSION_DENIED"))
"""Something between the services answers in place of the peer."""

INTRUDER = "something between the services"
"""What it says."""

BY_FEATURE: Mapping[str, tuple[str, ...]] = {
    "net": (LOST, SILENT, ANSWER_LOST, ANSWER_SILENT),
    "slow": (SLOW, SLOW_ANSWER),
    "late": (LATE,),
    "codes": CODES,
}
"""Which faults each feature switches on."""

WORDS = frozenset(fault for faults in BY_FEATURE.values() for fault in faults)

RATE, WRITE_RATE = 0.03, 0.08
"""How many calls, and how many writes to a platform, meet a fault, while there are any."""


@dataclass(slots=True)
class Faults:
    """
    Decides which call meets which fault.

    Attributes:
        kinds: Those that may happen.
        noted: Faults by call, such as "Mutate applier0/1"; not None: these and no others (docs/simulation.md).
        met: Faults that happened, by call.
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
