"""What a caller leaves out of a plan (docs/reference/engine.md, "Matching")."""

from collections.abc import Iterable

from services.core.errors import RequestInvalid
from services.core.model import Key, Object, Package, StackRecord
from services.kinds.kind_words import unknown_kind
from services.kinds.registry import ACCEPTED, FAMILY_NAMES, family_of, kinds_of


def skipped_keys(skips: Iterable[Key]) -> frozenset[Key]:
    """
    What *skips* name, kind by kind; an empty name stands for all of a kind.

    The kinds of a family, such as all kinds of checks, share their names and count as one: each of them stands for all,
    as does the name of the family.
    """
    return frozenset(Key(kind, skip.name) for skip in skips for kind in _relatives(skip.kind))


def refuse_unknown_kinds(skips: Iterable[Key]) -> None:
    """
    Refuse *skips* of what is no kind.

    Raises:
        RequestInvalid: Names what is no kind, and its place.
    """
    for place, skip in enumerate(skips):
        if skip.kind not in ACCEPTED:
            raise RequestInvalid(f"skip[{place}].kind", unknown_kind(skip.kind))


def _relatives(kind: str) -> tuple[str, ...]:
    """The kinds of the family that *kind* is of, or names."""
    return kinds_of(FAMILY_NAMES.get(kind) or family_of(kind))


def idle_skips(skips: Iterable[Key], package: Package, stack: StackRecord) -> list[str]:
    """A warning about each object that *skips* name and that neither package nor stack has: it protects nothing."""
    named = [skip for skip in skips if skip.name]
    if not named:
        return []
    items = {(family_of(item.key.kind), item.key.name): item for item in package.objects}
    known = items.keys() | {
        (family_of(key.kind), key.name) for entry in stack.resources for key in (entry.key, entry.object_key)
    }
    return [
        f"{skip.kind}:{skip.name} is to be skipped, and is neither in the package nor in the stack"
        + _meant(skip, items.values())
        for skip in named
        if not any((family_of(kind), skip.name) in known for kind in _relatives(skip.kind))
    ]


def _meant(skip: Key, items: Iterable[Object]) -> str:
    """The object that has the name as its display name, as a question; empty when none has."""
    named = [
        item.key.name
        for item in items
        if item.spec.display_name == skip.name and item.key.kind in _relatives(skip.kind)
    ]
    return f"; did you mean its metadata.name, {skip.kind}:{named[0]}?" if named else ""
