"""JSON Schemas of requests and answers of the routes for InfluxDB's clients, with an example of each, for OpenAPI."""

from collections.abc import Mapping
from typing import Any

import msgspec

from services.core.model import LABEL
from services.gateway.answers import Code
from services.gateway.requests.apply import ApplyRequest
from services.gateway.requests.export import ExportRequest
from services.gateway.requests.members import ID_EXAMPLE, KIND, NEEDED
from services.gateway.requests.stacks import StackCreation, StackUpdate
from services.kinds.registry import KINDS

Schema = dict[str, Any]

REF = "#/components/schemas/"

REQUESTS = (ApplyRequest, ExportRequest, StackCreation, StackUpdate)
"""The structs of bodies of requests."""

_OPTIONAL = "optional"
"""Marks a member that an answer may leave out."""

_OBJECT_EXAMPLE = {
    "apiVersion": "influxdata.com/v2alpha1",
    "kind": LABEL,
    "metadata": {"name": "sensors"},
    "spec": {"color": "#326BBA"},
}

_EXAMPLES: Mapping[str, Any] = {
    "dryRun": True,
    "template": {"contents": [_OBJECT_EXAMPLE]},
    "color": "#326BBA",
    "name": "fleet",
    "reason": "write a colour such as #326BBA",
    "sources": ["labels.yml"],
    "templateMetaName": "sensors",
    "contents": [_OBJECT_EXAMPLE],
    "metadata": {"name": "sensors"},
    "spec": {"color": "#326BBA"},
    "url": "https://example.com/labels.yml",
    "stackID": ID_EXAMPLE,
    "urls": [],
    "templateURLs": [],
}
"""Examples of members, by name; other members have an example for their type."""


def ref(name: str) -> Schema:
    """A reference to the schema of that name."""
    return {"$ref": f"{REF}{name}"}


def _text(about: str = "", **more: Any) -> Schema:
    return {"type": "string", **({"description": about} if about else {}), **more}


def _texts(*names: str) -> dict[str, Schema]:
    return {name: _text() for name in names}


def _list(items: Schema, about: str = "") -> Schema:
    return {"type": "array", "items": items, **({"description": about} if about else {})}


def _object(about: str, **members: Schema) -> Schema:
    """An object with these members, of which those of ``_optional`` may be absent."""
    needed = [name for name, schema in members.items() if _OPTIONAL not in schema]
    properties = {
        name: {key: value for key, value in schema.items() if key != _OPTIONAL} for name, schema in members.items()
    }
    return {
        "type": "object",
        "description": about,
        "properties": properties,
        **({"required": needed} if needed else {}),
    }


def _optional(members: Mapping[str, Schema]) -> dict[str, Schema]:
    return {name: {**schema, _OPTIONAL: True} for name, schema in members.items()}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _any_object(about: str) -> Schema:
    return {"type": "object", "description": about}


_HEX = _text("16 lower-case hex digits", pattern="^[0-9a-f]{16}$", examples=[ID_EXAMPLE])
_NUMBER_ID = {
    "type": "integer",
    "format": "uint64",
    "minimum": 0,
    "description": "an id as a number; 0 when it is not known yet. Read it as a 64-bit integer",
}
_TIME = _text("RFC 3339", format="date-time", examples=["2026-01-02T03:04:05.678901Z"])
_WHOLE = {"type": "integer"}
_FLAG = {"type": "boolean"}
_KIND = _text("kind of the object", enum=sorted(KINDS))
_KIND_WORD = _text(KIND.description or "", **(KIND.extra_json_schema or {}))
_META_NAME = _text("metadata.name")
_DURATION = _text('a duration such as "1h0m0s"; empty for none')
_STATUS = _text("whether it works", enum=["active", "inactive"])
_STATE = _text("new: it is created; exists: it is kept or updated; remove", enum=["new", "exists", "remove"])
_LINKS = {"type": "object", "additionalProperties": {"type": "string"}}
_PASS = _text(enum=["pass", "fail"])
_SECRET = _text('"secret: KEY"')

_STACK_EVENT = {
    "eventType": _text(enum=["create", "update", "uninstall"]),
    **_texts("name", "description"),
    "sources": _list(_text()),
    "urls": _list(_text()),
    "resources": _list(ref("StackResource")),
    "updatedAt": _TIME,
}
"""Members of an event of a stack, and of the stack, which repeats its last event."""

_ENV_REFERENCE = _object(
    "A field whose value comes from an environment value.",
    resourceField=_text("the field, such as spec.name"),
    envRefKey=_text("key of the value"),
    value={"description": "the value in the request; null for none"},
    defaultValue={"description": "the default; null for none"},
    **_optional({"valueType": _text("type of a parameter of a query")}),
)

_PLACE = dict.fromkeys(("xPos", "yPos", "height", "width"), _WHOLE)

_CHART = _object("A chart.", properties=_any_object("its content and its look"), **_PLACE)

_CHARTS = {"charts": _or_null(_list(_CHART))}

_NAMED = _texts("name", "description")

_TASK = {**_NAMED, "query": _text("Flux script"), "status": _STATUS}

_TASK_TIMES = {"cron": _text("when it runs, as a cron expression"), "every": _DURATION, "offset": _DURATION}

_IDS = {"id": _NUMBER_ID, "orgID": _NUMBER_ID}

_STORED = {"id": _HEX, "orgID": _HEX, "description": _text(), "createdAt": _TIME, "updatedAt": _TIME}
"""Members that a platform adds to a resource."""

_CHECK = _object(
    "A check, in the form of the platform.",
    name=_text(),
    type=_text(enum=["threshold", "deadman"]),
    query=_any_object("its Flux query"),
    every=_text(),
    **_optional({"ownerID": _HEX, "taskID": _HEX, "reportZero": _FLAG, **_STORED}),
    **_optional(_texts("statusMessageTemplate", "offset", "timeSince", "staleTime", "level")),
    **_optional({"tags": _or_null(_list(_object("A tag.", **_texts("key", "value"))))}),
    **_optional({"thresholds": _or_null(_list(_any_object("a threshold")))}),
)

_ENDPOINT = _object(
    "A notification endpoint, in the form of the platform. Instead of credentials, it has keys of secrets, or nothing.",
    name=_text(),
    type=_text(enum=["http", "pagerduty", "slack"]),
    status=_STATUS,
    **_optional({**_STORED, **_texts("url", "clientURL", "method", "authMethod", "contentTemplate")}),
    **_optional(dict.fromkeys(("token", "username", "password", "routingKey"), _SECRET)),
)

_TELEGRAF = _object(
    "A configuration of Telegraf.",
    **_optional({"id": _HEX, "orgID": _HEX, **_texts("name", "description", "config"), "metadata": {"type": "object"}}),
)

_ARGUMENTS = _or_null(
    _object("Values of a variable.", type=_text(), values={"description": "a list, a map, or a query"})
)

_RULE = {
    **_NAMED,
    "endpointID": _NUMBER_ID,
    **_texts("endpointType", "every", "offset", "messageTemplate"),
    "statusRules": _list(_object("Levels that the rule applies to.", **_texts("currentLevel", "previousLevel"))),
    "tagRules": _list(_object("A tag that the rule applies to.", **_texts("key", "value", "operator"))),
}

_MAPPING = {
    "resourceType": _text("such as buckets"),
    "resourceID": _NUMBER_ID,
    "labelID": _NUMBER_ID,
    **_texts("resourceName", "resourceTemplateMetaName", "labelName", "labelTemplateMetaName"),
}

_RETENTION = _list(_object("How long data is kept.", type=_text(), everySeconds=_WHOLE))

_EXPLICIT_SCHEMA = _optional({"schemaType": _text(), "measurementSchemas": _list(_any_object("a schema"))})

_PERIOD = {"type": "integer", "format": "int64", "description": "nanoseconds; 0: forever"}


def _entry(about: str, **members: Schema) -> Schema:
    """A list of entries of a summary."""
    common = {"kind": _KIND, "templateMetaName": _META_NAME, "envReferences": _list(_ENV_REFERENCE)}
    labels = _optional({"labelAssociations": _list(ref("SummaryLabel"))})
    return _list(_object(about, **common, **members, **labels))


def _change(about: str, content: Schema) -> Schema:
    """A list of entries of a diff."""
    return _list(
        _object(
            about,
            kind=_text("kind of the object"),
            id=_NUMBER_ID,
            stateStatus=_STATE,
            templateMetaName=_META_NAME,
            new=_or_null(content),
            **_optional({"old": _or_null(content)}),
        )
    )


def _content(**members: Schema) -> Schema:
    return _object("Its content.", **members)


_ANSWERS: dict[str, Schema] = {
    "Error": _object(
        "An error.",
        code=_text("error code", enum=list(map(str, Code))),
        message=_text("what is wrong, and what to do"),
    ),
    "Violation": _object(
        "One rule of packages that an object breaks.",
        kind=_text("kind of the object, or Package"),
        fields=_list(_text(), "steps of the path to the field"),
        idxs=_list(_or_null(_WHOLE), "for each step, its position in a list; null for none"),
        indexes=_list(_or_null(_WHOLE), "the same as idxs, for the influx command line"),
        reason=_text("what is wrong, and what to write instead"),
        **_optional({"source": _text("name of the source"), "line": _WHOLE, "column": _WHOLE}),
        **_optional({"code": _text("code of the rule")}),
    ),
    "Health": _object(
        "Health of the gateway and of the services behind it.",
        name=_text(),
        message=_text("which services do not serve, and why"),
        status=_PASS,
        checks=_list(_object("One service.", name=_text(), message=_text(), status=_PASS)),
        **_texts("version", "commit"),
        **_optional({"code": _text(enum=[str(Code.UNAVAILABLE)])}),
    ),
    "Ready": _object("When the gateway started.", status=_text(enum=["ready"]), started=_TIME, up=_text()),
    "Links": _any_object("Paths of the routes, by name."),
    "Setup": _object("Whether a setup is needed.", allowed=_FLAG),
    "Me": _object("The client.", links=_LINKS, id=_HEX, name=_text("name of the token"), status=_text(enum=["active"])),
    "Organization": _object(
        "An organization of a platform.",
        links=_LINKS,
        id=_HEX,
        **_NAMED,
        createdAt=_TIME,
        updatedAt=_TIME,
    ),
    "Organizations": _object("Organizations.", links=_LINKS, orgs=_list(ref("Organization"))),
    "PackageObject": _object(
        "One declared resource; docs/packages.md.",
        apiVersion=_text(examples=["influxdata.com/v2alpha1"]),
        kind=_text(examples=[LABEL]),
        metadata=_object("Its name.", name={"description": "a text, or an environment reference"}),
        **_optional({"spec": _or_null(_any_object("its desired state"))}),
    ),
    "Package": _list(ref("PackageObject")),
    "OpenApi": _object("A description of all routes (OpenAPI 3.1).", openapi=_text(), info={}, paths={}),
    "SummaryLabel": _object(
        "A label.",
        kind=_KIND,
        templateMetaName=_META_NAME,
        envReferences=_list(_ENV_REFERENCE),
        **_IDS,
        name=_text(),
        properties=_object("Its look.", **_texts("color", "description")),
    ),
    "Summary": _object(
        "The objects and associations of the package.",
        buckets=_entry("A bucket.", **_NAMED, retentionPeriod=_PERIOD, **_optional(_IDS), **_EXPLICIT_SCHEMA),
        checks=_entry(
            "A check; the entry repeats the members of check.",
            check=_CHECK,
            status=_STATUS,
            id=_NUMBER_ID,
            name=_text(),
        ),
        dashboards=_entry("A dashboard.", **_IDS, **_NAMED, **_CHARTS),
        labels=_list(ref("SummaryLabel")),
        labelMappings=_list(_object("A label on a resource.", status=_STATE, **_MAPPING)),
        notificationEndpoints=_entry(
            "An endpoint; the entry repeats the members of notificationEndpoint.",
            notificationEndpoint=_ENDPOINT,
            id=_NUMBER_ID,
            **_texts("name", "type"),
        ),
        notificationRules=_entry(
            "A notification rule.", id=_NUMBER_ID, **_RULE, endpointTemplateMetaName=_text(), status=_STATUS
        ),
        summaryTask=_entry("A task.", id=_NUMBER_ID, **_TASK, **_TASK_TIMES),
        tasks=_entry("A task, without empty times.", id=_NUMBER_ID, **_TASK, **_optional(_TASK_TIMES)),
        telegrafConfigs=_entry("A configuration of Telegraf.", telegrafConfig=_TELEGRAF),
        variables=_entry(
            "A variable.",
            **_NAMED,
            variables=_list(_text(), "the values that are selected"),
            arguments=_ARGUMENTS,
            **_optional(_IDS),
        ),
        missingEnvRefs=_list(_text(), "keys of environment values that the request does not have"),
        missingSecrets=_list(_text(), "keys of secrets that neither the platform nor the request has"),
    ),
    "Diff": _object(
        "The change of each object.",
        buckets=_change("A bucket.", _content(**_NAMED, retentionRules=_or_null(_RETENTION), **_EXPLICIT_SCHEMA)),
        checks=_change("A check.", _CHECK),
        dashboards=_change("A dashboard.", _content(**_NAMED, **_CHARTS)),
        labels=_change("A label.", _content(**_texts("name", "color", "description"))),
        labelMappings=_list(_object("A label on a resource.", stateStatus=_STATE, **_MAPPING)),
        notificationEndpoints=_change("An endpoint.", _ENDPOINT),
        notificationRules=_change("A notification rule.", _content(**_RULE, endpointName=_text())),
        tasks=_change("A task.", _content(**_TASK, **_optional(_TASK_TIMES))),
        telegrafConfigs=_change("A configuration of Telegraf.", _TELEGRAF),
        variables=_change("A variable.", _content(**_NAMED, args=_ARGUMENTS)),
    ),
    "ApplyAnswer": _object(
        "The changes that a plan would make, or has made.",
        sources=_list(_text(), "names of the sources of the package"),
        stackID=_text("the stack; empty in a dry run whose apply would create one"),
        diff=ref("Diff"),
        summary=ref("Summary"),
        **_optional({"planDigest": _text("digest of the plan; an apply with this planDigest runs no other plan")}),
    ),
    "Refusal": _object(
        "The answer to a package that breaks rules: nothing is planned or changed.",
        code=_text(enum=[str(Code.UNPROCESSABLE_ENTITY)]),
        message=_text(),
        errors=_list(ref("Violation")),
        sources=_list(_text()),
        stackID=_text(),
        diff=ref("Diff"),
        summary=ref("Summary"),
    ),
    "StackResource": _object(
        "A resource of a stack.",
        apiVersion=_text(),
        kind=_KIND_WORD,
        resourceID=_text("its id", examples=[ID_EXAMPLE]),
        templateMetaName=_text("metadata.name of its object"),
        associations=_list(_object("An object that it refers to.", **_texts("kind", "metaName"))),
        links=_LINKS,
    ),
    "StackEvent": _object("The record of a stack at one time.", **_STACK_EVENT),
    "Stack": _object(
        "A stack. It repeats the members of its last event.",
        id=_HEX,
        orgID=_HEX,
        createdAt=_TIME,
        events=_list(ref("StackEvent"), "its history, the oldest event first"),
        **_STACK_EVENT,
    ),
    "Stacks": _object("Stacks.", stacks=_list(ref("Stack"))),
}
"""The schemas of answers, by name."""


def schemas() -> dict[str, Schema]:
    """The schemas of requests and answers by name, each with an example."""
    _, requests = msgspec.json.schema_components(REQUESTS, ref_template=f"{REF}{{name}}")
    every = {**{name: _request(schema) for name, schema in requests.items()}, **_ANSWERS}
    return {name: {**schema, "examples": [_example(schema, every)]} for name, schema in every.items()}


def _request(schema: Schema) -> Schema:
    """The schema of a struct, in which members that a request must have are required and not null."""
    members = schema["properties"]
    needed = [name for name, member in members.items() if NEEDED in member]
    for name in needed:
        text, _ = members[name]["anyOf"]
        rest = {key: value for key, value in members[name].items() if key not in ("anyOf", "default", NEEDED)}
        members[name] = {**text, **rest}
    return {**schema, "required": needed}


def _example(schema: Schema, every: Mapping[str, Schema], name: str = "") -> Any:
    """An example of a schema, which may be that of the member *name*; an object has its required members."""
    if examples := schema.get("examples") or schema.get("enum"):
        return examples[0]
    if name in _EXAMPLES:
        return _EXAMPLES[name]
    if "$ref" in schema:
        return _example(every[schema["$ref"].removeprefix(REF)], every)
    if "anyOf" in schema:
        return _example(schema["anyOf"][0], every)
    match schema.get("type", "string"):
        case "object":
            members = schema.get("properties", {})
            shown = [each for each in members if each in schema.get("required", ()) or each in _EXAMPLES]
            return {each: _example(members[each], every, each) for each in shown}
        case "array":
            return [_example(schema["items"], every)]
        case "string":
            return ""
        case "boolean":
            return False
        case _:
            return 0
