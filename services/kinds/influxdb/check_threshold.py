"""Threshold checks (docs/reference/package-format.md, "Checks")."""

from collections.abc import Mapping
from typing import Any

from services.kinds.diagnostics import Code
from services.kinds.format.field_table import Field, Mappings, Table
from services.kinds.format.fields import Fault, Fields, Numbering
from services.kinds.format.kind import ReadResult, Scope, read_plainly
from services.kinds.format.shapes import Boolean, Fold, Number, Text
from services.kinds.influxdb import check

_COMPARISONS = ("greater", "lesser")
_RANGES = ("inside_range", "outside_range")


def _threshold_faults(fields: Fields, values: Mapping[str, Any]) -> list[Fault]:
    faults = [fault for key in ("level", "type") for fault in _THRESHOLD.field_faults(fields, values, key)]
    if values["min"] > values["max"]:
        problem = f"min {values['min']} is greater than max {values['max']}"
        faults.append(fields.fault(Code.RANGE_REVERSED, "min", f"{problem}; exchange them"))
    return faults


_THRESHOLD = Table(
    Field("level", Text(words=check.LEVELS, fold=Fold.UPPER, required=True), "Level of a point that fits."),
    Field("type", Text(words=(*_COMPARISONS, *_RANGES), fold=Fold.LOWER, required=True), "How the value is compared."),
    Field("value", Number(), "What greater and lesser compare with."),
    Field("min", Number(), "Lower end of a range."),
    Field("max", Number(), "Upper end of a range."),
    Field("allValues", Boolean(), "Whether all values must fit, instead of any."),
    check=_threshold_faults,
    required=("level", "type"),
)

_FIELDS = Table(
    *check.FIELDS,
    Field(
        "thresholds",
        Mappings(_THRESHOLD, required="threshold", numbering=Numbering.LEAF_ONLY),
        "Levels, and the values that reach them.",
    ),
    required=(*check.REQUIRED, "thresholds"),
)


def _read(fields: Fields, scope: Scope) -> ReadResult:
    reading = read_plainly(fields, scope, _FIELDS, check.MIN_NAME_BYTES)
    thresholds = [_used(threshold) for threshold in reading.spec["thresholds"]]
    return reading._replace(spec={**reading.spec, "thresholds": thresholds})


def _used(threshold: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of *threshold* that its type uses."""
    numbers = ("min", "max") if threshold["type"] in _RANGES else ("value",)
    return {key: threshold[key] for key in ("level", "type", "allValues", *numbers)}


def _summarise(spec: Mapping[str, Any], number: int) -> dict[str, Any]:
    thresholds = [_summary_threshold(threshold) for threshold in spec["thresholds"]]
    return check.summarise(spec, number, "threshold", {"thresholds": thresholds or None})


def _summary_threshold(threshold: Mapping[str, Any]) -> dict[str, Any]:
    shown = {"allValues": threshold["allValues"], "level": threshold["level"]}
    if threshold["type"] in _RANGES:
        ends = {key: threshold[key] for key in ("min", "max") if threshold[key]}
        return {**shown, "type": "range", **ends, "within": threshold["type"] == "inside_range"}
    return {**shown, "type": threshold["type"], "value": threshold["value"]}


KIND = check.kind(
    "CheckThreshold", "A check that compares values with thresholds and writes statuses.", _FIELDS, _read, _summarise
)
