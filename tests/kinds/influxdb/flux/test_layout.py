"""Scripts with new values in their option records (docs/reference/package-format.md, "Parameter values")."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.kinds.influxdb.flux.layout import rewritten
from services.kinds.influxdb.flux.scanner import TokenKind, scan
from services.kinds.influxdb.flux.script import Statement, first_options, read_statements
from tests.kinds.influxdb.flux.scripts import scripts

NAMES = ("params", "task")


def written(text: str, **params: str) -> str:
    return rewritten(text, read_statements(text), {"params": params})


@pytest.mark.parametrize(
    ("text", "params", "expected"),
    [
        ("option params={a:1,b:2}", {}, "option params = {a:1, b:2}\n"),
        ("option params = {\n  a: 1,\n  b: 2,\n}", {"b": "3"}, "option params = {a: 1, b: 3}\n"),
        ("option params = {}", {"a": "1", "b": '"x"'}, 'option params = {a: 1, b: "x"}\n'),
        ("option params = {v with a: 1}", {"a": "2"}, "option params = {v with a: 2}\n"),
        ("option params = {a, b: }", {"a": "1", "b": "2"}, "option params = {a: 1, b: 2}\n"),
        ('option params = {"a": 1}', {"a": "2", "b": "3"}, 'option params = {"a": 1, b: 3}\n'),
        ("option params = {a: 1, a: 2}", {"a": "3"}, "option params = {a: 3, a: 3}\n"),
        ("option params = {,a: 1,,}", {}, "option params = {a: 1}\n"),
        ("option params = {a: 1}", {"my key": "2", "if": "3"}, 'option params = {a: 1, "my key": 2, "if": 3}\n'),
        ("option params = {a: 1}", {'}"${x}': "2"}, 'option params = {a: 1, "}\\"\\${x}": 2}\n'),
        (
            "option params = {a: 1} option params = {a: 1}",
            {"a": "2"},
            "option params = {a: 2}\n\noption params = {a: 1}\n",
        ),
        ("option params = 5", {"a": "2"}, "option params = 5\n"),
    ],
)
def test_a_short_record_is_one_line(text: str, params: dict[str, str], expected: str) -> None:
    assert written(text, **params) == expected


def test_a_record_of_more_than_four_entries_has_a_line_for_each() -> None:
    four, five = ("option params = {a: 1, b: 2, c: 3, d: 4}", "option params = {a: 1, b: 2, c: 3, d: 4, e: 5}")
    assert written(four) == f"{four}\n"
    assert written(five) == "option params = {\n    a: 1,\n    b: 2,\n    c: 3,\n    d: 4,\n    e: 5,\n}\n"


def test_a_record_that_does_not_fit_in_100_columns_has_a_line_for_each_entry() -> None:
    fits, one_more = (f'option params = {{a: "{"x" * length}"}}' for length in (77, 78))
    assert (len(fits), written(fits)) == (100, f"{fits}\n")
    assert written(one_more) == f'option params = {{\n    a: "{"x" * 78}",\n}}\n'


def test_a_value_of_several_lines_keeps_them() -> None:
    text = "option params = {v with a: 1, f: (r) => {\n  return r\n}}"
    assert written(text, a="2") == "option params = {v with\n    a: 2,\n    f: (r) => {\n  return r\n},\n}\n"


@pytest.mark.parametrize(
    ("text", "params", "expected"),
    [
        (
            "option params = { // first\n  a: 1, // one\n  b: 2 // two\n}",
            {"a": "7", "n": "8"},
            "option params = { // first\n  a: 7, // one\n  b: 2, n: 8 // two\n}\n",
        ),
        ("option params={a:1,// c\nb,}", {"b": "2"}, "option params={a:1,// c\nb: 2,}\n"),
        ("option params = {// c\n}", {"a": "1", "b": "2"}, "option params = { a: 1, b: 2// c\n}\n"),
        ("option params = {v with // c\n}", {"a": "1"}, "option params = {v with a: 1 // c\n}\n"),
        ('option params = {"a": 1, // c\n}', {"a": "2"}, 'option params = {"a": 1, // c\n}\n'),
    ],
)
def test_a_record_with_comments_keeps_its_layout(text: str, params: dict[str, str], expected: str) -> None:
    assert written(text, **params) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("option params = {} from()", "option params = {}\n\nfrom()\n"),
        ("option params = {}\nfrom()\n|> b()", "option params = {}\n\nfrom()\n|> b()\n"),
        ("option params = {}\r\n\r\n\r\nfrom()", "option params = {}\n\nfrom()\n"),
        ("option params = {} // c\n  // d\nfrom()", "option params = {} // c\n\n// d\nfrom()\n"),
        ("option params = {}\n// the end", "option params = {}\n// the end\n"),
        ("option v.a = 1\noption params = {}", "option v.a = 1\n\noption params = {}\n"),
        ('import "a"\nimport b "c"\noption params = {}', 'import "a"\nimport b "c"\n\noption params = {}\n'),
        (
            'package a\nimport "a" // c\nx = 1\noption params = {}',
            'package a\nimport "a" // c\n\nx = 1\noption params = {}\n',
        ),
        ("// c\n\n\noption params = {}", "// c\n\n\noption params = {}\n"),
        ("\ufeffx = 1\n\n\ny = 2\noption params = {}", "\ufeffx = 1\n\n\ny = 2\noption params = {}\n"),
    ],
)
def test_an_empty_line_follows_options_and_imports_and_all_else_stays(text: str, expected: str) -> None:
    assert written(text) == expected


def _outside(text: str, statements: tuple[Statement, ...]) -> list[str]:
    """The tokens of *text* that are in no option record, and the comments."""
    records = [found for found in first_options(statements, NAMES).values() if found.record]
    return [
        token.text.strip()
        for token in scan(text)
        if token.kind is TokenKind.COMMENT or not any(found.start <= token.start < found.end for found in records)
    ]


@given(scripts, st.dictionaries(st.sampled_from(["a", "b", "new", "my key"]), st.sampled_from(["1", '"x"', "now()"])))
def test_only_the_values_of_option_records_change(text: str, params: dict[str, str]) -> None:
    before = read_statements(text)
    if not before:
        return
    result = rewritten(text, before, {"params": params, "task": {}})
    after = read_statements(result)
    assert _outside(result, after) == _outside(text, before)
    for name, statement in first_options(before, NAMES).items():
        record, new_record = statement.record, first_options(after, NAMES)[name].record
        assert (record is None) == (new_record is None)
        if record and new_record:
            values = {entry.key: text[entry.value_start : entry.end] for entry in record.properties}
            values |= params if name == "params" else {}
            assert {entry.key: result[entry.value_start : entry.end] for entry in new_record.properties} == values
            assert new_record.base == record.base


@given(scripts)
def test_a_rewritten_script_is_stable(text: str) -> None:
    if not (statements := read_statements(text)):
        return
    once = rewritten(text, statements, {"params": {}, "task": {}})
    assert rewritten(once, read_statements(once), {"params": {}, "task": {}}) == once
