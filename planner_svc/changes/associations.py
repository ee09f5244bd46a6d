"""The labels that a plan attaches and detaches."""

from collections.abc import Iterable, Iterator, Set
from typing import NamedTuple

from planner_svc.matching.match import Match, Matching
from planner_svc.matching.references import names_of_resources
from services.core.model import LABEL, DiffStatus, InventoryEntry, Key, PlatformTraits


class Association(NamedTuple):
    """
    One association of a resource with a label, sorted by its fields. Ids of resources that the plan creates are empty.

    Attributes:
        resource: Key of the labelled object; with an empty name for a resource that no object names.
        resource_id: Its id.
        label: Key of the label; with an empty name for a label that no object names.
        label_id: Its id.
        is_desired: Whether the label is to be attached.
        attached: Whether the label is attached.
    """

    resource: Key
    resource_id: str
    label: Key
    label_id: str
    is_desired: bool
    attached: bool

    @property
    def status(self) -> DiffStatus:
        """The state of the association in the diffs."""
        if not self.is_desired:
            return DiffStatus.REMOVE
        return DiffStatus.EXISTS if self.attached else DiffStatus.NEW


def associations(matching: Matching, replaced: frozenset[Key], platform: PlatformTraits) -> list[Association]:
    """
    Compare the associations that are desired, recorded and live.

    Labels that were attached outside the stack stay, unless the resource or the label is deleted. Then the plan has
    steps that detach them: otherwise the deletion would detach them, and its undo could not attach them again. The
    replacement of a resource gets the labels of the resource.

    Args:
        matching: The matches.
        replaced: Keys whose resource is replaced: the new one has no labels at first.
        platform: Which kinds carry labels.

    Returns:
        All associations that are desired or end, sorted by resource and label. A desired association of a replaced
        resource or label has two entries: one that ends, and one that is desired.
    """
    links: list[Association] = []
    for match in matching.matches.values():
        if platform.kinds[match.key.kind].labelled:
            labels = _labels(match, matching)
            links += _declared_associations(match, labels, matching, replaced)
            links += _unwanted(match, matching, replaced)
    deleted = replaced | {key for key, match in matching.matches.items() if match.is_deletion}
    covered = {(item.resource.kind, item.resource_id, item.label_id) for item in links if not item.is_desired}
    lost = list(_lost(matching, deleted, replaced, covered))
    links += lost
    desired_pairs = {(item.resource, item.label) for item in links if item.is_desired}
    links += _following(lost, desired_pairs, matching, deleted, replaced)
    return sorted(links)


def recorded_labels(entry: InventoryEntry, matching: Matching) -> Set[Key]:
    """The labels that the stack attached for *entry*, by their present keys; none that is another resource now."""
    labels = {matching.renamed.get(label, label) for label in entry.associations}
    return {label for label in labels if label not in matching.matches or not matching.matches[label].is_another}


def _declared_associations(
    match: Match, labels: Set[Key], matching: Matching, replaced: frozenset[Key]
) -> Iterator[Association]:
    """The associations that the package declares; none for an object that left it."""
    is_new = match.live is None or match.key in replaced
    attached_ids = match.live.label_ids if match.live else ()
    resource_id = "" if match.live is None or is_new else match.live.id
    for label in labels:
        label_id = "" if label in replaced else label_id_of(label, matching)
        attached = not is_new and label not in replaced and label_id in attached_ids
        yield Association(match.key, resource_id, label, label_id, is_desired=True, attached=attached)


def _unwanted(match: Match, matching: Matching, replaced: frozenset[Key]) -> Iterator[Association]:
    """The recorded associations that neither the package nor the record of another stack has any more."""
    if match.recorded is None:
        return
    key = match.live_key if match.key in replaced else match.key
    attached_ids = match.live.label_ids if match.live else ()
    resource_id = match.live.id if match.live else match.recorded.resource_id
    for label in unwanted_labels(match, matching):
        label_id = label_id_of(label, matching)
        if not match.is_wanted_elsewhere(label_id):
            yield Association(key, resource_id, label, label_id, is_desired=False, attached=label_id in attached_ids)


def _lost(
    matching: Matching, deleted: Set[Key], replaced: Set[Key], covered: Set[tuple[str, str, str]]
) -> Iterator[Association]:
    """
    The other associations of resources and labels that are *deleted*.

    *covered* has kind, id and label id of the associations that end anyway.
    """
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
                yield Association(key, resource.id, label, label_id, is_desired=False, attached=True)


def _following(
    lost: Iterable[Association],
    desired_pairs: Set[tuple[Key, Key]],
    matching: Matching,
    deleted: Set[Key],
    replaced: Set[Key],
) -> Iterator[Association]:
    """The *lost* associations that the replacements of their resources get again, except the *desired_pairs*."""
    replacements = {matching.matches[key].live_key: key for key in replaced}
    for each in lost:
        replacement = replacements.get(each.resource)
        if replacement and each.label not in deleted and (replacement, each.label) not in desired_pairs:
            yield Association(replacement, "", each.label, each.label_id, is_desired=True, attached=False)


def unwanted_labels(match: Match, matching: Matching) -> set[Key]:
    """The recorded labels that the package no longer declares, except skipped ones."""
    if not (match.recorded and match.recorded.associations):
        return set()
    left = recorded_labels(match.recorded, matching) - _labels(match, matching)
    return {label for label in left if label not in matching.untouched or label in matching.suspended_labels}


def _labels(match: Match, matching: Matching) -> Set[Key]:
    """The labels that the package declares, without skipped ones; the parser has checked that the package has them."""
    if match.desired is None:
        return frozenset()
    return {
        label for label in match.desired.associations if label in matching.matches or label in matching.suspended_labels
    }


def label_id_of(label: Key, matching: Matching) -> str:
    """Id of a label of the package or the stack; empty if the plan creates it."""
    match = matching.matches.get(label)
    if match and match.live:
        return match.live.id
    if match and match.is_removal and match.recorded:
        return match.recorded.resource_id
    entry = matching.untouched.get(label) or matching.released.get(label)
    return entry.resource_id if entry else ""
