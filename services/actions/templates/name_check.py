"""Which names expressions may use."""

from collections.abc import Collection, Iterator, Mapping

from services.actions.templates.errors import TemplateCode, TemplateError
from services.actions.templates.functions import DEFAULT, FUNCTIONS, HAS, METHODS, Function
from services.actions.templates.nodes import Expression, FunctionCall, MethodCall, Postfix, Root, children
from services.kinds.format.shapes import nearest

ROOTS = frozenset(
    {
        "time",
        "run",
        "object",
        "stack",
        "options",
        "configMaps",
        "artifacts",
        "secrets",
        "profile",
        "phases",
        "failure",
        "item",
    }
)
"""The parameters. Where each of them is there, the validation of blueprints knows."""


def name_problems(expression: Expression) -> Iterator[TemplateError]:
    """What is wrong with the names in *expression*, in no particular order."""
    expressions = [expression]
    while expressions:
        part = expressions.pop()
        yield from _problems(part)
        expressions += children(part)


def _problems(part: Expression) -> Iterator[TemplateError]:
    if isinstance(part, Root) and part.name not in ROOTS:
        yield _unknown(part.column, "root", part.name, ROOTS)
    elif isinstance(part, FunctionCall):
        yield from _call_problems(part, "function", FUNCTIONS)
        if part.name in (DEFAULT, HAS) and part.arguments and not _is_path(part.arguments[0]):
            reason = f"{part.name} needs a path, such as options.name, as its first argument"
            yield TemplateError(TemplateCode.NAME, part.column, reason)
    elif isinstance(part, Postfix):
        for accessor in part.accessors:
            if isinstance(accessor, MethodCall):
                yield from _call_problems(accessor, "method", METHODS)


def _is_path(expression: Expression) -> bool:
    return isinstance(expression, Postfix) and expression.is_path


def _call_problems(
    call: FunctionCall | MethodCall, noun: str, functions: Mapping[str, Function]
) -> Iterator[TemplateError]:
    function = functions.get(call.name)
    if function is None:
        yield _unknown(call.column, noun, call.name, functions)
    elif not function.fewest <= len(call.arguments) <= function.most:
        counts = " or ".join(str(count) for count in range(function.fewest, function.most + 1))
        reason = f"{call.name} has {counts} arguments, and {len(call.arguments)} stand here"
        yield TemplateError(TemplateCode.NAME, call.column, reason)


def _unknown(column: int, noun: str, name: str, choices: Collection[str]) -> TemplateError:
    alike = nearest(name, sorted(choices))
    hint = f"; did you mean {alike}?" if alike else f"; there are {', '.join(sorted(choices))}"
    return TemplateError(TemplateCode.NAME, column, f"there is no {noun} {name[:60]!r}{hint}")
