"""Streams, keys, anchors, merges and bounds of YAML (docs/reference/package-format.md, "YAML")."""

import json
import re
from contextlib import suppress
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from services.core.errors import PkgerError, SourceTooLarge, SourceUndecodable
from services.settings import Bounds
from services.syntax.yaml_reader import read_documents


def read(text: str) -> list[Any]:
    return read_documents("a.yml", text)


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        ("", []),
        ("# only a comment\n", []),
        ("a: b", [{"a": "b"}]),
        ("---\na: b\n...\n", [{"a": "b"}]),
        ("\ufeffa: b", [{"a": "b"}]),
        ("---", [None]),
        ("a: b\n---\n# nothing", [{"a": "b"}, None]),
        ("---\n---\na: b", [None, {"a": "b"}]),
        ('{"a": ["b", 1]}', [{"a": ["b", 1]}]),
        ("a: |\n  x\ty\n", [{"a": "x\ty\n"}]),
        ("a: 'x\ty'", [{"a": "x\ty"}]),
        ("a: '5'\nb: \"true\"\nc: |-\n  5\n", [{"a": "5", "b": "true", "c": "5"}]),
        ("a: !!str 5", [{"a": "5"}]),
        ("a: {1: x, true: y, ~: z, 2020-01-01: z, b: w}", [{"a": {"b": "w"}}]),
        ("a: <<\nb: [<<]\n<<: {c: d}", [{"a": "<<", "b": ["<<"], "c": "d"}]),
        ("a: !!merge <<\nb: [!!merge <<]\n!!merge <<: {c: d}", [{"a": "<<", "b": ["<<"], "c": "d"}]),
        ("a: !mine 5\nb: !mine {c: !!mine [d]}", [{"a": "5", "b": {"c": ["d"]}}]),
        ("a: &b 1\n---\na: *b\n---\na: &b 2\n---\na: *b", [{"a": 1}, {"a": 1}, {"a": 2}, {"a": 2}]),
    ],
)
def test_a_stream_is_read_document_by_document(text: str, documents: list[Any]) -> None:
    assert read(text) == documents


def test_aliases_and_merges_repeat_the_values_of_anchors() -> None:
    text = """
base: &base {a: 1, b: 2}
more: &more {b: 3, c: 4}
same: *base
one: {<<: *base, b: 5}
both: {<<: [*base, *more], d: &five 5, e: *five}
"""
    [document] = read(text)
    assert document["same"] == {"a": 1, "b": 2}
    assert document["one"] == {"a": 1, "b": 5}
    assert document["both"] == {"a": 1, "b": 2, "c": 4, "d": 5, "e": 5}


def test_an_anchor_can_be_defined_again() -> None:
    assert read("- &a 1\n- *a\n- &a 2\n- *a") == [[1, 1, 2, 2]]


@pytest.mark.parametrize(
    ("text", "line", "column", "problem"),
    [
        ("a: 1\nb: 2\na: 3", 3, 1, "the key 'a' stands twice in one mapping"),
        ("x:\n  - {k: 1, j: 2}\n  - {k: 1, j: {k: 1}, k: 2}", 3, 23, "the key 'k' stands twice"),
        ("k: {k: 1}\nj: {j: {j: 1, j: 2}}", 2, 15, "the key 'j' stands twice"),
        ("a: {1: x, 1: y}", 1, 11, "the key 1 stands twice"),
        ("a: {1: x, '1': y}", 1, 11, "the key '1' stands twice"),
        ("a: {~: x, ~: y}", 1, 4, "the key null stands twice"),
        ("a: {'<<': x, <<: {y: z}}", 1, 14, "the key `<<` stands twice"),
        ("<<: {a: b}\n<<: {c: d}", 2, 1, "the key `<<` stands twice"),
        ("a: {<<: 5}", 1, 4, "`<<` merges a mapping"),
        ("a: {<<: [{b: c}, 5]}", 1, 4, "`<<` merges a mapping"),
        ("? [a]\n: b", 1, 1, "keys are texts"),
        ("a: *b", 1, 4, "no anchor of this name"),
        ("a: *b\n---\na: &b 1", 1, 4, "no anchor of this name"),
        ("a: &b [*b]", 1, 8, "inside the value that it names"),
        ("a:\n\tb: c", 2, 1, "a tab cannot indent"),
        ("a: @x", 1, 4, "cannot begin with '@'"),
        ("a: b: c", 1, 5, "mapping values are not allowed"),
        ("é: \x01", 1, 4, "U+0001"),
        ("a: b\r\nc: \x7f", 2, 4, "U+007F"),
        ('a: "open', 1, 9, "end of stream"),
        ("a: [1, 2", 2, 1, "expected ',' or ']'"),
        ("a: !!int x", 1, 4, "no value of the type"),
    ],
)
def test_an_error_says_where_it_is_in_one_sentence(text: str, line: int, column: int, problem: str) -> None:
    with pytest.raises(SourceUndecodable, match=re.escape(problem)) as caught:
        read(text)
    metadata = caught.value.metadata
    assert (metadata["source"], metadata["line"]) == ("a.yml", str(line))
    assert metadata["column"] == str(column)
    assert "\n" not in str(caught.value)


ALIAS_BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("[" * 100_000, "nesting depth"),
        ("{a: " * 100_000, "nesting depth"),
        ("- " * 100_000, "nesting depth"),
        ("a: &a " + "[" * 60 + "]" * 60 + "\nb: " + "[" * 60 + "*a" + "]" * 60, "nesting depth"),
        (ALIAS_BOMB, "number of values, including repetitions by aliases,"),
        ("a: &a " + "x" * 100_000 + "\nb: [" + "*a, " * 200 + "]", "characters repeated by aliases"),
        pytest.param(
            "[" + "a," * 2_000_000 + "]",
            "number of values, including repetitions by aliases,",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["lists", "mappings", "block lists", "depth by alias", "alias bomb", "long text by alias", "many values"],
)
def test_a_text_that_would_cost_too_much_is_refused(text: str, bound: str) -> None:
    with pytest.raises(SourceTooLarge) as caught:
        read(text)
    assert caught.value.metadata["bound"] == bound


def test_the_deepest_allowed_nesting_is_read() -> None:
    text = "[" * Bounds().depth + "]" * Bounds().depth
    [document] = read(text)
    assert json.dumps(document) == text


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufeff"), max_size=30)
"""Texts that every YAML reader reads back as they were written."""

trees = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@given(trees, st.booleans())
def test_yaml_that_was_written_reads_back_equal(tree: Any, flow: bool) -> None:
    # Every text is quoted: writers of YAML 1.1 leave some unquoted that mean something else here, such as 1e5 and 0o7.
    text = yaml.dump(tree, Dumper=_Quoting, default_flow_style=flow, allow_unicode=True)
    assert read(text) == [tree]


class _Quoting(yaml.SafeDumper):
    pass


_Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


@given(trees)
def test_json_without_escapes_is_yaml(tree: Any) -> None:
    text = json.dumps(tree, ensure_ascii=False)
    if all(character.isprintable() for character in text):
        assert read(text) == [tree]


@given(st.text("ab:-[]{},&*!<|>'\"%@`#?~ \t\n\r10.", max_size=60) | st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_read_or_refused_with_a_pkger_error(text: str) -> None:
    with suppress(PkgerError):
        read(text)
