"""Which labels are to be attached and detached."""

from collections.abc import Iterable, Iterator, Set
from typing import NamedTuple

from planner_svc.matching import Match, Matching
from planner_svc.references import names_of_resources
from services.core.model import LABEL, DiffStatus, InventoryEntry, Key, LabelMappingDiff, PlatformTraits


class Association(NamedTuple):
    """
    One association of a resource with a label, sorted by its fields; ids are empty while the plan still creates the
    thing.

    Attributes:
        resource: Key of the labelled object; with an empty name for a resource that no object names.
        resource_id: Its id.
        label: Key of the label; with an empty name for a label that no object names.
        label_id: Its id.
        wanted: Whether it is to be there.
        attached: Whether it is there.
    """

    resource: Key
    resource_id: str
    label: Key
    label_id: str
    wanted: bool
    attached: bool

    def diff(self) -> LabelMappingDiff:
        """What happens to it."""
        status = DiffStatus.REMOVE
        if self.wanted:
            status = DiffStatus.EXISTS if self.attached else DiffStatus.NEW
        return LabelMappingDiff(status, self.resource, self.resource_id, self.label, self.label_id)


def associations(matching: Matching, replaced: frozenset[Key], platform: PlatformTraits) -> list[Association]:
    """
    Compare the associations that are wanted, recorded and live.

    Labels that people attached on the platform are left alone, unless the resource or the label is deleted: the
    deletion would detach them unseen, and an undo could not bring them back. What takes the place of a replaced
    resource gets its labels.

    Args:
        matching: The matches.
        replaced: Keys whose resource is deleted and created anew: nothing is attached to the new one.
        platform: Which kinds carry labels.

    Returns:
        All associations that are wanted or go away, sorted by resource and label. Where a resource or label is
        replaced, one that is wanted goes away and comes back: two entries.
    """
    found: list[Association] = []
    for match in matching.matches.values():
        if platform.kinds[match.key.kind].labelled:
            labels = _labels(match, matching)
            found += _wanted(match, labels, matching, replaced)
            found += _unwanted(match, matching, replaced)
    deleted = replaced | {key for key, match in matching.matches.items() if match.is_deletion}
    covered = {(item.resource.kind, item.resource_id, item.label_id) for item in found if not item.wanted}
    lost = list(_lost(matching, deleted, replaced, covered))
    found += lost
    asked = {(item.resource, item.label) for item in found if item.wanted}
    found += _following(lost, asked, matching, deleted, replaced)
    return sorted(found)


def recorded_labels(entry: InventoryEntry, matching: Matching) -> Set[Key]:
    """The labels that the stack attached for *entry*, by the keys that they have now."""
    return {matching.renamed.get(label, label) for label in entry.associations}


def _wanted(match: Match, labels: Set[Key], matching: Matching, replaced: frozenset[Key]) -> Iterator[Association]:
    """What the package asks for; nothing for an object that left it."""
    is_new = match.live is None or match.key in replaced
    attached_ids = match.live.label_ids if match.live else ()
    resource_id = "" if match.live is None or is_new else match.live.id
    for label in labels:
        label_id = "" if label in replaced else label_id_of(label, matching)
        attached = not is_new and label not in replaced and label_id in attached_ids
        yield Association(match.key, resource_id, label, label_id, wanted=True, attached=attached)


def _unwanted(match: Match, matching: Matching, replaced: frozenset[Key]) -> Iterator[Association]:
    """What the stack recorded and the package does not ask for any more, nor the record of another stack."""
    if match.recorded is None:
        return
    key = match.live_key if match.key in replaced else match.key
    attached_ids = match.live.label_ids if match.live else ()
    resource_id = match.live.id if match.live else match.recorded.resource_id
    for label in unwanted_labels(match, matching):
        label_id = label_id_of(label, matching)
        if not match.is_wanted_elsewhere(label_id):
            yield Association(key, resource_id, label, label_id, wanted=False, attached=label_id in attached_ids)


def _lost(
    matching: Matching, deleted: Set[Key], replaced: Set[Key], covered: Set[tuple[str, str, str]]
) -> Iterator[Association]:
    """What goes with resources and labels that are *deleted*; *covered*: kind, id and label id of what goes anyway."""
    lost = {
        (match.live.kind, match.live.id) for key, match in matching.matches.items() if match.live and key in deleted
    }
    if not lost:
        return
    named = names_of_resources(matching, replaced)
    for resource in matching.live.values():
        own = (resource.kind, resource.id)
        for label_id in resource.label_ids:
            if (own in lost or (LABEL, label_id) in lost) and (*own, label_id) not in covered:
                key = named.get(own, Key(resource.kind, ""))
                label = named.get((LABEL, label_id), Key(LABEL, ""))
                yield Association(key, resource.id, label, label_id, wanted=False, attached=True)


def _following(
    lost: Iterable[Association],
    asked: Set[tuple[Key, Key]],
    matching: Matching,
    deleted: Set[Key],
    replaced: Set[Key],
) -> Iterator[Association]:
    """What of *lost* is attached again to what takes the place of a replaced resource, but for what is *asked* for."""
    heirs = {matching.matches[key].live_key: key for key in replaced}
    for each in lost:
        heir = heirs.get(each.resource)
        if heir and each.label not in deleted and (heir, each.label) not in asked:
            yield Association(heir, "", each.label, each.label_id, wanted=True, attached=False)


def unwanted_labels(match: Match, matching: Matching) -> set[Key]:
    """The labels that the stack recorded and the package does not ask for any more; none of those that are skipped."""
    if not (match.recorded and match.recorded.associations):
        return set()
    left = recorded_labels(match.recorded, matching) - _labels(match, matching)
    return {label for label in left if label not in matching.untouched}


def _labels(match: Match, matching: Matching) -> Set[Key]:
    """The labels that the package asks for: the parser saw to it that it has them; one that has no match is skipped."""
    if match.wanted is None:
        return frozenset()
    return {label for label in match.wanted.associations if label in matching.matches}


def label_id_of(label: Key, matching: Matching) -> str:
    """Id of a label that the package or the stack knows; empty while it is to be created."""
    match = matching.matches.get(label)
    if match and match.live:
        return match.live.id
    if match and match.is_removal and match.recorded:
        return match.recorded.resource_id
    entry = matching.untouched.get(label) or matching.released.get(label)
    return entry.resource_id if entry else ""
