"""Parses sources into definitions of action sets, or lists all their violations (docs/blueprints.md)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from parser_svc.envelope import RawObject
from parser_svc.places import Places, pointers_of
from parser_svc.sources import Source, read_sources
from services.actions.definitions import Definition
from services.actions.reading import path_of
from services.actions.signatures import FUNCTIONS
from services.actions.validation import validate
from services.core.errors import RequestInvalid
from services.core.model import Violation
from services.kinds.diagnostics import Code
from services.kinds.format.canonical import plain
from services.kinds.format.fields import Fault
from services.settings import Bounds
from services.syntax.places import Pointer
from services.syntax.usage import stopped_clock


@dataclass(frozen=True, slots=True)
class ParsedDefinitions:
    """
    The result of parsing definitions.

    Attributes:
        definitions: The definitions in the order of the sources; none if there are violations.
        sources: Names of the sources that have definitions, in order.
        violations: All violations, by position of the definition; empty if all are valid.
    """

    definitions: tuple[Definition, ...]
    sources: tuple[str, ...]
    violations: tuple[Violation, ...]


def parse_definitions(
    sources: Sequence[Source], bounds: Bounds | None = None, clock: Callable[[], float] = stopped_clock
) -> ParsedDefinitions:
    """
    Parse sources as definitions that belong together. Blueprints that none of them has may be stored, so what an action
    set passes to those is not checked.

    Args:
        sources: One source or more.
        bounds: The limits of all sources together; None: the default limits.
        clock: Returns seconds since an arbitrary start; the default one stands still, so time is not limited.

    Raises:
        RequestInvalid: There is no source.
        SourceUndecodable: A source cannot be decoded.
        SourceTooLarge: The sources exceed a bound.
    """
    if not sources:
        raise RequestInvalid("sources", "give at least one source")
    raw_objects = [raw for raw in read_sources(sources, bounds, clock) if isinstance(raw, RawObject)]
    outcome = validate([_document(raw) for raw in raw_objects], FUNCTIONS, stored=None)
    unreadable = [(position, fault) for position, raw in enumerate(raw_objects) for fault in _unreadable(raw)]
    # What is said of the value that stands for one that cannot be read is no violation of its own.
    said = {(position, fault.pointer) for position, fault in unreadable}
    of_rules = [(position, fault) for position, of_one in outcome.faults.items() for fault in of_one]
    others = [each for each in of_rules if (each[0], each[1].pointer) not in said]
    faults = sorted([*others, *unreadable], key=lambda each: each[0])
    places = Places(sources, raw_objects, pointers_of(faults))
    contributing = {raw.source for raw in raw_objects}
    return ParsedDefinitions(
        () if faults else tuple(each for each in outcome.definitions if each),
        tuple(source.name for number, source in enumerate(sources) if number in contributing),
        tuple(places.violation(position, fault) for position, fault in faults),
    )


def _unreadable(raw: RawObject) -> Iterator[Fault]:
    """The numbers of a definition that JSON cannot have."""
    for name, value in (("metadata", raw.metadata), ("spec", raw.spec)):
        yield from _not_finite(value, (name,))


def _not_finite(value: Any, pointer: Pointer) -> Iterator[Fault]:
    if isinstance(value, float) and not isfinite(value):
        yield Fault(Code.TYPE_INVALID, path_of(pointer), "must be a finite number, or a text in quotes", pointer)
    elif isinstance(value, Mapping | list):
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _not_finite(item, (*pointer, key))


def _document(raw: RawObject) -> dict[str, Any]:
    """The document that *raw* was read from; of its unknown keys only the names."""
    envelope = {"apiVersion": raw.api_version, "kind": raw.kind, "metadata": raw.metadata, "spec": raw.spec}
    written = {key: plain(value) for key, value in envelope.items() if key not in raw.missing_keys}
    return {**written, **dict.fromkeys(raw.unknown_keys)}
