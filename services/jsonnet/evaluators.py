"""The two Jsonnet evaluators, and how each reports an error of a program."""

import re
from collections.abc import Callable
from enum import Enum
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from services.jsonnet.imports import Imports

MAIN = "main"
"""The name of the program in messages of evaluators; imported files have their absolute path."""

MAX_CALLS = 500
"""Most nested calls: the default of both evaluators."""

_LONGEST_PROBLEM = 300
"""Characters; a program can raise an error of any length."""


class Evaluator(Enum):
    """
    An evaluator by the name of its module.

    Both return the same, except for the base64 of non-ASCII text and the last digit of a mantissa.
    """

    JSONNET = "_jsonnet"
    """The reference implementation. Its messages have the position of nearly every error."""
    RJSONNET = "rjsonnet"
    """Needs a hundredth of the time for programs that format much text."""


class ProgramError(NamedTuple):
    """An error of a program, in one sentence; line and column count from 1, and 0 is unknown."""

    problem: str
    line: int
    column: int


class ProgramFaulty(Exception):
    """The program cannot be evaluated."""

    def __init__(self, fault: ProgramError) -> None:
        super().__init__(fault.problem)
        self.fault = fault


class _Frame(NamedTuple):
    """A position in the stack trace of an error; the innermost comes first."""

    file: str
    line: int
    column: int


def preferred() -> Evaluator:
    """The fastest evaluator that is installed."""
    return Evaluator.RJSONNET if find_spec(Evaluator.RJSONNET.value) else Evaluator.JSONNET


def program(evaluator: Evaluator) -> Callable[[str, Imports], str]:
    """
    Load an evaluator.

    Returns:
        A function from the text of a program and its importable files to its JSON result. It raises
        ``ProgramFaulty``, and may crash the process instead of returning.
    """
    module = import_module(evaluator.value)
    trace_of = _jsonnet_trace if evaluator is Evaluator.JSONNET else _rjsonnet_trace

    def evaluate(text: str, imports: Imports) -> str:
        def read(base: str, path: str) -> tuple[str, str | bytes]:
            real, content = imports.read(base, path)
            return real, content.encode() if evaluator is Evaluator.JSONNET else content

        try:
            result: str = module.evaluate_snippet(MAIN, text, max_stack=MAX_CALLS, import_callback=read)
        except MemoryError:
            raise
        # The panics of rjsonnet do not derive from Exception.
        except BaseException as error:
            problem, frames = trace_of(str(error), {MAIN: text, **imports.texts})
            raise ProgramFaulty(_fault(imports.refusal or problem, frames, imports.shown)) from None
        return result

    return evaluate


# The digits are limited: an error text can contain anything, and int() refuses long numbers.
_JSONNET_PLACE = r"(?P<file>.+?):\(?(?P<line>\d{1,9}):(?P<column>\d{1,9})\)?(?:-\(?\d+(?::\d+\))?)?"
_JSONNET_STATIC = re.compile(rf"STATIC ERROR: {_JSONNET_PLACE}: (?P<problem>.*)", re.DOTALL)
_JSONNET_FRAME = re.compile(rf"\t{_JSONNET_PLACE}(?:\t|$)")


def _jsonnet_trace(message: str, texts: dict[str, str]) -> tuple[str, list[_Frame]]:
    """Problem and positions of ``STATIC ERROR: file:1:2-3: problem`` or ``RUNTIME ERROR: problem`` and its trace."""
    if static := _JSONNET_STATIC.match(message):
        problem, matches = static["problem"], [static]
    else:
        problem, *trace = message.removeprefix("RUNTIME ERROR: ").split("\n\t")
        matches = [frame for line in trace if (frame := _JSONNET_FRAME.match(f"\t{line}"))]
    return problem, [_counted_in_bytes(match, texts) for match in matches if match["file"] in texts]


def _counted_in_bytes(match: re.Match[str], texts: dict[str, str]) -> _Frame:
    """The position in a match, whose column counts bytes."""
    line, column = int(match["line"]), int(match["column"])
    lines = texts[match["file"]].split("\n")
    before = lines[line - 1].encode()[: column - 1] if 0 < line <= len(lines) else b""
    return _Frame(match["file"], line, len(before.decode(errors="ignore")) + 1)


_RJSONNET_FRAME = re.compile(r"(?P<file>.+?):(?P<line>\d{1,9}):(?P<column>\d{1,9})(?:-\d+(?P<multiline>:\d+)?)?(?::|$)")


def _rjsonnet_trace(message: str, texts: dict[str, str]) -> tuple[str, list[_Frame]]:
    """
    Problem and positions of ``problem`` and the trace below it, with lines like ``file:1:2-3: context``.

    rjsonnet reports wrong positions in non-ASCII texts, so these are left out. It reports no correct column for an
    expression of several lines.
    """
    problem, *trace = message.split("\n    ")
    matches = [frame for line in trace if (frame := _RJSONNET_FRAME.match(line))]
    frames = [
        _Frame(match["file"], int(match["line"]), 1 if match["multiline"] else int(match["column"]))
        for match in matches
        if match["file"] in texts and texts[match["file"]].isascii() and int(match["line"])
    ]
    return problem.removeprefix("runtime error: "), frames


_TOO_MANY_CALLS = f"more than {MAX_CALLS} nested calls; does a function or a value refer to itself without end?"

_PLAIN_SENTENCES = {
    "max stack frames exceeded": _TOO_MANY_CALLS,
    "stack overflow, try to reduce recursion, or set --max-stack to bigger value": _TOO_MANY_CALLS,
    "Exceeded maximum parse depth limit": "lists, objects or other expressions are nested too deeply",
}


def _fault(problem: str, frames: list[_Frame], shown: Callable[[str], str]) -> ProgramError:
    """One sentence with the position in the program; for an error in an imported file, also the position there."""
    sentence = " ".join(problem.split()).removesuffix(".") or "the program raises an error without a text"
    sentence = _PLAIN_SENTENCES.get(sentence, sentence)
    if len(sentence) > _LONGEST_PROBLEM:
        sentence = f"{sentence[:_LONGEST_PROBLEM]}..."
    if frames and frames[0].file != MAIN:
        file, line, column = frames[0]
        sentence = f"{sentence} ({shown(file)}:{line}:{column})"
    for file, line, column in frames:
        if file == MAIN:
            return ProgramError(sentence, line, column)
    return ProgramError(sentence, 0, 0)
