"""The manifest of a package: its rules, its places, and its part of the response."""

import json
from collections.abc import Sequence

import jsonschema
import pytest
from google.protobuf.json_format import MessageToDict
from pkger.parser.v1 import parser_pb2

from parser_svc.document_cache import DocumentCache
from parser_svc.package import LocatedManifest, ParseOptions, parse
from parser_svc.sources import Encoding, Source
from services.core.model import Location
from services.packages.manifest import Manifest, Requirement, document_schema, manifest_schema, path_problem
from services.packages.ranges import Range
from services.packages.versions import Version
from services.syntax.yaml_reader import read_documents
from tests.parser.conftest import Parser
from tests.parser.parsing import document, edited, parse_text, places, reasons, warnings

FULL = """\
apiVersion: pkger/v1
kind: Package
metadata: {name: team-dashboards}
spec:
  version: 1.4.0+2
  description: Dashboards of the web team
  requires:
    - {name: base-labels, version: "^1.2"}
    - {name: web-buckets, version: ">=2, <4"}
    - {name: plain}
  platform: ">=0.3"
  files: [labels/team.yaml, more.json]
"""

MANIFEST = Manifest(
    "team-dashboards",
    Version.parse("1.4.0+2"),
    "Dashboards of the web team",
    (
        Requirement("base-labels", Range.parse("^1.2")),
        Requirement("web-buckets", Range.parse(">=2 <4")),
        Requirement("plain"),
    ),
    Range.parse(">=0.3"),
    ("labels/team.yaml", "more.json"),
)


def manifest(spec: str = "", name: str = "team", version: str = "1.0.0") -> str:
    """A manifest; *spec* begins in line 7."""
    head = f"apiVersion: pkger/v1\nkind: Package\nmetadata:\n  name: {name}\nspec:\n  version: {version}\n"
    return head + "".join(f"  {line}\n" for line in spec.splitlines())


def many(form: str, count: int) -> str:
    """Items of a list, numbered."""
    return ", ".join(form.format(number) for number in range(count))


def test_a_manifest_is_a_part_of_its_own() -> None:
    parsed = parse_text("---\n" + document("Label", "name: x1", "l1") + "---\n" + FULL)
    assert parsed.manifest == LocatedManifest(MANIFEST, Location("a.yml", 9, 1))
    assert (parsed.violations, parsed.warnings) == ((), ())
    assert parsed.package
    assert [item.key.kind for item in parsed.package.objects] == ["Label"]


def test_a_package_without_a_manifest_has_none() -> None:
    assert parse_text(document("Label", "name: x1")).manifest is None


def test_a_package_may_have_a_manifest_and_no_objects() -> None:
    parsed = parse_text(manifest("requires: [{name: base}]"))
    assert (parsed.violations, parsed.manifest is not None) == ((), True)
    assert parsed.package
    assert parsed.package.objects == ()


def test_a_manifest_can_be_json() -> None:
    [value] = read_documents("a.yml", FULL)
    parsed = parse([Source("a.json", json.dumps([value]), Encoding.JSON)], {})
    assert parsed.manifest == LocatedManifest(MANIFEST, Location("a.json", 1, 2))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (manifest(name="{envRef: {key: k}}"), ["root[0].metadata.name@4:9"]),
        (manifest(name="a_b"), ["root[0].metadata.name@4:9"]),
        (manifest(name="a" * 64), ["root[0].metadata.name@4:9"]),
        (manifest(name="-a"), ["root[0].metadata.name@4:9"]),
        ("apiVersion: pkger/v1\nkind: Package\n", ["root[0].metadata.name@1:1", "root[0].spec.version@1:1"]),
        (manifest(version="1.2"), ["root[0].spec.version@6:12"]),
        (manifest(version="v1.2.0"), ["root[0].spec.version@6:12"]),
        (manifest(version="[]"), ["root[0].spec.version@6:12"]),
        (manifest("requires: {a: b}"), ["root[0].spec.requires@7:13"]),
        (manifest("requires: [base]"), ["root[0].spec.requires[0]@7:14"]),
        (
            manifest("requires: [[], {version: ^1}]"),
            ["root[0].spec.requires[0]@7:14", "root[0].spec.requires[1].name@7:18"],
        ),
        (manifest("requires: [{name: base, version: 1.2}]"), ["root[0].spec.requires[0].version@7:36"]),
        (manifest("requires: [{name: base, version: ~>1}]"), ["root[0].spec.requires[0].version@7:36"]),
        (manifest("requires: [{name: team}]"), ["root[0].spec.requires[0].name@7:21"]),
        (manifest("requires: [{name: a}, {name: b}, {name: a}]"), ["root[0].spec.requires[2].name@7:43"]),
        (manifest("requires: [{name: a, values: {b: 1}}]"), ["root[0].spec.requires[0].values@7:32"]),
        (manifest("values: {keep: {type: string}}"), ["root[0].spec.values@7:11"]),
        (manifest("platform: new"), ["root[0].spec.platform@7:13"]),
        (manifest("files: team.yaml"), ["root[0].spec.files@7:10"]),
        (
            manifest("files: [a.yaml, 1, a.yaml, b.jsonnet]"),
            ["root[0].spec.files[1]@7:19", "root[0].spec.files[2]@7:22", "root[0].spec.files[3]@7:30"],
        ),
        (manifest("description: [a]"), ["root[0].spec.description@7:16"]),
        (manifest(f"description: {'x' * 4097}"), ["root[0].spec.description@7:16"]),
        (manifest(f"requires: [{many('{{name: p{}}}', 101)}]"), ["root[0].spec.requires@7:13"]),
        (manifest(f"files: [{many('f{}.yaml', 100)}]"), ["root[0].spec.files@7:10"]),
        (manifest().replace("pkger/v1", "pkger/v2"), ["root[0].apiVersion@1:13"]),
        (manifest() + "---\n" + manifest(), ["root[1].kind@9:7"]),
    ],
)
def test_a_rule_that_is_broken_is_told_at_its_place(text: str, expected: Sequence[str]) -> None:
    assert places(text) == expected
    assert parse_text(text).manifest is None
    assert parse_text(text, keep_valid_parts=True).manifest is None or "root[1].kind@9:7" in expected


def test_all_faults_of_a_manifest_are_told_at_once() -> None:
    text = manifest("requires: [{name: A, version: latest}]\nfiles: [/etc/passwd]\nvalues: {}", "Team", "'1.2'")
    assert reasons(text) == [
        "metadata.name must be 1 to 63 lower-case letters, digits or -, with a letter or digit first and last;"
        " found the text 'Team'",
        "version '1.2' is none: a version has three numbers, not 2, at position 3; write 1.2.0",
        "the name of a requirement must be 1 to 63 lower-case letters, digits or -, with a letter or digit first and"
        " last; found the text 'A'",
        "version 'latest' is no range of versions: 'latest' is no part of a range, at position 0; write a version such"
        " as 1.2.0 or 1.2, or * for every release",
        "the file '/etc/passwd' is absolute; write its path relative to the file of the manifest",
        "values of packages are not accepted yet; remove them",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (manifest(version="1.10"), "version must be three numbers with dots, such as 1.0.0; found the number 1.1"),
        (manifest("platform: 0.3"), "platform must be a text; found the number 0.3; put it in quotes"),
        (manifest(name="{envRef: {key: k}}"), "found a reference, and a manifest has none"),
        (manifest("requires: [{name: team}]"), "the package 'team' requires itself; remove this requirement"),
        (
            manifest() + "---\n" + manifest(),
            "a package has one manifest, and root[0] is it; remove one of them (a.yml:1:1)",
        ),
        (manifest().replace("v1", "v2"), "apiVersion of a manifest must be pkger/v1; found 'pkger/v2'"),
        ("kind: Package\n", "a Package is a manifest, and its apiVersion must be pkger/v1; it is missing"),
        (manifest().replace("Package", "Packge"), "there is no kind 'Packge'; write Package"),
    ],
)
def test_a_reason_says_what_to_write(text: str, reason: str) -> None:
    assert reasons(text)[0].endswith(reason)


def test_a_package_of_another_group_is_no_manifest() -> None:
    """Templates of InfluxDB once had such a kind."""
    [violation] = parse_text(document("Package")).violations
    assert (violation.code, violation.path) == ("unknown-kind", "root[0].kind")


def test_unknown_keys_are_warnings() -> None:
    text = manifest("require: []\nrequires: [{name: a, versions: ^1}]").replace("name: team", "name: team\n  nam: x")
    assert warnings(text) == [
        "root[0].metadata.nam@5:3: there is no field 'nam', so it will be ignored; did you mean 'name'?",
        "root[0].spec.require@8:3: there is no field 'require', so it will be ignored; did you mean 'requires'?",
        "root[0].spec.requires[0].versions@9:24: there is no field 'versions', so it will be ignored;"
        " did you mean 'version'?",
    ]
    assert warnings("Stray: 1\n" + manifest())[0].startswith("root[0].Stray@1:1: an object has no key 'Stray'")


@pytest.mark.parametrize(
    ("old", "new"),
    [("v1.2.0", "1.2.0"), ("pkger/V1", "pkger/v1"), ("version: 1.4", 'version: "1.4"')],
)
def test_a_fix_writes_what_the_reason_says(old: str, new: str) -> None:
    text = {
        "v1.2.0": manifest(version="v1.2.0"),
        "pkger/V1": manifest().replace("pkger/v1", "pkger/V1"),
        "version: 1.4": manifest("requires: [{name: a, version: 1.4}]"),
    }[old]
    [violation] = parse_text(text).violations
    [fix] = violation.fixes
    [edit] = fix.edits
    assert edited(text, edit) == text.replace(old, new)


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("", "has an empty part, . or .."),
        ("../a.yaml", "has an empty part, . or .."),
        ("a/./b.yaml", "has an empty part, . or .."),
        ("a//b.yaml", "has an empty part, . or .."),
        ("/a.yaml", "is absolute"),
        ("a\\b.yaml", "has the character '\\\\'"),
        ("c:a.yaml", "has the character ':'"),
        ("ä.yaml", "has the character 'ä'"),
        ("a.jsonnet", "is Jsonnet"),
        ("a.libsonnet", "is Jsonnet"),
        ("a.txt", "must end in .yaml, .yml or .json"),
        ("a" * 251 + ".yaml", "has 256 characters"),
    ],
)
def test_a_path_that_is_refused(path: str, problem: str) -> None:
    assert path_problem(path).startswith(problem)


@pytest.mark.parametrize("path", ["a.yaml", "a/b-c_d.1.yml", "A/..b.json", "a" * 250 + ".yaml"])
def test_a_path_that_is_accepted(path: str) -> None:
    assert path_problem(path) == ""


def test_the_schemas_have_the_manifest() -> None:
    good = read_documents("a.yml", FULL)[0]
    for schema in (manifest_schema(), document_schema()):
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
        assert [*validator.iter_errors(good)] == []
        wrong = {**good, "metadata": {"name": "A"}, "spec": {"requires": [{}], "values": {}, "files": [1]}}
        assert sorted(error.json_path for error in validator.iter_errors(wrong)) == [
            "$.metadata.name",
            "$.spec",
            "$.spec.files[0]",
            "$.spec.requires[0]",
            "$.spec.values",
        ]


def test_the_cache_of_documents_changes_nothing() -> None:
    cache = DocumentCache(1_000_000)
    sources = [Source("a.yml", FULL + "---\n" + document("Label", "name: x1", "l1"), Encoding.YAML)]
    plain = parse(sources, {}, ParseOptions())
    assert [parse(sources, {}, ParseOptions(), cache=cache) for _ in range(2)] == [plain, plain]


async def test_the_response_has_the_manifest(parser: Parser) -> None:
    parsed = await parser.parse(parser_pb2.Source(name="a.yml", text=FULL))
    assert parsed.manifest
    assert MessageToDict(parsed.manifest, preserving_proto_field_name=True) == {
        "name": "team-dashboards",
        "version": "1.4.0+2",
        "description": "Dashboards of the web team",
        "requires": [
            {"name": "base-labels", "version_range": "^1.2"},
            {"name": "web-buckets", "version_range": ">=2 <4"},
            {"name": "plain"},
        ],
        "platform_range": ">=0.3",
        "files": ["labels/team.yaml", "more.json"],
        "location": {"source": "a.yml", "line": 1, "column": 1},
    }
    assert (parsed.header.object_count, list(parsed.header.sources)) == (0, ["a.yml"])
    assert json.loads(parsed.summary)["labels"] == []


async def test_a_response_without_a_manifest_has_no_part_for_it(parser: Parser) -> None:
    parsed = await parser.parse(parser_pb2.Source(text=document("Label", "name: x1")))
    assert (parsed.manifest, parsed.package_references) == (None, [])
