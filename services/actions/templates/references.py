"""What the expressions of a template read."""

from collections.abc import Iterator
from typing import NamedTuple

from services.actions.templates.functions import DEFAULT, HAS
from services.actions.templates.nodes import (
    Expression,
    FunctionCall,
    Index,
    Literal,
    Member,
    MethodCall,
    Postfix,
    Root,
    children,
)
from services.actions.templates.template import Template


class Reference(NamedTuple):
    """
    A parameter that an expression reads.

    Attributes:
        root: The name of the parameter.
        members: The keys and positions behind it, as far as no method is called; None: one that is computed.
        is_guarded: Whether it may be missing: it is the path of ``default`` or ``has``.
        column: Where it stands in the template, from 1.
    """

    root: str
    members: tuple[str | int | None, ...]
    is_guarded: bool
    column: int


def references(template: Template) -> list[Reference]:
    """The parameters that *template* reads, from left to right; those of a computed key follow its path."""
    return [each for expression in template.expressions for each in _references(expression)]


def _references(expression: Expression, is_guarded: bool = False) -> Iterator[Reference]:
    match expression:
        case Root(column, name):
            yield Reference(name, (), is_guarded, column)
        case Postfix(_, operand, accessors):
            yield from _of_postfix(operand, accessors, is_guarded)
        case FunctionCall(_, name, arguments):
            for place, argument in enumerate(arguments):
                yield from _references(argument, is_guarded=place == 0 and name in (DEFAULT, HAS))
        case Literal():
            pass
        case _:
            for part in children(expression):
                yield from _references(part)


def _of_postfix(
    operand: Expression, accessors: tuple[Member | Index | MethodCall, ...], is_guarded: bool
) -> Iterator[Reference]:
    if isinstance(operand, Root):
        members: list[str | int | None] = []
        for accessor in accessors:
            if isinstance(accessor, MethodCall):
                break
            members.append(_member(accessor))
        yield Reference(operand.name, tuple(members), is_guarded, operand.column)
    else:
        yield from _references(operand)
    for part in children(Postfix(0, Literal(0, None), accessors)):
        yield from _references(part)


def _member(accessor: Member | Index) -> str | int | None:
    if isinstance(accessor, Member):
        return accessor.name
    value = accessor.key.value if isinstance(accessor.key, Literal) else None
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None
