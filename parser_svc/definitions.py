"""Parses sources into definitions of action sets, or lists all their violations (docs/blueprints.md)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from parser_svc.envelope import RawObject
from parser_svc.places import Places, pointers_of
from parser_svc.sources import Source, read_sources
from services.actions.definitions import Definition
from services.actions.signatures import FUNCTIONS
from services.actions.validation import validate
from services.core.errors import RequestInvalid
from services.core.model import Violation
from services.kinds.format.canonical import plain
from services.settings import Bounds
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
    Parse sources as definitions that belong together.

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
    outcome = validate([_document(raw) for raw in raw_objects], FUNCTIONS)
    faults = [(position, fault) for position, of_one in sorted(outcome.faults.items()) for fault in of_one]
    places = Places(sources, raw_objects, pointers_of(faults))
    contributing = {raw.source for raw in raw_objects}
    return ParsedDefinitions(
        () if faults else tuple(each for each in outcome.definitions if each),
        tuple(source.name for number, source in enumerate(sources) if number in contributing),
        tuple(places.violation(position, fault) for position, fault in faults),
    )


def _document(raw: RawObject) -> dict[str, Any]:
    """The document that *raw* was read from; of its unknown keys only the names."""
    envelope = {"apiVersion": raw.api_version, "kind": raw.kind, "metadata": raw.metadata, "spec": raw.spec}
    written = {key: plain(value) for key, value in envelope.items() if key not in raw.missing_keys}
    return {**written, **dict.fromkeys(raw.unknown_keys)}
