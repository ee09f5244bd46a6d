"""The references of desired objects and of live resources (docs/reference/engine.md, "References")."""

from collections.abc import Mapping, Sequence, Set

from planner_svc.matching.desired import Desired
from planner_svc.matching.match import Matching, entries_of
from services.core.errors import RequestInvalid
from services.core.model import FieldChange, Key, Object, PlatformTraits, Resource, ResourceKey, StepReference
from services.core.text_lists import and_more
from services.kinds.format.canonical import canonical_text
from services.kinds.registry import KINDS, family_of

References = tuple[StepReference, ...]
"""The references of one resource, sorted by pointer."""


def wanted_references(
    desired: Desired, matching: Matching, replaced: Set[Key], platform: PlatformTraits
) -> tuple[dict[Key, References], list[str]]:
    """
    The references that desired objects are to have; ids are empty for resources that the plan creates.

    Args:
        desired: The package, including its skipped objects: others may refer to them if they exist.
        matching: The matches.
        replaced: Keys whose resource is replaced.
        platform: Which names are unique.

    Returns:
        The references by object, and, each as text, the references to objects that are skipped and do not exist.
    """
    referring = [key for key, match in matching.matches.items() if match.desired and KINDS[key.kind].uses]
    if not referring:
        return {}, []
    objects = {(KINDS[item.key.kind].family, item.key.name): item for item in desired.package.objects}
    # The specs of the package name what they refer to; the spec that a platform would hold may lack the names.
    declared = {item.key: item.spec for item in desired.package.objects}
    references_by_key: dict[Key, References] = {}
    missing: list[str] = []
    for key in referring:
        references = []
        for field, family in sorted(KINDS[key.kind].uses.items()):
            name = declared[key].value[field]
            other = objects.get((family, name))
            referred = _resource(other, matching, platform) if other else None
            if referred:
                owner, resource_id = referred
                references.append(StepReference(f"/{field}", owner, "" if owner in replaced else resource_id))
            else:
                missing.append(f"{key} refers to {other.key if other else f'{family} {name!r}'}")
        references_by_key[key] = tuple(references)
    return references_by_key, missing


def refuse_missing_references(missing: Sequence[str]) -> None:
    """
    Refuse references to objects that are skipped and do not exist; *missing* has each as text.

    Raises:
        RequestInvalid: Names the first of them.
    """
    if missing:
        more = f" ({and_more(len(missing) - 1, '')})" if missing[1:] else ""
        problem = "which is skipped and does not exist: do not skip it, or skip what refers to it as well"
        raise RequestInvalid("options.skip", f"{missing[0]}, {problem}{more}")


def _resource(item: Object, matching: Matching, platform: PlatformTraits) -> tuple[Key, str] | None:
    """Key and id of the resource of *item*; the id is empty if the plan creates it. None: there will be no resource."""
    if item.key in matching.matches:
        live = matching.matches[item.key].live
        return item.key, live.id if live else ""
    entry = entries_of([item.key], matching.untouched.values()).get(item.key)
    if entry and (entry.key.kind, entry.resource_id) in matching.live:
        return entry.key, entry.resource_id
    resource = _live_by_name(item, matching, platform)
    if resource is None:
        return None
    names = names_of_resources(matching)
    return names.get((resource.kind, resource.id), Key(resource.kind, item.key.name)), resource.id


def _live_by_name(item: Object, matching: Matching, platform: PlatformTraits) -> Resource | None:
    traits = platform.kinds.get(item.key.kind)
    unique = traits.unique_name(item.spec.display_name) if traits else None
    if traits is None or unique is None:
        return None
    for resource in matching.live.values():
        if family_of(resource.kind) == family_of(item.key.kind):
            resource_traits = platform.kinds[resource.kind]
            if (
                resource_traits.scope == traits.scope
                and resource_traits.unique_name(resource.spec.display_name) == unique
            ):
                return resource
    return None


def names_of_resources(matching: Matching, replaced: Set[Key] = frozenset()) -> dict[ResourceKey, Key]:
    """
    The key of each live resource that an object, or an entry of the stack, names.

    A live resource that is *replaced* has the key that it has now; the object's own key names its replacement.
    """
    names = {(key.kind, entry.resource_id): key for key, entry in matching.untouched.items()}
    for key, match in matching.matches.items():
        if match.live:
            names[match.live.kind, match.live.id] = match.live_key if key in replaced else key
    return names


def live_references(resource: Resource, names: Mapping[ResourceKey, Key]) -> References:
    """The references of *resource*; *names* is the result of ``names_of_resources``."""
    return tuple(
        StepReference(each.pointer, names.get((each.kind, each.id), Key(each.kind, "")), each.id)
        for each in resource.references
    )


def reference_changes(live: Sequence[StepReference], desired: Sequence[StepReference]) -> list[FieldChange]:
    """The references that change; a reference to a resource that the plan creates always does."""
    before, after = ({each.pointer: _text(each) for each in references} for references in (live, desired))
    return [
        FieldChange(pointer, before.get(pointer, ""), after.get(pointer, ""))
        for pointer in sorted(before.keys() | after.keys())
        if before.get(pointer) != after.get(pointer)
    ]


def _text(reference: StepReference) -> str:
    kind = {"kind": reference.key.kind}
    return canonical_text(kind | {"id": reference.id} if reference.id else kind)
