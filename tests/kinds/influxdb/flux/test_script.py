"""Statements and option records of Flux scripts (docs/reference/package-format.md, "Queries")."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.kinds.influxdb.flux.script import RecordLiteral, first_options, read_statements
from tests.kinds.influxdb.flux.scripts import fragments


def statements(text: str) -> list[str]:
    return [text[statement.start : statement.end] for statement in read_statements(text)]


def record(text: str) -> RecordLiteral | None:
    """The record of the first ``option params`` of *text*."""
    found = first_options(read_statements(text), ("params",)).get("params")
    return found.record if found else None


def keys(text: str) -> list[str]:
    found = record(text)
    assert found is not None
    return [entry.key for entry in found.properties]


@pytest.mark.parametrize(
    "script",
    [
        ["package x", 'import "a"', 'import b "c"', "x = 1", "y = x + 1", "from()"],
        ["a", "b", "1", '"s"', "{c: 1}"],
        ["x = f(a: 1)[0].b |> g()", "y = - 1 / 2", "z = not a and b or c"],
        ["x = if a then b else c", "exists r.x", "y = (r) => { return r }", "z = (r) => r.a =~ /b/"],
        ['x = "a${b}c"', '"d${e}"'],
        ["option a = 1", "option b.c = 2", "option d = {e: 1}", "builtin f : int"],
        ["x = 1", ";", "y = 2", '"not closed'],
        [],
    ],
)
@pytest.mark.parametrize("between", ["\n", " ", " // option params = {}\n"])
def test_a_statement_ends_where_its_expression_is_complete_and_cannot_continue(script: list[str], between: str) -> None:
    assert statements(between.join(script)) == script


def test_a_statement_continues_across_comments_and_empty_lines() -> None:
    text = "option params = {a: 1}\n\n  // c\n.b\n(c)\n[d]\n|> e()"
    assert statements(text) == [text]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("option params = {}", []),
        ("option params={a:1,b:2}", ["a", "b"]),
        ("option params = {a: 1, b: 2,}", ["a", "b"]),
        ("option params = {,a: 1,, b: 2}", ["a", "b"]),
        ("option params = {a, b}", ["a", "b"]),
        ('option params = {"a": 1, b: 2}', ["a", "b"]),
        ("option params = {v with a: 1}", ["a"]),
        ("option params = {with: 1}", ["with"]),
        ("option params = {größe: 1}", ["größe"]),
        ("option params = {a: {b: 1, c: 2}, d: f(e: 1, g: [1, 2]), h: (r) => ({i: r, j: 1})}", ["a", "d", "h"]),
        ('option params = {a: "}", b: "${f(x: {c: 1, d: 2})}", e: /},/}', ["a", "b", "e"]),
        ("option params = {a: 1, // b: 2,\n// }\nc: 3}", ["a", "c"]),
        ("option // c\nparams // c\n= // c\n{a: 1}", ["a"]),
        ("option params = {option: 1, 2: 3, a b: 4, c: 5}", ["", "", "", "c"]),
        ("option params = {a: , b: 1}", ["a", "b"]),
        ("\ufeffoption params = {a: 1}", ["a"]),
        ('package x\r\nimport "y"\r\noption params = {a: 1}\r\n', ["a"]),
        ("x = 1 option params = {a: 1} y = 2", ["a"]),
        ("option params = {a: 1};", ["a"]),
        ("x = 1; option params = {a: 1}", ["a"]),
        ('@feature("x")\noption params = {a: 1}', ["a"]),
        ("option params = {a: 1} option params = {b: 1}", ["a"]),
    ],
)
def test_the_properties_of_the_record_are_found(text: str, names: list[str]) -> None:
    assert keys(text) == names


@pytest.mark.parametrize(
    "text",
    [
        "",
        "option params",
        "option params =",
        "params = {a: 1}",
        "option v.params = {a: 1}",
        "option parameters = {a: 1}",
        "option params = 5",
        "option params = (a: 1)",
        "option params = {a: 1}.a",
        "option params = {a: 1} |> f()",
        "option params = {a: 1} == b",
        "option params = f({a: 1})",
        "option params = ({a: 1})",
        "option params = {a: 1",
        "option params = {a: {b: 1}",
        "option params = {a: 1)",
        "option params = (r) => {a: 1}",
        "// option params = {a: 1}",
        '"option params = {a: 1}"',
        "x =~ /option params = {a: 1}/",
        "f = () => { option params = {a: 1} }",
        '"${option params = {a: 1}}"',
        "x = option params = {a: 1}",
        "x.option params = {a: 1}",
        "option params = 5 option params = {a: 1}",
    ],
)
def test_nothing_else_is_the_record_of_the_option(text: str) -> None:
    assert record(text) is None


def test_a_property_has_its_offsets() -> None:
    text = 'option params = {v with a: - 1d, "b": f(x: 1), c}'
    found = record(text)
    assert found is not None
    assert text[: found.body_start].endswith("{v with")
    assert (found.base, found.commented) == ("v", False)
    assert [
        (text[entry.start : entry.key_end], entry.quoted, entry.value_start and text[entry.value_start : entry.end])
        for entry in found.properties
    ] == [("a", False, "- 1d"), ('"b"', True, "f(x: 1)"), ("c", False, None)]


@pytest.mark.parametrize(
    ("text", "commented"),
    [
        ("option params = {a: 1}", False),
        ("// c\noption params = {a: 1} // c\n// c", False),
        ("option params = { // c\na: 1}", True),
        ("option params = {a: f(// c\n)}", True),
        ("option params // c\n= {a: 1}", True),
    ],
)
def test_only_comments_inside_the_statement_count(text: str, commented: bool) -> None:
    found = record(text)
    assert found is not None
    assert found.commented is commented


def test_nested_values_may_be_as_deep_as_the_text_is_long() -> None:
    assert keys("option params = {a: " + "[{b: " * 10_000 + "1" + "}]" * 10_000 + ", c: 1}") == ["a", "c"]


@given(st.text() | fragments)
def test_any_text_has_statements_in_order_that_do_not_overlap(text: str) -> None:
    end = 0
    for statement in read_statements(text):
        assert end <= statement.start < statement.end <= len(text)
        end = statement.end


@given(fragments)
def test_a_record_is_found_before_any_text(text: str) -> None:
    assert read_statements(f"option params = {{a: 1}}\n{text}")[0].option == "params"
