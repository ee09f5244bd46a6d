"""Both evaluators return the same package."""

from pathlib import Path

import pytest

from services.jsonnet.evaluators import Evaluator, preferred
from tests.jsonnet.evaluating import result

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.jsonnet"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
async def test_both_evaluators_return_the_same(program: Path) -> None:
    text = program.read_text()
    by_reference = await result(text, Evaluator.JSONNET, program.parent)
    assert await result(text, Evaluator.RJSONNET, program.parent) == by_reference


def test_the_fast_evaluator_is_preferred_when_it_is_installed() -> None:
    assert preferred() is Evaluator.RJSONNET
