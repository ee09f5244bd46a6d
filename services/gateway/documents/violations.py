"""
Violations of a package (docs/reference/package-format.md, "Violations"), as InfluxDB and its command line write them.
"""

import re
from typing import Any

from pkger.model.v1 import object_pb2

_STEP = re.compile(r"([^.\[\]]+)((?:\[\d+\])*)")
_INDEX = re.compile(r"\d+")


def violation_document(violation: object_pb2.Violation) -> dict[str, Any]:
    """One violation: its path in steps, and its location."""
    fields, indexes = path_steps(violation.path)
    document: dict[str, Any] = {
        "kind": violation.kind,
        "fields": fields,
        "idxs": indexes,
        # The command line reads this member, and not idxs.
        "indexes": indexes,
        "reason": violation.reason,
    }
    if violation.code:
        document["code"] = violation.code
    place = violation.location
    if place.source:
        document["source"] = place.source
    if place.line:
        document |= {"line": place.line, "column": place.column}
    return document


def path_steps(path: str) -> tuple[list[str], list[int | None]]:
    """
    The steps of a path such as ``root[3].spec.charts[0].name``, and for each the position in its list, or None.

    A step with several positions, for a list in a list, is repeated for each of them.
    """
    fields: list[str] = []
    indexes: list[int | None] = []
    for name, positions in _STEP.findall(path):
        numbers = [int(number) for number in _INDEX.findall(positions)]
        fields += [name] * max(len(numbers), 1)
        indexes += numbers or [None]
    return fields, indexes
