"""Measures the evaluation of Jsonnet programs in their child process, with each evaluator that is installed."""

import asyncio
from functools import partial
from importlib.util import find_spec

from bench.figures import Figure, median_of, seconds
from services.jsonnet.evaluation import evaluate
from services.jsonnet.evaluators import Evaluator

RUNS = 3

_PROGRAM = """
local bucket(number) = {
  apiVersion: 'influxdata.com/v2alpha1',
  kind: 'Bucket',
  metadata: {name: 'bucket-%%d' %% number},
  spec: {
    name: 'Bucket %%04d of %%s' %% [number, ['berlin', 'lagos', 'lima', 'osaka'][number %% 4]],
    description: std.format('Readings of sensor %%(number)d', {number: number}),
    retentionRules: [{type: 'expire', everySeconds: 86400 * (number %% 30 + 1)}],
  },
};
[bucket(number) for number in std.range(1, %d)]
"""


def evaluating(count: int) -> list[Figure]:
    """Evaluate a program that makes *count* objects, with texts that it formats."""
    program = _PROGRAM % count
    figures = []
    for evaluator in Evaluator:
        if not find_spec(evaluator.value):
            continue
        taken = median_of(RUNS, partial(_evaluate, program, evaluator))
        name = evaluator.value.lstrip("_")
        figures.append(Figure(f"Jsonnet: program to JSON, with {name}", f"{count:,} buckets", seconds(taken)))
    return figures


def _evaluate(program: str, evaluator: Evaluator) -> None:
    asyncio.run(evaluate(program, "bench.jsonnet", evaluator=evaluator))
