"""Names of objects of other packages: ``PACKAGE.NAME`` in associations and in fields that name an object."""

import json

import orjson
import pytest
from google.protobuf.json_format import MessageToDict
from pkger.parser.v1 import parser_pb2

from parser_svc.document_cache import DocumentCache
from parser_svc.package import ParseOptions, parse
from parser_svc.sources import Encoding, Source
from services.core.model import Key
from tests.parser.conftest import Parser
from tests.parser.parsing import document, edited, parse_text
from tests.parser.test_manifest import manifest

REQUIRING = manifest("requires: [{name: base-labels, version: ^1}, {name: hooks}]") + "---\n"
RULE = "every: 1m\nendpointName: {}\nstatusRules: [{{currentLevel: CRIT}}]"


def bucket(*names: str) -> str:
    labels = ", ".join(f"{{kind: Label, name: {name}}}" for name in names)
    return document("Bucket", f"associations: [{labels}]", "b1")


def test_the_name_stays_text() -> None:
    parsed = parse_text(REQUIRING + bucket("base-labels.env", "own") + "---\n" + document("Label", "", "own"))
    assert parsed.violations == ()
    assert parsed.package
    assert parsed.package.objects[0].associations == (Key("Label", "base-labels.env"), Key("Label", "own"))
    [reference] = parsed.package_references
    assert (reference.key, reference.path) == (Key("Bucket", "b1"), "root[1].associations[0]")
    assert (reference.package, reference.name) == ("base-labels", "env")
    assert (str(reference.location), reference.end) == ("a.yml:14:38", (14, 53))


def test_an_endpoint_can_be_in_another_package() -> None:
    parsed = parse_text(REQUIRING + document("NotificationRule", RULE.format("hooks.on_call"), "r1"))
    assert parsed.violations == ()
    assert parsed.package
    assert orjson.loads(parsed.package.objects[0].spec.text)["endpointName"] == "hooks.on_call"
    [reference] = parsed.package_references
    assert (reference.path, reference.package, reference.name) == ("root[1].spec.endpointName", "hooks", "on_call")
    assert str(reference.location) == "a.yml:15:17"


@pytest.mark.parametrize(
    ("text", "code", "place", "reason"),
    [
        (
            REQUIRING + bucket("base-label.env"),
            *("package-not-required", "root[1].associations[0]@14:38"),
            "'base-label.env' is an object of the package 'base-label', and the manifest requires base-labels, hooks;"
            " did you mean 'base-labels'?",
        ),
        (
            REQUIRING + document("NotificationRule", RULE.format("other.x"), "r1"),
            *("package-not-required", "root[1].spec.endpointName@15:17"),
            "'other.x' is an object of the package 'other', and the manifest requires base-labels, hooks;"
            " add it to spec.requires of the manifest",
        ),
        (
            manifest() + "---\n" + bucket("team.env"),
            *("package-not-required", "root[1].associations[0]@13:38"),
            "'team.env' is an object of the package 'team', and the manifest requires no package;"
            " add it to spec.requires of the manifest",
        ),
        (
            REQUIRING + bucket("{envRef: {key: k, default: base-labels.env}}"),
            *("package-named-by-value", "root[1].associations[0]@14:38"),
            "an environment value gives the name 'base-labels.env' of an object of another package; write it as text",
        ),
        (
            REQUIRING + document("NotificationRule", RULE.format("{envRef: {key: k, default: hooks.a}}"), "r1"),
            *("package-named-by-value", "root[1].spec.endpointName@15:17"),
            "an environment value gives the name 'hooks.a' of an object of another package; write it as text",
        ),
        (
            REQUIRING + bucket("base-labels.env", "base-labels.env"),
            *("label-repeated", "root[1].associations[1]@14:76"),
            "the label 'base-labels.env' is associated twice; leave one out",
        ),
        (
            REQUIRING + bucket("base-labels.a.b"),
            *("label-not-found", "root[1].associations[0]@14:38"),
            "the package has no label with the metadata.name 'base-labels.a.b'; it has none",
        ),
    ],
)
def test_a_name_that_is_refused(text: str, code: str, place: str, reason: str) -> None:
    [violation] = parse_text(text).violations
    location = violation.location
    assert (violation.code, f"{violation.path}@{location.line}:{location.column}") == (code, place)
    assert violation.reason == reason


def test_a_supplied_value_names_no_object_of_another_package() -> None:
    text = REQUIRING + bucket("{envRef: {key: k, default: own}}") + "---\n" + document("Label", "", "own")
    assert parse_text(text).violations == ()
    [violation] = parse_text(text, {"k": "base-labels.env"}).violations
    assert violation.code == "package-named-by-value"


def test_a_fix_writes_the_package_that_was_meant() -> None:
    text = REQUIRING + bucket("base-label.env")
    [violation] = parse_text(text).violations
    [fix] = violation.fixes
    assert parse_text(edited(text, fix.edits[0])).violations == ()


@pytest.mark.parametrize(
    "text", [bucket("base-labels.env"), document("NotificationRule", RULE.format("hooks.a"), "r1")]
)
def test_without_a_manifest_the_package_has_no_such_object(text: str) -> None:
    [violation] = parse_text(text).violations
    assert violation.code in ("label-not-found", "endpoint-not-found")
    assert "; it has none" in violation.reason


def test_requirements_of_a_faulty_manifest_count() -> None:
    """A fault of the manifest is told once, and not again at each name."""
    text = REQUIRING.replace("1.0.0", "1.0") + bucket("base-labels.env")
    assert [violation.path for violation in parse_text(text).violations] == ["root[0].spec.version"]


def test_an_invalid_package_has_no_references() -> None:
    text = REQUIRING + bucket("base-labels.env", "none")
    assert parse_text(text).package_references == ()
    assert len(parse_text(text, keep_valid_parts=True).package_references) == 1


def test_the_cache_of_documents_changes_nothing() -> None:
    """An object that names another package depends on the manifest, which a later package may lack."""
    cache = DocumentCache(1_000_000)
    texts = [REQUIRING + bucket("base-labels.env"), "---\n" + bucket("base-labels.env")]
    for text in (*texts, *texts):
        sources = [Source("a.yml", text, Encoding.YAML)]
        assert parse(sources, {}, ParseOptions(), cache=cache) == parse(sources, {}, ParseOptions())


async def test_the_response_has_the_references(parser: Parser) -> None:
    parsed = await parser.parse(parser_pb2.Source(name="a.yml", text=REQUIRING + bucket("base-labels.env")))
    assert [MessageToDict(each) for each in parsed.package_references] == [
        {
            "key": {"kind": "Bucket", "name": "b1"},
            "path": "root[1].associations[0]",
            "package": "base-labels",
            "name": "env",
            "location": {"source": "a.yml", "line": 14, "column": 38},
            "end": {"line": 14, "column": 53},
        }
    ]
    summary = json.loads(parsed.summary)
    assert summary["buckets"][0]["labelAssociations"] == []
    assert summary["labelMappings"] == []
