"""The two Jsonnet evaluators, and how each tells what is wrong with a program."""

import os
import re
from collections.abc import Callable
from enum import Enum
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from services.jsonnet.imports import Imports

MAIN = "main"
"""The name of the program in messages of evaluators; imported files have absolute paths."""

MAX_CALLS = 500
"""Calls inside each other: what both evaluators take when they are told nothing."""

_LONGEST_PROBLEM = 300
"""Characters; a program can raise an error of any length."""


class Evaluator(Enum):
    """
    An evaluator by the name of its module.

    Both give the same, but for the base64 of texts with other characters than ASCII and the last digit of a mantissa.
    """

    JSONNET = "_jsonnet"
    """The reference implementation. Its messages name the place of nearly every error."""
    RJSONNET = "rjsonnet"
    """Takes a hundredth of the time for programs that format much text."""


class Fault(NamedTuple):
    """What is wrong with a program, in one sentence; its line and column count from 1, and 0 stands for unknown."""

    problem: str
    line: int
    column: int


class ProgramFaulty(Exception):
    """The program cannot be evaluated."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.problem)
        self.fault = fault


class _Frame(NamedTuple):
    """A place of which an evaluator says that it has to do with an error; the innermost come first."""

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
        A function from the text of a program and what it may import to the JSON text that it comes to. It raises
        ``ProgramFaulty``, and may end the process instead of returning.
    """
    module = import_module(evaluator.value)
    as_told = _told_by_jsonnet if evaluator is Evaluator.JSONNET else _told_by_rjsonnet

    def evaluate(text: str, imports: Imports) -> str:
        def read(base: str, path: str) -> tuple[str, str | bytes]:
            real, content = imports.read(base, path)
            return real, content.encode() if evaluator is Evaluator.JSONNET else content

        try:
            result: str = module.evaluate_snippet(MAIN, text, max_stack=MAX_CALLS, import_callback=read)
        except MemoryError:
            raise
        # Panics of rjsonnet are not even of the class Exception.
        except BaseException as error:
            problem, frames = as_told(str(error), {MAIN: text, **imports.texts})
            raise ProgramFaulty(_fault(imports.refusal or problem, frames, imports.root)) from None
        return result

    return evaluate


# Numbers have few digits: a program can put anything into its errors, and longer ones cannot even be converted.
_JSONNET_PLACE = r"(?P<file>.+?):\(?(?P<line>\d{1,9}):(?P<column>\d{1,9})\)?(?:-\(?\d+(?::\d+\))?)?"
_JSONNET_STATIC = re.compile(rf"STATIC ERROR: {_JSONNET_PLACE}: (?P<problem>.*)", re.DOTALL)
_JSONNET_FRAME = re.compile(rf"\t{_JSONNET_PLACE}(?:\t|$)")


def _told_by_jsonnet(message: str, texts: dict[str, str]) -> tuple[str, list[_Frame]]:
    """Problem and places of ``STATIC ERROR: file:1:2-3: problem`` or ``RUNTIME ERROR: problem`` and its trace."""
    if static := _JSONNET_STATIC.match(message):
        problem, found = static["problem"], [static]
    else:
        problem, *trace = message.removeprefix("RUNTIME ERROR: ").split("\n\t")
        found = [frame for line in trace if (frame := _JSONNET_FRAME.match(f"\t{line}"))]
    return problem, [_counted_in_bytes(match, texts) for match in found if match["file"] in texts]


def _counted_in_bytes(match: re.Match[str], texts: dict[str, str]) -> _Frame:
    """The place that a match names; its column counts bytes."""
    line, column = int(match["line"]), int(match["column"])
    lines = texts[match["file"]].split("\n")
    before = lines[line - 1].encode()[: column - 1] if 0 < line <= len(lines) else b""
    return _Frame(match["file"], line, len(before.decode(errors="ignore")) + 1)


_RJSONNET_FRAME = re.compile(r"(?P<file>.+?):(?P<line>\d{1,9}):(?P<column>\d{1,9})(?:-\d+(?P<multiline>:\d+)?)?(?::|$)")


def _told_by_rjsonnet(message: str, texts: dict[str, str]) -> tuple[str, list[_Frame]]:
    """
    Problem and places of ``problem`` and the trace below it, each line like ``file:1:2-3: what``.

    The places in texts with other characters than ASCII are left out, as they are wrong; so are the columns of what has
    more than one line.
    """
    problem, *trace = message.split("\n    ")
    found = [frame for line in trace if (frame := _RJSONNET_FRAME.match(line))]
    frames = [
        _Frame(match["file"], int(match["line"]), 1 if match["multiline"] else int(match["column"]))
        for match in found
        if match["file"] in texts and texts[match["file"]].isascii() and int(match["line"])
    ]
    return problem.removeprefix("runtime error: "), frames


_TOO_MANY_CALLS = f"more than {MAX_CALLS} calls inside each other; does a function or a value need itself without end?"

_IN_PLAIN_WORDS = {
    "max stack frames exceeded": _TOO_MANY_CALLS,
    "stack overflow, try to reduce recursion, or set --max-stack to bigger value": _TOO_MANY_CALLS,
    "Exceeded maximum parse depth limit": "more lists, objects or other expressions inside each other than can be read",
}


def _fault(problem: str, frames: list[_Frame], root: str | None) -> Fault:
    """One sentence, at the place in the program; when it is about an imported file, that is named as well."""
    sentence = " ".join(problem.split()).removesuffix(".") or "the program raises an error without a text"
    sentence = _IN_PLAIN_WORDS.get(sentence, sentence)
    if len(sentence) > _LONGEST_PROBLEM:
        sentence = f"{sentence[:_LONGEST_PROBLEM]}..."
    if frames and frames[0].file != MAIN:
        file, line, column = frames[0]
        sentence = f"{sentence} ({os.path.relpath(file, root)}:{line}:{column})"
    for file, line, column in frames:
        if file == MAIN:
            return Fault(sentence, line, column)
    return Fault(sentence, 0, 0)
