"""Versions of packages: SemVer 2.0.0 with a revision (docs/dependencies.md, "Versions")."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cmp_to_key
from typing import Any

import semver

MAX_VERSION_LENGTH = 64
"""Number of characters of a version, without ``v``."""

MAX_DIGITS = 9
"""Number of digits of any number of a version."""

_FOREIGN = re.compile(r"[^0-9A-Za-z.+-]")
_DIGITS = re.compile(r"[0-9]+")
_NUMBERS = ("major", "minor", "patch")

Precedence = tuple[int, int, int, bool, Any]
"""
Compares versions without their revisions: the three numbers, whether the version is a release, and its prerelease.

The last part is None for a release, and otherwise compared by ``semver``.
"""

_compared = cmp_to_key(semver.Version.compare)


class ParseProblem(ValueError):
    """
    A text is no version, or no range of versions.

    Attributes:
        position: Index of the first character that is wrong; the length of the text where something is missing at its
            end.
        text: What is wrong, without a full stop.
        remedy: What to write instead, without a full stop.
    """

    def __init__(self, position: int, text: str, remedy: str) -> None:
        super().__init__(f"{text}: {remedy}")
        self.position = position
        self.text = text
        self.remedy = remedy

    def moved(self, by: int) -> "ParseProblem":
        """The same problem in a longer text, in which the version starts at *by*."""
        return ParseProblem(self.position + by, self.text, self.remedy)


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """
    One version, ordered as SemVer orders versions, and by revision where these are equal; no revision comes first.

    Versions are equal exactly when their canonical texts are.

    Attributes:
        precedence: Its place in the order of SemVer, which ignores the revision.
        text: The canonical text.
        numbers: Major, minor and patch.
        prerelease: Its identifiers as text, such as ``rc.1``; empty: the version is a release.
        revision: The number after ``+``, of the same content packaged anew; None: it has none.
    """

    precedence: Precedence = field(hash=False)
    _revision_rank: int = field(hash=False, repr=False)
    text: str = field(compare=False, hash=True)
    numbers: tuple[int, int, int] = field(compare=False)
    prerelease: str = field(compare=False)
    revision: int | None = field(compare=False)

    @classmethod
    def parse(cls, text: str) -> "Version":
        """
        Read a version, with or without a leading ``v``.

        Raises:
            ParseProblem: It is none.
        """
        body = text.removeprefix("v")
        # semver says only that a text is no version. It also accepts any text as a revision, and numbers of any length.
        problem = next(_problems(body), None)
        if problem:
            raise problem.moved(len(text) - len(body))
        parsed = semver.Version.parse(body)
        numbers = (parsed.major, parsed.minor, parsed.patch)
        prerelease = parsed.prerelease or ""
        revision = None if parsed.build is None else int(parsed.build)
        return cls(
            precedence=(*numbers, not prerelease, _compared(parsed) if prerelease else None),
            _revision_rank=-1 if revision is None else revision,
            text=body,
            numbers=numbers,
            prerelease=prerelease,
            revision=revision,
        )

    @property
    def is_prerelease(self) -> bool:
        """Whether it comes before the release of its numbers."""
        return bool(self.prerelease)

    @property
    def release(self) -> "Version":
        """The release of its numbers, if it is a prerelease; else itself."""
        return Version.parse(".".join(map(str, self.numbers))) if self.is_prerelease else self

    def __str__(self) -> str:
        return self.text


def _problems(body: str) -> Iterator[ParseProblem]:
    """What keeps *body* from being a version; only the first problem counts, as later rules rely on earlier ones."""
    if not body:
        yield ParseProblem(0, "the version is empty", "write one such as 1.4.0")
    # First of all, so that no other problem quotes a long text.
    if len(body) > MAX_VERSION_LENGTH:
        problem = f"the version has {len(body):,} characters"
        yield ParseProblem(MAX_VERSION_LENGTH, problem, f"write at most {MAX_VERSION_LENGTH}")
    foreign = _FOREIGN.search(body)
    if foreign:
        yield ParseProblem(
            foreign.start(),
            f"{foreign.group()!r} cannot be in a version",
            "write three numbers, such as 1.4.0, and -PRERELEASE or +REVISION if it has them",
        )
    core, prerelease, revision = _parts(body)
    yield from _core_problems(core)
    if prerelease is not None:
        yield from _prerelease_problems(prerelease, len(core) + 1)
    if revision is not None:
        yield from _revision_problems(revision, len(body) - len(revision))


def _parts(body: str) -> tuple[str, str | None, str | None]:
    """The numbers, the prerelease and the revision as they are written; None: there is no ``-``, no ``+``."""
    before, plus, revision = body.partition("+")
    core, hyphen, prerelease = before.partition("-")
    return core, prerelease if hyphen else None, revision if plus else None


def _core_problems(core: str) -> Iterator[ParseProblem]:
    position = 0
    written = core.split(".")
    for name, number in zip(_NUMBERS, written, strict=False):
        if not number:
            yield ParseProblem(position, f"the {name} number is missing", "write three numbers, such as 1.4.0")
        yield from number_problems(number, position)
        position += len(number) + 1
    if len(written) < len(_NUMBERS):
        remedy = f"write {'.'.join([*written, '0', '0'][: len(_NUMBERS)])}"
        yield ParseProblem(len(core), f"a version has three numbers, not {len(written)}", remedy)
    if len(written) > len(_NUMBERS):
        remedy = f"write {'.'.join(written[: len(_NUMBERS)])}, and a revision as +1"
        yield ParseProblem(position - 1, f"a version has three numbers, not {len(written)}", remedy)


def _prerelease_problems(prerelease: str, position: int) -> Iterator[ParseProblem]:
    """What keeps *prerelease*, which starts at *position*, from being the identifiers of a prerelease."""
    for identifier in prerelease.split("."):
        if not identifier:
            yield ParseProblem(position, "an identifier of the prerelease is empty", "write one such as -rc.1")
        if _DIGITS.fullmatch(identifier):
            yield from number_problems(identifier, position)
        position += len(identifier) + 1


def _revision_problems(revision: str, position: int) -> Iterator[ParseProblem]:
    if not revision:
        yield ParseProblem(position, "the revision is missing", "write its number, such as +1, or leave out the +")
    yield from number_problems(revision, position, "a revision is a number")


def number_problems(text: str, position: int, rule: str = "") -> Iterator[ParseProblem]:
    """What keeps *text*, which starts at *position*, from being a number of a version; *rule* says that it is one."""
    digits = _DIGITS.match(text)
    end = digits.end() if digits else 0
    if end < len(text):
        yield ParseProblem(
            position + end, f"{rule or 'the numbers of a version have digits only'}, not {text!r}", "write digits"
        )
    if text.startswith("0") and len(text) > 1:
        remedy = f"write {text.lstrip('0') or '0'}"
        yield ParseProblem(position, f"the number {text} starts with a 0", remedy)
    if len(text) > MAX_DIGITS:
        yield ParseProblem(
            position + MAX_DIGITS, f"the number {text} has {len(text)} digits", f"write at most {MAX_DIGITS}"
        )
