"""Compares specs by their meaning to a platform, which may be equal though their texts differ."""

import copy
from collections.abc import Sequence
from typing import Any

from services.core.diff import changes
from services.core.model import DataLoss, FieldChange, Spec
from services.kinds.format.canonical import canonical_text
from services.kinds.registry import KINDS


def comparable(kind: str, spec: Spec, set_paths: Sequence[str] = ()) -> Spec:
    """
    The form of *spec* that is equal for all specs of a *kind* with the same meaning.

    Default words of the kind become empty texts, and the lists at *set_paths*, whose order has no meaning to the
    platform, are sorted. The form is for comparisons only; the spec of the package is written.
    """
    words = KINDS[kind].default_words if kind in KINDS else {}
    # A driver may leave out a field with the default.
    changed = {field: "" for field, word in words.items() if spec.value.get(field, word) == word}
    if not (changed or set_paths):
        return spec
    value = copy.deepcopy(dict(spec.value)) | changed
    for path in set_paths:
        *holders, name = path.split("/")[1:]
        holder: Any = value
        for step in holders:
            holder = holder.get(step) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and isinstance(holder.get(name), list):
            holder[name].sort(key=canonical_text)
    return Spec(canonical_text(value), spec.display_name, value)


def differences(
    old_kind: str, old: Spec, kind: str, new: Spec, set_paths: Sequence[str] = ()
) -> tuple[FieldChange, ...]:
    """
    The fields with a different meaning to the platform in two specs, sorted by path.

    Specs of one kind with equal texts are equal, and are not parsed.

    Raises:
        UnreadableSpecError: The text of a spec is no JSON object.
    """
    if old_kind == kind and old == new:
        return ()
    return changes(comparable(old_kind, old, set_paths), comparable(kind, new, set_paths))


def loss_of(kind: str, old: Spec, new: Spec) -> DataLoss | None:
    """
    The data that a resource of *kind* loses when its spec changes from *old* to *new*; None: it loses none.

    Raises:
        UnreadableSpecError: The text of a spec is no JSON object.
    """
    find = KINDS[kind].loss_of if kind in KINDS else None
    return find(old.value, new.value) if find and old != new else None
