"""The trace of a run: its lines, their hash, and counts of the situations that the run reached."""

import hashlib
from collections import Counter
from collections.abc import Callable

MOST_LINES = 200_000
"""Lines that a run keeps; later lines are hashed too."""


class Trace:
    """
    The lines of one run. They depend on the scenario alone: they contain no process id, no path and no real time.

    Attributes:
        lines: The lines so far, with virtual time and scheduling point.
        counts: How often each situation was reached, by name, for coverage (docs/simulation.md).
        violations: The first violation of each kind, with its line.
    """

    def __init__(self, moment: Callable[[], tuple[float, int]]) -> None:
        """*moment* returns the virtual time and the scheduling point."""
        self.lines: list[str] = []
        self.counts: Counter[str] = Counter()
        self.violations: dict[str, str] = {}
        self._moment = moment
        self._hash = hashlib.blake2b(digest_size=12)

    def say(self, actor: str, what: str) -> None:
        """Add a line: *what* happened to *actor*."""
        now, point = self._moment()
        line = f"{now:12.6f} {point:7d} {actor:10s} {what}"
        self._hash.update(line.encode())
        self._hash.update(b"\n")
        if len(self.lines) < MOST_LINES:
            self.lines.append(line)

    def count(self, name: str) -> None:
        """Count that the situation *name* was reached."""
        self.counts[name] += 1

    def violate(self, kind: str, problem: str) -> None:
        """Record a violation. Only the first of its kind is kept; the run continues."""
        if kind not in self.violations:
            self.violations[kind] = problem
            self.say("oracle", f"VIOLATION {kind}: {problem}")

    def digest(self) -> str:
        """The hash of all lines so far, in hexadecimal digits."""
        return self._hash.hexdigest()
