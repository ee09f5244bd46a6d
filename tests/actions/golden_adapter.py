"""
Answers the recorded cases of action documents by the code of the product.

The program beside the cases compares all of them:
``../shared/golden/actions/compare.py -- python tests/actions/golden_adapter.py``.
"""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from services.actions.templates.errors import TemplateError
from services.actions.templates.rendering import render
from services.actions.validation import validate
from services.kinds.format.canonical import plain
from services.syntax.yaml_reader import read_documents
from tests.actions.functions import LATER_FUNCTIONS


def _validate(request: Mapping[str, Any]) -> dict[str, Any]:
    documents = [plain(root) for root in read_documents("case", request["source"]) if root is not None]
    faults = validate(documents, LATER_FUNCTIONS).faults
    return {
        "violations": [
            {"kind": documents[position].get("kind"), "path": f"root[{position}].{fault.path}"}
            for position, of_document in faults.items()
            for fault in of_document
        ]
    }


def _render(request: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {"value": render(request["template"], request["parameters"])}
    except TemplateError as error:
        return {"error": error.code}


_ANSWERS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {"validate": _validate, "render": _render}
"""By what a request says to do."""


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a request of the recorded cases."""
    return _ANSWERS[request["do"]](request)


if __name__ == "__main__":
    for line in iter(sys.stdin.readline, ""):
        print(json.dumps(answer(json.loads(line))), flush=True)
