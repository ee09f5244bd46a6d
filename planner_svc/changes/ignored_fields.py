"""
Ignored fields: an update leaves them as the platform has them (docs/reference/engine.md, "Policies", ``ignore``).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from planner_svc.matching.match import Match, Matching
from services.core.model import Key, PlatformTraits, Spec, StackRecord
from services.kinds.comparing import differences as spec_differences
from services.kinds.format.canonical import spec_of
from services.kinds.policy import ignores

EVERYTHING = ""
"""The pointer to the whole spec."""

_MISSING = object()
_ASSOCIATIONS = "/associations"

Segments = Sequence[str]
"""The remaining segments of a pointer, during the descent into a value."""


def with_ignored(matching: Matching, stack: StackRecord) -> Matching:
    """*matching*, where the ignored fields of a desired object have their live values."""
    if not matching.has_policies(stack):
        return matching
    changed = {
        key: _with_live_fields(match, ignored, matching)
        for key, match in matching.matches.items()
        if match.desired and match.live and (ignored := matching.policy(stack, key).ignore)
    }
    return replace(matching, matches={**matching.matches, **changed})


def used_as_they_are(
    matching: Matching, stack: StackRecord, platform: PlatformTraits
) -> tuple[Matching, dict[Key, str]]:
    """
    *matching*, where the desired spec of a shared resource is its live spec (``share: always``).

    Returns:
        The matches, and a remark for each shared resource; empty if the resource is as the package declares it.
    """
    if stack.policy.get("share") != "always":
        return matching, {}
    shared = {
        key: match
        for key, match in matching.matches.items()
        if match.desired and match.live and match.owner and match.live.kind == key.kind
    }
    changed = {key: _with_live_fields(match, (EVERYTHING,), matching) for key, match in shared.items()}
    remarks = {key: _differing(match, platform) for key, match in shared.items()}
    return replace(matching, matches={**matching.matches, **changed}), remarks


def _differing(match: Match, platform: PlatformTraits) -> str:
    assert match.desired and match.live and match.owner  # noqa: S101, PT018 - a shared resource has all of them
    sets = platform.kinds[match.key.kind].set_paths
    kind = match.key.kind
    changes = spec_differences(kind, match.live.spec, kind, match.desired.spec, sets)
    fields = ", ".join(change.path.lstrip("/") for change in changes)
    return f"{match.key} is used as {match.owner.called} has it, which differs in {fields}" if changes else ""


def _with_live_fields(match: Match, ignored: tuple[str, ...], matching: Matching) -> Match:
    assert match.desired  # noqa: S101 - only objects ignore anything
    assert match.live  # noqa: S101 - a resource that is created has all fields of the package
    of_labels = tuple(path for path in ignored if path == _ASSOCIATIONS or path.startswith(f"{_ASSOCIATIONS}/"))
    paths = [path for path in ignored if path not in of_labels]
    item = match.desired
    if paths:
        item = item._replace(spec=with_values_of(match.live.spec, item.spec, paths))
    if not of_labels:
        return match._replace(desired=item, ignored=ignored)

    def is_kept(label: Key) -> bool:
        """Whether a label stays in the sets of the stack: it is not ignored, or it is attached."""
        if not any(ignores(path, f"{_ASSOCIATIONS}/{label.name}") for path in of_labels):
            return True
        label_match = matching.matches.get(label)
        return bool(match.live and label_match and label_match.live and label_match.live.id in match.live.label_ids)

    recorded = match.recorded
    if recorded:
        labels = {label for label in recorded.associations if is_kept(label)}
        # An ignored label that is attached stays, even if the package no longer has it.
        ignored_ones = {label for label in labels if label not in item.associations and _is_ignored(label, of_labels)}
        recorded = recorded._replace(associations=tuple(sorted(labels)))
    else:
        ignored_ones = set()
    labels = {label for label in item.associations if is_kept(label)} | ignored_ones
    return match._replace(desired=item._replace(associations=tuple(sorted(labels))), recorded=recorded, ignored=ignored)


def _is_ignored(label: Key, of_labels: Sequence[str]) -> bool:
    return any(ignores(path, f"{_ASSOCIATIONS}/{label.name}") for path in of_labels)


def with_values_of(live: Spec, desired: Spec, paths: Sequence[str]) -> Spec:
    """*desired* with the values of *live* at *paths*, which are pointers of a policy."""
    value = _merge(dict(desired.value), dict(live.value), [path.split("/")[1:] for path in paths])
    return desired if value == desired.value else spec_of(value)


def _merge(desired: Any, live: Any, paths: Sequence[Segments]) -> Any:
    """*desired* with the values of *live* at *paths*; items of lists are merged only if both lists have one length."""
    if not all(paths):
        return live
    if isinstance(desired, dict) and isinstance(live, dict):
        merged = {}
        for key in [*desired, *(key for key in live if key not in desired)]:
            step = key.replace("~", "~0").replace("/", "~1")
            below = [path[1:] for path in paths if path[0] in ("*", step)]
            value = desired.get(key, _MISSING)
            if below:
                value = _merge(value, live.get(key, _MISSING), below)
            if value is not _MISSING:
                merged[key] = value
        return merged
    if isinstance(desired, list) and isinstance(live, list) and len(desired) == len(live):
        return [
            _merge(left, right, below)
            if (below := [path[1:] for path in paths if path[0] in ("*", str(index))])
            else left
            for index, (left, right) in enumerate(zip(desired, live, strict=True))
        ]
    return desired
