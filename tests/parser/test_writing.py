"""Documents as text: every reader of YAML and JSON reads what was written."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from services.syntax.hidden_characters import HIDDEN_CHARACTER
from services.syntax.writer import JsonWriter, Writer, YamlWriter
from tests.parser.parsing import parse_text

TRAPS = [
    *("", "~", "null", "Null", "true", "FALSE", "yes", "No", "on", "OFF", "y", "N", "=", "<<", ".inf", "-.INF", ".nan"),
    *(
        "12",
        "012",
        "0o10",
        "0x1F",
        "0b11",
        "1_000",
        "1e3",
        "1e+08",
        "12e03",
        ".5",
        "5.",
        "-1.5",
        "+5",
        "1:2",
        "12:30:45",
    ),
    *(
        "2020-01-01",
        "2020-1-1",
        "2020-01-01T00:00:00Z",
        "2020-01-01 10:00:00",
        "08",
        "0.1.0",
        "1e400",
        "-",
        "--",
        "...",
    ),
    *("#", "a #b", "a: b", "a:", "- a", "? a", "!a", "&a", "*a", "|", ">", "%a", "@a", "`a", "[a", "{a", "'a", '"a'),
    *(
        " a",
        "a ",
        "\t",
        "a\tb",
        "\ttab\n",
        "a\n",
        "a\n\n",
        "\na",
        " a\nb",
        "a \nb",
        " \na",
        "a\n b\n  c\n",
        "\n",
        "\n\n",
    ),
    *(
        "a\n ",
        "a\n\t",
        "\t\na",
        "a\r\nb",
        "a\rb",
        "\x85",
        "a\u2028b",
        "\ufeffa",
        "\x00",
        "\x7f",
        "é\nü",
        "😀",
        "😀\n\tb \n",
        "\ue000",
    ),
    *("a\u202eb", "\u2066a\n\tb", "\\\u200bn", "a\u3164", "\u200c😀\n", "\U000e0041\n b ", "x " * 2000 + "\u034f\nb"),
    *("\ue000\n\tb", "\ue001 \n", "---", "--- a", "...\n", "# a\nb\n", "a\n# b\n", "x" * 2000, "x " * 2000 + "\nb"),
]
texts = (
    st.sampled_from(TRAPS)
    | st.text(max_size=8)
    | st.text(alphabet="a \t\n#:-'\"\\é😀\ue000\u202e\U000e0041", max_size=12)
)
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
trees = st.recursive(
    texts | numbers | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def read(document: str) -> Any:
    """The description of a label as the parser reads it."""
    parsed = parse_text(document)
    assert parsed.violations == ()
    assert parsed.package is not None
    return parsed.package.objects[0].spec.value["description"]


def written(documents: list[dict[str, Any]], writer: Writer) -> str:
    return writer.joined(list(map(writer.document, documents)))


def a_label(description: str) -> dict[str, Any]:
    return {
        "apiVersion": "influxdata.com/v2alpha1",
        "kind": "Label",
        "metadata": {"name": "a"},
        "spec": {"name": "xx", "description": description},
    }


@given(st.lists(st.dictionaries(texts, trees, max_size=3), max_size=3))
def test_documents_are_read_as_they_were(documents: list[dict[str, Any]]) -> None:
    assert list(yaml.safe_load_all(written(documents, YamlWriter("a comment")))) == documents
    in_json = written(documents, JsonWriter())
    assert json.loads(in_json) == documents
    assert in_json == json.dumps(documents, indent="\t", ensure_ascii=False) + "\n"


@given(texts)
def test_a_text_is_that_text_to_our_reader(text: str) -> None:
    assert read(YamlWriter().document(a_label(text))) == text


@pytest.mark.parametrize("text", TRAPS)
def test_no_trap_catches_a_reader(text: str) -> None:
    document = YamlWriter().document(a_label(text))
    assert yaml.safe_load(document)["spec"]["description"] == text
    assert read(document) == text


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("from(x)\n\t|> range()\n", ["a: |", "  from(x)", "  \t|> range()"]),
        ("a \nb", ["a: |-", "  a ", "  b"]),
        ("  a\nb 😀\n\n", ["a: |2+", "    a", "  b 😀", "", "..."]),
        ("yes", ['a: "yes"']),
        ("1h30m", ["a: 1h30m"]),
    ],
)
def test_lines_of_a_text_are_written_as_lines(text: str, lines: list[str]) -> None:
    assert YamlWriter().document({"a": text}) == "\n".join([*lines, ""])


def test_a_text_with_private_characters_is_quoted_instead() -> None:
    assert YamlWriter().document({"a": "x\n\ty", "b": "\ue000"}) == 'a: "x\\n\\ty"\nb: \ue000\n'


HIDDEN = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000 and HIDDEN_CHARACTER.match(chr(code))]


def test_every_hidden_character_is_an_escape_in_double_quotes() -> None:
    """Text that looks like another one would be reviewed as the other one."""
    document = {f"key{character}": f"a{character}\n\tb" for character in HIDDEN} | {"all": "".join(HIDDEN)}
    text = YamlWriter().document(document)
    assert not HIDDEN_CHARACTER.search(text)
    assert yaml.safe_load(text) == document
    assert YamlWriter().document({"a": "b\u202e\U000e0041\u00ad"}) == 'a: "b\\u202E\\U000E0041\u00ad"\n'


def test_the_stream_begins_with_the_comment() -> None:
    assert written([{"a": 1}, {"b": [], "c": {}}], YamlWriter("note")) == "# note\na: 1\n---\nb: []\nc: {}\n"


def test_large_and_small_numbers_have_a_point() -> None:
    assert YamlWriter().document({"a": 1e16, "b": 1e-07, "c": 1.5}) == "a: 1.0e+16\nb: 1.0e-07\nc: 1.5\n"
