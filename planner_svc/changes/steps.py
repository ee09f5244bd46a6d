"""From matches to steps and stages (docs/reference/engine.md, "Steps and stages")."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from planner_svc.changes.associations import Association
from planner_svc.changes.differences import Differences
from planner_svc.changes.ignored_fields import with_values_of
from planner_svc.changes.rename_order import NameOrder, creatable_first, name_order
from planner_svc.matching.match import Matching
from planner_svc.matching.references import References
from services.core.diff import covers
from services.core.graph import waves
from services.core.model import (
    DataLoss,
    FieldChange,
    Key,
    PlatformTraits,
    Resource,
    Step,
    StepReference,
    Undo,
    Verb,
)


@dataclass(frozen=True, slots=True)
class Stage:
    """Steps that may run at the same time; their ``number`` and ``stage`` are set when all stages are known."""

    name: str
    steps: tuple[Step, ...]


_ENDS = "the stack is uninstalled"

_REMOVALS = {1: "removals", 2: "irreversible removals"}
"""The titles of the phases in which resources are deleted."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """
    The phase of each write and each deletion: 0 before all deletions, 1 and 2 after the deletions of that phase.

    Attributes:
        writes: The creates and updates, but for updates that lose data.
        losses: The updates that lose data; one may follow another update of its object.
        phases: The phase of each object that is written only after a deletion; missing: 0.
        deletions: The phase of the deletion of each object that is removed or replaced.
        names: The order of writes that unique names demand.
        platform: The platform.
    """

    writes: Mapping[Key, Step]
    losses: Mapping[Key, Step]
    phases: Mapping[Key, int]
    deletions: Mapping[Key, int]
    names: NameOrder
    platform: PlatformTraits

    @property
    def early(self) -> dict[Key, Step]:
        """The writes that wait for no deletion."""
        return {key: step for key, step in self.writes.items() if not self.phases.get(key)}

    def by_kind_stage(self) -> Iterator[dict[Key, Step]]:
        """The early writes, kind stage by kind stage."""
        early = self.early
        for number in sorted({self.platform.kinds[key.kind].stage for key in early}):
            yield {key: step for key, step in early.items() if self.platform.kinds[key.kind].stage == number}


def schedule(matching: Matching, differences: Differences, platform: PlatformTraits) -> Schedule:
    """Find the writes and deletions of a plan, and their phases."""
    (writes, losses), deletions = _writes(matching, differences), _deletion_phases(matching, differences, platform)
    phases = _write_phases(differences, deletions, creatable_first(differences.replaced.keys(), matching, platform))
    # Without writes no name changes.
    names = name_order(matching, phases, deletions, platform) if writes else NameOrder({})
    return Schedule(writes, losses, phases, deletions, names, platform)


def refuse_cycles(scheduled: Schedule) -> None:
    """
    Refuse objects that wait for each other.

    Raises:
        DependencyCycle: Objects exchange their names, so that none can be renamed first.
    """
    for steps in scheduled.by_kind_stage():
        waves({key: needs for key in steps if (needs := scheduled.names.needs.get(key))})


def stages(
    scheduled: Schedule,
    matching: Matching,
    differences: Differences,
    links: Sequence[Association],
    secrets: Sequence[Step] = (),
    *,
    is_end: bool = False,
) -> list[Stage]:
    """
    Put the steps in order: steps that can be undone first, irreversible ones last.

    1. *secrets*, including those whose old value is lost: a platform may need them to accept what refers to them.
    2. Creates and updates: labels, primary kinds, and kinds that refer to them. Replacements are among them if they can
       exist beside the resources that they replace.
    3. The removal of references to resources that are going to be deleted; then associations.
    4. Deletions that can be undone, in reverse order of kinds. After them the replacements of what they deleted, the
       references to these replacements, and their associations.
    5. The same for deletions that cannot be undone.
    6. Updates that lose data.
    """
    writes, phases, early, platform = scheduled.writes, scheduled.phases, scheduled.early, scheduled.platform
    removals = _reference_removals(matching, differences, early)
    restorations = _reference_restorations(matching, differences, removals, phases)
    late = {key: writes[key] for key in writes.keys() - early.keys()}
    # The references of a late write have been removed by the time that it runs.
    late |= {step.key: late[step.key]._replace(old_references=step.references) for step in removals if step.key in late}
    ordered = [Stage("secrets", tuple(secrets)), *_in_waves(scheduled)]
    ordered.append(Stage("references", tuple(removals)))
    ordered.append(Stage("associations", _links(link for link in links if not _phase_of(link, phases))))
    for phase, title in _REMOVALS.items():
        ordered += _deletions(
            matching, differences, phase, scheduled, title, "left the package" if not is_end else _ENDS
        )
        ordered += _by_kind_stage("replacements", {key: late[key] for key in late if phases[key] == phase}, platform)
        ordered.append(Stage("references to replacements", tuple(step for at, step in restorations if at == phase)))
        ordered.append(
            Stage("associations of replacements", _links(link for link in links if _phase_of(link, phases) == phase))
        )
    ordered.append(Stage("updates that lose data", tuple(scheduled.losses.values())))
    return _numbered([stage for stage in ordered if stage.steps])


def _deletion_phases(matching: Matching, differences: Differences, platform: PlatformTraits) -> dict[Key, int]:
    """The phase of the deletion of each object that is removed or replaced."""
    return {
        key: 2 if platform.kinds[match.live.kind].delete_undo is Undo.NONE else 1
        for key, match in matching.matches.items()
        if match.live and (match.is_deletion or key in differences.replaced)
    }


def _write_phases(differences: Differences, deletions: Mapping[Key, int], early: Collection[Key]) -> dict[Key, int]:
    """The phase of each object that is written only after a deletion; *early* replacements are written before."""
    late = {key: deletions[key] for key in differences.replaced if key not in early}
    referring: dict[Key, int] = {}
    for key, references in differences.references.items():
        awaited = [late[each.key] for each in references if each.key in late]
        if awaited and key not in differences.replaced:
            referring[key] = max(awaited)
    return late | referring


def _writes(matching: Matching, differences: Differences) -> tuple[dict[Key, Step], dict[Key, Step]]:
    """The creates and updates, and apart from them the updates that lose data; both sorted by key."""
    steps: dict[Key, Step] = {}
    losses: dict[Key, Step] = {}
    for key, match in matching.matches.items():
        if match.desired is None:
            continue
        references = differences.references.get(key, ())
        if match.live is None or key in differences.replaced:
            reason = "recorded resource is gone" if match.recorded else "not on the platform"
            if key in differences.replaced:
                reason = "replaces the old resource"
            steps[key] = Step(0, 0, Verb.CREATE, key, new_spec=match.desired.spec, reason=reason, references=references)
        elif differences.changed[key]:
            step = Step(
                0,
                0,
                Verb.UPDATE,
                key,
                match.live.id,
                old_spec=match.live.spec,
                new_spec=match.desired.spec,
                reason=_differs(differences.changed[key]),
                old_references=differences.live_references(match.live),
                references=references,
            )
            if loss := differences.losses.get(key):
                others, losses[key] = _divided(step, differences.changed[key], loss)
                steps |= {key: others} if others else {}
            else:
                steps[key] = step
    return steps, losses


def _differs(changed: Iterable[FieldChange]) -> str:
    return _shortened(f"differs in {', '.join(change.path.lstrip('/') for change in changed)}")


def _divided(step: Step, changed: Iterable[FieldChange], loss: DataLoss) -> tuple[Step | None, Step]:
    """
    Divide an update, which makes the changes *changed* and loses data.

    The part that loses no data can be undone, and other steps may need it: it may release a name.

    Returns:
        The update of all other fields, None if there are none; and the update that loses data.
    """
    assert step.old_spec and step.new_spec  # noqa: S101, PT018 - an update has both
    others = [change for change in changed if not covers(loss.path, change.path)]
    last = step._replace(undo=Undo.NONE, loss=loss)
    if not others:
        return None, last
    between = with_values_of(step.old_spec, step.new_spec, [loss.path])
    last = last._replace(old_spec=between, old_references=step.references, reason=f"differs in {loss.path.lstrip('/')}")
    return step._replace(new_spec=between, reason=_differs(others)), last


def _reference_removals(matching: Matching, differences: Differences, written: Mapping[Key, Step]) -> list[Step]:
    """
    The steps that remove references to deleted resources, sorted by kind and id of the referring resource.

    Otherwise the deletion would remove the references, and its undo could not restore them. Objects that are *written*
    early need no such step. A reference to a resource whose replacement is *written* early leads to the replacement
    from then on.
    """
    replacements = {
        (match.live.kind, match.live.id): key
        for key, match in matching.matches.items()
        if match.live and key in differences.replaced and key in written
    }
    deleted = {
        (match.live.kind, match.live.id)
        for key, match in matching.matches.items()
        if match.live and (match.is_deletion or key in differences.replaced)
    }
    steps: list[Step] = []
    referring = {resource_key for resource_key, resource in matching.live.items() if resource.references}
    for resource_key in sorted(referring - deleted):
        resource = matching.live[resource_key]
        key = differences.names.get(resource_key, Key(resource.kind, ""))
        current = differences.live_references(resource)
        left = tuple(
            StepReference(each.pointer, replacements[each.key.kind, each.id])
            if (each.key.kind, each.id) in replacements
            else each
            for each in current
            if (each.key.kind, each.id) not in deleted or (each.key.kind, each.id) in replacements
        )
        if left != current and key not in written:
            steps.append(_reference_removal(key, resource, current, left))
    return steps


def _reference_restorations(
    matching: Matching, differences: Differences, removals: Iterable[Step], phases: Mapping[Key, int]
) -> list[tuple[int, Step]]:
    """
    The steps that restore references of *removals* to resources that are deleted before their replacement is created.

    Each comes with its phase. Only resources whose references no object of the package declares need such a step: their
    references lead to the replacements afterwards.
    """
    replacements = {matching.matches[key].live_key: key for key in differences.replaced if key in phases}
    steps: list[tuple[int, Step]] = []
    for removal in removals:
        restored = {each.pointer: replacements[each.key] for each in removal.old_references if each.key in replacements}
        if restored and removal.key not in differences.references:
            new_references = [StepReference(pointer, key) for pointer, key in restored.items()]
            references = tuple(sorted([*removal.references, *new_references], key=lambda each: each.pointer))
            reason = "what it refers to is replaced"
            step = removal._replace(reason=reason, old_references=removal.references, references=references)
            steps.append((max(phases[key] for key in restored.values()), step))
    return steps


def _reference_removal(key: Key, resource: Resource, current: References, left: References) -> Step:
    return Step(
        0,
        0,
        Verb.UPDATE,
        key,
        resource.id,
        old_spec=resource.spec,
        new_spec=resource.spec,
        reason="what it refers to is deleted" if len(left) < len(current) else "what it refers to is replaced",
        old_references=current,
        references=left,
    )


def _in_waves(scheduled: Schedule) -> list[Stage]:
    """The early writes: kind stage by kind stage, and within one, a name is released before another object takes it."""
    write_stages: list[Stage] = []
    for here in scheduled.by_kind_stage():
        for wave in waves({key: scheduled.names.needs[key] for key in here}):
            write_stages.append(Stage(_title(here), tuple(here[key] for key in wave if key in here)))
    return write_stages


def _deletions(
    matching: Matching, differences: Differences, phase: int, scheduled: Schedule, title: str, why: str
) -> list[Stage]:
    steps: dict[Key, Step] = {}
    phases, platform = scheduled.deletions, scheduled.platform
    for key, match in matching.matches.items():
        if match.live and phases.get(key) == phase:
            undo = platform.kinds[match.live.kind].delete_undo
            reason = _why_replaced(differences.replaced[key], undo) if key in differences.replaced else why
            steps[match.live_key] = Step(
                0,
                0,
                Verb.DELETE,
                match.live_key,
                match.live.id,
                old_spec=match.live.spec,
                undo=undo,
                reason=reason,
                old_references=differences.live_references(match.live),
            )
    return list(reversed(_by_kind_stage(title, steps, platform)))


def _why_replaced(field: str, undo: Undo) -> str:
    return f"{field} cannot change: replaced" + (", with its data" if undo is Undo.NONE else "")


def _links(links: Iterable[Association]) -> tuple[Step, ...]:
    return tuple(
        Step(
            0,
            0,
            Verb.ATTACH if link.is_desired else Verb.DETACH,
            link.resource,
            link.resource_id,
            label=link.label,
            label_id=link.label_id,
            reason="associated" if link.is_desired else "no longer associated",
        )
        for link in links
        if link.is_desired != link.attached
    )


def _phase_of(link: Association, phases: Mapping[Key, int]) -> int:
    """The phase in which an association can be attached; 0 for one that ends."""
    return max(phases.get(link.resource, 0), phases.get(link.label, 0)) if link.is_desired else 0


def _by_kind_stage(title: str, steps: Mapping[Key, Step], platform: PlatformTraits) -> list[Stage]:
    numbers = sorted({platform.kinds[key.kind].stage for key in steps})
    return [
        Stage(title, tuple(steps[key] for key in sorted(steps) if platform.kinds[key.kind].stage == number))
        for number in numbers
    ]


def _numbered(plan_stages: Sequence[Stage]) -> list[Stage]:
    numbered: list[Stage] = []
    count = 0
    for index, stage in enumerate(plan_stages):
        steps = tuple(step._replace(number=count + at, stage=index) for at, step in enumerate(stage.steps))
        numbered.append(Stage(stage.name, steps))
        count += len(steps)
    return numbered


def _title(keys: Iterable[Key]) -> str:
    return ", ".join(sorted({key.kind.lower() + "s" for key in keys}))


def _shortened(reason: str, limit: int = 200) -> str:
    return reason if len(reason) <= limit else reason[: limit - 1] + "…"
