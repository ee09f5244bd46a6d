"""Tokens of Flux scripts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.kinds.influxdb.flux.scanner import TokenKind, scan
from tests.kinds.influxdb.flux.scripts import fragments

WHITE_SPACE = " \t\n\v\f\r\ufeff"


def kinds(text: str) -> list[str]:
    return [token.kind.name for token in scan(text)]


def texts(text: str) -> list[str]:
    return [token.text for token in scan(text)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("option", "KEYWORD"),
        ("testcase", "KEYWORD"),
        ("options", "IDENTIFIER"),
        ("_x1", "IDENTIFIER"),
        ("größe", "IDENTIFIER"),
        ("42", "INTEGER"),
        ("1.5", "FLOAT"),
        ("1.", "FLOAT"),
        (".5", "FLOAT"),
        ("1h30m", "DURATION"),
        ("1y2mo3w4d5h6m7s8ms9us10µs11ns", "DURATION"),
        ("2020-01-01", "TIME"),
        ("2020-01-01T00:00:00Z", "TIME"),
        ("2020-01-01T00:00:00.123+02:00", "TIME"),
        ("2020-01-01T00:00:00", "TIME"),
        ('""', "TEXT"),
        ('"a \\" \\\\ \\n \n ä"', "TEXT"),
        ('"$"', "TEXT"),
        ('"5$ $5"', "TEXT"),
        ('"$${x}"', "TEXT"),
        ('"\\${x}"', "TEXT"),
        ('"$\\"', "TEXT"),
        ("/a b/", "REGEX"),
        ("/a\\/b\\\\/", "REGEX"),
        ('/"/', "REGEX"),
        ("// to the end \r", "COMMENT"),
        ("|>", "OPERATOR"),
        ("=>", "OPERATOR"),
        ("<-", "OPERATOR"),
        ("!~", "OPERATOR"),
        ("{", "OPEN"),
        (")", "CLOSE"),
        ("@", "STRAY"),
        ("\u00a0", "STRAY"),
        ('"not closed', "UNFINISHED"),
        ('"not closed \\', "UNFINISHED"),
        ("/not closed", "UNFINISHED"),
    ],
)
def test_a_token_is_read_whole(text: str, kind: str) -> None:
    assert kinds(text) == [kind]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("a/b/c", ["a", "/", "b", "/", "c"]),
        ("1 / 2 / 3", ["1", "/", "2", "/", "3"]),
        ("f(x)/2/a", ["f", "(", "x", ")", "/", "2", "/", "a"]),
        ("r[0]/2/a", ["r", "[", "0", "]", "/", "2", "/", "a"]),
        ('"a"/b/c', ['"a"', "/", "b", "/", "c"]),
        ("/a/ /b/", ["/a/", "/", "b", "/"]),
        ("a =~ /b/", ["a", "=~", "/b/"]),
        ("a !~ /b/", ["a", "!~", "/b/"]),
        ("(/b/", ["(", "/b/"]),
        ("[/b/", ["[", "/b/"]),
        ("{a: /b/", ["{", "a", ":", "/b/"]),
        (", /b/", [",", "/b/"]),
        ("x = /b/", ["x", "=", "/b/"]),
        ("return /b/", ["return", "/b/"]),
        ("not /b/", ["not", "/b/"]),
        ("=> /b/", ["=>", "/b/"]),
        ("x = // c\n/b/", ["x", "=", "// c", "/b/"]),
        ("x // c\n/b/c", ["x", "// c", "/", "b", "/", "c"]),
    ],
)
def test_a_slash_begins_a_regular_expression_only_where_an_operand_is_expected(text: str, tokens: list[str]) -> None:
    assert texts(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("1m0s5", ["1m0s", "5"]),
        ("5min", ["5m", "in"]),
        ("1.5h", ["1.5", "h"]),
        ("2020-01", ["2020", "-", "01"]),
        ("2020-01-01T00", ["2020-01-01", "T00"]),
        ("a|>b()", ["a", "|>", "b", "(", ")"]),
        ("a<=-1", ["a", "<=", "-", "1"]),
        ('"a"// "b"', ['"a"', '// "b"']),
        ('"// a"', ['"// a"']),
        ('"a" "b"', ['"a"', '"b"']),
        ('"$\\""', ['"$\\"', '"']),
    ],
)
def test_the_longest_token_is_taken(text: str, tokens: list[str]) -> None:
    assert texts(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ('"a${b}c"', ['"a${', "b", '}c"']),
        ('"${a}${b}"', ['"${', "a", "}${", "b", '}"']),
        ('"${"${a}"}"', ['"${', '"${', "a", '}"', '}"']),
        ('"${{a: "}"}}"', ['"${', "{", "a", ":", '"}"', "}", '}"']),
        ('"${f(() => { return r })}"', ['"${', "f", "(", "(", ")", "=>", "{", "return", "r", "}", ")", '}"']),
        ('"${a // }"\n}"', ['"${', "a", '// }"', '}"']),
        ('"${a', ['"${', "a"]),
        ('"${a} b', ['"${', "a", "} b"]),
        ('"${)}"', ['"${', ")", '}"']),
    ],
)
def test_interpolations_are_scripts_within_strings(text: str, tokens: list[str]) -> None:
    assert texts(text) == tokens


def test_depth_counts_the_brackets_and_interpolations_around_a_token() -> None:
    found = [(token.text, token.depth) for token in scan('a(b[{"c${d}e${f}"}])g)h')]
    assert found == [
        *[("a", 0), ("(", 0), ("b", 1), ("[", 1), ("{", 2), ('"c${', 3), ("d", 4), ("}e${", 3), ("f", 4)],
        *[('}"', 3), ("}", 2), ("]", 1), (")", 0), ("g", 0), (")", 0), ("h", 0)],
    ]


@pytest.mark.parametrize("opening", ["(", "[", "{", '"${', '"${{', "f(a: "])
def test_nesting_may_be_as_deep_as_the_text_is_long(opening: str) -> None:
    assert scan(opening * 20_000)[-1].depth >= 19_999


@given(st.text() | fragments)
def test_any_text_is_covered_by_tokens_and_white_space(text: str) -> None:
    position = 0
    for token in scan(text):
        assert not text[position : token.start].strip(WHITE_SPACE)
        assert text[token.start : token.end] == token.text != ""
        position = token.end
    assert not text[position:].strip(WHITE_SPACE)


@given(st.lists(st.sampled_from(["a", "option", "1", "1.5", "1h", '"s"', "2020-01-01", "(", "}", "|>", ","])))
def test_tokens_do_not_depend_on_the_white_space_between_them(tokens: list[str]) -> None:
    assert texts(" ".join(tokens)) == texts("\r\n\t".join(tokens)) == tokens


def test_every_kind_of_token_occurs_here() -> None:
    script = 'option a = {b: "c${1}${2}d", e: 1.5, f: /g/, h: 1h, i: 2020-01-01, j: "k"} // l\n@ "'
    assert {token.kind for token in scan(script)} == set(TokenKind)
