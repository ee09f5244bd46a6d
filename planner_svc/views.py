"""The views of a plan beside its steps: diffs and summary."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from planner_svc.changes.associations import Association
from planner_svc.changes.differences import Differences
from planner_svc.matching.desired import Desired
from planner_svc.matching.match import Match, Matching
from services.core.masking import masked, may_hold_credential
from services.core.model import (
    DiffStatus,
    Key,
    LabelMappingDiff,
    Location,
    Object,
    Plan,
    PlanDiffs,
    ResourceDiff,
    Verb,
)
from services.kinds.format.canonical import canonical_text
from services.kinds.summary import planned_summary


@dataclass(frozen=True, slots=True)
class ViewInput:
    """
    A plan with all that its views are made from.

    Attributes:
        plan: The plan.
        desired: The desired state.
        matching: The matches.
        differences: The differences of desired and live state.
        links: The associations.
        attachments: The attachments of the plan that the store may lack: texts by their digests.
        secrets: The credentials of the package that are planned as secrets, by key; not part of the repr.
    """

    plan: Plan
    desired: Desired
    matching: Matching
    differences: Differences
    links: Sequence[Association]
    attachments: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    def diffs(self) -> PlanDiffs:
        """The differences of each object and each association; resources that stay with other stacks have none."""
        matches = self.matching.matches.values()
        creates = {step.key: step.number for step in self.plan.steps if step.verb is Verb.CREATE}
        return PlanDiffs(
            tuple(_diff(match, self.differences, creates.get(match.key)) for match in matches if not match.stays),
            _mapping_diffs(self.links, self.matching),
        )

    def may_hold_credentials(self) -> bool:
        """Whether addresses in steps and diffs may hold credentials; all their texts are from specs."""
        matches = self.matching.matches.values()
        specs = chain(
            (spec for step in self.plan.steps for spec in (step.old_spec, step.new_spec) if spec),
            (match.live.spec for match in matches if match.live),
            (match.desired.spec for match in matches if match.desired),
        )
        # A driver may return text that is not canonical, in which the characters of an address are escaped.
        return any(may_hold_credential(spec.text) or "\\/" in spec.text or "\\u00" in spec.text for spec in specs)

    def skipped(self) -> set[Key]:
        """Keys of the objects of the package that the plan skips."""
        return {item.key for item in self.desired.package.objects if self.desired.skips(item.key)}

    def referred(self) -> dict[Key, str]:
        """Ids of the resources that objects refer to, by the keys of their objects."""
        return {
            each.key: each.id for references in self.differences.references.values() for each in references if each.id
        }

    def summary(self) -> str:
        """
        The summary document (docs/reference/package-format.md, "Summary") as JSON text.

        A recorded object whose resource is gone has its recorded id. Addresses are masked.
        """
        known_ids = {
            key: known_id
            for key, match in self.matching.matches.items()
            if (known_id := _known_id(match)) and key not in self.differences.replaced
        }
        document = planned_summary(
            self.desired.package.objects,
            skipped=self.skipped(),
            ids=self.referred() | known_ids,
            attached={(link.resource, link.label) for link in self.links if link.is_desired and link.attached},
            missing_env_refs=self.plan.remarks.missing_env_refs,
            missing_secrets=self.plan.remarks.missing_secrets,
        )
        return masked(canonical_text(document))


def _mapping_diffs(links: Sequence[Association], matching: Matching) -> tuple[LabelMappingDiff, ...]:
    """One entry for each association of two objects; one that is detached and attached again has its later state."""
    keys = {match.live_key: key for key, match in matching.matches.items()}
    gone = {key: _known_id(match) for key, match in matching.matches.items() if match.recorded and not match.live}
    shown: dict[tuple[Key, Key], LabelMappingDiff] = {}
    for link in links:
        resource, label = keys.get(link.resource, link.resource), link.label
        if resource.name and label.name and (link.is_desired or (resource, label) not in shown):
            resource_id, label_id = link.resource_id or gone.get(resource, ""), link.label_id or gone.get(label, "")
            shown[resource, label] = LabelMappingDiff(link.status, resource, resource_id, label, label_id)
    return tuple(shown[names] for names in sorted(shown))


def _diff(match: Match, differences: Differences, create_step: int | None) -> ResourceDiff:
    status = DiffStatus.REMOVE
    if match.desired:
        # A recorded resource that is gone has status EXISTS and its recorded id (docs/reference/engine.md, "Matching").
        status = DiffStatus.EXISTS if match.live or match.recorded else DiffStatus.NEW
    resource_id = _known_id(match)
    kind = match.live.kind if match.live else match.key.kind
    return ResourceDiff(
        key=match.key,
        resource_id=resource_id,
        status=status,
        old_spec=match.live.spec if match.live else None,
        new_spec=match.desired.spec if match.desired else None,
        changes=differences.changed.get(match.key, ()),
        old_kind="" if kind == match.key.kind else kind,
        location=_location(match.desired),
        old_references=differences.live_references(match.live) if match.live and not match.desired else (),
        create_step=create_step,
    )


def _known_id(match: Match) -> str:
    """The id of the resource; the recorded id if the resource is gone, empty if there never was one."""
    if match.live:
        return match.live.id
    return match.recorded.resource_id if match.recorded else ""


def _location(item: Object | None) -> Location | None:
    return item.location if item else None
