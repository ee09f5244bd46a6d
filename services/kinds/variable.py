"""Variables (packages.md 4.3)."""

from collections.abc import Mapping
from typing import Any

from services.kinds.fields import Fault, Fields, found_text
from services.kinds.kind import Kind, Reading, owned_ids, short_name
from services.kinds.references import read_reference

_MIN_NAME_BYTES = 1
_LANGUAGES = ("flux", "influxql")


def _read(fields: Fields, name: str, env: Mapping[str, Any]) -> Reading:
    type_ = fields.text("type").lower().strip()
    arguments, faults = _read_arguments(fields, type_)
    selected = [
        (f"spec.selected[{position}]", read_reference(item)) for position, item in enumerate(fields.items("selected"))
    ]
    spec = {
        "name": name,
        "description": fields.text("description"),
        "type": type_,
        "selected": [text for _, reference in selected if (text := reference.resolved(env))],
        **arguments,
    }
    return Reading(spec, (*short_name(fields, name, _MIN_NAME_BYTES), *faults), tuple(selected))


def _read_arguments(fields: Fields, type_: str) -> tuple[dict[str, Any], list[Fault]]:
    """The fields that only variables of this type have; other types than the three are accepted without any (P9)."""
    match type_:
        case "map":
            pairs = fields.text_map("values")
            reason = "a map variable needs at least one value: a mapping of keys to texts"
            return {"values": pairs}, [] if pairs else [fields.fault("values", reason)]
        case "constant":
            texts = fields.texts("values")
            reason = "a constant variable needs at least one value: a list of texts"
            return {"values": texts}, [] if texts else [fields.fault("values", reason)]
        case "query":
            query, language = fields.text("query").strip(), fields.text("language").lower().strip()
            faults = []
            if not query:
                faults.append(fields.fault("query", "a query variable needs a query"))
            if language not in _LANGUAGES:
                reason = f"the language must be flux or influxql; {found_text(fields, 'language')}"
                faults.append(fields.fault("language", reason))
            return {"query": query, "language": language}, faults
        case _:
            return {}, []


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
            return {"type": type_, "values": spec.get("values")}


KIND = Kind(
    name="Variable",
    family="variable",
    resource_type="variables",
    summary_key="variables",
    unique_display_name=True,
    min_name_bytes=_MIN_NAME_BYTES,
    read=_read,
    summarise=_summarise,
)
