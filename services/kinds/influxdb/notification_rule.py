"""Notification rules (packages.md 4.6)."""

from collections.abc import Mapping
from typing import Any

from services.kinds.diagnostics import Code
from services.kinds.format.durations import go_duration, parse_duration
from services.kinds.format.field_table import DESCRIPTION, Field, Mappings, Table
from services.kinds.format.fields import Fault, Fields, Numbering
from services.kinds.format.kind import Kind, Reading, Scope, short_name
from services.kinds.format.references import Referable, Use, read_reference
from services.kinds.format.shapes import Duration, Fold, Text
from services.kinds.influxdb import check, endpoint
from services.kinds.influxdb.statuses import STATUS

_MIN_NAME_BYTES = 1
_OPERATORS = ("equal", "notequal", "equalregex", "notequalregex")
_SHOWN_NAMES = 5

_STATUS_RULE = Table(
    Field("currentLevel", Text(words=check.LEVELS, fold=Fold.UPPER, required=True), "Level that a status has now."),
    Field("previousLevel", Text(words=(*check.LEVELS, ""), fold=Fold.UPPER), "Level it had before; empty for any."),
    required=("currentLevel",),
)
_TAG_RULE = Table(
    Field("key", Text(), "Key of the tag."),
    Field("value", Text(), "Value, or regular expression, to compare with."),
    Field("operator", Text(words=_OPERATORS, fold=Fold.LOWER, required=True), "How the tag is compared."),
    required=("operator",),
)
_FIELDS = Table(
    DESCRIPTION,
    Field("endpointName", Referable(), "metadata.name of a notification endpoint of the same package."),
    Field("every", Duration(required=True), "How often the rule runs, such as 5m."),
    Field("offset", Duration(), "How long after the full interval it runs."),
    Field("messageTemplate", Text(), "Message; ${ r._level } and the like stand for columns."),
    Field("channel", Text(), "Slack channel."),
    STATUS,
    Field(
        "statusRules",
        Mappings(_STATUS_RULE, required="status rule", numbering=Numbering.LEAF),
        "The changes of level that it notifies of.",
    ),
    Field("tagRules", Mappings(_TAG_RULE, numbering=Numbering.LEAF), "The tags that statuses must have."),
    required=("endpointName", "every", "statusRules"),
)
_CHECKED = ("every", "status", "statusRules", "tagRules")


def _read(fields: Fields, scope: Scope) -> Reading:
    values = _FIELDS.read(fields.value)
    reference = read_reference(fields.value.get("endpointName"))
    name = reference.resolved(scope.env)
    faults = [
        *short_name(fields, scope.display_name, _MIN_NAME_BYTES),
        *_endpoint_faults(fields, name, scope),
        *(fault for key in _CHECKED for fault in _FIELDS.field_faults(fields, values, key)),
    ]
    spec = {
        **values,
        "name": scope.display_name,
        "endpointName": name,
        "statusRules": sorted(values["statusRules"], key=lambda rule: (rule["currentLevel"], rule["previousLevel"])),
        "tagRules": sorted(values["tagRules"], key=lambda rule: (rule["key"], rule["value"], rule["operator"])),
    }
    written = {"/endpointName": reference.written()} if reference.is_one else {}
    return Reading(spec, faults, (Use(reference, "spec.endpointName"),), written)


def _endpoint_faults(fields: Fields, name: str, scope: Scope) -> list[Fault]:
    if fields.value.get("endpointName") is None:
        code = Code.FIELD_MISSING
        reason = "a rule needs an endpoint; write the metadata.name of one of the package as endpointName"
    elif name in scope.endpoints:
        return []
    else:
        code = Code.ENDPOINT_NOT_FOUND
        names = sorted(scope.endpoints)
        has = ", ".join(names[:_SHOWN_NAMES]) + (" ..." if names[_SHOWN_NAMES:] else "") or "none"
        reason = f"the package has no notification endpoint with the metadata.name {name[:80]!r}; it has {has}"
    return [fields.fault(code, "endpointName", reason)]


def _summarise(spec: Mapping[str, Any], number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": spec["name"],
        "description": spec["description"],
        "every": go_duration(parse_duration(spec["every"]) or 0),
        "offset": go_duration(parse_duration(spec["offset"]) or 0),
        "messageTemplate": spec["messageTemplate"],
        "status": spec["status"],
        "statusRules": spec["statusRules"],
        "tagRules": spec["tagRules"],
    }


KIND = Kind(
    name="NotificationRule",
    family="rule",
    resource_type="notificationRules",
    summary_key="notificationRules",
    unique_display_name=False,
    min_name_bytes=_MIN_NAME_BYTES,
    about="A rule that sends statuses to a notification endpoint.",
    fields=_FIELDS,
    read=_read,
    summarise=_summarise,
    uses={"endpointName": endpoint.FAMILY},
)
