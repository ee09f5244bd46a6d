"""The objects and kinds that a caller skips (docs/reference/engine.md, "Matching")."""

from collections.abc import Iterable

from services.core.errors import RequestInvalid
from services.core.model import Key, Object, Package, StackRecord
from services.kinds.kind_words import unknown_kind
from services.kinds.registry import ACCEPTED, FAMILY_NAMES, family_and_name, family_of, kinds_of


def skipped_keys(skips: Iterable[Key]) -> frozenset[Key]:
    """
    The keys that *skips* name, kind by kind; an empty name stands for all objects of a kind.

    The kinds of a family, such as all kinds of checks, share their names and count as one. Each of them stands for all
    of them, and so does the name of the family.
    """
    return frozenset(Key(kind, skip.name) for skip in skips for kind in _relatives(skip.kind))


def refuse_unknown_kinds(skips: Iterable[Key]) -> None:
    """
    Refuse *skips* with an unknown kind.

    Raises:
        RequestInvalid: Names the unknown kind and its position in the list.
    """
    for position, skip in enumerate(skips):
        if skip.kind not in ACCEPTED:
            raise RequestInvalid(f"options.skip[{position}].kind", unknown_kind(skip.kind))


def _relatives(kind: str) -> tuple[str, ...]:
    """All kinds of a family; *kind* is one of its kinds, or the name of the family."""
    return kinds_of(FAMILY_NAMES.get(kind) or family_of(kind))


def idle_skips(skips: Iterable[Key], package: Package, stack: StackRecord) -> list[str]:
    """A warning about each skip of an object that neither the package nor the stack has: it has no effect."""
    named = [skip for skip in skips if skip.name]
    if not named:
        return []
    items = {family_and_name(item.key): item for item in package.objects}
    names = items.keys() | {family_and_name(key) for entry in stack.resources for key in (entry.key, entry.object_key)}
    return [
        f"{skip.kind}:{skip.name} is to be skipped, and is neither in the package nor in the stack"
        + _meant(skip, items.values())
        for skip in named
        if not any((family_of(kind), skip.name) in names for kind in _relatives(skip.kind))
    ]


def _meant(skip: Key, items: Iterable[Object]) -> str:
    """A hint at the object whose display name is the name of *skip*; empty when there is none."""
    named = [
        item.key.name
        for item in items
        if item.spec.display_name == skip.name and item.key.kind in _relatives(skip.kind)
    ]
    return f"; did you mean its metadata.name, {skip.kind}:{named[0]}?" if named else ""
