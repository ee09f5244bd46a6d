"""
Ranges of versions, such as ``^1.2`` (docs/dependencies.md, "Ranges").

The reader is our own: libraries for such ranges either refuse ``>= 1, < 2``, or accept any text, and none says which
character is wrong.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from services.packages.versions import ParseProblem, Version, number_problems

MAX_RANGE_LENGTH = 256
"""Number of characters of a range."""

MAX_GROUPS = 16
"""Number of groups of a range, and of comparators of a group."""

_BLANKS = " \t"
_DIGITS = "0123456789"
_WILDCARDS = "xX*"
_HYPHEN = "-"
_OR = "||"
_OF_OPERATORS = "<>=!~^"
_OF_PRERELEASES = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-")

_MISTAKEN_OPERATORS: Mapping[str, str] = {
    "~>": "~",
    "=>": ">=",
    "=<": "<=",
    "==": "=",
    "<>": "!=",
    "=!": "!=",
    "!": "!=",
}
"""Operators of other languages, with ours of the same meaning."""

Cut = tuple[Any, ...]
"""
A point between versions, comparable with a ``Precedence``: a shorter tuple is before all versions that start with it,
a longer one after the version that it starts with.
"""

_START: Cut = ()
_END: Cut = (math.inf,)


@dataclass(frozen=True, slots=True)
class Interval:
    """The versions from *low* to *high*; empty unless *low* is below *high*."""

    low: Cut
    high: Cut

    def __contains__(self, version: Version) -> bool:
        return self.low <= version.precedence < self.high


@dataclass(frozen=True, slots=True)
class Partial:
    """
    A version of which the last numbers may be open, such as ``1.2``.

    Attributes:
        numbers: The numbers that are written, at most three; none: any version.
        version: The version, if no number is open.
    """

    numbers: tuple[int, ...]
    version: Version | None = None

    @property
    def names_prerelease(self) -> bool:
        """Whether it is a prerelease."""
        return self.version is not None and self.version.is_prerelease

    @property
    def start(self) -> Cut:
        """Before the lowest version that is meant; the prereleases of ``1.2.0`` are no part of ``1.2``."""
        if not self.numbers:
            return _START
        if self.version:
            return self.version.precedence
        return _release(self.numbers)

    @property
    def end(self) -> Cut:
        """After the highest version that is meant."""
        if self.version:
            return _after(self.version)
        return self.next_of(len(self.numbers) - 1)

    def next_of(self, place: int) -> Cut:
        """Before the versions, prereleases included, whose number at *place* is higher by 1; -1: after all versions."""
        if place < 0:
            return _END
        return _before_prereleases((*self.numbers[:place], self.numbers[place] + 1))

    def __str__(self) -> str:
        return self.version.text if self.version else ".".join(map(str, self.numbers)) or "*"


def _padded(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return (*numbers, 0, 0, 0)[:3]


def _before_prereleases(numbers: tuple[int, ...]) -> Cut:
    return _padded(numbers)


def _release(numbers: tuple[int, ...]) -> Cut:
    return (*_padded(numbers), True, None)


def _after(version: Version) -> Cut:
    return (*version.precedence, 0)


def _below(partial: Partial) -> Cut:
    """Before *partial*; before the prereleases of a release, too: ``<2.0.0`` has no ``2.0.0-rc.1``."""
    if partial.names_prerelease:
        return partial.start
    return _before_prereleases(partial.numbers) if partial.numbers else _START


def _tilde(partial: Partial) -> Interval:
    return Interval(partial.start, partial.next_of(min(1, len(partial.numbers) - 1)))


def _caret(partial: Partial) -> Interval:
    first_change = next((place for place, number in enumerate(partial.numbers) if number), len(partial.numbers) - 1)
    return Interval(partial.start, partial.next_of(first_change))


def _above(partial: Partial) -> Interval:
    """``>1.2`` starts at 1.3.0, the release."""
    if partial.version:
        return Interval(_after(partial.version), _END)
    if not partial.numbers:
        return Interval(_END, _END)
    return Interval(_release((*partial.numbers[:-1], partial.numbers[-1] + 1)), _END)


def _equal(partial: Partial) -> Interval:
    return Interval(partial.start, partial.end)


_INTERVALS: Mapping[str, Callable[[Partial], Interval]] = {
    "=": _equal,
    "!=": _equal,
    ">": _above,
    ">=": lambda partial: Interval(partial.start, _END),
    "<": lambda partial: Interval(_START, _below(partial)),
    "<=": lambda partial: Interval(_START, partial.end),
    "~": _tilde,
    "^": _caret,
}
"""The versions that each operator means; ``!=`` means all others."""


@dataclass(frozen=True, slots=True)
class Comparator:
    """
    One condition of a group.

    Attributes:
        text: Its canonical text, which decides equality.
        interval: The versions that it names.
        excludes: Whether it is met by the other versions instead.
        names_prerelease: Whether it names a prerelease, so that its group can match prereleases.
    """

    text: str
    interval: Interval = field(compare=False)
    excludes: bool = field(default=False, compare=False)
    names_prerelease: bool = field(default=False, compare=False)

    def has(self, version: Version) -> bool:
        """Whether *version* meets it by its place in the order; the rule of prereleases is one of groups."""
        return (version in self.interval) is not self.excludes


_ANY = Comparator("*", Interval(_START, _END))


@dataclass(frozen=True, slots=True)
class Group:
    """Comparators that a version has to meet together, in the order in which they are written."""

    comparators: tuple[Comparator, ...]
    names_prerelease: bool = field(compare=False)

    def matches(self, version: Version, prereleases_allowed: bool) -> bool:
        """Whether *version* is in the group."""
        if version.is_prerelease and not (prereleases_allowed or self.names_prerelease):
            return False
        return all(comparator.has(version) for comparator in self.comparators)


@dataclass(frozen=True, slots=True)
class Range:
    """
    A range of versions; ranges are equal if their canonical texts are.

    The canonical text reads as the same range: without ``v``, ``x`` and ``=``, with one blank between comparators.

    Attributes:
        groups: A version has to be in one of them.
    """

    groups: tuple[Group, ...]

    @classmethod
    def parse(cls, text: str) -> "Range":
        """
        Read a range; an empty text and blanks are ``*``.

        Raises:
            ParseProblem: It is none.
        """
        if len(text) > MAX_RANGE_LENGTH:
            problem = f"the range has {len(text):,} characters"
            raise ParseProblem(MAX_RANGE_LENGTH, problem, f"write at most {MAX_RANGE_LENGTH}")
        return cls(_Reader(text).groups())

    def matches(self, version: Version, prereleases_allowed: bool = False) -> bool:
        """
        Whether *version* is in the range. Its revision is ignored.

        Args:
            version: The version.
            prereleases_allowed: Whether prereleases count as if each group named one. A bound ``<2.0.0`` excludes the
                prereleases of 2.0.0 nevertheless.
        """
        return any(group.matches(version, prereleases_allowed) for group in self.groups)

    def __str__(self) -> str:
        groups = [" ".join(comparator.text for comparator in group.comparators) for group in self.groups]
        spaced = f" {_OR} ".join(groups)
        # Without these blanks, the text is never longer than the one that was read.
        return spaced if len(spaced) <= MAX_RANGE_LENGTH else _OR.join(groups)


class _Reader:
    """Reads one text from left to right; a problem is reported where the text cannot be continued to a range."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def groups(self) -> tuple[Group, ...]:
        self._skip_blanks()
        if self._at_end:
            return (Group((_ANY,), names_prerelease=False),)
        groups = [self._group()]
        while not self._at_end:
            separator = self._position
            self._position += len(_OR)
            self._skip_blanks()
            if self._at_end or self._next_is(_OR):
                raise ParseProblem(separator, "no comparator comes after ||", "write one, or remove the ||")
            if len(groups) == MAX_GROUPS:
                problem = f"the range has more than {MAX_GROUPS} groups"
                raise ParseProblem(self._position, problem, f"write at most {MAX_GROUPS}")
            groups.append(self._group())
        return tuple(groups)

    def _group(self) -> Group:
        comparators = [self._comparator()]
        while self._read_separator():
            if len(comparators) == MAX_GROUPS:
                problem = f"the group has more than {MAX_GROUPS} comparators"
                raise ParseProblem(self._position, problem, f"write at most {MAX_GROUPS}")
            comparators.append(self._comparator())
        return Group(tuple(comparators), any(comparator.names_prerelease for comparator in comparators))

    def _read_separator(self) -> bool:
        """Read what separates comparators; whether another one follows in this group."""
        start = self._position
        self._skip_blanks()
        if self._at_end or self._next_is(_OR):
            return False
        comma = self._position
        if self._next_is(","):
            self._position += 1
            self._skip_blanks()
            if self._at_end or self._next_is(",") or self._next_is(_OR):
                raise ParseProblem(comma, "no comparator comes after ,", "write one, or remove the ,")
        elif comma == start:
            raise self._unexpected("separate comparators by a blank or a comma, and groups by ||")
        return True

    def _comparator(self) -> Comparator:
        start = self._position
        for separator in (",", _OR):
            if self._next_is(separator):
                remedy = f"write one, or remove the {separator}"
                raise ParseProblem(start, f"no comparator comes before {separator}", remedy)
        operator = self._operator()
        if operator:
            self._skip_blanks()
            if self._at_end:
                raise ParseProblem(start, f"no version comes after {operator}", f"write one, such as {operator}1.2")
        partial = self._partial()
        upper = self._upper(operator)
        if upper:
            interval = Interval(partial.start, upper.end)
            named = partial.names_prerelease or upper.names_prerelease
            return Comparator(f"{partial} {_HYPHEN} {upper}", interval, names_prerelease=named)
        interval = _INTERVALS[operator or "="](partial)
        written = f"{'' if operator == '=' else operator}{partial}"
        return Comparator(written, interval, operator == "!=", partial.names_prerelease)

    def _operator(self) -> str:
        """The operator at the position; empty: there is none, and a version without one means itself."""
        start = self._position
        while not self._at_end and self._text[self._position] in _OF_OPERATORS:
            self._position += 1
        operator = self._text[start : self._position]
        if not operator or operator in _INTERVALS:
            return operator
        most = 2 if operator[:2] in _INTERVALS else 1 if operator[0] in _INTERVALS else 0
        ours = _MISTAKEN_OPERATORS.get(operator)
        remedy = f"write {ours}" if ours else f"write one of {' '.join(_INTERVALS)}"
        raise ParseProblem(start + most, f"{operator} is no operator", remedy)

    def _upper(self, operator: str) -> Partial | None:
        """The upper end of a hyphen range; None: no hyphen follows."""
        start = self._position
        self._skip_blanks()
        if not self._next_is(_HYPHEN):
            self._position = start
            return None
        hyphen = self._position
        self._position += 1
        between_blanks = start < hyphen and not self._at_end and self._text[self._position] in _BLANKS
        self._skip_blanks()
        if operator:
            problem, remedy = (
                "a version with an operator starts no range with a hyphen",
                f"remove {operator} or the hyphen",
            )
            raise ParseProblem(hyphen, problem, remedy)
        if self._at_end:
            raise ParseProblem(hyphen, "no version comes after the hyphen", "write the upper end, such as 1.2 - 1.4")
        if not between_blanks:
            raise ParseProblem(hyphen, "the hyphen has no blank on both sides", "write it as in 1.2 - 1.4")
        return self._partial()

    def _partial(self) -> Partial:
        if self._next_is("v"):
            self._position += 1
        start = self._position
        numbers: list[int] = []
        count, wildcard = 0, ""
        while True:
            number = self._number(wildcard)
            count += 1
            if number is None:
                wildcard = wildcard or self._text[self._position - 1]
            else:
                numbers.append(number)
            if not self._next_is("."):
                break
            if count == 3:
                raise ParseProblem(
                    self._position, "a version has three numbers", f"write {self._text[start : self._position]}"
                )
            self._position += 1
        self._refuse_revision()
        if self._next_is(_HYPHEN) and len(numbers) < 3:
            self._refuse_prerelease(numbers)
        if len(numbers) < 3:
            return Partial(tuple(numbers))
        if self._next_is(_HYPHEN):
            self._skip(_OF_PRERELEASES)
            self._refuse_revision()
        return Partial(tuple(numbers), self._version(start))

    def _version(self, start: int) -> Version:
        try:
            return Version.parse(self._text[start : self._position])
        except ParseProblem as problem:
            raise problem.moved(start) from None

    def _number(self, wildcard: str) -> int | None:
        """The number at the position; None: it is open. No number comes after a *wildcard*."""
        if not self._at_end and self._text[self._position] in _WILDCARDS:
            self._position += 1
            return None
        start = self._position
        self._skip(_DIGITS)
        digits = self._text[start : self._position]
        if not digits:
            self._position = start
            raise self._unexpected("write a version such as 1.2.0 or 1.2, or * for every release")
        if wildcard:
            raise ParseProblem(start, f"the number {digits} comes after {wildcard}", f"write {wildcard}")
        for problem in number_problems(digits, start):
            raise problem
        return int(digits)

    def _refuse_revision(self) -> None:
        if self._next_is("+"):
            start = self._position
            self._skip(_OF_PRERELEASES | {"+"})
            revision = self._text[start : self._position]
            raise ParseProblem(start, "build metadata not allowed", f"remove {revision}, as ranges ignore revisions")

    def _refuse_prerelease(self, numbers: list[int]) -> None:
        hyphen = self._position
        self._skip(_OF_PRERELEASES)
        full = ".".join(map(str, _padded(tuple(numbers))))
        raise ParseProblem(
            hyphen,
            "a prerelease needs three numbers",
            f"write {full}{self._text[hyphen : self._position]}, or a range with blanks around its hyphen",
        )

    def _unexpected(self, remedy: str) -> ParseProblem:
        """The problem of the character at the position, or of the end."""
        start = self._position
        if self._at_end:
            return ParseProblem(start, "the range ends where a number is missing", remedy)
        end = start + 1
        while self._text[start].isalpha() and end < len(self._text) and self._text[end].isalnum():
            end += 1
        return ParseProblem(start, f"{self._text[start:end]!r} is no part of a range", remedy)

    @property
    def _at_end(self) -> bool:
        return self._position == len(self._text)

    def _next_is(self, text: str) -> bool:
        return self._text.startswith(text, self._position)

    def _skip_blanks(self) -> None:
        self._skip(_BLANKS)

    def _skip(self, characters: "str | frozenset[str]") -> None:
        while not self._at_end and self._text[self._position] in characters:
            self._position += 1
