"""Buckets: retention and measurement schemas (docs/reference/package-format.md, "Buckets")."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from services.core.model import DataLoss
from services.kinds.diagnostics import Code
from services.kinds.format.field_table import DESCRIPTION, Field, Mappings, Table, nearest_word, text_code
from services.kinds.format.fields import Fault, Fields, Remark, Rewrite, found_text
from services.kinds.format.kind import Kind, ReadResult, Scope, read_plainly
from services.kinds.format.shapes import Integer, Text
from services.kinds.influxdb.summary_ids import owned_ids

_MIN_NAME_BYTES = 2
_SHORTEST_RETENTION = 3600
_LONGEST_RETENTION = 2**63 // 10**9
"""Seconds. Platforms and summaries count retention in nanoseconds of 64 bits, which hold no more."""
_COLUMN_TYPES = ("timestamp", "tag", "field")
_DATA_TYPES = ("float", "integer", "unsigned", "string", "boolean")
_LONGEST_SCHEMA_NAME = 128


def _read(fields: Fields, scope: Scope) -> ReadResult:
    reading = read_plainly(fields, scope, _FIELDS, _MIN_NAME_BYTES)
    rules, schemas = reading.spec["retentionRules"], reading.spec["measurementSchemas"]
    if not rules[1:] and not schemas:
        return reading
    spec = {
        **reading.spec,
        # Only the first rule takes effect.
        "retentionRules": rules[:1],
        "measurementSchemas": sorted(
            ({**schema, "columns": sorted(schema["columns"], key=_name)} for schema in schemas), key=_name
        ),
    }
    return ReadResult(spec, reading.faults, remarks=_further_rules(fields) if rules[1:] else ())


def _further_rules(fields: Fields) -> tuple[Remark, ...]:
    further = fields.mappings("retentionRules")[1:]
    text = "only the first retention rule takes effect; this one will be ignored"
    return tuple(Remark(Code.RETENTION_RULE_IGNORED, rule.path, text, rule.pointer) for rule in further)


def _name(entry: Mapping[str, str]) -> str:
    return entry["name"]


def _schema_faults(schema: Fields, _values: Mapping[str, Any]) -> list[Fault]:
    columns = schema.mappings("columns")
    faults = _schema_name_faults(schema)
    for column in columns:
        faults += _column_faults(column)
    typed = [column for column in columns if column.text("type") in _COLUMN_TYPES]
    if not any(column.text("name") == "time" for column in typed):
        reason = "a schema needs a column named time, of type timestamp"
        faults.append(schema.fault(Code.COLUMN_MISSING, "columns", reason))
    if not any(column.text("type") == "field" for column in typed):
        faults.append(schema.fault(Code.COLUMN_MISSING, "columns", "a schema needs at least one column of type field"))
    names = sorted((column.text("name") for column in columns), key=lambda name: (_in_one_case(name), name))
    for _, alike in groupby(names, key=_in_one_case):
        # One fault for each pair of neighbours, so for all but the last (docs/reference/package-format.md, "Buckets").
        faults += [schema.fault(Code.COLUMN_REPEATED, "columns", _repeated(name)) for name in list(alike)[:-1]]
    return faults


def _repeated(name: str) -> str:
    return f"{name[:_LONGEST_SCHEMA_NAME]!r} is not the only column of that name, whatever its case; rename one"


def _in_one_case(name: str) -> str:
    """The name without case, folded letter by letter: folding as a whole would turn ``ß`` into ``ss``."""
    folded = (letter.casefold() for letter in name)
    return "".join(fold if len(fold) == 1 else letter.lower() for letter, fold in zip(name, folded, strict=True))


def _column_faults(column: Fields) -> list[Fault]:
    faults = _schema_name_faults(column)
    name, type_, data_type = column.text("name"), column.text("type"), column.text("dataType")
    if type_ not in _COLUMN_TYPES:
        reason = f"the type of a column must be timestamp, tag or field; {found_text(column, 'type')}"
        return [*faults, _word_fault(column, "type", reason, _COLUMN_TYPES)]
    if name == "time" and type_ != "timestamp":
        reason = f"the column time must have the type timestamp; found {type_!r}"
        faults.append(column.fault(Code.COLUMN_MISMATCH, "type", reason, Rewrite("timestamp")))
    if name == "time" and data_type in _DATA_TYPES:
        reason = f"the column time has no dataType; leave {data_type!r} out"
        faults.append(column.fault(Code.COLUMN_MISMATCH, "dataType", reason))
    if type_ == "timestamp" and name != "time":
        reason = f"the one column of type timestamp is named time; found {name!r}"
        faults.append(column.fault(Code.COLUMN_MISMATCH, "name", reason))
    if type_ == "tag" and data_type in _DATA_TYPES:
        reason = f"tags are texts and have no dataType; leave {data_type!r} out"
        faults.append(column.fault(Code.COLUMN_MISMATCH, "dataType", reason))
    if type_ == "field" and data_type not in _DATA_TYPES:
        reason = f"the dataType of a field must be one of {', '.join(_DATA_TYPES)}; {found_text(column, 'dataType')}"
        faults.append(_word_fault(column, "dataType", reason, _DATA_TYPES))
    return faults


def _word_fault(column: Fields, key: str, reason: str, words: Sequence[str]) -> Fault:
    value = column.value.get(key)
    return column.fault(text_code(value), key, reason, nearest_word(value, words))


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
    reason = f"the name of a schema or column {problem}; found {name[:60]!r}"
    return [fields.fault(Code.COLUMN_NAME_INVALID, "name", reason)]


_RULE = Table(
    Field(
        "everySeconds",
        Integer(
            _SHORTEST_RETENTION, _LONGEST_RETENTION, f"a number from {_SHORTEST_RETENTION} to {_LONGEST_RETENTION}"
        ),
        "How long points are kept, in seconds.",
    ),
    Field("type", Text(words=("expire",), required=True), "What happens to older points."),
    required=("type", "everySeconds"),
)
_COLUMN = Table(
    Field("name", Text(required=True), "Name; the time column is named time."),
    Field("type", Text(words=_COLUMN_TYPES, required=True), "What the column holds."),
    Field("dataType", Text(words=("", *_DATA_TYPES)), "Type of the values of a field; other columns have none."),
    required=("name", "type"),
)
_SCHEMA = Table(
    Field("name", Text(required=True), "Name of the measurement."),
    Field("columns", Mappings(_COLUMN, required="column"), "The columns: one for the time, at least one field, tags."),
    check=_schema_faults,
    required=("name", "columns"),
)
_FIELDS = Table(
    DESCRIPTION,
    Field("retentionRules", Mappings(_RULE), "How long points are kept; for ever without a rule."),
    Field("schemaType", Text(), "implicit, or explicit when measurements have schemas."),
    Field("measurementSchemas", Mappings(_SCHEMA), "The schemas of measurements, for an explicit schema type."),
)


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


def _loss_of(old: Mapping[str, Any], new: Mapping[str, Any]) -> DataLoss | None:
    before, after = _retention(old), _retention(new)
    if after is None or (before is not None and before <= after):
        return None
    return DataLoss("/retentionRules", f"data older than {_age(after)}")


def _retention(spec: Mapping[str, Any]) -> int | None:
    """How long points are kept, in seconds; None: for ever."""
    match spec:
        case {"retentionRules": [{"everySeconds": int(seconds)}, *_]} if seconds:
            return seconds
        case _:
            return None


def _age(seconds: int) -> str:
    """*seconds* in the largest units: ``30d``, ``1h30m``."""
    text = ""
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        count, seconds = divmod(seconds, size)
        text += f"{count}{unit}" if count else ""
    return text


KIND = Kind(
    name="Bucket",
    family="bucket",
    resource_type="buckets",
    summary_key="buckets",
    unique_display_name=True,
    min_name_bytes=_MIN_NAME_BYTES,
    about="A place for points, with its retention.",
    fields=_FIELDS,
    read=_read,
    summarise=_summarise,
    default_words={"schemaType": "implicit"},
    loss_of=_loss_of,
)
