"""JSON Schemas of requests and answers of the routes for InfluxDB's clients, for OpenAPI."""

from collections.abc import Mapping
from typing import Any

from services.core.model import LABEL
from services.gateway.answers import Code
from services.kinds.registry import ACCEPTED, KINDS

Schema = dict[str, Any]

ID_EXAMPLE = "0a1b2c3d4e5f6071"

OBJECT_EXAMPLE = {
    "apiVersion": "influxdata.com/v2alpha1",
    "kind": LABEL,
    "metadata": {"name": "sensors"},
    "spec": {"color": "#326BBA"},
}


def ref(name: str) -> Schema:
    """A reference to the schema of that name."""
    return {"$ref": f"#/components/schemas/{name}"}


def _text(about: str = "", **more: Any) -> Schema:
    return {"type": "string", **({"description": about} if about else {}), **more}


def _list(items: Schema, about: str = "") -> Schema:
    return {"type": "array", "items": items, **({"description": about} if about else {})}


def _object(about: str, needed: Mapping[str, Schema], more: Mapping[str, Schema] | None = None, **other: Any) -> Schema:
    """An object with required members (*needed*) and optional ones (*more*); requests may have unknown members."""
    found = {"type": "object", "description": about, "properties": {**needed, **(more or {})}, **other}
    return {**found, "required": list(needed)} if needed else found


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


_ID = _text("16 hex digits", pattern="^[0-9a-fA-F]{16}$", examples=[ID_EXAMPLE])
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
_KIND_WORD = _text("a kind, or the name of all kinds of checks or endpoints", enum=sorted(ACCEPTED))
_DURATION = _text('a duration such as "1h0m0s"; empty for none')
_STATUS = _text("whether it works", enum=["active", "inactive"])
_STATE = _text("new: it is created; exists: it is kept or updated; remove", enum=["new", "exists", "remove"])
_LINKS = {"type": "object", "additionalProperties": {"type": "string"}}

_STACK_EVENT = {
    "eventType": _text(enum=["create", "update", "uninstall"]),
    "name": _text(),
    "description": _text(),
    "sources": _list(_text()),
    "urls": _list(_text()),
    "resources": _list(ref("StackResource")),
    "updatedAt": _TIME,
}
"""Members of an event of a stack, and of the stack, which repeats its last event."""

_ENV_REFERENCE = _object(
    "A field whose value comes from an environment value.",
    {
        "resourceField": _text("the field, such as spec.name"),
        "envRefKey": _text("key of the value"),
        "value": {"description": "the value in the request; null for none"},
        "defaultValue": {"description": "the default; null for none"},
    },
    {"valueType": _text("type of a parameter of a query")},
)

_CHART = _object(
    "A chart.",
    {
        "properties": {"type": "object", "description": "its content and its look"},
        "xPos": _WHOLE,
        "yPos": _WHOLE,
        "height": _WHOLE,
        "width": _WHOLE,
    },
)

_RULE_STATUSES = _list(
    _object("Levels that the rule applies to.", {"currentLevel": _text(), "previousLevel": _text()}), "sorted"
)
_RULE_TAGS = _list(_object("A tag that the rule applies to.", {"key": _text(), "value": _text(), "operator": _text()}))

_TASK = {"name": _text(), "description": _text(), "query": _text("Flux script"), "status": _STATUS}
_TASK_TIMES = {"cron": _text("when it runs, as a cron expression"), "every": _DURATION, "offset": _DURATION}

_CHECK = _object(
    "A check, in the form of the platform.",
    {
        "name": _text(),
        "type": _text(enum=["threshold", "deadman"]),
        "query": {"type": "object", "description": "its Flux query"},
        "every": _text(),
    },
    {
        "id": _HEX,
        "orgID": _HEX,
        "ownerID": _HEX,
        "taskID": _HEX,
        "description": _text(),
        "statusMessageTemplate": _text(),
        "offset": _text(),
        "tags": _or_null(_list(_object("A tag.", {"key": _text(), "value": _text()}))),
        "createdAt": _TIME,
        "updatedAt": _TIME,
        "thresholds": _or_null(_list({"type": "object", "description": "a threshold"})),
        "timeSince": _text(),
        "staleTime": _text(),
        "reportZero": _FLAG,
        "level": _text(),
    },
)

_ENDPOINT = _object(
    "A notification endpoint, in the form of the platform. Instead of credentials, it has keys of secrets, or nothing.",
    {"name": _text(), "type": _text(enum=["http", "pagerduty", "slack"]), "status": _STATUS},
    {
        "id": _HEX,
        "orgID": _HEX,
        "description": _text(),
        "createdAt": _TIME,
        "updatedAt": _TIME,
        "url": _text(),
        "clientURL": _text(),
        "method": _text(),
        "authMethod": _text(),
        "contentTemplate": _text(),
        "token": _text('"secret: KEY"'),
        "username": _text('"secret: KEY"'),
        "password": _text('"secret: KEY"'),
        "routingKey": _text('"secret: KEY"'),
    },
)

_TELEGRAF = _object(
    "A configuration of Telegraf.",
    {},
    {
        "id": _HEX,
        "orgID": _HEX,
        "name": _text(),
        "description": _text(),
        "config": _text(),
        "metadata": {"type": "object"},
    },
)

_ARGUMENTS = _or_null(
    _object("Values of a variable.", {"type": _text(), "values": {"description": "a list, a map, or a query"}})
)


def _entry(about: str, needed: Mapping[str, Schema], more: Mapping[str, Schema] | None = None) -> Schema:
    """An entry of a summary."""
    common = {"kind": _KIND, "templateMetaName": _text("metadata.name"), "envReferences": _list(_ENV_REFERENCE)}
    return _object(about, {**common, **needed}, {"labelAssociations": _list(ref("SummaryLabel")), **(more or {})})


def _change(about: str, content: Schema) -> Schema:
    """An entry of a diff."""
    return _object(
        about,
        {
            "kind": _text("kind of the object"),
            "id": _NUMBER_ID,
            "stateStatus": _STATE,
            "templateMetaName": _text("metadata.name"),
            "new": _or_null(content),
        },
        {"old": _or_null(content)},
    )


_MAPPING = {
    "resourceType": _text("such as buckets"),
    "resourceID": _NUMBER_ID,
    "resourceName": _text(),
    "resourceTemplateMetaName": _text(),
    "labelID": _NUMBER_ID,
    "labelName": _text(),
    "labelTemplateMetaName": _text(),
}

_SUMMARY_TASK = {"id": _NUMBER_ID, **_TASK}

_RULE = {
    "name": _text(),
    "description": _text(),
    "endpointID": _NUMBER_ID,
    "endpointType": _text(),
    "every": _text(),
    "offset": _text(),
    "messageTemplate": _text(),
    "statusRules": _RULE_STATUSES,
    "tagRules": _RULE_TAGS,
}

SCHEMAS: dict[str, Schema] = {
    "Error": _object(
        "An error.",
        {"code": _text("error code", enum=list(map(str, Code))), "message": _text("what is wrong, and what to do")},
        examples=[{"code": "not found", "message": f"there is no organisation {ID_EXAMPLE}"}],
    ),
    "Violation": _object(
        "One rule of packages that an object breaks.",
        {
            "kind": _text("kind of the object, or Package"),
            "fields": _list(_text(), "steps of the path to the field"),
            "idxs": _list(_or_null(_WHOLE), "for each step, its position in a list; null for none"),
            "indexes": _list(_or_null(_WHOLE), "the same as idxs, for the influx command line"),
            "reason": _text("what is wrong, and what to write instead"),
        },
        {"source": _text("name of the source"), "line": _WHOLE, "column": _WHOLE, "code": _text("code of the rule")},
    ),
    "Health": _object(
        "Health of the gateway and of the services behind it.",
        {
            "name": _text(),
            "message": _text("which services do not serve, and why"),
            "status": _text(enum=["pass", "fail"]),
            "checks": _list(
                _object("One service.", {"name": _text(), "message": _text(), "status": _text(enum=["pass", "fail"])})
            ),
            "version": _text(),
            "commit": _text(),
        },
        {"code": _text(enum=[str(Code.UNAVAILABLE)])},
    ),
    "Ready": _object("When the gateway started.", {"status": _text(enum=["ready"]), "started": _TIME, "up": _text()}),
    "Links": {"type": "object", "description": "Paths of the routes, by name."},
    "Setup": _object("Whether a setup is needed.", {"allowed": _FLAG}),
    "Me": _object(
        "The client.",
        {"links": _LINKS, "id": _HEX, "name": _text("name of the token"), "status": _text(enum=["active"])},
    ),
    "Organization": _object(
        "An organisation of a platform.",
        {
            "links": _LINKS,
            "id": _HEX,
            "name": _text(),
            "description": _text(),
            "createdAt": _TIME,
            "updatedAt": _TIME,
        },
    ),
    "Organizations": _object("Organisations.", {"links": _LINKS, "orgs": _list(ref("Organization"))}),
    "PackageObject": _object(
        "One declared resource; docs/packages.md.",
        {
            "apiVersion": _text(examples=["influxdata.com/v2alpha1"]),
            "kind": _text(examples=[LABEL]),
            "metadata": _object("Its name.", {"name": {"description": "a text, or an environment reference"}}),
        },
        {"spec": _or_null({"type": "object", "description": "its desired state"})},
    ),
    "Package": {
        "type": "array",
        "items": ref("PackageObject"),
        "examples": [[OBJECT_EXAMPLE]],
    },
    "OpenApi": _object("A description of all routes (OpenAPI 3.1).", {"openapi": _text(), "info": {}, "paths": {}}),
    "Template": _object(
        "A source of a package.",
        {},
        {
            "contents": _or_null({"anyOf": [ref("Package"), ref("PackageObject"), _text("YAML, JSON or Jsonnet")]}),
            "contentType": _or_null(_text("json, yaml, yml or jsonnet; default: detected by the name or the text")),
            "sources": _or_null(_list(_text(), "names of the source, for messages and for the record of the stack")),
        },
    ),
    "ApplyRequest": _object(
        "A package to plan, or to apply.",
        {"orgID": _ID},
        {
            "dryRun": _or_null(_FLAG),
            "stackID": _or_null(_ID),
            "template": _or_null(ref("Template")),
            "templates": _or_null(_list(ref("Template"))),
            "remotes": _or_null(
                _list(_object("A package at an address.", {"url": _text()}, {"contentType": _or_null(_text())}))
            ),
            "envRefs": _or_null({"type": "object", "description": "environment values, by key"}),
            "secrets": _or_null(
                {"type": "object", "additionalProperties": {"type": "string"}, "description": "values, by key"}
            ),
            "actions": _or_null(
                _list(
                    _object(
                        "Objects to leave out.",
                        {
                            "action": _text(enum=["skipKind", "skipResource"]),
                            "properties": _object(
                                "All of a kind, or one object.",
                                {"kind": _KIND_WORD},
                                {"resourceTemplateName": _text("metadata.name of the object")},
                            ),
                        },
                    )
                )
            ),
            "allowEmpty": _or_null(_FLAG),
            "planDigest": _or_null(_text("planDigest of a dry run; if the plan has another digest, it is refused")),
        },
        examples=[
            {
                "dryRun": True,
                "orgID": ID_EXAMPLE,
                "template": {"contents": [OBJECT_EXAMPLE]},
            }
        ],
    ),
    "SummaryLabel": _object(
        "A label.",
        {
            "kind": _KIND,
            "templateMetaName": _text("metadata.name"),
            "envReferences": _list(_ENV_REFERENCE),
            "id": _NUMBER_ID,
            "orgID": _NUMBER_ID,
            "name": _text(),
            "properties": _object("Its look.", {"color": _text(), "description": _text()}),
        },
    ),
    "Summary": _object(
        "The objects and associations of the package.",
        {
            "buckets": _list(
                _entry(
                    "A bucket.",
                    {
                        "name": _text(),
                        "description": _text(),
                        "retentionPeriod": {
                            "type": "integer",
                            "format": "int64",
                            "description": "nanoseconds; 0: forever",
                        },
                    },
                    {
                        "id": _NUMBER_ID,
                        "orgID": _NUMBER_ID,
                        "schemaType": _text(),
                        "measurementSchemas": _list({"type": "object", "description": "a schema"}),
                    },
                )
            ),
            "checks": _list(
                _entry(
                    "A check; the entry repeats the members of check.",
                    {"check": _CHECK, "status": _STATUS, "id": _NUMBER_ID, "name": _text()},
                )
            ),
            "dashboards": _list(
                _entry(
                    "A dashboard.",
                    {
                        "id": _NUMBER_ID,
                        "orgID": _NUMBER_ID,
                        "name": _text(),
                        "description": _text(),
                        "charts": _or_null(_list(_CHART)),
                    },
                )
            ),
            "labels": _list(ref("SummaryLabel")),
            "labelMappings": _list(_object("A label on a resource.", {"status": _STATE, **_MAPPING})),
            "notificationEndpoints": _list(
                _entry(
                    "An endpoint; the entry repeats the members of notificationEndpoint.",
                    {"notificationEndpoint": _ENDPOINT, "id": _NUMBER_ID, "name": _text(), "type": _text()},
                )
            ),
            "notificationRules": _list(
                _entry(
                    "A notification rule.",
                    {"id": _NUMBER_ID, **_RULE, "endpointTemplateMetaName": _text(), "status": _STATUS},
                )
            ),
            "summaryTask": _list(_entry("A task.", {**_SUMMARY_TASK, **_TASK_TIMES})),
            "tasks": _list(_entry("A task, without empty times.", _SUMMARY_TASK, _TASK_TIMES)),
            "telegrafConfigs": _list(_entry("A configuration of Telegraf.", {"telegrafConfig": _TELEGRAF})),
            "variables": _list(
                _entry(
                    "A variable.",
                    {
                        "name": _text(),
                        "description": _text(),
                        "variables": _list(_text(), "the values that are selected"),
                        "arguments": _ARGUMENTS,
                    },
                    {"id": _NUMBER_ID, "orgID": _NUMBER_ID},
                )
            ),
            "missingEnvRefs": _list(_text(), "keys of environment values that the request does not have"),
            "missingSecrets": _list(_text(), "keys of secrets that neither the platform nor the request has"),
        },
    ),
    "Diff": _object(
        "The change of each object.",
        {
            "buckets": _list(
                _change(
                    "A bucket.",
                    _object(
                        "Its content.",
                        {
                            "name": _text(),
                            "description": _text(),
                            "retentionRules": _or_null(
                                _list(_object("How long data is kept.", {"type": _text(), "everySeconds": _WHOLE}))
                            ),
                        },
                        {"schemaType": _text(), "measurementSchemas": _list({"type": "object"})},
                    ),
                )
            ),
            "checks": _list(_change("A check.", _CHECK)),
            "dashboards": _list(
                _change(
                    "A dashboard.",
                    _object(
                        "Its content.",
                        {"name": _text(), "description": _text(), "charts": _or_null(_list(_CHART))},
                    ),
                )
            ),
            "labels": _list(
                _change(
                    "A label.",
                    _object("Its content.", {"name": _text(), "color": _text(), "description": _text()}),
                )
            ),
            "labelMappings": _list(_object("A label on a resource.", {"stateStatus": _STATE, **_MAPPING})),
            "notificationEndpoints": _list(_change("An endpoint.", _ENDPOINT)),
            "notificationRules": _list(
                _change("A notification rule.", _object("Its content.", {**_RULE, "endpointName": _text()}))
            ),
            "tasks": _list(_change("A task.", _object("Its content.", _TASK, _TASK_TIMES))),
            "telegrafConfigs": _list(_change("A configuration of Telegraf.", _TELEGRAF)),
            "variables": _list(
                _change(
                    "A variable.",
                    _object("Its content.", {"name": _text(), "description": _text(), "args": _ARGUMENTS}),
                )
            ),
        },
    ),
    "ApplyAnswer": _object(
        "The changes that a plan would make, or has made.",
        {
            "sources": _list(_text(), "names of the sources of the package"),
            "stackID": _text("the stack; empty in a dry run whose apply would create one"),
            "diff": ref("Diff"),
            "summary": ref("Summary"),
        },
        {"planDigest": _text("digest of the plan; an apply with this planDigest runs no other plan")},
    ),
    "Refusal": _object(
        "The answer to a package that breaks rules: nothing is planned or changed.",
        {
            "code": _text(enum=[str(Code.UNPROCESSABLE_ENTITY)]),
            "message": _text(),
            "errors": _list(ref("Violation")),
            "sources": _list(_text()),
            "stackID": _text(),
            "diff": ref("Diff"),
            "summary": ref("Summary"),
        },
    ),
    "ExportRequest": _object(
        "The resources to export; at least one of the three members is needed.",
        {},
        {
            "stackID": _or_null(_text("a stack, with all its resources; empty for none")),
            "orgIDs": _or_null(
                _list(
                    _object(
                        "The resources of an organisation; with filters, only resources that pass.",
                        {"orgID": _ID},
                        {
                            "resourceFilters": _or_null(
                                _object(
                                    "Filters; a resource passes if it passes both.",
                                    {},
                                    {
                                        "byLabel": _or_null(
                                            _list(_text(), "names of labels; a resource has one of them")
                                        ),
                                        "byResourceKind": _or_null(_list(_KIND_WORD)),
                                    },
                                )
                            )
                        },
                    )
                )
            ),
            "resources": _or_null(
                _list(
                    _object(
                        "A resource: the one with an id, or all with a name.",
                        {"kind": _KIND_WORD},
                        {
                            "id": _or_null(_text("its id")),
                            "name": _or_null(_text("its name; beside an id, the name to export it under")),
                        },
                    )
                )
            ),
        },
        examples=[{"orgIDs": [{"orgID": ID_EXAMPLE, "resourceFilters": {"byResourceKind": [LABEL]}}]}],
    ),
    "StackResource": _object(
        "A resource of a stack.",
        {
            "apiVersion": _text(),
            "kind": _KIND_WORD,
            "resourceID": _text("its id", examples=[ID_EXAMPLE]),
            "templateMetaName": _text("metadata.name of its object"),
            "associations": _list(_object("An object that it refers to.", {"kind": _text(), "metaName": _text()})),
            "links": _LINKS,
        },
    ),
    "StackEvent": _object(
        "The record of a stack at one time.",
        _STACK_EVENT,
    ),
    "Stack": _object(
        "A stack. It repeats the members of its last event.",
        {
            "id": _HEX,
            "orgID": _HEX,
            "createdAt": _TIME,
            "events": _list(ref("StackEvent"), "its history, the oldest event first"),
            **_STACK_EVENT,
        },
    ),
    "Stacks": _object("Stacks.", {"stacks": _list(ref("Stack"))}),
    "StackCreation": _object(
        "A stack to create.",
        {"orgID": _ID},
        {
            "name": _or_null(_text("empty for a nameless stack")),
            "description": _or_null(_text()),
            "urls": _or_null(_list(_text(), "addresses of packages, which are part of every apply")),
        },
        examples=[{"orgID": ID_EXAMPLE, "name": "fleet", "urls": []}],
    ),
    "StackUpdate": _object(
        "Changes of a stack; a member that is absent or null changes nothing.",
        {},
        {
            "name": _or_null(_text()),
            "description": _or_null(_text()),
            "templateURLs": _or_null(_list(_text(), "addresses that replace all others")),
            "urls": _or_null(_list(_text(), "addresses to add")),
            "additionalResources": _or_null(
                _list(
                    _object(
                        "A resource to import.",
                        {"kind": _KIND_WORD, "resourceID": _text("its id", examples=[ID_EXAMPLE])},
                        {"templateMetaName": _or_null(_text("metadata.name of its object"))},
                    )
                )
            ),
        },
        examples=[{"description": "everything for the fleet"}],
    ),
}
"""The schemas, by name."""
