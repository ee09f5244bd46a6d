"""What there is to say about one kind of object."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from services.kinds.fields import Fault, Fields
from services.kinds.references import Reference


@dataclass(frozen=True, slots=True)
class Reading:
    """
    What an object says.

    Attributes:
        spec: Normalised content. Of use only when there are no faults.
        faults: Broken rules in the order of packages.md 4.
        references: References in the spec besides its name, with the field each stands in.
    """

    spec: dict[str, Any]
    faults: tuple[Fault, ...] = ()
    references: tuple[tuple[str, Reference], ...] = ()


Read = Callable[[Fields, str, Mapping[str, Any]], Reading]
"""Reads the fields of a spec, given the display name and the supplied environment values."""

Summarise = Callable[[Mapping[str, Any], int], dict[str, Any]]
"""Makes what only this kind has in a summary entry (packages.md 10.3), of a spec and the platform's id (0: unknown)."""


@dataclass(frozen=True, slots=True)
class Kind:
    """
    One kind of object.

    Attributes:
        name: As packages spell it.
        family: The kinds that share a name space.
        resource_type: As label mappings spell it.
        summary_key: The list of the summary that holds it.
        unique_display_name: Whether display names must differ within the family in one package.
        min_name_bytes: Shortest display name, in bytes of UTF-8.
        read: Validates and normalises.
        summarise: Makes the summary entry.
        labelled: Whether labels can be attached.
        references_by_key: Whether a summary lists environment references by key instead of by field (packages.md 6.4).
    """

    name: str
    family: str
    resource_type: str
    summary_key: str
    unique_display_name: bool
    min_name_bytes: int
    read: Read
    summarise: Summarise
    labelled: bool = True
    references_by_key: bool = False


def short_name(fields: Fields, name: str, minimum: int) -> list[Fault]:
    """The fault of a display name with fewer than *minimum* bytes."""
    if len(name.encode()) >= minimum:
        return []
    return [fields.fault("name", f"the name {name!r} is too short; it needs at least {minimum} bytes")]


def owned_ids(number: int) -> dict[str, int]:
    """``id`` as buckets and variables have it: left out while unknown, as ``orgID`` always is."""
    return {"id": number} if number else {}
