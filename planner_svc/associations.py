"""Which labels are to be attached and detached."""

from collections.abc import Iterator
from dataclasses import dataclass

from planner_svc.matching import Match, Matching
from services.core.model import LABEL, DiffStatus, Key, LabelMappingDiff, PlatformTraits


@dataclass(frozen=True, slots=True)
class Association:
    """
    One association of a resource with a label; ids are empty while the plan still creates the thing.

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

    Labels that people attached on the platform are left alone, except on resources that are removed and for labels that
    are removed: the deletion would detach them unseen, and an undo could not bring them back.

    Args:
        matching: The matches.
        replaced: Keys whose resource is deleted and created anew: nothing is attached to the new one.
        platform: Which kinds carry labels.

    Returns:
        All associations that are wanted or go away, sorted by resource and label.
    """
    found: list[Association] = []
    for match in matching.matches.values():
        if platform.kinds[match.key.kind].labelled:
            found += _of_removed(match, matching) if match.is_removal else _of_wanted(match, matching, replaced)
    found += _of_removed_labels(matching, {(item.resource.kind, item.resource_id, item.label_id) for item in found})
    return sorted(found, key=lambda item: (item.resource, item.resource_id, item.label, item.label_id))


def _of_wanted(match: Match, matching: Matching, replaced: frozenset[Key]) -> Iterator[Association]:
    assert match.wanted is not None  # noqa: S101 - what the caller asked for
    attached_ids = match.live.label_ids if match.live and match.key not in replaced else ()
    resource_id = match.live.id if match.live else ""
    # The parser saw to it that the label is in the package; one that is not matched is skipped.
    wanted = {label for label in match.wanted.associations if label in matching.matches}
    recorded = set(match.recorded.associations) if match.recorded else set()
    for label in wanted:
        label_id = _label_id(label, matching)
        attached = label_id in attached_ids and label not in replaced
        yield Association(match.key, resource_id, label, label_id, wanted=True, attached=attached)
    for label in recorded - wanted:
        label_id = _label_id(label, matching)
        if label not in matching.untouched:
            yield Association(match.key, resource_id, label, label_id, wanted=False, attached=label_id in attached_ids)


def _of_removed(match: Match, matching: Matching) -> Iterator[Association]:
    recorded = match.recorded.associations if match.recorded else ()
    names = {_label_id(label, matching): label for label in recorded}
    attached_ids = match.live.label_ids if match.live else ()
    remote_id = match.recorded.remote_id if match.recorded else ""
    for label_id in sorted(names.keys() | set(attached_ids)):
        label = names.get(label_id, Key(LABEL, ""))
        yield Association(match.key, remote_id, label, label_id, wanted=False, attached=label_id in attached_ids)


def _of_removed_labels(matching: Matching, covered: set[tuple[str, str, str]]) -> Iterator[Association]:
    """Attachments of removed labels that no object asked for; *covered* are kind, id and label id of the others."""
    removed = {
        match.live.id: key
        for key, match in matching.matches.items()
        if match.live and match.is_removal and key.kind == LABEL
    }
    if not removed:
        return
    named = {(key.kind, match.live.id): key for key, match in matching.matches.items() if match.live}
    for resource in matching.live.values():
        for label_id in resource.label_ids:
            if label_id in removed and (resource.kind, resource.id, label_id) not in covered:
                key = named.get((resource.kind, resource.id), Key(resource.kind, ""))
                yield Association(key, resource.id, removed[label_id], label_id, wanted=False, attached=True)


def _label_id(label: Key, matching: Matching) -> str:
    """Id of a label that the package or the stack knows; empty while it is to be created."""
    match = matching.matches.get(label)
    if match and match.live:
        return match.live.id
    if match and match.is_removal and match.recorded:
        return match.recorded.remote_id
    if label in matching.untouched:
        return matching.untouched[label].remote_id
    return ""
