"""The problem of a text that is no version or range."""

from collections.abc import Callable

from services.packages.versions import ParseProblem


def problem_of(parse: Callable[[str], object], text: str) -> ParseProblem | None:
    """The problem that *parse* has with *text*; None: it reads it."""
    try:
        parse(text)
    except ParseProblem as problem:
        return problem
    return None
