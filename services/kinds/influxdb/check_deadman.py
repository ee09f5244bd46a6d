"""Deadman checks (docs/reference/package-format.md, "Checks")."""

from collections.abc import Mapping
from typing import Any

from services.kinds.diagnostics import Code
from services.kinds.format.field_table import Field, Table, nearest_word
from services.kinds.format.fields import Fields, Remark
from services.kinds.format.kind import ReadResult, Scope, read_plainly
from services.kinds.format.shapes import Boolean, Duration, Text
from services.kinds.influxdb import check

_UNKNOWN = "UNKNOWN"

_FIELDS = Table(
    *check.FIELDS,
    Field("level", Text(), f"Level of a series that is dead: {', '.join(check.LEVELS)}."),
    Field("staleTime", Duration(), "How far back the check looks."),
    Field("timeSince", Duration(), "How long a series must be silent to be dead."),
    Field("reportZero", Boolean(), "Whether a series with the value zero counts as dead."),
    required=check.REQUIRED,
)


def _read(fields: Fields, scope: Scope) -> ReadResult:
    reading = read_plainly(fields, scope, _FIELDS, check.MIN_NAME_BYTES)
    level = reading.spec["level"].upper()
    is_known = level in check.LEVELS
    return reading._replace(
        spec={**reading.spec, "level": level if is_known else _UNKNOWN},
        remarks=() if is_known or level == _UNKNOWN else (_unknown_level(fields),),
    )


def _unknown_level(fields: Fields) -> Remark:
    ways = ", ".join(check.LEVELS)
    if "level" not in fields.value:
        text = f"a check without a level reports {_UNKNOWN}; write level as one of {ways}"
        return fields.own_remark(Code.CHECK_LEVEL_UNKNOWN, text)
    text = f"this is no level and will become {_UNKNOWN}; write one of {ways}"
    rewrite = nearest_word(fields.text("level"), check.LEVELS)
    return fields.remark(Code.CHECK_LEVEL_UNKNOWN, "level", text, rewrite=rewrite)


def _summarise(spec: Mapping[str, Any], number: int) -> dict[str, Any]:
    further = {
        "timeSince": check.duration(spec, "timeSince"),
        "staleTime": check.duration(spec, "staleTime"),
        "reportZero": spec["reportZero"],
        "level": spec["level"],
    }
    return check.summarise(spec, number, "deadman", further)


KIND = check.kind(
    "CheckDeadman", "A check that writes a status for series that have fallen silent.", _FIELDS, _read, _summarise
)
