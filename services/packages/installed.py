"""The packages that are installed in a stack."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from services.packages.manifest import Requirement
from services.packages.ranges import Range
from services.packages.versions import ParseProblem, Version


class PackageOrigin(Enum):
    """Why a package is installed."""

    MANUAL = "manual"
    DEPENDENCY = "dependency"


@dataclass(frozen=True, slots=True)
class InstalledPackage:
    """
    A version of a package in a stack.

    Attributes:
        name: The package.
        version: Its version.
        repository: Where it comes from; None: a folder.
        origin: Whether it was requested, or came along.
        is_pinned: Nothing moves or removes it.
        is_suspended: Nothing moves or removes it, and it is not applied.
        requested: The range that was requested last; None: none.
        requires: What its manifest requires, as recorded.
        digest: ``services.packages.digests.digest_of`` of its files; empty: not known yet.
        content_digest: Digest of its files as one text; empty: not known yet.
    """

    name: str
    version: Version
    repository: str | None = None
    origin: PackageOrigin = PackageOrigin.MANUAL
    is_pinned: bool = False
    is_suspended: bool = False
    requested: Range | Version | None = None
    requires: tuple[Requirement, ...] = ()
    digest: str = ""
    content_digest: str = ""


class PackageMove(NamedTuple):
    """
    An installed package that differs between two states of a stack.

    Attributes:
        name: Its name.
        old: Its version before; empty: it was not installed.
        new: Its version after; empty: it is not installed. Equal versions: what is recorded of it differs.
    """

    name: str
    old: str
    new: str


def moves_between(before: Iterable[InstalledPackage], after: Iterable[InstalledPackage]) -> tuple[PackageMove, ...]:
    """The packages that differ, sorted by name."""
    old, new = ({each.name: each for each in packages} for packages in (before, after))
    return tuple(
        PackageMove(name, old[name].version.text if name in old else "", new[name].version.text if name in new else "")
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    )


def revisions_with(
    versions: Mapping[str, Version], history: Sequence[tuple[int, Collection[PackageMove]]]
) -> dict[str, int]:
    """
    The newest revision of a stack that has each of *versions*, by package; without those that none has.

    Args:
        versions: A version of each of some packages.
        history: The numbers of the revisions, newest first, each with the packages in which it differs from the one
            before.
    """
    numbers: dict[str, int] = {}
    before = [number for number, _ in history[1:]]
    for (number, moves), earlier in zip(history, [*before, None], strict=True):
        for move in moves:
            version = versions[move.name].text if move.name in versions else None
            if version == move.new:
                numbers.setdefault(move.name, number)
            elif version == move.old and earlier is not None:
                numbers.setdefault(move.name, earlier)
    return numbers


def versions_in(text: str) -> Range | Version | None:
    """
    What a request or a record names: a range, or one version with its revision; None: nothing.

    Raises:
        ParseProblem: The text is neither.
    """
    if not text:
        return None
    try:
        return Range.parse(text)
    except ParseProblem as problem:
        try:
            return Version.parse(text)
        except ParseProblem:
            raise problem from None
