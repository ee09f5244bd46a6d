"""How the tests evaluate programs."""

import json
from pathlib import Path
from typing import Any

import pytest

from services.jsonnet.evaluation import Limits, evaluate
from services.jsonnet.evaluators import Evaluator

LIMITS = Limits(bytes=100_000, memory=96 * 1024 * 1024, seconds=20)
"""Little memory, so that what would take all of it is soon over; more time than even a busy machine needs."""

each_evaluator = pytest.mark.parametrize("evaluator", list(Evaluator), ids=lambda evaluator: evaluator.value)
each_choice = pytest.mark.parametrize(
    "evaluator", [*Evaluator, None], ids=lambda evaluator: evaluator.value if evaluator else "preferred"
)


async def result(
    text: str, evaluator: Evaluator | None = None, folder: Path | None = None, limits: Limits = LIMITS
) -> Any:
    """The tree that a program comes to."""
    # Packages in JSON have floats only (docs/reference/package-format.md, "JSON"); evaluators write whole ones in one
    # way or the other.
    return json.loads(await evaluate(text, "a.jsonnet", folder, limits, evaluator), parse_int=float)
