"""Laws of templates."""

import string
import sys
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.actions.templates.errors import TemplateCode, TemplateError
from services.actions.templates.functions import FUNCTIONS, METHODS
from services.actions.templates.references import references
from services.actions.templates.rendering import render
from services.actions.templates.template import parse_template

scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    scalars | st.text(max_size=8),
    lambda items: st.lists(items, max_size=3) | st.dictionaries(st.sampled_from("abc"), items, max_size=3),
    max_leaves=8,
)
parameters = st.fixed_dictionaries({}, optional=dict.fromkeys(("options", "phases", "time", "item"), values))

_WORDS = [
    *"()[],.?:+-!<>'\"\\ \n}{",
    *("{{", "}}", "||", "&&", "==", "!=", "<=", ">=", "in", "true", "false", "null", "0", "1.5", "1e400", "''", "'a'"),
    *("options", "phases.a", "item", "time", "options['b']", "default(options.a, ", "has(item.b)", "nope", "\\u00e9"),
    *(f"{name}(" for name in FUNCTIONS),
    *(f".{name}(" for name in METHODS),
]
fragments = st.lists(st.sampled_from(_WORDS) | st.text(string.printable, max_size=3), max_size=24).map("".join)


def _sums(left: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["+", "-", "==", "<", "in", "&&", "||"])
    functions = st.sampled_from(
        sorted(name for name, function in FUNCTIONS.items() if function.apply and function.most == 1)
    )
    return (
        st.tuples(left, operators, left).map(lambda parts: f"({' '.join(parts)})")
        | st.tuples(left, left, left).map(lambda parts: f"({parts[0]} ? {parts[1]} : {parts[2]})")
        | st.tuples(functions, left).map(lambda parts: f"{parts[0]}({parts[1]})")
        | left.map(lambda text: f"!{text}")
        | st.tuples(left, left).map(lambda parts: f"[{', '.join(parts)}]")
        | left.map(lambda text: f"default(options.a, {text})")
    )


expressions = st.recursive(
    st.sampled_from(["1", "2.5", "true", "null", "'a'", "options", "options.a", "item['b']", "phases.a.b", "time"]),
    _sums,
    max_leaves=12,
)


def _error(text: str, roots: Any) -> TemplateError | None:
    """The error of rendering *text*, if there is one; anything else that is raised is a fault."""
    try:
        render(text, roots)
    except TemplateError as error:
        return error
    return None


@given(text=fragments | st.text(max_size=40), roots=parameters)
def test_rendering_any_text_raises_nothing_but_template_errors(text: str, roots: Any) -> None:
    for template in (text, f"{{{{ {text} }}}}"):
        error = _error(template, roots)
        assert error is None or 1 <= error.column <= len(template) + 1


@given(expression=expressions, roots=parameters)
def test_rendering_is_a_function_of_its_arguments(expression: str, roots: Any) -> None:
    before = deepcopy(roots)

    def outcome() -> str:
        try:
            return repr(render(f"{{{{ {expression} }}}}", roots))
        except TemplateError as error:
            return repr((error.code, error.column, error.text))

    assert outcome() == outcome()
    assert roots == before


@given(expression=expressions)
def test_what_was_read_ends_with_no_error_of_reading(expression: str) -> None:
    """It also reads no parameter that its references do not name."""
    text = f"{{{{ {expression} }}}}"
    read = {reference.root for reference in references(parse_template(text))}
    error = _error(text, {root: {} for root in read})
    if error:
        assert error.code not in (TemplateCode.SYNTAX, TemplateCode.NAME)
        assert not error.text.endswith(" here")


def _calls(action: Callable[[], object]) -> int:
    """The number of calls of Python functions that *action* makes."""
    count = 0

    def on_event(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(on_event)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


SHAPES: dict[str, Callable[[int], str]] = {
    "sum": lambda size: "{{ " + "+".join(["1"] * size) + " }}",
    "texts": lambda size: "{{ " + "+".join(["'a'"] * size) + " }}",
    "lists": lambda size: "{{ " + "+".join(["[1]"] * size) + " }}",
    "prefixes": lambda size: "{{ " + "!" * size + "true }}",
    "conditions": lambda size: "{{ " + "false?1:" * size + "2 }}",
    "and": lambda size: "{{ " + "&&".join(["true"] * size) + " }}",
    "members": lambda size: "{{ default(item" + ".a" * size + ", 1) }}",
    "methods": lambda size: "{{ 'x'" + ".trim()" * size + " }}",
    "arguments": lambda size: "{{ [" + ",".join(["1"] * size) + "] }}",
    "expressions": lambda size: "{{ 1 }}" * size,
    "names": lambda size: "{{ " + "+".join(["nope"] * size) + " }}",
    "open": lambda size: "{{ " + "(" * size,
    "brackets": lambda size: "{{ " + ("(" * 30 + "1" + ")" * 30 + "+") * (size // 30) + "1 }}",
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_steps_are_linear_in_the_size_of_a_template(shape: Callable[[int], str]) -> None:
    def steps(size: int) -> int:
        def action() -> None:
            with suppress(TemplateError):
                render(shape(size), {"item": {}})

        return _calls(action)

    steps(60)
    assert steps(480) <= 8.5 * steps(60)
