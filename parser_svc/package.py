"""From sources to a package, or to all that is wrong with it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parser_svc.bounds import MAX_VIOLATIONS
from parser_svc.envelope import RawObject
from parser_svc.places import Place, Pointer, places
from parser_svc.sources import Source, read_sources
from parser_svc.validation import Outcome, validate
from services.core.errors import RequestInvalid
from services.core.model import Location, Package, Violation
from services.kinds.fields import Fault

_Fault = tuple[int, Fault]
"""A fault and the position of its object."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """
    What sources say.

    Attributes:
        package: None when there are violations.
        violations: By position of the object, then in the order of packages.md 3.5; empty for a valid package.
        missing_env_refs: Environment keys referred to without a supplied value, sorted.
        missing_secrets: Secret keys referred to, sorted.
        warnings: Remarks that make nothing invalid.
    """

    package: Package | None
    violations: tuple[Violation, ...]
    missing_env_refs: tuple[str, ...]
    missing_secrets: tuple[str, ...]
    warnings: tuple[str, ...]


def parse(sources: Sequence[Source], env: Mapping[str, Any], allow_empty: bool = False) -> Parsed:
    """
    Parse sources as one package (packages.md 1.10).

    Args:
        sources: At least one.
        env: Supplied environment values by key; any tree.
        allow_empty: Whether a package without objects is valid.

    Raises:
        RequestInvalid: There is no source, or one in an encoding that this version does not read.
        SourceUndecodable: A source is not what its encoding says.
        SourceTooLarge: The sources exceed a bound.
    """
    if not sources:
        raise RequestInvalid("sources", "a package needs at least one source")
    raw_objects = read_sources(sources)
    # Values are supplied to a package that is valid without them (packages.md 6.3).
    outcome = validate(raw_objects, {})
    if env and not outcome.faults:
        outcome = validate(raw_objects, env)
    faults, warnings = _distinct(outcome), outcome.warnings
    violations = _violations(sources, raw_objects, faults[:MAX_VIOLATIONS])
    if not raw_objects and not allow_empty:
        reason = "the package has no objects; write at least one"
        violations = (Violation("Package", "resources", reason, Location(sources[0].name)),)
    if len(faults) > MAX_VIOLATIONS:
        warnings = (*warnings, f"there are {len(faults)} violations; these are the first {MAX_VIOLATIONS}")
    contributing = {raw.source for raw in raw_objects}
    names = tuple(source.name for number, source in enumerate(sources) if number in contributing)
    return Parsed(
        package=None if violations else Package(outcome.objects, names),
        violations=violations,
        missing_env_refs=tuple(sorted(key for key in outcome.env_keys if env.get(key) is None)),
        missing_secrets=tuple(sorted(outcome.secret_keys)),
        warnings=warnings,
    )


def _distinct(outcome: Outcome) -> list[_Fault]:
    """The faults in the order of the answer; identical ones are reported once (packages.md 8.2)."""
    distinct: dict[tuple[int, str, str], _Fault] = {}
    for position, found in sorted(outcome.faults.items()):
        for fault in found:
            distinct.setdefault((position, fault.path, fault.reason), (position, fault))
    return list(distinct.values())


def _violations(
    sources: Sequence[Source], raw_objects: Sequence[RawObject], faults: Sequence[_Fault]
) -> tuple[Violation, ...]:
    located = _locate(sources, raw_objects, faults)

    def location(position: int, within: Pointer) -> Location:
        raw = raw_objects[position]
        place = located[raw.source].get(raw.pointer_to(within), (0, 0))
        return Location(sources[raw.source].name, *place)

    return tuple(
        Violation(
            kind=raw_objects[position].kind or "unknown",
            path=f"root[{position}].{fault.path}",
            reason=fault.reason if fault.first is None else f"{fault.reason} ({location(fault.first, ())})",
            location=location(position, fault.pointer),
        )
        for position, fault in faults
    )


def _locate(
    sources: Sequence[Source], raw_objects: Sequence[RawObject], faults: Sequence[_Fault]
) -> dict[int, dict[Pointer, Place]]:
    """For each source with a fault: its places of interest."""
    wanted: dict[int, set[Pointer]] = defaultdict(set)
    for position, fault in faults:
        raw = raw_objects[position]
        wanted[raw.source].add(raw.pointer_to(fault.pointer))
        if fault.first is not None:
            first = raw_objects[fault.first]
            wanted[first.source].add(first.pointer)
    return {number: places(sources[number].text, pointers) for number, pointers in wanted.items()}
