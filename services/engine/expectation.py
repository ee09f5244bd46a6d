"""
The content that an operation expects of a resource before it overwrites or deletes it (docs/reference/engine.md,
"Expectations").
"""

from typing import NamedTuple

from services.core.diff import shown_values
from services.core.model import FieldChange, Reference, Resource, Spec
from services.core.text_lists import listed
from services.kinds.comparing import differences

_SHOWN = 5


class Expectation(NamedTuple):
    """
    The content that a resource has to have, so that it may be overwritten or deleted.

    Attributes:
        spec_json: Its spec as canonical JSON text.
        references: Its references, sorted by pointer.
        label_ids: The labels on it. They count for a deletion only, which would remove them too.
    """

    spec_json: str
    references: tuple[Reference, ...] = ()
    label_ids: tuple[str, ...] = ()


def describe_changes(expected: Expectation, live: Resource) -> str:
    """
    The differences between *expected* and *live*, in one sentence.

    Raises:
        UnreadableSpecError: The text of a spec is no JSON object.
    """
    old = Spec(expected.spec_json, "")
    parts = list(map(_shown, differences(live.kind, old, live.kind, live.spec)))
    had = {each.pointer: each.id for each in expected.references}
    has = {each.pointer: each.id for each in live.references}
    parts += [
        f"{pointer} refers to {has.get(pointer, 'nothing')}, expected {had.get(pointer, 'nothing')}"
        for pointer in sorted(had.keys() | has.keys())
        if had.get(pointer) != has.get(pointer)
    ]
    if not parts:
        labels = sorted({*live.label_ids} ^ {*expected.label_ids})
        parts = [f"label {label} was {'attached' if label in live.label_ids else 'detached'}" for label in labels]
    changes = listed(parts, _SHOWN, "; ", "fields") or "it differs from the expectation"
    return f"another writer changed it: {changes}"


def _shown(change: FieldChange) -> str:
    old, new = shown_values(change)
    return f"{change.path} is {new}, expected {old}"
