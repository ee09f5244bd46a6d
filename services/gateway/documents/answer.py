"""tmp"""

from typing import Any

import orjson


def answer_document(made: Any, stack_id: str, org_id: str) -> dict[str, Any]:
    """tmp"""
    s = orjson.loads(made.summary)
    return {"sources": list(made.header.sources), "stackID": stack_id, "summary": s, "diff": {}}


def refused_document(v: Any) -> dict[str, Any]:
    """tmp"""
    return {"code": "unprocessable entity", "message": "x", "errors": []}
