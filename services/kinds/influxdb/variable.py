"""Variables (docs/reference/package-format.md, "Variables")."""

from collections.abc import Mapping
from typing import Any

from services.kinds.diagnostics import Code
from services.kinds.format.canonical import plain
from services.kinds.format.field_table import DESCRIPTION, Field, Table, nearest_word
from services.kinds.format.fields import Fault, Fields, Remark
from services.kinds.format.kind import Kind, ReadResult, Scope, short_name
from services.kinds.format.references import Referable, UsedReference, read_reference
from services.kinds.format.shapes import Fold, Free, Text
from services.kinds.influxdb.summary_ids import owned_ids

_MIN_NAME_BYTES = 1
_LANGUAGES = ("flux", "influxql")
_TYPES = ("constant", "map", "query")

_QUERY = Table(
    Field("query", Text(fold=Fold.TRIM, required=True, what="a query"), "The query that gives the values."),
    Field("language", Text(words=_LANGUAGES, fold=Fold.LOWER, required=True), "Language of the query."),
)
_FIELDS = Table(
    DESCRIPTION,
    Field("type", Text(fold=Fold.LOWER), "constant (a list), map (keys and values) or query."),
    Field(
        "values",
        Free({"type": ["array", "object", "null"]}),
        "A list of texts for a constant, a mapping of texts for a map.",
    ),
    Field("query", Text(fold=Fold.TRIM), "The query that gives the values."),
    Field("language", Text(fold=Fold.LOWER), "Language of the query: flux or influxql."),
    Field(
        "selected",
        Free({"type": ["array", "null"], "items": Referable(secret=False).schema()}),
        "The values selected at first.",
    ),
)


def _read(fields: Fields, scope: Scope) -> ReadResult:
    values = _FIELDS.read(fields.value) if scope.values is None else scope.values
    arguments, faults = _read_arguments(fields, values)
    selected = [
        UsedReference(read_reference(item), f"spec.selected[{position}]")
        for position, item in enumerate(fields.items("selected"))
    ]
    spec = {
        "name": scope.display_name,
        "description": values["description"],
        "type": values["type"],
        "selected": [text for use in selected if (text := use.reference.resolved(scope.env))],
        **arguments,
    }
    refers = any(use.reference.is_one for use in selected)
    return ReadResult(
        spec,
        (*short_name(fields, scope.display_name, _MIN_NAME_BYTES), *faults),
        tuple(selected),
        {"/selected": plain(fields.value["selected"])} if refers else {},
        _unknown_type(fields, values["type"]),
    )


def _read_arguments(fields: Fields, values: Mapping[str, Any]) -> tuple[dict[str, Any], list[Fault]]:
    """
    The fields of variables of one type, with their faults; unknown types are accepted without fields
    (docs/reference/package-format.md, "Oddities").
    """
    match values["type"]:
        case "map":
            pairs = fields.text_map("values")
            reason = "a map variable needs at least one value: a mapping of keys to texts"
            return {"values": pairs}, [] if pairs else [_no_values(fields, reason)]
        case "constant":
            texts = fields.texts("values")
            reason = "a constant variable needs at least one value: a list of texts"
            return {"values": texts}, [] if texts else [_no_values(fields, reason)]
        case "query":
            faults = [fault for key in ("query", "language") for fault in _QUERY.field_faults(fields, values, key)]
            return {"query": values["query"], "language": values["language"]}, faults
        case _:
            return {}, []


def _no_values(fields: Fields, reason: str) -> Fault:
    code = Code.FIELD_MISSING if fields.value.get("values") is None else Code.LIST_EMPTY
    return fields.fault(code, "values", reason)


def _unknown_type(fields: Fields, type_: str) -> tuple[Remark, ...]:
    if type_ in _TYPES:
        return ()
    ways = "write map, constant or query"
    if "type" not in fields.value:
        return (fields.own_remark(Code.UNKNOWN_VARIABLE_TYPE, f"a variable without a type has no values; {ways}"),)
    text = f"there is no variable type {type_[:40]!r}, so values will be ignored; {ways}"
    return (fields.remark(Code.UNKNOWN_VARIABLE_TYPE, "type", text, rewrite=nearest_word(type_, _TYPES)),)


def _summarise(spec: Mapping[str, Any], number: int) -> dict[str, Any]:
    return {
        **owned_ids(number),
        "name": spec["name"],
        "description": spec["description"],
        "variables": spec["selected"],
        "arguments": _arguments(spec),
    }


def _arguments(spec: Mapping[str, Any]) -> dict[str, Any] | None:
    match spec["type"]:
        case "":
            return None
        case "query":
            return {"type": "query", "values": {"query": spec["query"], "language": spec["language"]}}
        case type_:
            return {"type": type_, "values": spec.get("values") or None}


KIND = Kind(
    name="Variable",
    family="variable",
    resource_type="variables",
    summary_key="variables",
    unique_display_name=True,
    min_name_bytes=_MIN_NAME_BYTES,
    about="A variable that dashboards offer to choose values from.",
    fields=_FIELDS,
    read=_read,
    summarise=_summarise,
)
