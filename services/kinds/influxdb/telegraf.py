"""Telegraf configurations (docs/reference/package-format.md, "Telegraf configurations")."""

from collections.abc import Mapping
from typing import Any

from services.kinds.format.field_table import DESCRIPTION, Field, Table
from services.kinds.format.fields import Fields
from services.kinds.format.kind import Kind, ReadResult, Scope, read_plainly
from services.kinds.format.shapes import Text
from services.kinds.influxdb.summary_ids import embedded_id

_MIN_NAME_BYTES = 1

_FIELDS = Table(
    DESCRIPTION,
    Field("config", Text(required=True, what="a Telegraf configuration"), "The configuration, in TOML."),
    required=("config",),
)


def _read(fields: Fields, scope: Scope) -> ReadResult:
    return read_plainly(fields, scope, _FIELDS, _MIN_NAME_BYTES)


def _summarise(spec: Mapping[str, Any], number: int) -> dict[str, Any]:
    shown = {key: spec[key] for key in ("name", "description", "config") if spec[key]}
    return {"telegrafConfig": {**embedded_id(number), **shown}}


KIND = Kind(
    name="Telegraf",
    family="telegraf",
    resource_type="telegrafs",
    summary_key="telegrafConfigs",
    unique_display_name=False,
    min_name_bytes=_MIN_NAME_BYTES,
    about="A configuration that Telegraf agents can fetch.",
    fields=_FIELDS,
    read=_read,
    summarise=_summarise,
)
