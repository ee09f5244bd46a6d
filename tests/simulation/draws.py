"""Chance: every draw has a label, and draw number n of a label is a function of the seed, the label and n alone."""

import hashlib
from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Draws:
    """
    All random draws of one run.

    A scenario without one actor or fault has the same draws for all others. Reduction needs that (docs/simulation.md).
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._sources: dict[str, Random] = {}

    def fraction(self, label: str) -> float:
        """A number from 0 to 1, 1 excluded."""
        return self._source(label).random()

    def below(self, label: str, end: int) -> int:
        """A whole number from 0 to *end*, which is excluded."""
        return int(self._source(label).random() * end)

    def between(self, label: str, low: int, high: int) -> int:
        """A whole number from *low* to *high*, both included."""
        return low + self.below(label, high - low + 1)

    def chance(self, label: str, probability: float) -> bool:
        """True once in ``1 / probability`` draws."""
        return self._source(label).random() < probability

    def choice(self, label: str, options: Sequence[T]) -> T:
        """One of *options*."""
        return options[self.below(label, len(options))]

    def some(self, label: str, options: Sequence[T], probability: float) -> list[T]:
        """Each of *options* with the same probability, in order."""
        return [option for option in options if self.chance(label, probability)]

    def spread(self, label: str, low: float, high: float) -> float:
        """A number from *low* to *high* whose logarithm is drawn evenly: short ones are as likely as long ones."""
        return float(low * (high / low) ** self._source(label).random())

    def digits(self, label: str, count: int) -> str:
        """*count* hexadecimal digits."""
        return f"{self._source(label).getrandbits(4 * count):0{count}x}"

    def _source(self, label: str) -> Random:
        source = self._sources.get(label)
        if source is None:
            digest = hashlib.blake2b(f"{self._seed} {label}".encode(), digest_size=8).digest()
            source = self._sources[label] = Random(int.from_bytes(digest, "big"))
        return source


class DrawnIds:
    """``Ids`` of one simulated process."""

    def __init__(self, draws: Draws, name: str) -> None:
        self._draws = draws
        self._name = name

    def token(self, size: int) -> str:
        return self._draws.digits(f"ids {self._name}", 2 * size)

    def salt(self, size: int) -> bytes:
        return bytes.fromhex(self._draws.digits(f"salts {self._name}", 2 * size))

    def fraction(self) -> float:
        return self._draws.fraction(f"jitter {self._name}")
