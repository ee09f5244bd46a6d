"""The values of expressions: JSON values with integers of 64 bits. Nothing is converted by itself."""

import base64
import binascii
import json
import math
import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import orjson

from services.actions.templates.errors import OperationError, TemplateCode
from services.kinds.format.canonical import canonical_text

Value: TypeAlias = bool | int | float | str | list[Any] | dict[str, Any] | None
"""A JSON value. Values are never changed in place."""

LARGEST_INTEGER = 2**63 - 1
_SMALLEST_INTEGER = -(2**63)
_INTEGER_DIGITS = 19

MAX_TEXT_BYTES = 1 << 20
"""Size of a text that an expression or a template gives, in UTF-8."""

MAX_LIST_LENGTH = 1 << 20
"""Number of elements of a list that an expression gives."""

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?", re.ASCII)
_INTEGER = re.compile(r"(-?)0*([0-9]+)", re.ASCII)


def type_name(value: Value) -> str:
    """The word for the type of *value*."""
    match value:
        case None:
            return "null"
        case bool():
            return "a bool"
        case int():
            return "an int"
        case float():
            return "a double"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "a map"


def is_number(value: Value) -> bool:
    """Whether *value* is an int or a double."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_integer(value: Value) -> bool:
    """Whether *value* is an int."""
    return isinstance(value, int) and not isinstance(value, bool)


def mismatch(expected: str, value: Value) -> OperationError:
    """The error for a *value* of another type than the *expected* one."""
    return OperationError(TemplateCode.TYPE, f"needs {expected}, and this is {type_name(value)}")


def text_of(value: Value) -> str:
    """
    *value* as it stands in a text.

    Raises:
        OperationError: It is null, a list or a map.
    """
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return orjson.dumps(value).decode()
        case None:
            raise OperationError(TemplateCode.TYPE, "null is no text; write default(…) with a text instead")
        case _:
            reason = f"{type_name(value)} is no text; write json(…), or join for a list of texts"
            raise OperationError(TemplateCode.TYPE, reason)


def equal(left: Value, right: Value) -> bool:
    """Whether two values are equal: numbers by value, a bool never to a number, lists and maps deeply."""
    pairs = [(left, right)]
    while pairs:
        one, other = pairs.pop()
        if isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                return False
            pairs += zip(one, other, strict=True)
        elif isinstance(one, dict) and isinstance(other, dict):
            if one.keys() != other.keys():
                return False
            pairs += ((one[key], other[key]) for key in one)
        elif isinstance(one, bool) != isinstance(other, bool) or one != other:
            return False
    return True


def in_order(left: Value, operator: str, right: Value) -> bool:
    """
    Compare two numbers by value, or two texts by code point.

    Args:
        left: The left operand.
        operator: ``<``, ``<=``, ``>`` or ``>=``.
        right: The right operand.

    Raises:
        OperationError: They are neither two numbers nor two texts.
    """
    if not (is_number(left) and is_number(right)) and not (isinstance(left, str) and isinstance(right, str)):
        reason = f"{operator} compares two numbers or two texts, and these are {type_name(left)} and {type_name(right)}"
        raise OperationError(TemplateCode.TYPE, reason)
    less, same = left < right, left == right  # type: ignore[operator]
    return {"<": less, "<=": less or same, ">": not less and not same, ">=": not less}[operator]


def contains(container: Value, item: Value) -> bool:
    """
    Whether *item* is an element of a list, or a key of a map.

    Raises:
        OperationError: *container* is neither, or the key of a map is no text.
    """
    if isinstance(container, list):
        return any(equal(item, each) for each in container)
    if not isinstance(container, dict):
        raise mismatch("a list or a map on its right side", container)
    if not isinstance(item, str):
        raise mismatch("a text for the key of a map", item)
    return item in container


def total(values: Sequence[Value], operators: str) -> Value:
    """
    Add and subtract *values* from left to right.

    Args:
        values: Two or more.
        operators: ``+`` or ``-``, one between each two values.

    Raises:
        OperationError: They are not all ints, all doubles, all texts, or all lists; texts or lists are subtracted; the
            result is out of range or too long.
    """
    for operator, right in zip(operators, values[1:], strict=True):
        _check_operands(values[0], operator, right)
    first = values[0]
    if isinstance(first, str):
        return joined("", values)
    if isinstance(first, list):
        return _concatenated(values)
    result = first
    for operator, right in zip(operators, values[1:], strict=True):
        result = checked_number(result + right if operator == "+" else result - right)  # type: ignore[operator]
    return result


def _check_operands(left: Value, operator: str, right: Value) -> None:
    same = type(left) is type(right)
    if not same or isinstance(left, bool | dict | None) or (operator == "-" and not is_number(left)):
        choices = "two ints, two doubles, two texts or two lists" if operator == "+" else "two ints or two doubles"
        reason = f"{operator} needs {choices}, and these are {type_name(left)} and {type_name(right)}"
        raise OperationError(TemplateCode.TYPE, reason)


def _concatenated(lists: Sequence[Any]) -> Value:
    if sum(map(len, lists)) > MAX_LIST_LENGTH:
        raise OperationError(TemplateCode.LIMIT, f"the list has more than {MAX_LIST_LENGTH:,} elements")
    return [item for each in lists for item in each]


def joined(separator: str, texts: Sequence[Any]) -> str:
    """
    Join *texts*.

    Raises:
        OperationError: The result is too long; it is not made then.
    """
    check_length(sum(map(len, texts)) + len(separator) * max(len(texts) - 1, 0))
    return separator.join(texts)


def check_length(length: int) -> None:
    """
    Check the number of characters that a text will have, or of bytes that it has.

    Raises:
        OperationError: It is more than texts may have.
    """
    if length > MAX_TEXT_BYTES:
        raise OperationError(TemplateCode.LIMIT, f"the text has more than {MAX_TEXT_BYTES:,} bytes")


def checked_number(value: int | float) -> int | float:
    """
    Return *value*.

    Raises:
        OperationError: It is an int beyond 64 bits, or a double that is not finite.
    """
    fits = math.isfinite(value) if isinstance(value, float) else _SMALLEST_INTEGER <= value <= LARGEST_INTEGER
    if not fits:
        raise OperationError(TemplateCode.RANGE, "the number does not fit into 64 bits")
    return value


def negated(value: Value) -> int | float:
    """
    The negative of a number.

    Raises:
        OperationError: It is no number, or has no negative within 64 bits.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return checked_number(-value)
    raise mismatch("a number behind -", value)


def integer_of(value: Value) -> int:
    """
    The int of an int, of a double (towards zero), or of a text with decimal digits.

    Raises:
        OperationError: It is of another type, is no integer, or does not fit into 64 bits.
    """
    if isinstance(value, str):
        match = _INTEGER.fullmatch(value)
        if match is None:
            raise OperationError(TemplateCode.VALUE, "the text is no integer such as 12 or -3")
        # A longer one is not converted: that takes time with the square of its length.
        digits = match[2] if len(match[2]) <= _INTEGER_DIGITS else "9" * (_INTEGER_DIGITS + 1)
        return int(checked_number(int(match[1] + digits)))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return int(checked_number(int(checked_number(value))))
    raise mismatch("a number or a text", value)


def double_of(value: Value) -> float:
    """
    The double of a number or of a text.

    Raises:
        OperationError: It is of another type, is no number, or is beyond 64 bits.
    """
    if isinstance(value, str):
        if _NUMBER.fullmatch(value) is None:
            raise OperationError(TemplateCode.VALUE, "the text is no number such as 12, -0.5 or 1e3")
        return float(checked_number(float(value)))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise mismatch("a number or a text", value)


def json_text(value: Value) -> str:
    """
    *value* as canonical JSON.

    Raises:
        OperationError: It is too long, or nested too deeply.
    """
    try:
        text = canonical_text(value)
    except TypeError:
        raise OperationError(TemplateCode.LIMIT, "the value is nested too deeply for JSON") from None
    check_length(len(text))
    return text


def parsed_json(text: str) -> Value:
    """
    The value of a JSON text.

    Raises:
        OperationError: It is no JSON, is nested some hundred levels deep, or has a number beyond 64 bits.
    """
    try:
        value: Value = json.loads(text, parse_int=integer_of, parse_float=double_of, parse_constant=_refused_constant)
    except OperationError:
        raise
    except (ValueError, RecursionError):
        raise OperationError(TemplateCode.VALUE, "the text is no JSON") from None
    return value


def _refused_constant(name: str) -> Value:
    """JSON has no ``NaN`` and no ``Infinity``, which Python reads."""
    raise OperationError(TemplateCode.VALUE, f"the text is no JSON: {name} is no number")


def utf8(text: str) -> bytes:
    """
    *text* in UTF-8.

    Raises:
        OperationError: It has half of a surrogate pair.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise OperationError(TemplateCode.VALUE, "the text has half of a surrogate pair") from None


def decoded_base64(text: str) -> str:
    """
    The text whose base64 *text* is, in the standard alphabet, with padding.

    Raises:
        OperationError: It is no base64, or not of a text in UTF-8.
    """
    try:
        return base64.b64decode(utf8(text), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise OperationError(TemplateCode.VALUE, "the text is no base64 of a text in UTF-8") from None
