"""The values that templates give."""

from collections.abc import Mapping

from services.actions.templates.errors import OperationError, TemplateError
from services.actions.templates.evaluation import evaluate
from services.actions.templates.nodes import Expression
from services.actions.templates.template import Template, parse_template
from services.actions.templates.values import Value, check_length, joined, text_of, utf8


def render(value: Value, parameters: Mapping[str, Value]) -> Value:
    """
    Replace each text in *value*, in lists and maps too, by what it gives as a template. Keys of maps stay as they are.

    It is a function of its arguments alone.

    Args:
        value: What is rendered; it is not changed.
        parameters: The values of the roots of expressions; one that is not there is missing.

    Raises:
        TemplateError: A text has no value; the pointer of the error is its place in *value*.
    """
    if isinstance(value, str):
        return render_template(parse_template(value), parameters)
    if isinstance(value, dict):
        return {key: _rendered_item(key, item, parameters) for key, item in value.items()}
    if isinstance(value, list):
        return [_rendered_item(place, item, parameters) for place, item in enumerate(value)]
    return value


def _rendered_item(place: str | int, item: Value, parameters: Mapping[str, Value]) -> Value:
    try:
        return render(item, parameters)
    except TemplateError as error:
        raise error.at((place, *error.pointer)) from None


def render_template(template: Template, parameters: Mapping[str, Value]) -> Value:
    """
    What *template* gives: the value of its expression if it is nothing else, otherwise a text.

    Raises:
        TemplateError: It has no value.
    """
    if template.is_single_expression:
        (part,) = template.expressions
        return evaluate(part, parameters)
    texts = [part if isinstance(part, str) else _text(part, parameters) for part in template.parts]
    try:
        text = joined("", texts)
        check_length(len(utf8(text)))
    except OperationError as error:
        raise TemplateError(error.code, 1, error.text) from None
    return text


def _text(expression: Expression, parameters: Mapping[str, Value]) -> str:
    value = evaluate(expression, parameters)
    try:
        return text_of(value)
    except OperationError as error:
        raise TemplateError(error.code, expression.column, error.text) from None
