"""Notification rules (docs/reference/package-format.md, "Notification rules")."""

from collections.abc import Mapping
from typing import Any

from services.kinds.diagnostics import Code
from services.kinds.format.durations import go_duration, parse_duration
from services.kinds.format.field_table import DESCRIPTION, Field, Mappings, Table
from services.kinds.format.fields import Fields, Numbering
from services.kinds.format.kind import Kind, ReadResult, Referred, Scope, short_name
from services.kinds.format.named_object import NamedObject
from services.kinds.format.shapes import Duration, Fold, Text
from services.kinds.influxdb import check, endpoint
from services.kinds.influxdb.statuses import STATUS

_MIN_NAME_BYTES = 1
_OPERATORS = ("equal", "notequal", "equalregex", "notequalregex")

_ENDPOINT = NamedObject(
    "endpointName", endpoint.FAMILY, "notification endpoint", "a rule needs an endpoint", Code.ENDPOINT_NOT_FOUND
)

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
    _ENDPOINT.field(),
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
    required=(_ENDPOINT.key, "every", "statusRules"),
)
_CHECKED = ("every", "status", "statusRules", "tagRules")


def _read(fields: Fields, scope: Scope) -> ReadResult:
    values = _FIELDS.read(fields.value)
    faults = [
        *short_name(fields, scope.display_name, _MIN_NAME_BYTES),
        *_ENDPOINT.faults(fields, scope),
        *(fault for key in _CHECKED for fault in _FIELDS.field_faults(fields, values, key)),
    ]
    spec = {
        **values,
        "name": scope.display_name,
        _ENDPOINT.key: _ENDPOINT.name(fields, scope),
        "statusRules": sorted(values["statusRules"], key=lambda rule: (rule["currentLevel"], rule["previousLevel"])),
        "tagRules": sorted(values["tagRules"], key=lambda rule: (rule["key"], rule["value"], rule["operator"])),
    }
    return ReadResult(spec, faults, (_ENDPOINT.use(fields),), _ENDPOINT.written(fields))


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


def _summarise_endpoint(uses: Mapping[str, Referred]) -> dict[str, Any]:
    used = uses.get(_ENDPOINT.key)
    return {
        "endpointID": used.number if used else 0,
        "endpointTemplateMetaName": used.key.name if used else "",
        "endpointType": endpoint.type_in(used.entry) if used else "",
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
    summarise_uses=_summarise_endpoint,
    uses={_ENDPOINT.key: _ENDPOINT.family},
    effect="notifies",
)
