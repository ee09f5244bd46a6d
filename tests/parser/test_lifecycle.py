"""Policies of packages and objects: their rules, their places, and the text of a package that has them."""

import json
from typing import Any

import jsonschema
import pytest
from pkger.model.v1 import object_pb2
from pkger.parser.v1 import parser_pb2

from parser_svc.document_cache import DocumentCache
from parser_svc.package import ParseOptions, parse
from parser_svc.render import render
from parser_svc.sources import Encoding, Source
from services.core.errors import RequestInvalid
from services.packages.lifecycle import checked_lifecycle, lifecycle_schema
from services.packages.manifest import document_schema
from services.syntax.yaml_reader import read_documents
from tests.parser.conftest import Parser
from tests.parser.parsing import parse_text, places, reasons, warnings

DOCUMENT = """\
apiVersion: pkger/v1
kind: Lifecycle
metadata: {name: telemetry}
spec:
  policy: {drift: revert, ignore: [/description, {kind: Task, names: [r*], paths: [/status]}]}
"""
OBJECT = """\
apiVersion: influxdata.com/v2alpha1
kind: Label
metadata:
  name: red
  lifecycle: {protect: true, on_remove: orphan}
spec: {}
"""
BARE = OBJECT.replace("  lifecycle: {protect: true, on_remove: orphan}\n", "")


def of_object(policy: str) -> str:
    """A label whose policy begins at line 4, column 14."""
    head = "apiVersion: influxdata.com/v2alpha1\nkind: Label\nmetadata: {name: red,\n  lifecycle: "
    return f"{head}{policy}}}\n"


def of_package(spec: str, metadata: str = "{name: telemetry}", version: str = "pkger/v1") -> str:
    """A Lifecycle document whose spec begins in line 5."""
    lines = "".join(f"  {line}\n" for line in spec.splitlines())
    return f"apiVersion: {version}\nkind: Lifecycle\nmetadata: {metadata}\nspec:\n{lines}"


def test_a_package_has_the_policies_that_its_source_has() -> None:
    package = parse_text(f"{DOCUMENT}---\n{OBJECT}").package
    assert package
    [item] = package.objects
    assert item.lifecycle == '{"on_remove":"orphan","protect":true}'
    assert json.loads(package.lifecycles[""]) == next(iter(read_documents("a.yml", DOCUMENT)))
    assert warnings(f"{DOCUMENT}---\n{OBJECT}") == []


@pytest.mark.parametrize("encoding", [Encoding.YAML, Encoding.JSON])
def test_a_package_that_is_rendered_says_what_it_said(encoding: Encoding) -> None:
    package = parse_text(f"{OBJECT}---\n{DOCUMENT}").package
    assert package
    again = parse([Source("b", render(package, encoding), encoding)], {}).package
    assert again
    assert (again.lifecycles, [item.lifecycle for item in again.objects]) == (
        package.lifecycles,
        [item.lifecycle for item in package.objects],
    )


@pytest.mark.parametrize("policy", ["null", "{}"])
def test_an_object_may_say_nothing(policy: str) -> None:
    package = parse_text(of_object(policy)).package
    assert package
    assert [item.lifecycle for item in package.objects] == [""]


@pytest.mark.parametrize("spec", ["{}", "null", "{policy: {}}", "{policy: null}"])
def test_a_package_may_say_nothing(spec: str) -> None:
    package = parse_text(f"apiVersion: pkger/v1\nkind: Lifecycle\nmetadata: {{name: x}}\nspec: {spec}\n").package
    assert package
    assert json.loads(package.lifecycles[""])["spec"] == {}


@pytest.mark.parametrize(
    ("policy", "place", "reason"),
    [
        ("[a]", "@4:14", "lifecycle: ['a'] is no mapping with the fields of a policy"),
        ("true", "@4:14", "lifecycle: true is no mapping"),
        ("{protct: true}", ".protct@4:15", "protct: is no field of a policy; did you mean protect?"),
        ("{drift: fix}", ".drift@4:22", "drift: 'fix' is none of ignore, report, revert"),
        ("{drift: accept}", ".drift@4:22", "drift: accept is not accepted yet"),
        ("{approval: manual}", ".approval@4:15", "approval: is not accepted yet, as plans are not approved by others"),
        ("{on_remove: null}", ".on_remove@4:26", "on_remove: null is none of delete, orphan"),
        ("{history: 3}", ".history@4:15", "history: belongs to the policy of a stack"),
        ("{recreate_deleted: yes}", ".recreate_deleted@4:33", "recreate_deleted: 'yes' is neither true nor false"),
        ("{protect: {envRef: {key: a}}}", ".protect@4:24", "protect: is a reference, and a policy has none"),
        ("{envRef: {key: a}}", "@4:14", "lifecycle: is a reference, and a policy has none"),
        ("{ignore: /a}", ".ignore@4:23", "ignore: is no list"),
        ("{ignore: [/a, b]}", ".ignore[1]@4:28", "ignore[1]: 'b' is no pointer to a field"),
    ],
)
def test_a_policy_of_an_object_has_rules(policy: str, place: str, reason: str) -> None:
    text = of_object(policy)
    assert places(text) == [f"root[0].metadata.lifecycle{place}"]
    assert reasons(text)[0].startswith(reason)


def test_a_mistyped_field_has_a_fix() -> None:
    [violation] = parse_text(of_object("{protct: true}")).violations
    [fix] = violation.fixes
    assert (fix.title, [edit.text for edit in fix.edits]) == ("Write protect", ["protect"])


@pytest.mark.parametrize(
    ("spec", "place", "reason"),
    [
        (
            "polcy: {}",
            "root[0].spec.polcy@5:3",
            "a Lifecycle document has no field 'polcy' here; did you mean 'policy'?",
        ),
        ("stages: [a]", "root[0].spec.stages@5:3", "stages is not accepted yet, as objects are applied in the order"),
        ("version: 1.0.0", "root[0].spec.version@5:3", "version is not accepted yet, as packages have a version in"),
        ("upgrades: []", "root[0].spec.upgrades@5:3", "upgrades is not accepted yet"),
        ("strict: true", "root[0].spec.strict@5:3", "strict is not accepted yet"),
        ("transforms: []", "root[0].spec.transforms@5:3", "transforms is not accepted yet"),
        ("replaces: []", "root[0].spec.replaces@5:3", "replaces is not accepted yet"),
        ("policy: {share: never}", "root[0].spec.policy.share@5:12", "share: belongs to the policy of a stack"),
        (
            "policy: {overrides: []}",
            "root[0].spec.policy.overrides@5:12",
            "overrides: belongs to the policy of a stack",
        ),
        (
            "policy: {ignore: [{kind: Taks, paths: [/a]}]}",
            "root[0].spec.policy.ignore[0].kind@5:28",
            "ignore[0].kind: 'Taks' is no kind, and not *; did you mean Task?",
        ),
        (
            "policy: {ignore: [{kinds: Task, paths: [/a]}]}",
            "root[0].spec.policy.ignore[0].kinds@5:22",
            "ignore[0].kinds: is not known here; known are kind, names, paths; did you mean kind?",
        ),
    ],
)
def test_a_lifecycle_document_has_rules(spec: str, place: str, reason: str) -> None:
    text = of_package(spec)
    assert places(text) == [place]
    assert reasons(text)[0].startswith(reason)


def test_all_that_is_wrong_with_a_document_is_listed() -> None:
    text = of_package("stages: [a]\npolicy: {drift: fix, protct: true}", "{nme: x}", "pkger/v2") + "more: 1\n"
    assert [(each.path.removeprefix("root[0]."), each.code) for each in parse_text(text).violations] == [
        ("more", "lifecycle-field-unknown"),
        ("apiVersion", "api-version-invalid"),
        ("metadata.nme", "lifecycle-field-unknown"),
        ("metadata.name", "name-invalid"),
        ("spec.stages", "field-not-accepted"),
        ("spec.policy.drift", "policy-value-invalid"),
        ("spec.policy.protct", "lifecycle-field-unknown"),
    ]
    assert parse_text(text).warnings == ()


def test_a_document_of_another_group_is_none() -> None:
    [violation] = parse_text(of_package("{}", version="influxdata.com/v2alpha1")).violations
    assert violation.reason.startswith("the apiVersion of a Lifecycle document must be pkger/v1; found")


def test_a_second_document_names_the_first() -> None:
    sources = [Source("a.yml", f"{OBJECT}---\n{DOCUMENT}"), Source("b.yml", DOCUMENT)]
    [violation] = parse(sources, {}).violations
    assert (violation.code, violation.path, violation.location.source) == (
        "lifecycle-repeated",
        "root[2].kind",
        "b.yml",
    )
    assert violation.reason == (
        "a package has one Lifecycle document, and root[1] is it; remove one of them (a.yml:8:1)"
    )
    [related] = violation.related
    assert (str(related.location), related.text) == ("a.yml:8:1", "root[1] is the Lifecycle document")


def test_a_document_that_was_parsed_before_says_what_it_said() -> None:
    cache, text = DocumentCache(1024 * 1024), f"{DOCUMENT}---\n{OBJECT}"
    results = [parse([Source("a.yml", text)], {}, ParseOptions(), cache=cache) for _ in range(2)]
    assert [entry.lifecycle for entry in cache.entries()] == ['{"on_remove":"orphan","protect":true}']
    assert repr(results[0]) == repr(results[1])


async def test_the_header_has_the_document_and_rendering_takes_it_back(parser: Parser) -> None:
    source = parser_pb2.Source(name="a.yml", text=f"{OBJECT}---\n{DOCUMENT}")
    parsed = await parser.parse(source)
    assert parsed.header.object_count == 1
    package = object_pb2.Package(objects=parsed.objects, lifecycle_json=parsed.header.lifecycle_json)
    again = await parser.parse(parser_pb2.Source(text=await parser.render(package)))
    assert again.header.lifecycle_json == parsed.header.lifecycle_json != ""
    assert [item.lifecycle_json for item in again.objects] == ['{"on_remove":"orphan","protect":true}']
    without = await parser.parse(parser_pb2.Source(text=BARE))
    assert (without.header.lifecycle_json, without.objects[0].lifecycle_json) == ("", "")


@pytest.mark.parametrize(
    ("package", "problem"),
    [
        ({"lifecycle_json": "{"}, "package.lifecycle_json: "),
        ({"lifecycle_json": "{}"}, "package.lifecycle_json: is no Lifecycle document with metadata and spec"),
        (
            {"lifecycle_json": json.dumps({"apiVersion": "pkger/v1", "kind": "Lifecycle", "metadata": {}, "spec": {}})},
            "package.lifecycle_json: metadata.name: metadata.name must be",
        ),
        ({"policy": '{"protct":true}'}, "package.objects[0].lifecycle_json: protct: is no field of a policy"),
        ({"policy": "{"}, "package.objects[0]: '{' is not JSON"),
    ],
)
async def test_rendering_refuses_what_is_no_policy(parser: Parser, package: dict[str, Any], problem: str) -> None:
    [item] = (await parser.parse(parser_pb2.Source(text=BARE))).objects
    item.lifecycle_json = package.pop("policy", "")
    with pytest.raises(RequestInvalid) as caught:
        await parser.render(object_pb2.Package(objects=[item], **package))
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize(
    "text",
    [DOCUMENT, OBJECT, of_package("{}"), of_package("policy: null"), of_object("null"), of_object("{ignore: [/a/*]}")],
)
def test_the_schemas_accept_what_the_parser_accepts(text: str) -> None:
    [document] = read_documents("a.yml", text)
    jsonschema.validate(document, document_schema())
    if document["kind"] == "Lifecycle":
        jsonschema.validate(document, lifecycle_schema())
    assert parse_text(text).violations == ()


@pytest.mark.parametrize(
    "text",
    [
        of_object("[a]"),
        of_object("{protct: true}"),
        of_object("{drift: accept}"),
        of_object("{protect: {envRef: {key: a}}}"),
        of_object("{ignore: [a]}"),
        of_object("{ignore: [{paths: [/a]}]}"),
        of_package("stages: [a]"),
        of_package("policy: {ignore: [{kind: Taks, paths: [/a]}]}"),
        of_package("policy: {ignore: [{kind: Task}]}"),
        of_package("{}", "{name: x, more: 1}"),
    ],
)
def test_the_schemas_refuse_what_the_parser_refuses(text: str) -> None:
    [document] = read_documents("a.yml", text)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, document_schema())
    assert parse_text(text).violations


def test_the_text_of_a_document_is_canonical() -> None:
    text = json.dumps(next(iter(read_documents("a.yml", DOCUMENT))), indent=2)
    assert checked_lifecycle(text) == checked_lifecycle(checked_lifecycle(text))
    assert " " not in checked_lifecycle(text)
