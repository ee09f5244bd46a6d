"""The value of an expression."""

from collections.abc import Mapping
from typing import Any

from services.actions.templates.errors import OperationError, TemplateCode, TemplateError
from services.actions.templates.functions import DEFAULT, FUNCTIONS, HAS, METHODS, apply
from services.actions.templates.nodes import (
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
)
from services.actions.templates.values import (
    Value,
    contains,
    equal,
    in_order,
    is_integer,
    mismatch,
    negated,
    total,
    type_name,
)


def evaluate(expression: Expression, parameters: Mapping[str, Value]) -> Value:
    """
    The value of *expression*.

    Args:
        expression: What is evaluated; what does not count, such as the other side of ``false &&``, is not.
        parameters: The values of the roots.

    Raises:
        TemplateError: It has no value.
    """
    match expression:
        case Literal(_, value):
            return value
        case Root(column, name):
            if name not in parameters:
                raise TemplateError(TemplateCode.MISSING, column, f"there is no {name} here")
            return parameters[name]
        case Postfix():
            return _accessed(expression, parameters)
        case FunctionCall():
            return _called(expression, parameters)
        case ListLiteral(_, items):
            return [evaluate(item, parameters) for item in items]
        case Sum():
            return _total(expression, parameters)
        case Comparison():
            return _compared(expression, parameters)
        case Prefixed():
            return _prefixed(expression, parameters)
        case Every(_, operands):
            return all(_truth(operand, parameters) for operand in operands)
        case Either(_, operands):
            return any(_truth(operand, parameters) for operand in operands)
        case Conditional(_, branches, otherwise):
            for branch in branches:
                if _truth(branch.condition, parameters):
                    return evaluate(branch.result, parameters)
            return evaluate(otherwise, parameters)


def _truth(expression: Expression, parameters: Mapping[str, Value]) -> bool:
    value = evaluate(expression, parameters)
    if isinstance(value, bool):
        return value
    raise _at(expression.column, mismatch("a bool", value))


def _at(column: int, error: OperationError) -> TemplateError:
    return TemplateError(error.code, column, error.text)


def _accessed(expression: Postfix, parameters: Mapping[str, Value]) -> Value:
    value = evaluate(expression.operand, parameters)
    for accessor in expression.accessors:
        if isinstance(accessor, MethodCall):
            arguments = [evaluate(argument, parameters) for argument in accessor.arguments]
            try:
                value = apply(METHODS[accessor.name], [value, *arguments])
            except OperationError as error:
                raise _at(accessor.column, error) from None
        else:
            value = _member(value, accessor, _key(accessor, parameters))
    return value


def _key(accessor: Member | Index, parameters: Mapping[str, Value]) -> Value:
    return accessor.name if isinstance(accessor, Member) else evaluate(accessor.key, parameters)


def _member(value: Any, accessor: Member | Index, key: Any) -> Any:
    """
    The member of *value* at *key*.

    Raises:
        TemplateError: There is none (``MISSING``), or there cannot be one (``TYPE``).
    """
    if value is None:
        raise TemplateError(TemplateCode.MISSING, accessor.column, "what stands before is null, and has no members")
    if isinstance(value, dict) and isinstance(key, str):
        if key not in value:
            raise TemplateError(TemplateCode.MISSING, accessor.column, f"there is no {_shown_key(accessor, 'key')}")
        return value[key]
    if isinstance(value, list) and is_integer(key):
        if not 0 <= key < len(value):
            reason = f"there is no {_shown_key(accessor, 'element')}; the list has {len(value)}, counted from 0"
            raise TemplateError(TemplateCode.MISSING, accessor.column, reason)
        return value[key]
    if isinstance(value, list | dict):
        choice = "an int between the brackets of a list" if isinstance(value, list) else "a text as the key of a map"
        raise _at(accessor.column, mismatch(choice, key))
    raise TemplateError(TemplateCode.TYPE, accessor.column, f"{type_name(value)} has no members")


def _shown_key(accessor: Member | Index, noun: str) -> str:
    """The key of a member as written; one that is computed is not shown, as it may be a secret."""
    key = accessor.name if isinstance(accessor, Member) else accessor.key
    literal = key.value if isinstance(key, Literal) else key
    if isinstance(literal, str):
        return repr(literal[:60])
    return f"{noun} {literal}" if isinstance(literal, int) else f"such {noun}"


def _called(call: FunctionCall, parameters: Mapping[str, Value]) -> Value:
    if call.name in (DEFAULT, HAS):
        value, is_there = _guarded(call.arguments[0], parameters)
        if call.name == HAS:
            return is_there
        return evaluate(call.arguments[1], parameters) if value is None else value
    arguments = [evaluate(argument, parameters) for argument in call.arguments]
    try:
        return apply(FUNCTIONS[call.name], arguments)
    except OperationError as error:
        raise _at(call.column, error) from None


def _guarded(path: Expression, parameters: Mapping[str, Value]) -> tuple[Value, bool]:
    """The value at a path and whether it is there; keys are evaluated first, as only the path itself may be missing."""
    assert isinstance(path, Postfix)  # noqa: S101 - a template with anything else is not read
    keys = [(each, _key(each, parameters)) for each in path.accessors if not isinstance(each, MethodCall)]
    try:
        value = evaluate(path.operand, parameters)
        for accessor, key in keys:
            value = _member(value, accessor, key)
    except TemplateError as error:
        if error.code is not TemplateCode.MISSING:
            raise
        return None, False
    return value, True


def _total(expression: Sum, parameters: Mapping[str, Value]) -> Value:
    operands = [expression.first, *(term.operand for term in expression.terms)]
    values = [evaluate(operand, parameters) for operand in operands]
    try:
        return total(values, "".join(term.operator for term in expression.terms))
    except OperationError as error:
        raise _at(expression.column, error) from None


def _compared(expression: Comparison, parameters: Mapping[str, Value]) -> bool:
    left, right = evaluate(expression.left, parameters), evaluate(expression.right, parameters)
    try:
        match expression.operator:
            case "==":
                return equal(left, right)
            case "!=":
                return not equal(left, right)
            case "in":
                return contains(right, left)
            case operator:
                return in_order(left, operator, right)
    except OperationError as error:
        raise _at(expression.column, error) from None


def _prefixed(expression: Prefixed, parameters: Mapping[str, Value]) -> Value:
    value = evaluate(expression.operand, parameters)
    try:
        for operator in reversed(expression.operators):
            value = negated(value) if operator == "-" else _not(value)
    except OperationError as error:
        raise _at(expression.column, error) from None
    return value


def _not(value: Value) -> bool:
    if isinstance(value, bool):
        return not value
    raise mismatch("a bool behind !", value)
