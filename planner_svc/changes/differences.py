"""The differences between the platform and the desired state, object by object."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner_svc.matching.desired import Desired
from planner_svc.matching.match import Match, Matching
from planner_svc.matching.references import (
    References,
    live_references,
    names_of_resources,
    reference_changes,
    wanted_references,
)
from services.core.diff import touches
from services.core.model import DataLoss, FieldChange, Key, PlatformTraits, Resource, ResourceKey
from services.kinds.comparing import differences as spec_differences
from services.kinds.comparing import loss_of
from services.kinds.policy import ignores


@dataclass(frozen=True, slots=True)
class Differences:
    """
    The differences that a plan removes.

    Attributes:
        changed: The differences of live resource and desired object, sorted by path, for each key that has both.
        replaced: The keys whose resource is replaced, each with the reason: a field that cannot change, or its kind.
        references: The references that desired objects are to have.
        names: The key of each live resource that has one.
        losses: The data that updates delete, for each key whose update deletes any.
        missing_references: References to objects that are skipped and do not exist, each as text.
    """

    changed: Mapping[Key, tuple[FieldChange, ...]]
    replaced: Mapping[Key, str]
    references: Mapping[Key, References]
    names: Mapping[ResourceKey, Key]
    losses: Mapping[Key, DataLoss]
    missing_references: Sequence[str] = ()

    def live_references(self, resource: Resource) -> References:
        """The references of a live resource."""
        return live_references(resource, self.names)


def differences_of(desired: Desired, matching: Matching, platform: PlatformTraits) -> Differences:
    """
    Compare the desired objects with the live resources.

    Raises:
        UnreadableSpecError: The spec of a live resource cannot be read.
    """
    changed = spec_changes(matching, platform)
    # References do not chain: no kind refers to a kind that has references, so one reference never changes another.
    replaced = replacements(matching, changed, platform).keys()
    references, missing = wanted_references(desired, matching, replaced, platform)
    names = names_of_resources(matching, replaced)
    for key, match in matching.matches.items():
        if match.ignored and match.live and key in references:
            references[key] = _with_live(references[key], live_references(match.live, names), match.ignored)
    for key, match in matching.matches.items():
        if match.live and match.desired and (match.live.references or key in references):
            before, after = live_references(match.live, names), references.get(key, ())
            changed[key] = _with_references(changed[key], before, after)
    reasons = replacements(matching, changed, platform)
    losses = {
        key: loss
        for key, differing in changed.items()
        if differing and key not in reasons and (loss := loss_in(matching.matches[key]))
    }
    return Differences(changed, reasons, references, names_of_resources(matching, reasons.keys()), losses, missing)


def _with_references(changed: Sequence[FieldChange], before: References, after: References) -> tuple[FieldChange, ...]:
    """
    *changed* with the references that change.

    If a reference leads to the same resource on both sides, its text in the spec does not count: the metadata.name of
    the object that it names has changed since the spec was written.
    """
    differing = reference_changes(before, after)
    unchanged = {each.pointer for each in (*before, *after)} - {change.path for change in differing}
    fields = [change for change in changed if change.path not in unchanged]
    paths = {change.path for change in fields}
    fields += [change for change in differing if change.path not in paths]
    return tuple(sorted(fields, key=lambda change: change.path))


def _with_live(desired: References, live: References, ignored: Sequence[str]) -> References:
    """*desired*, with the live reference at each pointer that is ignored."""
    kept = {each.pointer: each for each in desired if not any(ignores(path, each.pointer) for path in ignored)}
    kept |= {each.pointer: each for each in live if any(ignores(path, each.pointer) for path in ignored)}
    return tuple(kept[pointer] for pointer in sorted(kept))


def spec_changes(matching: Matching, platform: PlatformTraits) -> dict[Key, tuple[FieldChange, ...]]:
    """
    The differences of the specs of live resource and desired object, for each key that has both.

    Raises:
        UnreadableSpecError: The spec of a live resource cannot be read.
    """
    changes: dict[Key, tuple[FieldChange, ...]] = {}
    for key, match in matching.matches.items():
        if match.live and match.desired:
            sets = platform.kinds[key.kind].set_paths
            changes[key] = spec_differences(match.live.kind, match.live.spec, key.kind, match.desired.spec, sets)
    return changes


def loss_in(match: Match) -> DataLoss | None:
    """
    The data that the update of a resource to its object deletes; None: it deletes none, or there is no update.

    Raises:
        UnreadableSpecError: The spec of the resource cannot be read.
    """
    if match.live is None or match.desired is None or match.live.kind != match.key.kind:
        return None
    return loss_of(match.key.kind, match.live.spec, match.desired.spec)


def replacements(
    matching: Matching, changed: Mapping[Key, tuple[FieldChange, ...]], platform: PlatformTraits
) -> dict[Key, str]:
    """The keys whose resource cannot be *changed* as desired, each with the reason: an immutable field, or its kind."""
    reasons: dict[Key, str] = {}
    for key, differing in changed.items():
        live = matching.matches[key].live
        if live and live.kind != key.kind:
            reasons[key] = "its kind"
            continue
        for path in platform.kinds[key.kind].immutable_paths:
            if touches(path, differing):
                reasons[key] = path.lstrip("/")
                break
    return reasons
