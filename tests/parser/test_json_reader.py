"""JSON packages (docs/reference/package-format.md, "JSON", "Equal sources")."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser_svc.sources import Encoding
from services.core.errors import PkgerError, SourceTooLarge, SourceUndecodable
from services.syntax.json_reader import read_array
from tests.parser.parsing import objects, parse_text, places

ENVELOPE = '"apiVersion": "influxdata.com/v2alpha1", "kind": "Label", "metadata": {"name": "thing"}'


def read(text: str) -> list[Any]:
    return read_array("a.json", text)[0]


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        ("[]", []),
        (" \n[] trailing", []),
        ("\ufeff\n[1.0]", [1.0]),
        ("null", []),
        ("[null]", [None]),
        ('["\\ud83d\\ude00 \\ud83d"]', ["😀 \ufffd"]),
        ("[3600, 1.5, -0.0]", [3600.0, 1.5, -0.0]),
    ],
)
def test_an_array_is_read(text: str, elements: list[Any]) -> None:
    assert read(text) == elements


def test_numbers_are_floats() -> None:
    assert type(read("[3600]")[0]) is float


@pytest.mark.parametrize("number", [2**53 + 1, 2**62, 2**63 - 1, -(2**53) - 1, -(2**63)])
def test_an_integer_keeps_all_its_digits(number: int) -> None:
    [found] = read(f"[{number}]")
    assert (type(found), found) == (int, number)


@pytest.mark.parametrize("number", [2**53 - 1, 2**63, -(2**63) - 1, 10**30])
def test_an_integer_that_a_float_holds_or_that_is_beyond_64_bits_is_a_float(number: int) -> None:
    [found] = read(f"[{number}]")
    assert (type(found), found) == (float, float(number))


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("", 1, 1),
        ("   \n", 2, 1),
        ("\ufeff[1,\n x]", 2, 2),
        ("\ufeff\ufeff[]", 1, 1),
        ("// c\n[]", 1, 1),
        ("[1,\n x]", 2, 2),
        ('\n{"kind": "Label"}', 2, 1),
        ('"[]"', 1, 1),
        ("[\n  NaN]", 2, 3),
        ('["NaN", -Infinity]', 1, 9),
        ("[1,\n 1e400-]", 2, 2),
        ('["\t"]', 1, 3),
        ('["\\x"]', 1, 3),
        ("['a']", 1, 2),
        ('[{"a": 1', 1, 9),
    ],
)
def test_an_error_says_where_it_is(text: str, line: int, column: int) -> None:
    with pytest.raises(SourceUndecodable) as caught:
        read(text)
    metadata = caught.value.metadata
    assert (metadata["line"], metadata["column"]) == (str(line), str(column))


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("[" * 100_000, "nesting depth"),
        ("[" * 101 + "]" * 101, "nesting depth"),
        pytest.param(
            "[[" + "1," * 1_000_000 + "1]]",
            "number of values, including repetitions by aliases,",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["endless", "just too deep", "many"],
)
def test_a_text_that_would_cost_too_much_is_refused(text: str, bound: str) -> None:
    with pytest.raises(SourceTooLarge) as caught:
        read(text)
    assert caught.value.metadata["bound"] == bound


@pytest.mark.parametrize(
    ("element", "problem"),
    [
        ("5", "each element"),
        ('{"kind": 5}', "kind must be a text"),
        ('{"APIVERSION": false}', "apiVersion must be a text"),
        ('{"metadata": "x"}', "metadata must be a mapping"),
        ('{"spec": []}', "spec must be a mapping"),
    ],
)
def test_an_envelope_of_the_wrong_types_is_refused(element: str, problem: str) -> None:
    with pytest.raises(SourceUndecodable, match=problem) as caught:
        parse_text(f"[\n {element}]", encoding=Encoding.JSON)
    assert caught.value.metadata["line"] == "2"


def test_keys_of_the_envelope_are_matched_without_regard_to_case() -> None:
    version = '"APIVersion": "influxdata.com/v2alpha1"'
    text = f'[{{{version}, "Kind": "Label", "METADATA": {{"name": "x"}}, "Spec": {{"name": "Ab"}}}}]'
    [item] = objects(text, encoding=Encoding.JSON)
    assert item.spec.display_name == "Ab"


def test_keys_of_a_spec_are_matched_exactly() -> None:
    [item] = objects(f'[{{{ENVELOPE}, "spec": {{"Name": "Ab"}}}}]', encoding=Encoding.JSON)
    assert item.spec.display_name == "thing"


def test_violations_have_locations_in_json_too() -> None:
    short = ENVELOPE.replace("thing", "other") + ',\n\t\t"SPEC": {"name":"x"}'
    text = f'[\n\t{{{ENVELOPE}}},\n\t{{"Kind": "Foo"}},\n\t{{{short}}},\n null]'
    assert places(text, encoding=Encoding.JSON) == ["root[1].kind@3:11", "root[2].spec.name@5:19", "root[3].kind@6:2"]


def test_an_escaped_surrogate_does_not_hide_locations() -> None:
    text = f'[{{{ENVELOPE},\n"spec": {{"description": "\\ud83d\\ude00",\n"name": "x"}}}}]'
    assert places(text, encoding=Encoding.JSON) == ["root[0].spec.name@3:9"]


def test_text_after_a_json_array_may_change_its_meaning_in_yaml() -> None:
    text = f'[{{{ENVELOPE}, "spec": {{"name": "x"}}}}]: {{"other": [1]}}'
    assert places(text, encoding=Encoding.JSON) == ["root[0].spec.name@1:1"]


json_trees = st.recursive(
    st.none()
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.lists(json_trees), st.booleans())
def test_json_that_was_written_reads_back_equal(tree: list[Any], ascii_only: bool) -> None:
    assert read(json.dumps(tree, ensure_ascii=ascii_only)) == tree


@given(st.text('{}[]",:\\ud8a0e-+.NaIfinty1 \n', max_size=60) | st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_read_or_refused_with_a_pkger_error(text: str) -> None:
    with suppress(PkgerError):
        parse_text(text, encoding=Encoding.JSON)


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ('[{"a": 1, "a": 2}]', (1, 11)),
        ('[{"a": [{"k": 1}, {"k": 2}],\n "b": {"x\\"{": 1, "c": [], "c": 2}}]', (2, 28)),
        ('[{"a": 1, "\\u0061": 2}]', (1, 11)),
    ],
)
def test_a_repeated_key_of_an_object_is_refused(written: str, place: tuple[int, int]) -> None:
    """JSON readers do not agree on which of the two values counts."""
    with pytest.raises(SourceUndecodable) as raised:
        read_array("a.json", written)
    assert (int(raised.value.metadata["line"]), int(raised.value.metadata["column"])) == place
    assert "stands twice in one object" in str(raised.value)
