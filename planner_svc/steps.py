"""From matches to steps and stages (engine.md 3)."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from planner_svc.associations import Association
from planner_svc.differences import Differences
from planner_svc.matching import Match, Matching, name_needs
from planner_svc.references import References
from services.core.graph import waves
from services.core.model import Key, PlatformTraits, Resource, Step, Undo, Verb


@dataclass(frozen=True, slots=True)
class Stage:
    """Steps that may run at the same time; their ``number`` and ``stage`` are set when all stages are known."""

    name: str
    steps: tuple[Step, ...]


def stages(
    matching: Matching,
    found: Differences,
    links: Sequence[Association],
    platform: PlatformTraits,
    secrets: Sequence[Step] = (),
) -> list[Stage]:
    """
    Put the steps in order: what can be taken back first, what cannot last.

    Labels, primary kinds and what refers to them are created and updated; then associations, and references to what is
    going to be deleted; then deletions that can be undone, in reverse order of kinds; then those that cannot; last,
    what takes the place of a deleted resource, and what refers to that. Before all of them come *secrets*, also those
    whose old value is lost: a platform may look at them when it gets what refers to them.

    Raises:
        NameTaken: Two resources would have to have one unique name.
        DependencyCycle: Objects exchange their names, so that none can be renamed first.
    """
    writes, awaiting = _writes(matching, found), found.awaiting
    last = found.replaced.keys() | awaiting
    # Where nothing is written, everything has its name already.
    needs = name_needs(matching, last, platform) if writes or found.replaced else {}
    early, late = ({key: writes[key] for key in writes if (key in awaiting) is is_late} for is_late in (False, True))
    losing = _losing(matching, found, early)
    # By then it has lost what it is to get anew.
    late |= {step.key: late[step.key]._replace(old_references=step.references) for step in losing if step.key in late}
    ordered = [Stage("secrets", tuple(secrets)), *_in_waves(early, needs, platform)]
    ordered.append(Stage("references", tuple(losing)))
    ordered.append(Stage("associations", _links([link for link in links if not _awaits(link, last)])))
    for undo, title in ((Undo.RECREATE, "removals"), (Undo.NONE, "irreversible removals")):
        ordered += _deletions(matching, found, platform, undo, title)
    ordered += _by_kind_stage("replacements", _recreations(matching, found) | late, platform)
    ordered.append(Stage("associations of replacements", _links([link for link in links if _awaits(link, last)])))
    return _numbered([stage for stage in ordered if stage.steps])


def _writes(matching: Matching, found: Differences) -> dict[Key, Step]:
    """The creates and updates, but for what is replaced."""
    steps: dict[Key, Step] = {}
    for key, match in matching.matches.items():
        if match.wanted is None or key in found.replaced:
            continue
        references = found.references.get(key, ())
        if match.live is None:
            reason = "recorded resource is gone" if match.recorded else "not on the platform"
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
    else by then.
    """
    deleted = {
        (key.kind, match.live.id)
        for key, match in matching.matches.items()
        if match.live and (match.is_removal or key in found.replaced)
    }
    steps: list[Step] = []
    referring = {resource_key for resource_key, resource in matching.live.items() if resource.references}
    for resource_key in sorted(referring - deleted):
        resource = matching.live[resource_key]
        key = found.names.get(resource_key, Key(resource.kind, ""))
        held = found.live_references(resource)
        left = tuple(each for each in held if (each.key.kind, each.id) not in deleted)
        if left != held and key not in written:
            steps.append(_losing_step(key, resource, held, left))
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
        reason="what it refers to is deleted",
        old_references=held,
        references=left,
    )


def _in_waves(steps: Mapping[Key, Step], needs: Mapping[Key, Iterable[Key]], platform: PlatformTraits) -> list[Stage]:
    """Kind stage by kind stage, and within one, names are given up before others take them."""
    found: list[Stage] = []
    for number in sorted({platform.kinds[key.kind].stage for key in steps}):
        here = {key: step for key, step in steps.items() if platform.kinds[key.kind].stage == number}
        for wave in waves({key: set(needs[key]) for key in here}):
            found.append(Stage(_title(here), tuple(here[key] for key in wave if key in here)))
    return found


def _deletions(matching: Matching, found: Differences, platform: PlatformTraits, undo: Undo, title: str) -> list[Stage]:
    steps: dict[Key, Step] = {}
    for key, match in matching.matches.items():
        if match.live is None or platform.kinds[key.kind].delete_undo is not undo:
            continue
        if match.is_removal:
            steps[key] = _deletion(match, found, undo, "left the package")
        elif key in found.replaced:
            steps[key] = _deletion(match, found, undo, f"{found.replaced[key].lstrip('/')} cannot change: replaced")
    return list(reversed(_by_kind_stage(title, steps, platform)))


def _deletion(match: Match, found: Differences, undo: Undo, reason: str) -> Step:
    assert match.live is not None  # noqa: S101 - nothing else is deleted
    return Step(
        0,
        0,
        Verb.DELETE,
        match.key,
        match.live.id,
        old_spec=match.live.spec,
        undo=undo,
        reason=reason,
        old_references=found.live_references(match.live),
    )


def _recreations(matching: Matching, found: Differences) -> dict[Key, Step]:
    steps: dict[Key, Step] = {}
    for key in found.replaced:
        wanted = matching.matches[key].wanted
        assert wanted is not None  # noqa: S101 - only wanted objects change
        reason = "takes the place of the replaced one"
        references = found.references.get(key, ())
        steps[key] = Step(0, 0, Verb.CREATE, key, new_spec=wanted.spec, reason=reason, references=references)
    return steps


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


def _awaits(link: Association, last: Set[Key]) -> bool:
    """Whether an association has to wait for something that is created at the end of the plan."""
    return link.wanted and (link.resource in last or link.label in last)


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
