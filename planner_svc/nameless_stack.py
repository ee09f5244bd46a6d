"""
Chooses the stack without a name for a package whose request names no stack (docs/http.md, "Which stack an apply without
one joins").
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from services.core.model import Key
from services.core.source_names import UNNAMED


@dataclass(frozen=True, slots=True)
class Candidate:
    """
    A stack without a name that has objects with keys of the package.

    Attributes:
        stack_id: Its id.
        sources: Names of the sources of its last apply that changed anything.
        key_count: Number of all its keys.
        common: The keys that it has in common with the package, each with whether its resource still has the display
            name of the object; a resource that is gone counts as one that has.
    """

    stack_id: str
    sources: Sequence[str]
    key_count: int
    common: Mapping[Key, bool]


def chosen(keys: Collection[Key], sources: Sequence[str], candidates: Iterable[Candidate]) -> str:
    """
    Choose the stack that holds the same template as a package.

    It is the same template if

    - the keys of one contain the keys of the other, and at least one of the common objects has kept its display name:
      two templates may have the same few keys, such as ``dashboard``, for different things; or
    - the sources have the same names, and at least half of the keys of the smaller one are common.

    Args:
        keys: Keys of all objects of the package.
        sources: Names of its sources.
        candidates: The stacks, the newest first.

    Returns:
        The id of the stack with the most common keys, of several the newest one; empty if none holds the template.
    """
    same = [each for each in candidates if _is_same_template(keys, sources, each)]
    best = max(same, key=lambda each: len(each.common), default=None)
    return best.stack_id if best else ""


def _is_same_template(keys: Collection[Key], sources: Sequence[str], candidate: Candidate) -> bool:
    smaller, common = min(len(keys), candidate.key_count), len(candidate.common)
    if not common:
        return False
    is_named = bool(sources) and UNNAMED.isdisjoint(sources)
    if is_named and {*sources} == {*candidate.sources} and 2 * common >= smaller:
        return True
    return common == smaller and any(candidate.common.values())
