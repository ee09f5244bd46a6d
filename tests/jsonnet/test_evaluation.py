"""Valid programs, programs with errors, and programs that exceed a limit."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from services.core.errors import PkgerError, SourceTooLarge, SourceUndecodable
from services.jsonnet.evaluation import EvaluationLimits, evaluate
from services.jsonnet.evaluators import Evaluator
from tests import needs
from tests.jsonnet.evaluating import LIMITS, each_choice, each_evaluator, result

ENDLESS = "local f(x) = f(x + 1) tailstrict; [f(1)]"
"""The reference evaluator runs it without end; the other one crashes."""


@each_choice
async def test_a_result_is_json_without_line_breaks(evaluator: Evaluator | None) -> None:
    text = await evaluate('[{a: "é\\n  \\t\\"😀", b: [], c: {}, d: null}, 1.5]', "a.jsonnet", evaluator=evaluator)
    assert "\n" not in text
    assert await result(text) == [{"a": 'é\n  \t"😀', "b": [], "c": {}, "d": None}, 1.5]


FAULTS = {
    "an open list": ("[1,\n 2", 2, 3, ""),
    "an open text": ('[1,\n "abc', 2, 2, ""),
    "no program": ("", 1, 1, ""),
    "an unknown variable": ("[1,\n  y]", 2, 3, "y"),
    "after other characters than ASCII": ('["é😀",\n "é", y]', 2, 7, "y"),
    "an error of its own": ('[1,\n  error "no\n  good"]', 2, 3, "no good"),
    "an error without a text": ('[\nerror ""]', 2, 1, "without a text"),
    "a long error": ('[error std.repeat("x", 5000)]', 1, 2, "xxx..."),
    "a failed assertion": ('[{ assert self.a > 1 : "too small", a: 1}]', 1, 24, "too small"),
    "a missing field": ("local a = {};\n[a.b]", 2, 2, "b"),
    "wrong types": ("[\n 1 + {}]", 2, 2, "number"),
    "a repeated field": ("[{a: 1,\n a: 2}]", 2, 2, "a"),
    "an external variable": ('[std.extVar("HOME")]', 1, 2, "HOME"),
    "a function": ("[function(x) x]", 1, 2, "function"),
    "endless recursion": ("local f(x) = 1 + f(x + 1);\n[f(1)]", 1, 18, "more than 500 nested calls"),
    "a value in itself": ("local a = {b: a};\n[a]", 1, 15, "more than 500 nested calls"),
    "what is in no file": ('[std.parseJson("[")]', 1, 2, "pars"),
    "a NUL": ('["\0"', 0, 0, ""),
}


@pytest.mark.parametrize("case", FAULTS)
async def test_an_error_is_one_sentence_with_its_position(case: str) -> None:
    text, line, column, problem = FAULTS[case]
    with pytest.raises(SourceUndecodable) as caught:
        await result(text, Evaluator.JSONNET)
    metadata = caught.value.metadata
    assert (metadata["line"], metadata["column"]) == (str(line), str(column))
    _assert_plain(caught.value)
    assert problem in metadata["problem"]


@pytest.mark.parametrize("case", [case for case in FAULTS if case != "a NUL"])
async def test_the_fast_evaluator_reports_no_wrong_position(case: str) -> None:
    text, line, *_ = FAULTS[case]
    with pytest.raises(SourceUndecodable) as caught:
        await result(text, Evaluator.RJSONNET)
    _assert_plain(caught.value)
    assert caught.value.metadata["line"] in ("0", str(line))


@pytest.mark.parametrize("case", ["a missing field", "wrong types", "after other characters than ASCII"])
async def test_an_error_of_the_fast_evaluator_has_its_position(case: str) -> None:
    text, line, column, _ = FAULTS[case]
    with pytest.raises(SourceUndecodable) as caught:
        await result(text)
    assert (caught.value.metadata["line"], caught.value.metadata["column"]) == (str(line), str(column))


@each_evaluator
async def test_an_error_that_looks_like_a_trace_is_reported(evaluator: Evaluator) -> None:
    number = "9" * 5000
    with pytest.raises(SourceUndecodable, match=r"a\.jsonnet:.*no"):
        await result(f'[error "no\\n\\tmain:{number}:1\\t\\n    main:{number}:1: b"]', evaluator)


def _assert_plain(error: PkgerError) -> None:
    text = str(error)
    assert text.startswith("a.jsonnet:")
    assert len(text) < 420
    for trace in ("\n", "\t", "RUNTIME", "STATIC", "Error:", "main", "/"):
        assert trace not in text


BOMBS = {
    "a literal of 6,000 levels": ("[" * 6000 + "]" * 6000, "nested|too deeply"),
    "objects of 6,000 levels": ("{a: " * 6000 + "1" + "}" * 6000, "nested|too deeply"),
    "6,000 locals": ("[" + "local a = 1; " * 6000 + "1]", "nested|too deeply"),
    "50,000 sums": ("[" + "+".join(["1"] * 50_000) + "]", "too deeply"),
    "a value of 6,000 levels": ("std.foldl(function(a, i) [a], std.range(1, 6000), [])", "nested|bytes of"),
    "a text that doubles": (
        'local f(s, n) = if n == 0 then s else f(s + s, n - 1) tailstrict; [f("xxxx", 40)]',
        "bytes of memory for evaluation of 100,663,296",
    ),
    "a list of a thousand million": ("std.range(1, 1e9)", "bytes of memory for evaluation"),
    "a text of eight thousand million": ('[std.repeat("abcdefgh", 1e9)]', "bytes of memory for evaluation"),
    "a list in itself": ("local a = [a]; a", "nested|bytes of memory"),
    "a result that is too long": ('[std.repeat("abcdefgh", 2e4)]', "bytes of evaluated JSON of 100,000"),
}


@each_choice
@pytest.mark.parametrize("case", BOMBS)
async def test_a_program_that_exceeds_a_limit_is_an_error(case: str, evaluator: Evaluator | None) -> None:
    text, problem = BOMBS[case]
    with pytest.raises((SourceTooLarge, SourceUndecodable), match=problem) as caught:
        await result(text, evaluator)
    _assert_plain(caught.value)


@pytest.mark.parametrize(
    ("evaluator", "text"),
    [
        (Evaluator.JSONNET, ENDLESS),
        (Evaluator.RJSONNET, "[std.foldl(function(a, b) a + b, std.range(1, 2e9), 0)]"),
        (None, ENDLESS),
    ],
)
async def test_an_endless_program_is_ended(evaluator: Evaluator | None, text: str) -> None:
    with pytest.raises(SourceTooLarge, match=r"a\.jsonnet: exceeds the limit for seconds of evaluation of 1"):
        await result(text, evaluator, limits=replace(LIMITS, seconds=0.4))


async def test_an_error_is_reported_even_without_time_to_find_its_position() -> None:
    """Only the fast evaluator rejects the first value; the other one does not finish the second."""
    with pytest.raises(SourceUndecodable, match="thisFile"):
        await result(ENDLESS.replace("[", "[std.thisFile, "), limits=replace(LIMITS, seconds=1))


async def test_a_program_that_only_the_reference_supports_is_evaluated() -> None:
    assert await result("[std.thisFile]") == ["main"]


async def test_an_evaluation_does_not_block_the_caller() -> None:
    ended = await asyncio.gather(
        result(BOMBS["a text that doubles"][0]),
        result("[1]"),
        result(ENDLESS, limits=replace(LIMITS, seconds=0.4)),
        result(BOMBS["a literal of 6,000 levels"][0]),
        result("[2]"),
        return_exceptions=True,
    )
    assert [type(each) for each in ended] == [SourceTooLarge, list, SourceTooLarge, SourceUndecodable, list]


@needs.path("/proc")
async def test_a_cancelled_call_leaves_no_process() -> None:
    call = asyncio.create_task(evaluate(ENDLESS, "a.jsonnet", limits=EvaluationLimits(), evaluator=Evaluator.JSONNET))
    while not _children():  # noqa: ASYNC110
        await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert _children() == []


def _children() -> list[str]:
    """The child processes that evaluate for this one."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            if parent == str(os.getpid()) and "services.jsonnet.child" in (folder / "cmdline").read_text():
                found.append(folder.name)
        except OSError:
            continue
    return found


async def test_traces_of_a_program_are_dropped(capfd: pytest.CaptureFixture[str]) -> None:
    loud = "[std.foldl(function(a, i) std.trace(std.repeat('x', 1000), a + i), std.range(1, 1000), 0)]"
    assert await result(loud) == [500500]
    assert capfd.readouterr() == ("", "")
