"""
The parts of expressions.

Operators of one precedence in a row are one node, so that a tree is as deep as its brackets.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from services.actions.templates.values import Value


class Literal(NamedTuple):
    """A number, text, bool or null."""

    column: int
    value: Value


class ListLiteral(NamedTuple):
    """A list of expressions."""

    column: int
    items: "tuple[Expression, ...]"


class Root(NamedTuple):
    """A parameter."""

    column: int
    name: str


class FunctionCall(NamedTuple):
    """A call of a function."""

    column: int
    name: str
    arguments: "tuple[Expression, ...]"


class Member(NamedTuple):
    """``.name`` behind an expression."""

    column: int
    name: str


class Index(NamedTuple):
    """``[expression]`` behind an expression."""

    column: int
    key: "Expression"


class MethodCall(NamedTuple):
    """``.name(arguments)`` behind an expression."""

    column: int
    name: str
    arguments: "tuple[Expression, ...]"


class Postfix(NamedTuple):
    """An expression with what stands behind it, from left to right."""

    column: int
    operand: "Expression"
    accessors: tuple[Member | Index | MethodCall, ...]

    @property
    def is_path(self) -> bool:
        """Whether it is a parameter with at least one member."""
        return isinstance(self.operand, Root) and not any(isinstance(each, MethodCall) for each in self.accessors)


class Prefixed(NamedTuple):
    """An operand with the operators ``!`` and ``-`` before it, as written."""

    column: int
    operators: str
    operand: "Expression"


class Term(NamedTuple):
    """A further operand of a sum, with its operator, ``+`` or ``-``."""

    column: int
    operator: str
    operand: "Expression"


class Sum(NamedTuple):
    """Operands that are added and subtracted from left to right."""

    column: int
    first: "Expression"
    terms: tuple[Term, ...]


class Comparison(NamedTuple):
    """Two operands that are compared; the column is that of the operator."""

    column: int
    left: "Expression"
    operator: str
    right: "Expression"


class Every(NamedTuple):
    """Operands with ``&&`` between them."""

    column: int
    operands: "tuple[Expression, ...]"


class Either(NamedTuple):
    """Operands with ``||`` between them."""

    column: int
    operands: "tuple[Expression, ...]"


class Branch(NamedTuple):
    """A condition, and the expression that counts where it is the first that holds."""

    condition: "Expression"
    result: "Expression"


class Conditional(NamedTuple):
    """``a ? b : c ? d : e``: the branches, and the expression that counts where no condition holds."""

    column: int
    branches: tuple[Branch, ...]
    otherwise: "Expression"


Expression: TypeAlias = (
    Literal | ListLiteral | Root | FunctionCall | Postfix | Prefixed | Sum | Comparison | Every | Either | Conditional
)
"""A part that has a value."""


def children(expression: Expression) -> Iterator[Expression]:
    """The expressions directly within *expression*, from left to right."""
    match expression:
        case ListLiteral(_, items):
            yield from items
        case FunctionCall(_, _, arguments):
            yield from arguments
        case Postfix(_, operand, accessors):
            yield operand
            for accessor in accessors:
                if isinstance(accessor, MethodCall):
                    yield from accessor.arguments
                elif isinstance(accessor, Index):
                    yield accessor.key
        case Prefixed(_, _, operand):
            yield operand
        case Sum(_, first, terms):
            yield first
            yield from (term.operand for term in terms)
        case Comparison(_, left, _, right):
            yield from (left, right)
        case Every(_, operands) | Either(_, operands):
            yield from operands
        case Conditional(_, branches, otherwise):
            for branch in branches:
                yield from branch
            yield otherwise
