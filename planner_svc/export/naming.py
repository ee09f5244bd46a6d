"""Names of exported objects: recorded names, else words of the display name and a suffix (docs/export.md)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from services.core.model import Resource, ResourceKey
from services.kinds.format.names import is_meta_name
from services.kinds.generated_names import generated_name
from services.kinds.registry import KINDS


class Recorded(NamedTuple):
    """
    A name that a stack of the target has for a resource; sorts by precedence: owners first, then the older record.

    Attributes:
        precedence: 0 for the owner of the resource, 1 for a user.
        since: The time of the record, in nanoseconds.
        stack_id: The stack.
        name: The name.
    """

    precedence: int
    since: int
    stack_id: str
    name: str


def names_of(
    resources: Iterable[Resource], own: Mapping[ResourceKey, str], recorded: Mapping[ResourceKey, Sequence[Recorded]]
) -> dict[ResourceKey, str]:
    """
    The metadata.name of each resource, unique in its family.

    A resource has the same name whatever else is exported: names depend on all resources of the families and their
    recorded names, not on the selection. Only *own* depends on the request.

    Args:
        resources: All resources of the families, of kinds that packages have.
        own: The names that the exported stack has; they take precedence.
        recorded: The names that other stacks of the target have. If several resources have one name, the first one gets
            it, and the others get other names.
    """
    families: dict[str, list[Resource]] = {}
    for resource in resources:
        families.setdefault(KINDS[resource.kind].family, []).append(resource)
    names: dict[ResourceKey, str] = {}
    for members in families.values():
        names |= _names_of_family(members, own, recorded)
    return names


def _names_of_family(
    members: Sequence[Resource], own: Mapping[ResourceKey, str], recorded: Mapping[ResourceKey, Sequence[Recorded]]
) -> dict[ResourceKey, str]:
    keys = sorted((each.kind, each.id) for each in members)
    names: dict[ResourceKey, str] = {}
    owner_of: dict[str, ResourceKey] = {}

    def give(key: ResourceKey, name: str) -> None:
        if key not in names and name not in owner_of and is_meta_name(name):
            names[key], owner_of[name] = name, key

    for key in keys:
        if key in own:
            give(key, own[key])
    candidates = sorted((recorded_name, key) for key in keys for recorded_name in recorded.get(key, ()))
    for candidate, resource_key in candidates:
        give(resource_key, candidate.name)
    nameless_resources = {(each.kind, each.id): each for each in members if (each.kind, each.id) not in names}
    short = {key: generated_name(resource) for key, resource in nameless_resources.items()}
    taken: dict[str, int] = dict.fromkeys(owner_of, 1)
    for name in short.values():
        taken[name] = taken.get(name, 0) + 1
    return names | {
        key: short[key] if taken[short[key]] == 1 else generated_name(resource, is_long=True)
        for key, resource in nameless_resources.items()
    }
