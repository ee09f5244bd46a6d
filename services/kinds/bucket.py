"""Buckets: retention and measurement schemas (packages.md 4.2)."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from services.kinds.fields import Fault, Fields, found_text
from services.kinds.kind import Kind, Reading, owned_ids, short_name

_MIN_NAME_BYTES = 2
_SHORTEST_RETENTION = 3600
_LONGEST_RETENTION = 2**63 // 10**9
"""Seconds; more do not fit the 64 bits of nanoseconds that platforms and summaries count retention in."""
_COLUMN_TYPES = ("timestamp", "tag", "field")
_DATA_TYPES = ("float", "integer", "unsigned", "string", "boolean")
_LONGEST_SCHEMA_NAME = 128


def _read(fields: Fields, name: str, _env: Mapping[str, Any]) -> Reading:
    faults = short_name(fields, name, _MIN_NAME_BYTES)
    rules = fields.mappings("retentionRules")
    schemas = fields.mappings("measurementSchemas")
    for rule in rules:
        faults += _rule_faults(rule)
    for schema in schemas:
        faults += _schema_faults(schema)
    spec = {
        "name": name,
        "description": fields.text("description"),
        # Only the first rule takes effect.
        "retentionRules": [
            {"type": rule.text("type"), "everySeconds": rule.integer("everySeconds")} for rule in rules[:1]
        ],
        "schemaType": fields.text("schemaType"),
        "measurementSchemas": sorted(map(_schema, schemas), key=_name),
    }
    return Reading(spec, tuple(faults))


def _rule_faults(rule: Fields) -> list[Fault]:
    faults = []
    if not _SHORTEST_RETENTION <= rule.integer("everySeconds") <= _LONGEST_RETENTION:
        allowed = f"a number of seconds from {_SHORTEST_RETENTION} to {_LONGEST_RETENTION}"
        reason = f"retention must be {allowed}; {found_text(rule, 'everySeconds')}"
        faults.append(rule.fault("everySeconds", reason))
    if rule.text("type") != "expire":
        faults.append(rule.fault("type", f"the type of a retention rule must be expire; {found_text(rule, 'type')}"))
    return faults


def _schema(schema: Fields) -> dict[str, Any]:
    columns = [
        {"name": column.text("name"), "type": column.text("type"), "dataType": column.text("dataType")}
        for column in schema.mappings("columns")
    ]
    return {"name": schema.text("name"), "columns": sorted(columns, key=_name)}


def _name(entry: Mapping[str, str]) -> str:
    return entry["name"]


def _schema_faults(schema: Fields) -> list[Fault]:
    columns = schema.mappings("columns")
    faults = _schema_name_faults(schema)
    for column in columns:
        faults += _column_faults(column)
    typed = [column for column in columns if column.text("type") in _COLUMN_TYPES]
    if not any(column.text("name") == "time" for column in typed):
        faults.append(schema.fault("columns", "a schema needs a column named time, of type timestamp"))
    if not any(column.text("type") == "field" for column in typed):
        faults.append(schema.fault("columns", "a schema needs at least one column of type field"))
    names = sorted((column.text("name") for column in columns), key=str.casefold)
    for _, alike in groupby(names, key=str.casefold):
        first, *others = sorted(alike)
        faults += [
            schema.fault("columns", f"the columns {first[:60]!r} and {other[:60]!r} differ at most in case; rename one")
            for other in others
        ]
    return faults


def _column_faults(column: Fields) -> list[Fault]:
    faults = _schema_name_faults(column)
    name, type_, data_type = column.text("name"), column.text("type"), column.text("dataType")
    if type_ not in _COLUMN_TYPES:
        reason = f"the type of a column must be timestamp, tag or field; {found_text(column, 'type')}"
        return [*faults, column.fault("type", reason)]
    if name == "time" and type_ != "timestamp":
        faults.append(column.fault("type", f"the column time must have the type timestamp; found {type_!r}"))
    if name == "time" and data_type in _DATA_TYPES:
        faults.append(column.fault("dataType", f"the column time has no dataType; leave {data_type!r} out"))
    if type_ == "timestamp" and name != "time":
        faults.append(column.fault("name", f"the one column of type timestamp is named time; found {name!r}"))
    if type_ == "tag" and data_type in _DATA_TYPES:
        faults.append(column.fault("dataType", f"tags are texts and have no dataType; leave {data_type!r} out"))
    if type_ == "field" and data_type not in _DATA_TYPES:
        reason = f"the dataType of a field must be one of {', '.join(_DATA_TYPES)}; {found_text(column, 'dataType')}"
        faults.append(column.fault("dataType", reason))
    return faults


def _schema_name_faults(fields: Fields) -> list[Fault]:
    name = fields.text("name")
    if not name:
        problem = "must not be empty"
    elif len(name.encode()) > _LONGEST_SCHEMA_NAME:
        problem = f"must have at most {_LONGEST_SCHEMA_NAME} bytes"
    elif not name.isprintable() or "\ufffd" in name:
        problem = "must have printable characters only"
    elif name.startswith("_"):
        problem = "must not begin with _"
    elif "'" in name or '"' in name:
        problem = "must not contain quotes"
    else:
        return []
    return [fields.fault("name", f"the name of a schema or column {problem}; found {name[:60]!r}")]


def _summarise(spec: Mapping[str, Any], number: int) -> dict[str, Any]:
    rules = spec["retentionRules"]
    entry = {
        **owned_ids(number),
        "name": spec["name"],
        "description": spec["description"],
        "retentionPeriod": rules[0]["everySeconds"] * 10**9 if rules else 0,
    }
    if spec["schemaType"]:
        entry["schemaType"] = spec["schemaType"]
    if spec["measurementSchemas"]:
        entry["measurementSchemas"] = [
            {"name": schema["name"], "columns": [_summary_column(column) for column in schema["columns"]]}
            for schema in spec["measurementSchemas"]
        ]
    return entry


def _summary_column(column: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in column.items() if value or key != "dataType"}


KIND = Kind(
    name="Bucket",
    family="bucket",
    resource_type="buckets",
    summary_key="buckets",
    unique_display_name=True,
    min_name_bytes=_MIN_NAME_BYTES,
    read=_read,
    summarise=_summarise,
)
