"""
Encodings of sources, several sources as one package, and bounds over all of them (docs/reference/package-format.md,
"Encodings").
"""

import pytest

from parser_svc.package import ParseOptions, parse
from parser_svc.sources import Encoding, Source, encoding_of, read_sources
from services.core.errors import EncodingInvalid, RequestInvalid, SourceTooLarge, SourceUndecodable
from services.core.limits import MAX_PACKAGE_BYTES
from tests.parser.parsing import document

YAML = document("Label", "name: Good")
JSON = (
    '[{"apiVersion": "influxdata.com/v2alpha1", "kind": "Label", "metadata": {"name": "j"}, "spec": {"name": "Json"}}]'
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", JSON),
        ("a.yml", YAML),
        ("dir.json/a.yaml", YAML),
        ("a", YAML),
        ("a.txt", JSON),
        ("string", "\n " + JSON),
        ("a.JSON", YAML),
    ],
)
def test_without_an_encoding_the_name_and_the_beginning_decide(name: str, text: str) -> None:
    assert parse([Source(name, text)], {}).package is not None


@pytest.mark.parametrize(("name", "text"), [("a.json", YAML), ("a.yml", JSON)])
def test_a_name_with_an_ending_decides(name: str, text: str) -> None:
    with pytest.raises(SourceUndecodable):
        parse([Source(name, text)], {})


def test_a_given_encoding_overrules_the_name() -> None:
    assert parse([Source("a.json", YAML, Encoding.YAML)], {}).package is not None


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        ("a.yml", Encoding.YAML),
        ("a.b/c.yaml", Encoding.YAML),
        ("a.json", Encoding.JSON),
        ("a.jsonnet", Encoding.JSONNET),
        ("a.JSONNET", Encoding.JSONNET),
        ("https://host/a%2ejsonne%74", Encoding.JSONNET),
        ("a.JSON", None),
        ("a.yml?b=c", None),
        ("a.jsonnet?b=c", None),
        ("a.yml/b", None),
        ("a", None),
        ("", None),
    ],
)
def test_the_ending_of_a_name_implies_the_encoding(name: str, encoding: Encoding | None) -> None:
    assert encoding_of(name) is encoding


@pytest.mark.parametrize("source", [Source("a.jsonnet", "[]"), Source("a", "[]", Encoding.JSONNET)])
def test_jsonnet_that_was_not_evaluated_is_refused(source: Source) -> None:
    with pytest.raises(EncodingInvalid, match="invalid encoding: jsonnet"):
        read_sources([source])


def test_json_that_came_of_jsonnet_is_read() -> None:
    assert parse([Source("a.jsonnet", JSON, Encoding.JSON, generated=True)], {}).package is not None


@pytest.mark.parametrize("text", ["[\n1]", "[\n1", '[\n{"kind": 5}]', "{}"])
def test_an_error_in_generated_text_has_no_line(text: str) -> None:
    with pytest.raises(SourceUndecodable) as caught:
        read_sources([Source("a.jsonnet", text, Encoding.JSON, generated=True)])
    assert caught.value.metadata["line"] == "0"
    assert str(caught.value).startswith("a.jsonnet: ")


def test_a_package_needs_a_source() -> None:
    with pytest.raises(RequestInvalid, match="at least one source"):
        parse([], {})


def test_sources_are_one_package_with_one_count_of_positions() -> None:
    bucket = document("Bucket", "associations: [{kind: Label, name: thing}, {kind: Label, name: j}]", "b0")
    sources = [Source("b.yml", bucket), Source("empty.yml", "# nothing"), Source("a.yml", YAML), Source("j.json", JSON)]
    package = parse(sources, {}).package
    assert package is not None
    assert [item.key.name for item in package.objects] == ["b0", "thing", "j"]
    assert package.sources == ("b.yml", "a.yml", "j.json")


def test_a_violation_names_its_own_source_and_that_of_the_first_name() -> None:
    sources = [Source("one.yml", YAML), Source("two.yml", "---\n" + document("Label", "name: Else"))]
    [violation] = parse(sources, {}).violations
    assert (violation.path, str(violation.location)) == ("root[1].metadata.name", "two.yml:5:9")
    assert "root[0] (one.yml:1:1)" in violation.reason


def test_the_first_source_that_is_no_text_of_its_encoding_is_an_error() -> None:
    with pytest.raises(SourceUndecodable) as caught:
        parse([Source("one.yml", YAML), Source("two.yml", "a: [")], {})
    assert caught.value.metadata["source"] == "two.yml"


def test_all_sources_together_have_a_bound() -> None:
    comment = "#" + "é" * (MAX_PACKAGE_BYTES // 3)
    with pytest.raises(SourceTooLarge) as caught:
        parse([Source("one.yml", comment), Source("two.yml", comment)], {})
    assert caught.value.metadata["source"] == "two.yml"


def test_half_of_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(SourceUndecodable) as caught:
        parse([Source("one.yml", "a: b\nc: \ud800")], {})
    assert caught.value.metadata["line"] == "2"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: b\n---\n- a", "each document is one object"),
        ("a: b\n---\nkind: [Label]", "kind must be a text"),
        ("a: b\n---\napiVersion: {a: b}", "apiVersion must be a text"),
        ("a: b\n---\nmetadata: text", "metadata must be a mapping"),
        ("a: b\n---\nspec: [a]", "spec must be a mapping"),
    ],
)
def test_a_document_that_is_no_object_is_undecodable(text: str, problem: str) -> None:
    with pytest.raises(SourceUndecodable, match=problem) as caught:
        parse([Source("one.yml", text)], {})
    assert caught.value.metadata["line"] == "3"


EMPTY = ["", "# a comment\n", "~\n", "null # nothing\n", "!!null ''\n", "\n\n"]
"""Documents without content."""


@pytest.mark.parametrize("empty", EMPTY)
def test_a_document_without_content_is_no_object_and_is_not_counted(empty: str) -> None:
    first, second = document("Label", "name: x"), document("Bucket", "name: y")
    text = f"---\n{empty}---\n{first}---\n{empty}---\n{second}---\n{empty}"
    parsed = parse([Source("one.yml", text), Source("two.yml", f"---\n{first}---\n")], {})
    lines = text.splitlines()
    assert [(violation.path, violation.location.source) for violation in parsed.violations] == [
        ("root[0].spec.name", "one.yml"),
        ("root[1].spec.name", "one.yml"),
        ("root[2].metadata.name", "two.yml"),
    ]
    places = [(violation.location.line, violation.location.column) for violation in parsed.violations]
    assert places == [(lines.index("  name: x") + 1, 9), (lines.index("  name: y") + 1, 9), (5, 9)]


@pytest.mark.parametrize("empty", EMPTY)
def test_documents_without_content_are_no_package(empty: str) -> None:
    text = f"---\n{empty}---\n{empty}"
    [violation] = parse([Source("one.yml", text)], {}).violations
    assert (violation.kind, violation.path) == ("Package", "resources")
    package = parse([Source("one.yml", text), Source("two.yml", YAML)], {}).package
    assert package is not None
    assert package.sources == ("two.yml",)
    assert parse([Source("one.yml", text)], {}, ParseOptions(allow_empty=True)).package is not None


def test_an_object_without_any_part_is_still_one() -> None:
    for source in (Source("one.yml", "--- {}"), Source("one.json", "[null]")):
        [violation] = parse([source], {}).violations
        assert violation.path == "root[0].kind"


def test_scalars_in_the_envelope_count_as_they_are_written() -> None:
    text = "kind: 0x5\n---\nkind: True\n---\nkind: 2020-01-01\n---\nkind: &k 1.0\n---\nkind: ~"
    kinds = [violation.kind for violation in parse([Source("one.yml", text)], {}).violations]
    assert kinds == ["0x5", "True", "2020-01-01", "1.0", "unknown"]
