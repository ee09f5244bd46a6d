"""The grammar of expressions, read by descent (docs/templates.md, "Grammar")."""

from collections.abc import Sequence

from services.actions.templates.errors import TemplateCode, TemplateError
from services.actions.templates.nodes import (
    Branch,
    Comparison,
    Conditional,
    Either,
    Every,
    Expression,
    FunctionCall,
    Index,
    ListLiteral,
    Literal,
    Member,
    MethodCall,
    Postfix,
    Prefixed,
    Root,
    Sum,
    Term,
)
from services.actions.templates.tokens import Token, TokenType

MAX_NESTING = 32
"""Number of brackets, and of results of conditions, that may stand in each other."""

_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})


def parse_expression(tokens: Sequence[Token]) -> Expression:
    """
    Read an expression.

    Args:
        tokens: Its tokens, of which the last one is the end.

    Raises:
        TemplateError: They do not fit the grammar (``SYNTAX``), or are nested too deeply (``LIMIT``).
    """
    return _Reader(tokens).whole()


class _Reader:
    """Reads tokens from left to right; each method reads what it is named after, as far as that goes."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._place = 0
        self._nesting = 0

    def whole(self) -> Expression:
        expression = self._expression()
        if self._next.type is not TokenType.END:
            raise self._problem("an operator or the end of the expression")
        return expression

    @property
    def _next(self) -> Token:
        return self._tokens[self._place]

    def _take(self, *symbols: str) -> Token | None:
        """The next token if it is one of *symbols*, which is read then."""
        token = self._next
        if token.type is not TokenType.SYMBOL or token.text not in symbols:
            return None
        self._place += 1
        return token

    def _expect(self, symbol: str) -> None:
        if self._take(symbol) is None:
            raise self._problem(repr(symbol))

    def _problem(self, expected: str) -> TemplateError:
        token = self._next
        text = "the end" if token.type is TokenType.END else repr(token.text[:20])
        return TemplateError(TemplateCode.SYNTAX, token.column, f"expected {expected}, and {text} stands here")

    def _nested(self) -> Expression:
        """An expression within another one."""
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            reason = f"the expression is nested more than {MAX_NESTING} levels deep"
            raise TemplateError(TemplateCode.LIMIT, self._next.column, reason)
        expression = self._expression()
        self._nesting -= 1
        return expression

    def _expression(self) -> Expression:
        column = self._next.column
        branches = []
        while True:
            expression = self._either()
            if self._take("?") is None:
                break
            result = self._nested()
            self._expect(":")
            branches.append(Branch(expression, result))
        return Conditional(column, tuple(branches), expression) if branches else expression

    def _either(self) -> Expression:
        column, operands = self._next.column, [self._every()]
        while self._take("||"):
            operands.append(self._every())
        return Either(column, tuple(operands)) if operands[1:] else operands[0]

    def _every(self) -> Expression:
        column, operands = self._next.column, [self._comparison()]
        while self._take("&&"):
            operands.append(self._comparison())
        return Every(column, tuple(operands)) if operands[1:] else operands[0]

    def _comparison(self) -> Expression:
        left = self._sum()
        operator = self._comparison_operator()
        if operator is None:
            return left
        comparison = Comparison(operator.column, left, operator.text, self._sum())
        if self._comparison_operator():
            self._place -= 1
            raise self._problem("&& or || between two comparisons")
        return comparison

    def _comparison_operator(self) -> Token | None:
        token = self._next
        is_in = token.type is TokenType.NAME and token.text == "in"
        if not is_in and (token.type is not TokenType.SYMBOL or token.text not in _COMPARISONS):
            return None
        self._place += 1
        return token

    def _sum(self) -> Expression:
        first = self._prefixed()
        terms = []
        while operator := self._take("+", "-"):
            terms.append(Term(operator.column, operator.text, self._prefixed()))
        return Sum(terms[0].column, first, tuple(terms)) if terms else first

    def _prefixed(self) -> Expression:
        column, operators = self._next.column, ""
        while operator := self._take("!", "-"):
            operators += operator.text
        operand = self._postfix()
        return Prefixed(column, operators, operand) if operators else operand

    def _postfix(self) -> Expression:
        operand = self._primary()
        accessors: list[Member | Index | MethodCall] = []
        while token := self._take(".", "["):
            accessors.append(self._member() if token.text == "." else self._index(token))
        return Postfix(operand.column, operand, tuple(accessors)) if accessors else operand

    def _member(self) -> Member | MethodCall:
        token = self._next
        if token.type is not TokenType.NAME:
            raise self._problem("a name")
        self._place += 1
        if self._take("("):
            return MethodCall(token.column, token.text, self._list(")"))
        return Member(token.column, token.text)

    def _index(self, bracket: Token) -> Index:
        key = self._nested()
        self._expect("]")
        return Index(bracket.column, key)

    def _primary(self) -> Expression:
        token = self._next
        if token.type is TokenType.LITERAL:
            self._place += 1
            return Literal(token.column, token.value)
        if token.type is TokenType.NAME and token.text != "in":
            self._place += 1
            if self._take("("):
                return FunctionCall(token.column, token.text, self._list(")"))
            return Root(token.column, token.text)
        if self._take("("):
            expression = self._nested()
            self._expect(")")
            return expression
        if self._take("["):
            return ListLiteral(token.column, self._list("]"))
        raise self._problem("a value")

    def _list(self, closing: str) -> tuple[Expression, ...]:
        """Expressions with commas between them, up to the *closing* bracket."""
        if self._take(closing):
            return ()
        items = [self._nested()]
        while self._take(","):
            items.append(self._nested())
        self._expect(closing)
        return tuple(items)
