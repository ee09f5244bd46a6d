"""Which resources an import of a package adds to the record of a stack (docs/reference/engine.md, "Matching")."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from planner_svc.composition.own_policies import own_policies
from planner_svc.imports.live_resources import LiveResource
from planner_svc.matching.match import entries_of
from services.core.errors import KindUnsupported, RequestInvalid
from services.core.model import Key, Object, Package, PlatformTraits, ResourceKey, StackRecord
from services.core.text_lists import listed
from services.kinds.registry import family_of, kinds_of

_NAME_FIELDS = frozenset({"metadata.name", "spec.name"})
"""The fields that name an object and its resource."""

_SHOWN = 10
"""How many keys an error lists at most."""


class ImportStatus(Enum):
    """Whether an import adds the resource of an object, or why not; planner.proto defines each value."""

    UNOWNED = "unowned"
    MISSING = "missing"
    AMBIGUOUS = "ambiguous"
    OWNED = "owned"
    RECORDED = "recorded"


class ObjectImport(NamedTuple):
    """
    The result for one object.

    Attributes:
        key: Its key.
        display_name: Its display name.
        status: Whether its resource is added.
        resources: The resources with the display name, sorted by kind and id; of a recorded object, the recorded one if
            it exists.
        own_policy: What package and object say themselves, as ``OwnPolicy.text`` writes it.
    """

    key: Key
    display_name: str
    status: ImportStatus
    resources: Sequence[LiveResource] = ()
    own_policy: str = ""


_Name = tuple[str, str]
"""A family, and a display name as the platform compares it."""


def kinds_to_list(objects: Iterable[Object], platform: PlatformTraits) -> list[str]:
    """
    The kinds that the resources of *objects* may have, sorted: all kinds of the families of the objects, because the
    kinds of a family share their names.

    Raises:
        KindUnsupported: The platform does not have the kind of an object.
    """
    kinds = sorted({item.key.kind for item in objects})
    for kind in kinds:
        if kind not in platform.kinds:
            raise KindUnsupported(platform.platform, kind)
    families = {family_of(kind) for kind in kinds}
    return sorted({kind for family in families for kind in kinds_of(family) if kind in platform.kinds})


def refuse_missing_names(objects: Iterable[Object], missing: Iterable[str]) -> None:
    """
    Refuse objects without a name, as no value is supplied for it.

    Args:
        objects: The objects.
        missing: Environment keys that are not supplied.

    Raises:
        RequestInvalid: Names the keys.
    """
    needed = {
        reference.env_key
        for item in objects
        for reference in item.env_references
        if reference.resource_field in _NAME_FIELDS and reference.default is None
    }
    if keys := sorted(needed.intersection(missing)):
        raise RequestInvalid(
            "package.env_json", f"the names of objects need values for {listed(keys, _SHOWN)}; supply them"
        )


def plan_import(
    package: Package,
    stack: StackRecord,
    live: Iterable[LiveResource],
    platform: PlatformTraits,
) -> list[ObjectImport]:
    """
    Find the resource that an import adds for each object: the only one with its display name, if no stack owns it.

    Args:
        package: The package.
        stack: The record.
        live: All resources of the kinds of ``kinds_to_list``.
        platform: Its rules for names.

    Returns:
        One result for each object, sorted by key.
    """
    display_names = {item.key: item.spec.display_name for item in package.objects}
    recorded = {
        key: (entry.key.kind, entry.resource_id)
        for key, entry in entries_of(display_names.keys(), stack.resources).items()
    }
    by_key: dict[ResourceKey, LiveResource] = {}
    by_name: defaultdict[_Name, list[LiveResource]] = defaultdict(list)
    for each in sorted(live, key=lambda each: (each.kind, each.id)):
        by_key[each.kind, each.id] = each
        by_name[_name(each.kind, each.display_name, platform)].append(each)
    names = {key: _name(key.kind, name, platform) for key, name in display_names.items() if key not in recorded}
    counts = Counter(names.values())
    own = own_policies(package, {})
    imports = [
        _recorded(key, display_names[key], recorded[key], by_key)
        if key in recorded
        else _by_name(key, display_names[key], by_name.get(names[key], []), counts[names[key]])
        for key in sorted(display_names)
    ]
    return [each._replace(own_policy=own[each.key].text) if each.key in own else each for each in imports]


def _name(kind: str, display_name: str, platform: PlatformTraits) -> _Name:
    return family_of(kind), platform.kinds[kind].compared_name(display_name)


def _recorded(
    key: Key, display_name: str, resource: ResourceKey, live: Mapping[ResourceKey, LiveResource]
) -> ObjectImport:
    there = [live[resource]] if resource in live else []
    return ObjectImport(key, display_name, ImportStatus.RECORDED, there)


def _by_name(key: Key, display_name: str, named: Sequence[LiveResource], object_count: int) -> ObjectImport:
    """The result for an object that is not recorded, and shares its name with *object_count* - 1 others."""
    if not named:
        status = ImportStatus.MISSING
    elif named[1:] or object_count > 1 or named[0].kind != key.kind:
        status = ImportStatus.AMBIGUOUS
    else:
        status = ImportStatus.OWNED if named[0].owner else ImportStatus.UNOWNED
    return ObjectImport(key, display_name, status, named)
