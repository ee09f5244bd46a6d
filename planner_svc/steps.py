"""From matches to steps and stages (docs/reference/engine.md, "Steps and stages")."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from planner_svc.associations import Association
from planner_svc.differences import Differences
from planner_svc.matching import Matching
from planner_svc.names import NameOrder, may_live_beside, name_order
from planner_svc.references import References
from services.core.graph import waves
from services.core.model import Key, PlatformTraits, Resource, Step, StepReference, Undo, Verb


@dataclass(frozen=True, slots=True)
class Stage:
    """Steps that may run at the same time; their ``number`` and ``stage`` are set when all stages are known."""

    name: str
    steps: tuple[Step, ...]


_ENDS = "the stack is uninstalled"

_REMOVALS = {1: "removals", 2: "irreversible removals"}
"""The turns in which things are deleted."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """
    When each object is written, and when what leaves or is replaced is deleted.

    Attributes:
        writes: The creates and updates.
        turns: The turn of each object that is written only after a deletion; missing: 0, before all of them.
        deletions: The turn of the deletion of each object that leaves or is replaced.
        names: What names say about the order.
        platform: The platform.
    """

    writes: Mapping[Key, Step]
    turns: Mapping[Key, int]
    deletions: Mapping[Key, int]
    names: NameOrder
    platform: PlatformTraits

    @property
    def early(self) -> dict[Key, Step]:
        """The writes that wait for no deletion."""
        return {key: step for key, step in self.writes.items() if not self.turns.get(key)}

    def by_kind_stage(self) -> Iterator[dict[Key, Step]]:
        """The early writes, kind stage by kind stage."""
        early = self.early
        for number in sorted({self.platform.kinds[key.kind].stage for key in early}):
            yield {key: step for key, step in early.items() if self.platform.kinds[key.kind].stage == number}


def schedule(matching: Matching, found: Differences, platform: PlatformTraits) -> Schedule:
    """Find out what is written, and when."""
    writes, deletions = _writes(matching, found), _deletion_turns(matching, found, platform)
    turns = _turns(found, deletions, may_live_beside(found.replaced.keys(), matching, platform))
    # Where nothing is written, everything has its name already.
    names = name_order(matching, turns, deletions, platform) if writes else NameOrder({})
    return Schedule(writes, turns, deletions, names, platform)


def refuse_cycles(found: Schedule) -> None:
    """
    Refuse objects that wait for each other.

    Raises:
        DependencyCycle: Objects exchange their names, so that none can be renamed first.
    """
    for steps in found.by_kind_stage():
        waves({key: needs for key in steps if (needs := found.names.needs.get(key))})


def stages(
    scheduled: Schedule,
    matching: Matching,
    found: Differences,
    links: Sequence[Association],
    secrets: Sequence[Step] = (),
    *,
    is_end: bool = False,
) -> list[Stage]:
    """
    Put the steps in order: what can be taken back first, what cannot last.

    Labels, primary kinds and what refers to them are created and updated; then associations, and references to what is
    going to be deleted; then deletions that can be undone, in reverse order of kinds, and what takes the place of what
    they deleted; then the same with deletions that cannot be undone. What takes the place of something that can live
    beside it is created with the first. What refers to the place of something replaced follows it. Before all of them
    come *secrets*, also those whose old value is lost: a platform may look at them when it gets what refers to them.
    """
    writes, turns, early, platform = scheduled.writes, scheduled.turns, scheduled.early, scheduled.platform
    losing = _losing(matching, found, early)
    following = _following(matching, found, losing, turns)
    # By then it has lost what it is to get anew.
    late = {key: writes[key] for key in writes.keys() - early.keys()}
    late |= {step.key: late[step.key]._replace(old_references=step.references) for step in losing if step.key in late}
    ordered = [Stage("secrets", tuple(secrets)), *_in_waves(scheduled)]
    ordered.append(Stage("references", tuple(losing)))
    ordered.append(Stage("associations", _links(link for link in links if not _turn_of(link, turns))))
    for turn, title in _REMOVALS.items():
        ordered += _deletions(matching, found, turn, scheduled, title, "left the package" if not is_end else _ENDS)
        ordered += _by_kind_stage("replacements", {key: late[key] for key in late if turns[key] == turn}, platform)
        ordered.append(Stage("references to replacements", tuple(step for at, step in following if at == turn)))
        ordered.append(
            Stage("associations of replacements", _links(link for link in links if _turn_of(link, turns) == turn))
        )
    return _numbered([stage for stage in ordered if stage.steps])


def _deletion_turns(matching: Matching, found: Differences, platform: PlatformTraits) -> dict[Key, int]:
    """The turn of the deletion of each object that leaves or is replaced."""
    return {
        key: 2 if platform.kinds[match.live.kind].delete_undo is Undo.NONE else 1
        for key, match in matching.matches.items()
        if match.live and (match.is_deletion or key in found.replaced)
    }


def _turns(found: Differences, deletions: Mapping[Key, int], beside: Collection[Key]) -> dict[Key, int]:
    """The turn of each object that is written only after a deletion; not so what lives *beside* what it replaces."""
    late = {key: deletions[key] for key in found.replaced if key not in beside}
    following: dict[Key, int] = {}
    for key, references in found.references.items():
        awaited = [late[each.key] for each in references if each.key in late]
        if awaited and key not in found.replaced:
            following[key] = max(awaited)
    return late | following


def _writes(matching: Matching, found: Differences) -> dict[Key, Step]:
    """The creates and updates."""
    steps: dict[Key, Step] = {}
    for key, match in matching.matches.items():
        if match.wanted is None:
            continue
        references = found.references.get(key, ())
        if match.live is None or key in found.replaced:
            reason = "recorded resource is gone" if match.recorded else "not on the platform"
            if key in found.replaced:
                reason = "takes the place of the replaced one"
            steps[key] = Step(0, 0, Verb.CREATE, key, new_spec=match.wanted.spec, reason=reason, references=references)
        elif found.changed[key]:
            reason = f"differs in {', '.join(change.path.lstrip('/') for change in found.changed[key])}"
            steps[key] = Step(
                0,
                0,
                Verb.UPDATE,
                key,
                match.live.id,
                old_spec=match.live.spec,
                new_spec=match.wanted.spec,
                reason=_shortened(reason),
                old_references=found.live_references(match.live),
                references=references,
            )
    return steps


def _losing(matching: Matching, found: Differences, written: Mapping[Key, Step]) -> list[Step]:
    """
    What takes references to deleted resources away, sorted by kind and id of the referring resource.

    The deletion would take them away unseen, and an undo could not bring them back. *written* ones refer to something
    else by then; what is replaced by something that is written, too, is referred to by that from now on.
    """
    heirs = {
        (match.live.kind, match.live.id): key
        for key, match in matching.matches.items()
        if match.live and key in found.replaced and key in written
    }
    deleted = {
        (match.live.kind, match.live.id)
        for key, match in matching.matches.items()
        if match.live and (match.is_deletion or key in found.replaced)
    }
    steps: list[Step] = []
    referring = {resource_key for resource_key, resource in matching.live.items() if resource.references}
    for resource_key in sorted(referring - deleted):
        resource = matching.live[resource_key]
        key = found.names.get(resource_key, Key(resource.kind, ""))
        held = found.live_references(resource)
        left = tuple(
            StepReference(each.pointer, heirs[each.key.kind, each.id]) if (each.key.kind, each.id) in heirs else each
            for each in held
            if (each.key.kind, each.id) not in deleted or (each.key.kind, each.id) in heirs
        )
        if left != held and key not in written:
            steps.append(_losing_step(key, resource, held, left))
    return steps


def _following(
    matching: Matching, found: Differences, losing: Iterable[Step], turns: Mapping[Key, int]
) -> list[tuple[int, Step]]:
    """
    What gives references back to resources that lost them to a replacement that deletes first, each with its turn.

    No object of the package says what these resources refer to, so they are to refer to what they did.
    """
    heirs = {matching.matches[key].live_key: key for key in found.replaced if key in turns}
    steps: list[tuple[int, Step]] = []
    for lost in losing:
        inherited = {each.pointer: heirs[each.key] for each in lost.old_references if each.key in heirs}
        if inherited and lost.key not in found.references:
            given = [StepReference(pointer, heir) for pointer, heir in inherited.items()]
            references = tuple(sorted([*lost.references, *given], key=lambda each: each.pointer))
            reason = "what it refers to is replaced"
            step = lost._replace(reason=reason, old_references=lost.references, references=references)
            steps.append((max(turns[heir] for heir in inherited.values()), step))
    return steps


def _losing_step(key: Key, resource: Resource, held: References, left: References) -> Step:
    return Step(
        0,
        0,
        Verb.UPDATE,
        key,
        resource.id,
        old_spec=resource.spec,
        new_spec=resource.spec,
        reason="what it refers to is deleted" if len(left) < len(held) else "what it refers to is replaced",
        old_references=held,
        references=left,
    )


def _in_waves(scheduled: Schedule) -> list[Stage]:
    """Kind stage by kind stage, and within one, names are given up before others take them."""
    found: list[Stage] = []
    for here in scheduled.by_kind_stage():
        for wave in waves({key: scheduled.names.needs[key] for key in here}):
            found.append(Stage(_title(here), tuple(here[key] for key in wave if key in here)))
    return found


def _deletions(
    matching: Matching, found: Differences, turn: int, scheduled: Schedule, title: str, why: str
) -> list[Stage]:
    steps: dict[Key, Step] = {}
    turns, platform = scheduled.deletions, scheduled.platform
    for key, match in matching.matches.items():
        if match.live and turns.get(key) == turn:
            undo = platform.kinds[match.live.kind].delete_undo
            reason = _why_replaced(found.replaced[key], undo) if key in found.replaced else why
            steps[match.live_key] = Step(
                0,
                0,
                Verb.DELETE,
                match.live_key,
                match.live.id,
                old_spec=match.live.spec,
                undo=undo,
                reason=reason,
                old_references=found.live_references(match.live),
            )
    return list(reversed(_by_kind_stage(title, steps, platform)))


def _why_replaced(what: str, undo: Undo) -> str:
    return f"{what} cannot change: replaced" + (", with its data" if undo is Undo.NONE else "")


def _links(links: Iterable[Association]) -> tuple[Step, ...]:
    return tuple(
        Step(
            0,
            0,
            Verb.ATTACH if link.wanted else Verb.DETACH,
            link.resource,
            link.resource_id,
            label=link.label,
            label_id=link.label_id,
            reason="associated" if link.wanted else "association went away",
        )
        for link in links
        if link.wanted != link.attached
    )


def _turn_of(link: Association, turns: Mapping[Key, int]) -> int:
    """The turn after which an association can be made; 0 for one that goes away."""
    return max(turns.get(link.resource, 0), turns.get(link.label, 0)) if link.wanted else 0


def _by_kind_stage(title: str, steps: Mapping[Key, Step], platform: PlatformTraits) -> list[Stage]:
    numbers = sorted({platform.kinds[key.kind].stage for key in steps})
    return [
        Stage(title, tuple(steps[key] for key in sorted(steps) if platform.kinds[key.kind].stage == number))
        for number in numbers
    ]


def _numbered(found: Sequence[Stage]) -> list[Stage]:
    numbered: list[Stage] = []
    count = 0
    for index, stage in enumerate(found):
        steps = tuple(step._replace(number=count + at, stage=index) for at, step in enumerate(stage.steps))
        numbered.append(Stage(stage.name, steps))
        count += len(steps)
    return numbered


def _title(keys: Iterable[Key]) -> str:
    return ", ".join(sorted({key.kind.lower() + "s" for key in keys}))


def _shortened(reason: str, limit: int = 200) -> str:
    return reason if len(reason) <= limit else reason[: limit - 1] + "…"
