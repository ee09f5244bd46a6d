"""The JSON Schemas of the kinds: they accept valid packages, and report the paths of errors."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from services.kinds.format.canonical import plain
from services.kinds.registry import KINDS
from services.kinds.schema import kind_schema, package_schema
from services.syntax.json_reader import read_array
from services.syntax.yaml_reader import read_documents
from tests.corpora import cases_in, corpus_parameters, package_text, packages_in

RULE = "$.spec.retentionRules[0]"
ANY_KIND = jsonschema.Draft202012Validator(package_schema())


def document(kind: str, spec: Any, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "influxdata.com/v2alpha1", "kind": kind, "metadata": {"name": "a"}, "spec": spec, **more}


def paths(item: Any) -> list[str]:
    return sorted(error.json_path for error in ANY_KIND.iter_errors(item))


@pytest.mark.parametrize(
    "schema", [package_schema(), *map(kind_schema, KINDS.values())], ids=lambda found: found["title"]
)
def test_a_schema_is_one(schema: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    assert all(field["description"] for field in _fields(schema))


def _fields(schema: Any) -> list[dict[str, Any]]:
    """The schemas of all fields, at any depth, conditions left out."""
    if isinstance(schema, list):
        return [field for item in schema for field in _fields(item)]
    if not isinstance(schema, dict):
        return []
    parts = [value for key, value in schema.items() if key not in ("allOf", "if", "then", "anyOf", "contains")]
    fields = [
        value
        for key, value in schema.get("properties", {}).items()
        if key not in ("metadata", "spec", "key", "default")
    ]
    return fields + _fields(parts)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (None, []),
        (document("Label", None), []),
        (document("Label", {"color": "#fff", "name": {"envRef": {"key": "k", "default": 5}}}), []),
        (document("Bucket", {"retentionRules": [{"type": "expire", "everySeconds": 2.592e6}]}), []),
        (document("Telegraf", {"config": "x", "unknown": 1}, stray=True), []),
        (document("Variable", {"type": "Map", "values": {"a": 1}, "selected": ["a"]}), []),
        (document("Task", {"query": "x", "every": "1h30m", "status": " Active"}), []),
        (document("Label", {"color": True}), ["$.spec.color"]),
        (document("Bucket", {"retentionRules": [{"type": "expire", "everySeconds": 9}]}), [f"{RULE}.everySeconds"]),
        (document("Task", {"query": ""}), ["$.spec.query"]),
        (document("Telegraf", {}), ["$.spec"]),
        (document("Task", {"query": "x", "every": "1.5h", "status": "on"}), ["$.spec.every", "$.spec.status"]),
        (document("NotificationRule", {"endpointName": "e", "every": "1m", "statusRules": []}), ["$.spec.statusRules"]),
        (document("NotificationEndpointHTTP", {"url": "x", "method": "push", "type": "none"}), ["$.spec.method"]),
        (document("Dashboard", {"charts": [{"kind": "Pie"}]}), ["$.spec.charts[0].kind"]),
        (document("Rocket", {}), ["$.kind"]),
        ({"kind": "Label"}, ["$", "$", "$"]),
        (document("Label", {}, apiVersion="v1"), ["$.apiVersion"]),
        (document("Label", {}, metadata={"name": "My Label"}), ["$.metadata.name"]),
        (document("Label", {}, metadata={"name": "a" * 64}), ["$.metadata.name"]),
        (document("Label", {}, metadata={"name": {"envRef": {"key": "k"}}}), []),
        (document("Check", {}), []),
    ],
)  # fmt: skip
def test_a_schema_reports_each_error(item: Any, expected: list[str]) -> None:
    assert paths(item) == expected


def test_ignored_fields_are_deprecated() -> None:
    """Editors strike through deprecated fields and show the reason; validators accept them."""
    schema = package_schema()
    words = schema["properties"]["kind"]["anyOf"]
    flagged = {word["const"]: word["deprecationMessage"] for word in words if "const" in word}
    assert flagged == {
        "Check": "Objects of kind Check are ignored: write one of CheckDeadman, CheckThreshold.",
        "NotificationEndpoint": "Objects of kind NotificationEndpoint are ignored: write one of"
        " NotificationEndpointHTTP, NotificationEndpointPagerDuty, NotificationEndpointSlack.",
    }
    label = schema["$defs"]["Label"]
    for mapping in (label, label["properties"]["metadata"], label["properties"]["spec"]):
        assert mapping["additionalProperties"]["deprecated"] is True


@pytest.mark.parametrize("folder", corpus_parameters(pytest.mark.slow))
def test_all_good_packages_fit_the_schemas(folder: Path) -> None:
    texts = {path.name: package_text(path) for path in packages_in(folder)}
    for path in sorted(folder.parent.glob("*.jsonl")):
        for case in cases_in(path):
            if case["encoding"] == "yaml" and not (case["expect"]["errors"] or case["expect"]["decode_error"]):
                texts[case["id"]] = case["source"]
    found = {name: schema_errors(name, text) for name, text in texts.items()}
    assert {name: errors for name, errors in found.items() if errors} == {}
    assert len(texts) > 5


def schema_errors(name: str, text: str) -> list[str]:
    """The errors of the documents of a package."""
    documents = read_array(name, text)[0] if text.startswith("[") else read_documents(name, text)
    return [
        f"{error.json_path}: {error.message[:200]}" for item in documents for error in ANY_KIND.iter_errors(plain(item))
    ]
