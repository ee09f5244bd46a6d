"""Where the findings on objects are in their sources."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from parser_svc.envelope import RawObject
from parser_svc.fixes import fixes
from parser_svc.known_documents import KnownObject
from parser_svc.sources import Source
from services.core.model import Location, Position, Related, Violation
from services.kinds.diagnostics import DIAGNOSTICS
from services.kinds.format.fields import Fault, Remark
from services.syntax.places import NOWHERE, Pointer, Written, places


def pointers_of(faults: Iterable[tuple[int, Fault]]) -> Iterator[tuple[int, Pointer]]:
    """The places that the violations of *faults* name, each with the position of its object."""
    for position, fault in faults:
        yield position, fault.pointer
        if fault.first is not None:
            yield fault.first, ()
        for other in fault.related:
            yield other.position, other.pointer


class Places:
    """The places of values in objects, found in one pass over each source."""

    def __init__(
        self,
        sources: Sequence[Source],
        raw_objects: Sequence[RawObject | KnownObject],
        of_interest: Iterable[tuple[int, Pointer]],
    ) -> None:
        """
        Args:
            sources: The sources; generated ones have no places.
            raw_objects: Their objects.
            of_interest: The values to find: the position of the object, and the pointer in it.
        """
        self._raw_objects = raw_objects
        pointers: dict[int, set[Pointer]] = defaultdict(set)
        for position, within in of_interest:
            raw = raw_objects[position]
            pointers[raw.source].add(raw.pointer_to(within))
        self._written = {
            number: {} if sources[number].generated else places(sources[number].text, of_source)
            for number, of_source in pointers.items()
        }

    def _at(self, position: int, within: Pointer) -> Written:
        raw = self._raw_objects[position]
        return self._written[raw.source].get(raw.pointer_to(within), NOWHERE)

    def text(self, position: int, within: Pointer) -> str | None:
        """The scalar at *within* in the object at *position*, as the source has it; None: not known."""
        return self._at(position, within).text

    def location(self, position: int, within: Pointer) -> Location:
        """The first character of that value."""
        return Location(self._raw_objects[position].location.source, *self._at(position, within).place)

    def span(self, position: int, within: Pointer) -> tuple[Location, Position]:
        """The first character of that value, and the one after its last."""
        return self.location(position, within), Position(*self._at(position, within).end)

    def violation(self, position: int, fault: Fault) -> Violation:
        """The violation that *fault* is, of the object at *position*."""
        reason = fault.reason if fault.first is None else f"{fault.reason} ({self.location(fault.first, ())})"
        related = (Related(self.location(other.position, other.pointer), other.text) for other in fault.related)
        return self._finding(position, fault, reason, tuple(related))

    def warning(self, position: int, remark: Remark) -> Violation:
        """The warning that *remark* is."""
        return self._finding(position, remark, remark.text, ())

    def _finding(self, position: int, finding: Fault | Remark, reason: str, related: tuple[Related, ...]) -> Violation:
        raw = self._raw_objects[position]
        written = self._at(position, finding.pointer)
        location, end = self.span(position, finding.pointer)
        return Violation(
            raw.kind or "unknown",
            f"root[{position}].{finding.path}",
            reason,
            location,
            finding.code,
            DIAGNOSTICS[finding.code].severity,
            end,
            related,
            fixes(finding.rewrite, location.source, written) if finding.rewrite else (),
        )
