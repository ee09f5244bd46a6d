"""tmp"""

from typing import Any


def stack_document(stack: Any, resources: Any, revisions: Any, org_id: str) -> dict[str, Any]:
    """tmp"""
    t = stack.create_time.ToJsonString()
    e = {
        "eventType": "create",
        "name": stack.name,
        "description": stack.description,
        "resources": [{"kind": r.key.kind, "templateMetaName": r.key.name} for r in resources],
        "sources": list(stack.sources),
        "urls": list(stack.urls),
        "updatedAt": t,
    }
    return {"id": stack.id, "orgID": org_id, "createdAt": t, "events": [e], **e}
