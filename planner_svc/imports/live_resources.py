"""The resources of a platform by name, with their owners."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from services.core.errors import KindUnsupported, RequestInvalid
from services.core.model import PlatformTraits, Resource, ResourceKey
from services.kinds.kind_words import unknown_kind
from services.kinds.registry import ACCEPTED, KINDS, kinds_meant


class Owner(NamedTuple):
    """
    The stack that owns a resource, or that an operation claims it for.

    Attributes:
        stack_id: Its id.
        stack_name: Its name; may be empty.
        object_name: ``metadata.name`` of its object; empty when an operation claims the resource without an object.
    """

    stack_id: str
    stack_name: str
    object_name: str


class LiveResource(NamedTuple):
    """A resource with its display name and its owner; None: no stack owns it."""

    kind: str
    id: str
    display_name: str
    owner: Owner | None = None


def with_owners(resources: Iterable[Resource], owners: Mapping[ResourceKey, Owner]) -> list[LiveResource]:
    """The *resources* with their owners, in their order."""
    return [
        LiveResource(each.kind, each.id, each.spec.display_name, owners.get((each.kind, each.id))) for each in resources
    ]


def in_order(resources: Iterable[LiveResource]) -> list[LiveResource]:
    """Sort *resources* by kind in the order of ``KINDS``, then display name, then id; unknown kinds come last."""
    places = {kind: place for place, kind in enumerate(KINDS)}
    return sorted(
        resources, key=lambda each: (places.get(each.kind, len(places)), each.kind, each.display_name, each.id)
    )


def kinds_named(words: Sequence[str], platform: PlatformTraits) -> list[str]:
    """
    The kinds of the platform that *words* name, sorted; without words, all of them.

    Raises:
        RequestInvalid: A word is neither a kind nor a family of kinds.
        KindUnsupported: The platform does not have the kind.
    """
    named = {kind for position, word in enumerate(words) for kind in _kinds(word, f"kinds[{position}]", platform)}
    return sorted(named if words else platform.kinds)


def _kinds(word: str, field: str, platform: PlatformTraits) -> list[str]:
    # A platform may have kinds that packages do not have.
    if word not in ACCEPTED and word not in platform.kinds:
        raise RequestInvalid(field, unknown_kind(word))
    kinds = [kind for kind in kinds_meant(word) if kind in platform.kinds]
    if not kinds:
        raise KindUnsupported(platform.platform, word)
    return kinds
