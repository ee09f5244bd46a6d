"""
Formats scripts as the server does: white space between statements and along pipelines.

This is enough to show that a custom check is not read back as it was sent. Statements with comments are kept.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from tests.influx import flux

WIDTH = 100


def formatted(script: str) -> str:
    """
    The script with a blank line between statements, one line each unless it is too long.

    Raises:
        flux.FluxError: The script has a syntax error.
    """
    found = list(_statements(flux.tokens(script)))
    ends = [*(statement[0].start for statement in found[1:]), len(script)]
    texts = [_statement(script, statement, end) for statement, end in zip(found, ends, strict=True)]
    note = script[: found[0][0].start].strip() if found else script.strip()
    written = "\n".join(text for text in (note, *texts[:1]) if text)
    for before, text in pairwise(texts):
        are_imports = before.startswith("import ") and text.startswith("import ")
        written += ("\n" if are_imports else "\n\n") + text
    return written + "\n"


def _statements(tokens: Sequence[flux.Token]) -> Iterator[list[flux.Token]]:
    """The statements: one begins at a top-level token that does not continue the statement before it."""
    current: list[flux.Token] = []
    for token in tokens:
        if current and _begins(current[-1], token):
            yield current
            current = []
        current.append(token)
    if current:
        yield current


def _begins(before: flux.Token, token: flux.Token) -> bool:
    if token.depth or token.kind == "operator" or (token.kind == "bracket" and token.text != "{"):
        return False
    is_word = before.kind == "word" and before.text in flux.KEYWORDS | {"task"}
    return before.kind != "operator" and not is_word and token.text not in {"and", "or", "then", "else"}


def _statement(script: str, tokens: Sequence[flux.Token], end: int) -> str:
    raw = script[tokens[0].start : end]
    if "//" in "".join(_between(script, tokens, end)):
        return raw.strip()
    line = _joined(script, tokens)
    pipes = [place for place, token in enumerate(tokens) if token.text == "|>" and token.depth == tokens[0].depth]
    if len(line) <= WIDTH or not pipes:
        return line
    starts = [0, *pipes]
    parts = [_joined(script, tokens[start:stop]) for start, stop in zip(starts, [*pipes, len(tokens)], strict=True)]
    return "\n    ".join(parts)


def _between(script: str, tokens: Sequence[flux.Token], end: int) -> Iterator[str]:
    """The texts between the tokens, and after the last one."""
    for token, after in zip(tokens, [*(token.start for token in tokens[1:]), end], strict=True):
        yield script[token.end : after]


def _joined(script: str, tokens: Sequence[flux.Token]) -> str:
    """The tokens on one line, with one space where there was white space."""
    found = tokens[0].text
    for before, token in pairwise(tokens):
        is_apart = (
            before.end != token.start and token.text not in {")", "]", "}"} and before.text not in {"(", "[", "{"}
        )
        is_last = before.text == "," and token.text in {")", "]", "}"}
        found = found.removesuffix(",") if is_last else found
        found += (" " if is_apart else "") + token.text
    return found
