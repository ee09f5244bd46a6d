"""The common parts of both kinds of checks (docs/reference/package-format.md, "Checks", "Summary entries")."""

from collections.abc import Mapping
from typing import Any

from services.kinds.format.durations import go_duration, parse_duration
from services.kinds.format.field_table import DESCRIPTION, Field, Mappings, Table
from services.kinds.format.kind import Kind, Read, Summarise
from services.kinds.format.shapes import Duration, Fold, Text
from services.kinds.influxdb.builder import builder_config
from services.kinds.influxdb.statuses import STATUS
from services.kinds.influxdb.summary_ids import UNKNOWN_TIMES, embedded_id

MIN_NAME_BYTES = 1
FAMILY = "check"
FAMILY_KIND = "Check"
LEVELS = ("CRIT", "WARN", "INFO", "OK", "ANY")

_TAG = Table(Field("key", Text(), "Key of the tag."), Field("value", Text(), "Value of the tag."))

FIELDS = (
    DESCRIPTION,
    Field("every", Duration(required=True), "How often the check runs, such as 5m."),
    Field("offset", Duration(), "How long after the full interval it runs."),
    Field("query", Text(fold=Fold.TRIM, required=True, what="a query"), "The Flux query whose result is checked."),
    Field(
        "statusMessageTemplate",
        Text(required=True, what="the message of the statuses that the check writes"),
        "Message of the statuses; ${ r._level } and the like stand for columns.",
    ),
    STATUS,
    Field("tags", Mappings(_TAG), "Tags of the statuses that the check writes."),
)
REQUIRED = ("every", "query", "statusMessageTemplate")


def kind(name: str, about: str, fields: Table, read: Read, summarise_spec: Summarise) -> Kind:
    """The kind of checks *name*: its fields, and the functions that only it has."""
    return Kind(
        name=name,
        family=FAMILY,
        family_kind=FAMILY_KIND,
        resource_type="checks",
        summary_key="checks",
        unique_display_name=False,
        min_name_bytes=MIN_NAME_BYTES,
        about=about,
        fields=fields,
        read=read,
        summarise=summarise_spec,
    )


def summarise(spec: Mapping[str, Any], number: int, type_: str, further: Mapping[str, Any]) -> dict[str, Any]:
    """The summary entry of a check; *further* are the keys of the embedded check that only its kind has."""
    check = {
        **embedded_id(number),
        "name": spec["name"],
        **({"description": spec["description"]} if spec["description"] else {}),
        "query": {"text": spec["query"], "editMode": "", "name": "", "builderConfig": builder_config()},
        "statusMessageTemplate": spec["statusMessageTemplate"],
        "every": duration(spec, "every"),
        "offset": duration(spec, "offset"),
        "tags": list(spec["tags"]) or None,
        **UNKNOWN_TIMES,
        "type": type_,
        **further,
    }
    return {"check": check, "status": spec["status"]}


def duration(spec: Mapping[str, Any], key: str) -> str:
    """A duration as embedded checks print it."""
    return go_duration(parse_duration(spec[key]) or 0).replace("µ", "u")
