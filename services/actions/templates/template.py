"""Templates: texts with expressions in ``{{ }}``."""

from dataclasses import dataclass

from services.actions.templates.errors import TemplateCode, TemplateError
from services.actions.templates.name_check import name_problems
from services.actions.templates.nodes import Expression
from services.actions.templates.parsing import parse_expression
from services.actions.templates.tokens import CLOSE, OPEN, tokens_of

MAX_TEMPLATE_BYTES = 64 << 10
"""Size of a text with expressions, in UTF-8."""

MAX_EXPRESSION_LENGTH = 4096
"""Number of characters between the braces of an expression."""


@dataclass(frozen=True, slots=True)
class Template:
    """
    A text that was read.

    Attributes:
        parts: Its plain texts, none of them empty, and its expressions, in order.
    """

    parts: tuple[str | Expression, ...]

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions, in order."""
        return tuple(part for part in self.parts if not isinstance(part, str))

    @property
    def is_literal(self) -> bool:
        """Whether it has no expression."""
        return all(isinstance(part, str) for part in self.parts)

    @property
    def is_single_expression(self) -> bool:
        """Whether it is one expression, with nothing before or after: its value then has any type."""
        return len(self.parts) == 1 and not isinstance(self.parts[0], str)


def parse_template(text: str) -> Template:
    """
    Read a template.

    Raises:
        TemplateError: An expression does not fit the grammar (``SYNTAX``); if all of them do: the first one that uses a
            name that there is not (``NAME``), or is too large (``LIMIT``).
    """
    if OPEN not in text:
        return Template((text,) if text else ())
    parts: list[str | Expression] = []
    problems: list[TemplateError] = []
    end = 0
    while (start := text.find(OPEN, end)) >= 0:
        if start > end:
            parts.append(text[end:start])
        expression, end = _expression_at(text, start + len(OPEN), problems)
        parts += expression
    if end < len(text):
        parts.append(text[end:])
    if len(text.encode("utf-8", "surrogatepass")) > MAX_TEMPLATE_BYTES:
        reason = f"the text has more than {MAX_TEMPLATE_BYTES:,} bytes"
        problems.append(TemplateError(TemplateCode.LIMIT, 1, reason))
    if problems:
        raise min(problems, key=lambda problem: problem.column)
    return Template(tuple(parts))


def _expression_at(text: str, start: int, problems: list[TemplateError]) -> tuple[list[Expression], int]:
    """The expression that begins at *start*, if it is not too large, and the position after its braces."""
    tokens = tokens_of(text, start)
    closing = tokens[-1].position
    end = closing + len(CLOSE)
    if closing - start > MAX_EXPRESSION_LENGTH:
        reason = f"the expression has more than {MAX_EXPRESSION_LENGTH:,} characters"
        problems.append(TemplateError(TemplateCode.LIMIT, start + 1, reason))
        return [], end
    try:
        expression = parse_expression(tokens)
    except TemplateError as problem:
        if problem.code is not TemplateCode.LIMIT:
            raise
        problems.append(problem)
        return [], end
    problems += name_problems(expression)
    return [expression], end
