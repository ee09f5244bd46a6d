"""Evaluates programs for tests."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from services.jsonnet.evaluation import EvaluationLimits, evaluate
from services.jsonnet.evaluators import Evaluator

LIMITS = EvaluationLimits(bytes=100_000, memory=96 * 1024 * 1024, seconds=20)
"""Little memory, so that programs soon exhaust it; more time than even a busy machine needs."""

each_evaluator = pytest.mark.parametrize("evaluator", list(Evaluator), ids=lambda evaluator: evaluator.value)
each_choice = pytest.mark.parametrize(
    "evaluator", [*Evaluator, None], ids=lambda evaluator: evaluator.value if evaluator else "preferred"
)


async def result(
    text: str,
    evaluator: Evaluator | None = None,
    folder: Path | None = None,
    limits: EvaluationLimits = LIMITS,
    libraries: Sequence[Path] = (),
) -> Any:
    """The result of a program, as a tree."""
    # Packages in JSON have only floats (docs/reference/package-format.md, "JSON"); the evaluators write whole ones
    # differently.
    return json.loads(await evaluate(text, "a.jsonnet", folder, limits, evaluator, libraries), parse_int=float)
