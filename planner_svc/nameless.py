"""Finds the stack without a name for a package whose request names no stack (planner.proto, StackRef.nameless)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from planner_svc.matching import Matching
from services.core.model import Key, Resource, ResourceKey


@dataclass(frozen=True, slots=True)
class Candidate:
    """
    A stack without a name that may own objects of the package.

    Attributes:
        stack_id: Its id.
        resources: The resources that it owns and that the package may declare: id of the resource by key of the object.
    """

    stack_id: str
    resources: Mapping[Key, str]


def found_by_name(matching: Matching) -> list[ResourceKey]:
    """The resources that match objects by unique name; *matching* is the one of a plan without a stack."""
    return [(each.live.kind, each.live.id) for each in matching.matches.values() if each.live]


def chosen(candidates: Iterable[Candidate], matching: Matching, live: Mapping[ResourceKey, Resource]) -> str:
    """
    Choose the first stack that owns one of the objects.

    It owns an object if it owns the resource that matches the object by its unique name. For kinds whose names may
    repeat, its record must have the key of the object, for a resource that has the name of the object or is gone. The
    key alone does not suffice, as two packages may use the same key.

    Args:
        candidates: The stacks, the newest first.
        matching: The matches of the objects, for a plan without a stack.
        live: The live resources, including all that *candidates* own.

    Returns:
        The id of the stack; empty if none owns an object.
    """
    named = {*found_by_name(matching)}
    for candidate in candidates:
        for key, resource_id in candidate.resources.items():
            resource = (key.kind, resource_id)
            if resource in named or _has_name_of(key, live.get(resource), matching):
                return candidate.stack_id
    return ""


def _has_name_of(key: Key, resource: Resource | None, matching: Matching) -> bool:
    """Whether there is an object of that *key*, and *resource* is gone or has its name."""
    match = matching.matches.get(key)
    if match is None or match.wanted is None:
        return False
    return resource is None or resource.spec.display_name == match.wanted.spec.display_name
