"""From matches to steps and stages (engine.md 3)."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planner_svc.associations import Association
from planner_svc.matching import Match, Matching, name_needs
from services.core.diff import changes, touches
from services.core.graph import waves
from services.core.model import FieldChange, Key, PlatformTraits, Spec, Step, Undo, Verb
from services.kinds.canonical import canonical_text, spec_of


@dataclass(frozen=True, slots=True)
class Stage:
    """Steps that may run at the same time; their ``number`` and ``stage`` are set when all stages are known."""

    name: str
    steps: tuple[Step, ...]


def field_changes(matching: Matching, platform: PlatformTraits) -> dict[Key, tuple[FieldChange, ...]]:
    """What differs between the live resource and the wanted object, for each key that has both."""
    found: dict[Key, tuple[FieldChange, ...]] = {}
    for key, match in matching.matches.items():
        if match.live and match.wanted:
            sets = platform.kinds[key.kind].set_paths
            found[key] = changes(_in_order(match.live.spec, sets), _in_order(match.wanted.spec, sets))
    return found


def _in_order(spec: Spec, set_paths: Sequence[str]) -> Spec:
    """*spec* with the lists sorted whose order has no meaning to the platform."""
    if not set_paths:
        return spec
    value = copy.deepcopy(dict(spec.value))
    for path in set_paths:
        *holders, name = path.split("/")[1:]
        holder: Any = value
        for step in holders:
            holder = holder.get(step) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and isinstance(holder.get(name), list):
            holder[name].sort(key=canonical_text)
    return spec_of(value)


def replacements(changed: Mapping[Key, tuple[FieldChange, ...]], platform: PlatformTraits) -> dict[Key, str]:
    """The keys whose change touches an immutable path, with that path: their resource is deleted and created anew."""
    found: dict[Key, str] = {}
    for key, differences in changed.items():
        for path in platform.kinds[key.kind].immutable_paths:
            if touches(path, differences):
                found[key] = path
                break
    return found


def stages(
    matching: Matching,
    changed: Mapping[Key, tuple[FieldChange, ...]],
    replaced: Mapping[Key, str],
    links: Sequence[Association],
    platform: PlatformTraits,
) -> list[Stage]:
    """
    Put the steps in order: what can be taken back first, what cannot last.

    Labels and primary kinds are created and updated; then associations; then deletions that can be undone, in reverse
    order of kinds; then those that cannot; last, what takes the place of a deleted resource.

    Raises:
        NameTaken: Two resources would have to have one unique name.
        DependencyCycle: Objects exchange their names, so that none can be renamed first.
    """
    found = _writes(matching, changed, replaced, platform)
    found.append(Stage("associations", _links([link for link in links if not _awaits(link, replaced)])))
    for undo, title in ((Undo.RECREATE, "removals"), (Undo.NONE, "irreversible removals")):
        found += _deletions(matching, replaced, platform, undo, title)
    found += _by_kind_stage("replacements", _recreations(matching, replaced), platform)
    found.append(Stage("associations of replacements", _links([link for link in links if _awaits(link, replaced)])))
    return _numbered([stage for stage in found if stage.steps])


def _writes(
    matching: Matching,
    changed: Mapping[Key, tuple[FieldChange, ...]],
    replaced: Mapping[Key, str],
    platform: PlatformTraits,
) -> list[Stage]:
    """Creates and updates: kind stage by kind stage, and within one, names are given up before others take them."""
    needs = name_needs(matching, replaced.keys(), platform)
    steps: dict[Key, Step] = {}
    for key, match in matching.matches.items():
        if match.wanted is None or key in replaced:
            continue
        if match.live is None:
            reason = "recorded resource is gone" if match.recorded else "not on the platform"
            steps[key] = Step(0, 0, Verb.CREATE, key, new_spec=match.wanted.spec, reason=reason)
        elif changed[key]:
            reason = f"differs in {', '.join(change.path.lstrip('/') for change in changed[key])}"
            steps[key] = Step(
                0,
                0,
                Verb.UPDATE,
                key,
                match.live.id,
                old_spec=match.live.spec,
                new_spec=match.wanted.spec,
                reason=_shortened(reason),
            )
    found: list[Stage] = []
    for number in sorted({platform.kinds[key.kind].stage for key in steps}):
        here = {key: step for key, step in steps.items() if platform.kinds[key.kind].stage == number}
        for wave in waves({key: needs[key] for key in here}):
            found.append(Stage(_title(here), tuple(here[key] for key in wave if key in here)))
    return found


def _deletions(
    matching: Matching, replaced: Mapping[Key, str], platform: PlatformTraits, undo: Undo, title: str
) -> list[Stage]:
    steps: dict[Key, Step] = {}
    for key, match in matching.matches.items():
        if match.live is None or platform.kinds[key.kind].delete_undo is not undo:
            continue
        if match.is_removal:
            steps[key] = _deletion(match, undo, "left the package")
        elif key in replaced:
            steps[key] = _deletion(match, undo, f"{replaced[key].lstrip('/')} cannot change: replaced")
    return list(reversed(_by_kind_stage(title, steps, platform)))


def _deletion(match: Match, undo: Undo, reason: str) -> Step:
    assert match.live is not None  # noqa: S101 - nothing else is deleted
    return Step(0, 0, Verb.DELETE, match.key, match.live.id, old_spec=match.live.spec, undo=undo, reason=reason)


def _recreations(matching: Matching, replaced: Mapping[Key, str]) -> dict[Key, Step]:
    steps: dict[Key, Step] = {}
    for key in replaced:
        wanted = matching.matches[key].wanted
        assert wanted is not None  # noqa: S101 - only wanted objects change
        steps[key] = Step(0, 0, Verb.CREATE, key, new_spec=wanted.spec, reason="takes the place of the replaced one")
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


def _awaits(link: Association, replaced: Mapping[Key, str]) -> bool:
    """Whether an association has to wait for something that is created anew at the end of the plan."""
    return link.wanted and (link.resource in replaced or link.label in replaced)


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
        steps = tuple(replace(step, number=count + at, stage=index) for at, step in enumerate(stage.steps))
        numbered.append(Stage(stage.name, steps))
        count += len(steps)
    return numbered


def _title(keys: Iterable[Key]) -> str:
    return ", ".join(sorted({key.kind.lower() + "s" for key in keys}))


def _shortened(reason: str, limit: int = 200) -> str:
    return reason if len(reason) <= limit else reason[: limit - 1] + "…"
