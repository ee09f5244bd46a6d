"""An example of each schema, for OpenAPI."""

from typing import Any

from services.core.model import LABEL
from services.gateway.answers import Code
from services.gateway.schemas import ID_EXAMPLE, OBJECT_EXAMPLE, SCHEMAS

_NOW = "2026-01-02T03:04:05.678901Z"

_VIOLATION = {
    "kind": LABEL,
    "fields": ["root", "spec", "color"],
    "idxs": [0, None, None],
    "indexes": [0, None, None],
    "reason": "write a colour such as #326BBA",
}

_LABEL = {
    "kind": LABEL,
    "templateMetaName": "sensors",
    "envReferences": [],
    "id": 724279812953858161,
    "orgID": 724279812953858162,
    "name": "sensors",
    "properties": {"color": "#326BBA", "description": ""},
}

_SUMMARY = {
    **{name: [] for name in SCHEMAS["Summary"]["properties"]},
    "labels": [_LABEL],
}

_DIFF = {
    **{name: [] for name in SCHEMAS["Diff"]["properties"]},
    "labels": [
        {
            "kind": LABEL,
            "id": 724279812953858161,
            "stateStatus": "new",
            "templateMetaName": "sensors",
            "new": {"name": "sensors", "color": "#326BBA", "description": ""},
            "old": None,
        }
    ],
}

_RESOURCE = {
    "apiVersion": "influxdata.com/v2alpha1",
    "kind": LABEL,
    "resourceID": ID_EXAMPLE,
    "templateMetaName": "sensors",
    "associations": [],
    "links": {"self": f"/api/v2/labels/{ID_EXAMPLE}"},
}

_EVENT = {
    "eventType": "update",
    "name": "fleet",
    "description": "",
    "sources": ["labels.yml"],
    "urls": [],
    "resources": [_RESOURCE],
    "updatedAt": _NOW,
}

_STACK = {"id": ID_EXAMPLE, "orgID": ID_EXAMPLE, "createdAt": _NOW, "events": [_EVENT], **_EVENT}

_ORG = {
    "links": {"self": f"/api/v2/orgs/{ID_EXAMPLE}"},
    "id": ID_EXAMPLE,
    "name": "default",
    "description": "organisation default of platform embedded",
    "createdAt": _NOW,
    "updatedAt": _NOW,
}

_HEALTH = {
    "name": "pkger",
    "message": "ready for packages and stacks",
    "status": "pass",
    "checks": [{"name": "planner", "message": "", "status": "pass"}],
    "version": "0.1.0",
    "commit": "",
}

EXAMPLES: dict[str, Any] = {
    "Violation": _VIOLATION,
    "Health": _HEALTH,
    "Ready": {"status": "ready", "started": _NOW, "up": "1h2m3s"},
    "Links": {"me": "/api/v2/me"},
    "OpenApi": {"openapi": "3.1.0", "info": {"title": "pkger", "version": "0.1.0"}, "paths": {}},
    "Setup": {"allowed": False},
    "Me": {"links": {"self": "/api/v2/me"}, "id": ID_EXAMPLE, "name": "ci", "status": "active"},
    "Organization": _ORG,
    "Organizations": {"links": {"self": "/api/v2/orgs"}, "orgs": [_ORG]},
    "PackageObject": OBJECT_EXAMPLE,
    "Template": {"sources": ["labels.yml"], "contentType": "json", "contents": [OBJECT_EXAMPLE]},
    "SummaryLabel": _LABEL,
    "Summary": _SUMMARY,
    "Diff": _DIFF,
    "ApplyAnswer": {"sources": ["labels.yml"], "stackID": ID_EXAMPLE, "diff": _DIFF, "summary": _SUMMARY},
    "Refusal": {
        "code": str(Code.UNPROCESSABLE_ENTITY),
        "message": "the package breaks rules: Label root[0].spec.color: write a colour such as #326BBA",
        "errors": [_VIOLATION],
        "sources": [],
        "stackID": "",
        "diff": {name: [] for name in _DIFF},
        "summary": {name: [] for name in _SUMMARY},
    },
    "StackResource": _RESOURCE,
    "StackEvent": _EVENT,
    "Stack": _STACK,
    "Stacks": {"stacks": [_STACK]},
}
"""Examples by name of the schema; the other schemas contain their examples."""
