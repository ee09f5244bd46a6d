"""What can be wrong with a template."""

from enum import StrEnum


class TemplateCode(StrEnum):
    """
    Kinds of template errors.

    The first three are found when a template is read, ``LIMIT`` and the others when it is rendered.
    """

    SYNTAX = "syntax"
    """Does not fit the grammar."""

    NAME = "name"
    """Names an unknown root, function or method, has the wrong number of arguments, or no path where one is due."""

    LIMIT = "limit"
    """Is too long or nested too deeply, or gives a text that is too long."""

    MISSING = "missing"
    """Reads a key, an element or a root that is not there."""

    TYPE = "type"
    """Is applied to a value of the wrong type."""

    VALUE = "value"
    """Is applied to a text that is no number, time, JSON or base64, or to a position that is not there."""

    RANGE = "range"
    """Gives a number that does not fit into 64 bits."""


class TemplateError(ValueError):
    """
    A template cannot be read or rendered.

    Attributes:
        code: What kind of error it is.
        column: Where in the text the error is, in characters from 1.
        text: What is wrong, without the place. It contains no value of a parameter.
        pointer: The place of the text in the rendered value, keys and positions from outside in.
    """

    def __init__(self, code: TemplateCode, column: int, text: str, pointer: tuple[str | int, ...] = ()) -> None:
        super().__init__(f"column {column}: {text}")
        self.code = code
        self.column = column
        self.text = text
        self.pointer = pointer

    def at(self, pointer: tuple[str | int, ...]) -> "TemplateError":
        """The same error with the place of its text."""
        return TemplateError(self.code, self.column, self.text, pointer)


class OperationError(ValueError):
    """
    An operator, function or method cannot be applied to its operands.

    Attributes:
        code: What kind of error it is.
        text: What is wrong.
    """

    def __init__(self, code: TemplateCode, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
