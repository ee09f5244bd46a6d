"""The summary document (docs/reference/package-format.md, "Summary"), parsed and planned."""

from dataclasses import replace
from typing import Any

import pytest

from services.core.model import EnvReference, Key, Object
from services.kinds.format.canonical import spec_of
from services.kinds.registry import KINDS
from services.kinds.summary import planned_summary, summary_document

VERSION = "influxdata.com/v2alpha1"
RED, BLUE = Key("Label", "red"), Key("Label", "blue")


def an_object(kind: str, name: str, spec: dict[str, Any], labels: tuple[Key, ...] = (), **more: Any) -> Object:
    return Object(Key(kind, name), VERSION, spec_of({"name": name.title(), "description": "", **spec}), labels, **more)


LABELS = [an_object("Label", "red", {"color": "#f00"}), an_object("Label", "blue", {"color": ""})]
BUCKET_SPEC: dict[str, Any] = {"retentionRules": [], "schemaType": "", "measurementSchemas": []}


def only(document: dict[str, Any], name: str) -> dict[str, Any]:
    [entry] = document[name]
    return {
        key: entry[key]
        for key in entry
        if key not in ("kind", "templateMetaName", "envReferences", "labelAssociations")
    }


def test_an_empty_package_has_empty_lists() -> None:
    assert summary_document([], {}) == {
        name: []
        for name in (
            "buckets",
            "checks",
            "dashboards",
            "labelMappings",
            "labels",
            "missingEnvRefs",
            "missingSecrets",
            "notificationEndpoints",
            "notificationRules",
            "summaryTask",
            "telegrafConfigs",
            "variables",
        )
    }


def test_a_new_kind_has_its_list_and_counts_as_no_label(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = replace(KINDS["Telegraf"], name="Notebook", summary_key="notebooks", labelled=False)
    monkeypatch.setitem(KINDS, notebook.name, notebook)
    document = summary_document([an_object("Notebook", "n0", {"config": "c"}), LABELS[0]], {})
    [entry] = document["notebooks"]
    assert entry == {
        "kind": "Notebook",
        "templateMetaName": "n0",
        "envReferences": [],
        "telegrafConfig": {"name": "N0", "config": "c"},
    }
    assert [label["templateMetaName"] for label in document["labels"]] == ["red"]
    assert list(document) == [*sorted(list(document)[:-3]), "labelMappings", "missingEnvRefs", "missingSecrets"]


def test_an_entry_has_its_name_references_and_labels() -> None:
    reference = EnvReference("spec.name", "key", 5, None)
    bucket = an_object("Bucket", "b0", BUCKET_SPEC, (BLUE, RED), env_references=(reference,))
    [entry] = summary_document([bucket, *LABELS], {})["buckets"]
    assert (entry["kind"], entry["templateMetaName"], entry["name"]) == ("Bucket", "b0", "B0")
    assert entry["envReferences"] == [
        {"resourceField": "spec.name", "envRefKey": "key", "valueType": "", "value": 5, "defaultValue": None}
    ]
    assert [label["templateMetaName"] for label in entry["labelAssociations"]] == ["blue", "red"]
    assert entry["labelAssociations"][1]["properties"] == {"color": "#f00", "description": ""}


@pytest.mark.parametrize(
    ("kind", "spec", "entry"),
    [
        ("Label", {"color": "c"}, {"id": 0, "orgID": 0, "properties": {"color": "c", "description": ""}}),
        ("Bucket", BUCKET_SPEC, {"description": "", "retentionPeriod": 0}),
        (
            "Bucket",
            {
                "retentionRules": [{"type": "expire", "everySeconds": 3600}],
                "schemaType": "explicit",
                "measurementSchemas": [
                    {
                        "name": "m",
                        "columns": [
                            {"name": "f", "type": "field", "dataType": "float"},
                            {"name": "time", "type": "timestamp", "dataType": ""},
                        ],
                    }
                ],
            },
            {
                "description": "",
                "retentionPeriod": 3600 * 10**9,
                "schemaType": "explicit",
                "measurementSchemas": [
                    {
                        "name": "m",
                        "columns": [
                            {"name": "f", "type": "field", "dataType": "float"},
                            {"name": "time", "type": "timestamp"},
                        ],
                    }
                ],
            },
        ),
        ("Dashboard", {"charts": []}, {"id": 0, "orgID": 0, "description": "", "charts": None}),
        (
            "Task",
            {"cron": "", "every": "1s500ms", "offset": "", "query": "q", "status": "active"},
            {"id": 0, "cron": "", "description": "", "every": "1.5s", "offset": "", "query": "q", "status": "active"},
        ),
        ("Variable", {"type": "", "selected": []}, {"description": "", "variables": [], "arguments": None}),
        (
            "Variable",
            {"type": "other", "selected": ["a"]},
            {"description": "", "variables": ["a"], "arguments": {"type": "other", "values": None}},
        ),
        (
            "Variable",
            {"type": "constant", "values": [], "selected": []},
            {"description": "", "variables": [], "arguments": {"type": "constant", "values": None}},
        ),
        (
            "Variable",
            {"type": "map", "values": {"a": "b"}, "selected": []},
            {"description": "", "variables": [], "arguments": {"type": "map", "values": {"a": "b"}}},
        ),
        (
            "Variable",
            {"type": "query", "query": "q", "language": "flux", "selected": []},
            {
                "description": "",
                "variables": [],
                "arguments": {"type": "query", "values": {"query": "q", "language": "flux"}},
            },
        ),
    ],
)
def test_each_kind_has_its_keys(kind: str, spec: dict[str, Any], entry: dict[str, Any]) -> None:
    document = summary_document([an_object(kind, "x0", spec)], {})
    assert only(document, KINDS[kind].summary_key) == {"name": "X0", **entry}


@pytest.mark.parametrize(
    ("kind", "spec"),
    [("Bucket", BUCKET_SPEC), ("Variable", {"type": "", "selected": []}), ("Label", {"color": ""})],
)
def test_a_known_id_is_shown_as_a_number(kind: str, spec: dict[str, Any]) -> None:
    document = summary_document([an_object(kind, "x0", spec)], {Key(kind, "x0"): "ffffffffffffffff"})
    assert only(document, KINDS[kind].summary_key)["id"] == 2**64 - 1


def test_a_rule_without_its_endpoint_has_no_endpoint_data() -> None:
    rule = an_object(
        "NotificationRule",
        "x0",
        {
            **{"endpointName": "e0", "every": "", "offset": "", "messageTemplate": "", "status": "active"},
            **{"statusRules": [], "tagRules": []},
        },
    )
    entry = only(summary_document([rule], {}), "notificationRules")
    keys = ("endpointID", "endpointTemplateMetaName", "endpointType")
    assert [entry[key] for key in keys] == [0, "", ""]


@pytest.mark.parametrize("resource_id", ["arn:x", "f" * 32, "-1"])
def test_an_id_that_is_no_number_of_64_bits_counts_as_unknown(resource_id: str) -> None:
    """A summary with a longer number could not be written as JSON, and each stored plan has a summary."""
    document = summary_document([an_object("Label", "x0", {"color": ""})], {Key("Label", "x0"): resource_id})
    assert only(document, "labels")["id"] == 0


def shown(document: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    keys = ("resourceType", "resourceTemplateMetaName", "labelTemplateMetaName", "status")
    return [tuple(mapping[key] for key in keys) for mapping in document["labelMappings"]]


def test_label_mappings_are_sorted_by_display_name_when_parsed_and_by_meta_name_when_planned() -> None:
    first = Object(Key("Bucket", "a"), VERSION, spec_of({"name": "Zz", "description": "", **BUCKET_SPEC}), (BLUE, RED))
    second = Object(Key("Bucket", "z"), VERSION, spec_of({"name": "Aa", "description": "", **BUCKET_SPEC}), (RED,))
    objects = [first, second, *LABELS]
    assert shown(summary_document(objects, {})) == [
        ("buckets", "z", "red", "new"),
        ("buckets", "a", "blue", "new"),
        ("buckets", "a", "red", "new"),
    ]
    status = {(first.key, BLUE): "exists"}
    assert shown(summary_document(objects, {}, lambda item, label: status.get((item, label), "new"))) == [
        ("buckets", "a", "blue", "exists"),
        ("buckets", "a", "red", "new"),
        ("buckets", "z", "red", "new"),
    ]


def test_a_label_mapping_names_both_sides() -> None:
    bucket = an_object("Bucket", "b0", BUCKET_SPEC, (RED,))
    document = summary_document([bucket, *LABELS], {bucket.key: "0a", RED: "0b"})
    assert document["labelMappings"] == [
        {
            "status": "new",
            "resourceID": 10,
            "resourceTemplateMetaName": "b0",
            "resourceName": "B0",
            "resourceType": "buckets",
            "labelTemplateMetaName": "red",
            "labelName": "Red",
            "labelID": 11,
        }
    ]


def test_missing_keys_are_sorted() -> None:
    document = summary_document([], {}, missing_env_refs=["b", "a"], missing_secrets=("d", "c"))
    assert (document["missingEnvRefs"], document["missingSecrets"]) == (["a", "b"], ["c", "d"])


RULE_SPEC: dict[str, Any] = {
    **{"endpointName": "e0", "every": "", "offset": "", "messageTemplate": "", "status": "active"},
    **{"statusRules": [], "tagRules": []},
}
ENDPOINT_SPEC: dict[str, Any] = {"url": "https://example.com", "status": "active", "token": ""}


def test_a_planned_summary_has_known_ids_and_missing_keys() -> None:
    bucket = an_object("Bucket", "b0", BUCKET_SPEC, (BLUE, RED))
    ids = {RED: "0b", bucket.key: "0a"}
    document = planned_summary([bucket, *LABELS], (), ids, {(bucket.key, RED)}, ["b", "a"], ["d", "c"])
    assert only(document, "buckets")["id"] == 10
    assert [label.get("id", 0) for label in document["labels"]] == [0, 11]
    assert shown(document) == [("buckets", "b0", "blue", "new"), ("buckets", "b0", "red", "exists")]
    assert [mapping["labelID"] for mapping in document["labelMappings"]] == [0, 11]
    assert (document["missingEnvRefs"], document["missingSecrets"]) == (["a", "b"], ["c", "d"])


def test_a_planned_summary_leaves_out_skipped_objects_and_labels() -> None:
    first, second = (an_object("Bucket", name, BUCKET_SPEC, (BLUE, RED)) for name in ("b0", "b1"))
    document = planned_summary([first, second, *LABELS], {second.key, BLUE}, {}, (), (), ())
    assert [entry["templateMetaName"] for entry in document["buckets"]] == ["b0"]
    assert [label["templateMetaName"] for label in document["buckets"][0]["labelAssociations"]] == ["red"]
    assert [label["templateMetaName"] for label in document["labels"]] == ["red"]
    assert shown(document) == [("buckets", "b0", "red", "new")]
    assert first.associations == (BLUE, RED)


@pytest.mark.parametrize(("skipped", "listed"), [(False, 1), (True, 0)])
def test_a_planned_rule_has_the_data_of_a_skipped_endpoint(skipped: bool, listed: int) -> None:
    endpoint = an_object("NotificationEndpointSlack", "e0", ENDPOINT_SPEC)
    rule = an_object("NotificationRule", "r0", RULE_SPEC)
    left_out = {endpoint.key} if skipped else set()
    document = planned_summary([endpoint, rule], left_out, {endpoint.key: "0c"}, (), (), ())
    entry = only(document, "notificationRules")
    keys = ("endpointID", "endpointTemplateMetaName", "endpointType")
    assert [entry[key] for key in keys] == [12, "e0", "slack"]
    assert len(document["notificationEndpoints"]) == listed


def test_a_planned_summary_of_all_objects_equals_the_one_of_the_package_but_for_the_order() -> None:
    bucket = an_object("Bucket", "b0", BUCKET_SPEC, (BLUE, RED))
    objects = [bucket, an_object("Bucket", "b1", BUCKET_SPEC, (RED,)), *LABELS]
    planned = planned_summary(objects, (), {}, (), ["e"], ["s"])
    assert planned == summary_document(objects, {}, missing_env_refs=["e"], missing_secrets=["s"])
