"""The warnings of a plan or a package as they are shown: those that differ only in their places are one."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pkger.model.v1 import plan_pb2

from services.core.model import Violation
from services.rpc.convert.objects import violation_from_pb

_INDEX = re.compile(r"\[\d+\]")
"""The position of an object or of an item in a path."""


class Repeated(NamedTuple):
    """A warning at its first place, and the number of the other places that have it."""

    first: Violation
    others: int

    @property
    def more(self) -> str:
        """The other places as the end of a sentence; empty without any."""
        return f" (and at {self.others:,} other place{'s' if self.others > 1 else ''})" if self.others else ""


def repeated(warnings: Iterable[Violation]) -> list[Repeated]:
    """*warnings*, in the order of their first places, those that differ only in source, position and object as one."""
    places: dict[tuple[str, ...], list[Violation]] = {}
    for warning in warnings:
        key = (warning.code, warning.kind, _INDEX.sub("", warning.path), warning.reason)
        places.setdefault(key, []).append(warning)
    return [Repeated(same[0], len(same) - 1) for same in places.values()]


def warning_lines(remarks: plan_pb2.PlanRemarks, full: bool = False) -> Sequence[str]:
    """The warnings of a plan, first those about its package; *full*: each place has a line of its own."""
    of_package = [violation_from_pb(warning) for warning in remarks.package_warnings]
    shown = [Repeated(warning, 0) for warning in of_package] if full else repeated(of_package)
    return [
        *(f"{each.first.location}: {each.first.path}: {each.first.reason}{each.more}" for each in shown),
        *remarks.warnings,
    ]
