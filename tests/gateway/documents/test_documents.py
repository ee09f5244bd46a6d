"""Documents of answers, made without a server: violations, ids, stacks, and diffs of each kind."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from pkger.model.v1 import object_pb2, plan_pb2
from pkger.stack.v1 import stack_pb2

from services.core.model import Key, Object
from services.gateway.documents.answer import answer_json, refused_document
from services.gateway.documents.stack import stack_document
from services.gateway.documents.violations import path_steps, violation_document
from services.gateway.ids import hex_id, number_id
from services.kinds.format.canonical import spec_from_text
from services.kinds.registry import KINDS
from services.kinds.summary import summary_document
from services.rpc.plan_parts import JoinedPlan

ORG = "00000000000000a1"
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("resource_id", "number"), [("", 0), ("00000000000000ff", 255), ("ffffffffffffffff", 2**64 - 1)]
)
def test_ids_are_numbers(resource_id: str, number: int) -> None:
    assert (number_id(resource_id), hex_id(resource_id)) == (number, resource_id)


@pytest.mark.parametrize("resource_id", ["some-id", "FFFFFFFFFFFFFFFF", "ff", "x" * 100])
def test_ids_that_are_not_numbers_get_derived_ones(resource_id: str) -> None:
    assert number_id(resource_id) == int(hex_id(resource_id), 16) > 0
    assert number_id(resource_id) != number_id(f"{resource_id}-other")


@pytest.mark.parametrize(
    ("path", "fields", "indexes"),
    [
        ("root[0].metadata.name", ["root", "metadata", "name"], [0, None, None]),
        (
            "root[3].spec.retentionRules[0].everySeconds",
            ["root", "spec", "retentionRules", "everySeconds"],
            [3, None, 0, None],
        ),
        ("resources", ["resources"], [None]),
        ("root[1]", ["root"], [1]),
        ("root[1].spec.lists[2][3]", ["root", "spec", "lists", "lists"], [1, None, 2, 3]),
    ],
)
def test_paths_become_steps(path: str, fields: list[str], indexes: list[int | None]) -> None:
    assert path_steps(path) == (fields, indexes)


def test_a_violation_has_its_location() -> None:
    violation = object_pb2.Violation(kind="Label", path="root[0].spec.color", reason="no colour", code="c")
    violation.location.source, violation.location.line, violation.location.column = "a.yml", 3, 7
    assert violation_document(violation) == {
        "kind": "Label",
        "fields": ["root", "spec", "color"],
        "idxs": [0, None, None],
        "indexes": [0, None, None],
        "reason": "no colour",
        "code": "c",
        "source": "a.yml",
        "line": 3,
        "column": 7,
    }


def test_a_refusal_has_all_lists_and_a_message_of_one_line() -> None:
    violation = object_pb2.Violation(kind="Label", path="root[0].spec.color", reason="no colour")
    document = refused_document([violation, violation])
    assert document["message"] == "the package breaks rules: Label root[0].spec.color: no colour, and 1 more"
    assert document["code"] == "unprocessable entity"
    assert set(document["diff"]) == set(made_diff())
    assert {"tasks", "summaryTask", "missingSecrets"} <= set(document["summary"])
    assert all(each == [] for part in ("diff", "summary") for each in document[part].values())


def stack(**more: Any) -> stack_pb2.Stack:
    made = stack_pb2.Stack(id="00000000000000b2", name="s", description="d", urls=["http://x/a.yml"], **more)
    made.create_time.FromDatetime(START)
    made.update_time.FromDatetime(START)
    return made


def revision(number: int, after: timedelta, kind: Any = plan_pb2.OPERATION_KIND_APPLY) -> stack_pb2.Revision:
    made = stack_pb2.Revision(number=number, kind=kind, sources=[] if kind != 1 else [f"{number}.yml"])
    made.create_time.FromDatetime(START + after)
    return made


def entry(kind: str, name: str, resource_id: str, *labels: str) -> object_pb2.InventoryEntry:
    return object_pb2.InventoryEntry(
        key=object_pb2.ObjectKey(kind=kind, name=name),
        resource_id=resource_id,
        associations=[object_pb2.ObjectKey(kind="Label", name=label) for label in labels],
    )


def test_a_stack_that_was_just_made_has_one_event() -> None:
    document = stack_document(stack(), [], [], [], ORG)
    event = {
        "eventType": "create",
        "updatedAt": "2026-01-01T00:00:00.000000Z",
        "name": "s",
        "description": "d",
        "sources": [],
        "urls": ["http://x/a.yml"],
        "resources": [],
    }
    assert document == {
        "id": "00000000000000b2",
        "orgID": ORG,
        "createdAt": event["updatedAt"],
        "events": [event],
        **event,
    }


def test_times_of_events_grow_and_the_last_one_is_the_record() -> None:
    made = stack(sources=["2.yml"])
    made.update_time.FromDatetime(START + timedelta(hours=1))
    history = [revision(1, timedelta()), revision(2, timedelta(minutes=1))]
    document = stack_document(made, [entry("Bucket", "b", "00000000000000c3", "l")], history, [], ORG)
    assert [event["eventType"] for event in document["events"]] == ["create", "update", "update", "update"]
    times = [event["updatedAt"] for event in document["events"]]
    assert times == sorted(set(times))
    assert document["updatedAt"] == "2026-01-01T01:00:00.000000Z"
    assert [event["sources"] for event in document["events"]] == [[], ["1.yml"], ["2.yml"], ["2.yml"]]
    assert [len(event["resources"]) for event in document["events"]] == [0, 0, 0, 1]
    assert document["resources"] == [
        {
            "apiVersion": "influxdata.com/v2alpha1",
            "kind": "Bucket",
            "resourceID": "00000000000000c3",
            "templateMetaName": "b",
            "associations": [{"kind": "Label", "metaName": "l"}],
            "links": {"self": "/api/v2/buckets/00000000000000c3"},
        }
    ]


def test_an_uninstalled_stack_has_the_sources_of_the_last_apply() -> None:
    uninstall = revision(2, timedelta(minutes=1), plan_pb2.OPERATION_KIND_UNINSTALL)
    made = stack()
    made.update_time.FromDatetime(START + timedelta(minutes=1))
    document = stack_document(made, [], [revision(1, timedelta()), uninstall], [], ORG)
    assert (document["eventType"], document["sources"], document["resources"]) == ("uninstall", ["1.yml"], [])


def test_resources_have_generic_kinds_and_rules_their_endpoints() -> None:
    rule = object_pb2.Object(
        key=object_pb2.ObjectKey(kind="NotificationRule", name="r"), spec_json='{"endpointName":"e"}'
    )
    entries = [entry("CheckDeadman", "c", "1" * 16), entry("NotificationEndpointSlack", "e", "2" * 16)]
    entries.append(entry("NotificationRule", "r", "3" * 16, "l"))
    document = stack_document(stack(), entries, [], [rule], ORG)
    assert [each["kind"] for each in document["resources"]] == ["Check", "NotificationEndpoint", "NotificationRule"]
    assert document["resources"][2]["associations"] == [
        {"kind": "Label", "metaName": "l"},
        {"kind": "NotificationEndpoint", "metaName": "e"},
    ]


def resource_diff(kind: str, name: str, old: Any = None, new: Any = None, **more: Any) -> plan_pb2.ResourceDiff:
    status = (
        plan_pb2.DIFF_STATUS_REMOVE if new is None else plan_pb2.DIFF_STATUS_EXISTS if old else plan_pb2.DIFF_STATUS_NEW
    )
    return plan_pb2.ResourceDiff(
        key=object_pb2.ObjectKey(kind=kind, name=name),
        status=status,
        old_spec_json=orjson.dumps(old).decode() if old else "",
        new_spec_json=orjson.dumps(new).decode() if new else "",
        **more,
    )


TASK = {"name": "t", "cron": "", "every": "1h", "offset": "", "description": "", "query": "q", "status": "active"}
SLACK = {"name": "s", "description": "", "url": "u", "status": "active", "token": {"secretRef": {"key": "k"}}}
RULE = {
    "name": "r",
    "description": "",
    "endpointName": "e",
    "every": "10m",
    "offset": "",
    "messageTemplate": "",
    "channel": "",
    "status": "active",
    "statusRules": [],
    "tagRules": [],
}


def answer_of(*diffs: plan_pb2.ResourceDiff, mappings: Any = (), hidden: Collection[str] = ()) -> dict[str, Any]:
    """The answer to a dry run that wants the new sides."""
    ids = {Key(diff.key.kind, diff.key.name): diff.resource_id for diff in diffs}
    wanted = [
        Object(Key(diff.key.kind, diff.key.name), "v", spec_from_text(diff.new_spec_json))
        for diff in diffs
        if diff.new_spec_json
    ]
    plan = JoinedPlan(summaries=[orjson.dumps(summary_document(wanted, ids)).decode()])
    plan.diffs.CopyFrom(plan_pb2.PlanDiffs(resources=diffs, label_mappings=mappings))
    found: dict[str, Any] = orjson.loads(answer_json(plan, "", ORG, is_applied=False, hidden=hidden))
    return found


def made_diff(*diffs: plan_pb2.ResourceDiff, mappings: Any = ()) -> dict[str, Any]:
    """The diff of that answer."""
    found: dict[str, Any] = answer_of(*diffs, mappings=mappings)["diff"]
    return found


def test_a_task_has_no_empty_time_and_a_removed_one_has_no_new_side() -> None:
    (row,) = made_diff(resource_diff("Task", "t", TASK, resource_id="00000000000000ff"))["tasks"]
    assert (row["id"], row["stateStatus"], row["new"]) == (255, "remove", None)
    assert row["old"] == {"name": "t", "description": "", "every": "1h0m0s", "query": "q", "status": "active"}


def test_a_new_variable_has_no_member_old() -> None:
    variable = {"name": "v", "description": "", "type": "constant", "values": ["a"], "selected": []}
    (row,) = made_diff(resource_diff("Variable", "v", None, variable))["variables"]
    assert "old" not in row
    assert row["new"]["args"] == {"type": "constant", "values": ["a"]}
    (label,) = made_diff(resource_diff("Label", "l", None, {"name": "l", "color": "", "description": ""}))["labels"]
    assert label["old"] is None


def test_endpoints_show_keys_of_secrets_and_never_credentials() -> None:
    written = {**SLACK, "token": "the-credential"}
    (row,) = made_diff(resource_diff("NotificationEndpointSlack", "e", written, SLACK))["notificationEndpoints"]
    assert (row["old"]["token"], row["new"]["token"]) == ("", "secret: k")


def test_a_dry_run_shows_no_keys_that_an_apply_would_make() -> None:
    spec = {**SLACK, "url": "secret: k"}
    for hidden, shown in ((["k"], ""), (["other"], "secret: k")):
        answer = answer_of(resource_diff("NotificationEndpointSlack", "e", SLACK, spec), hidden=hidden)
        (row,) = answer["diff"]["notificationEndpoints"]
        (entry,) = answer["summary"]["notificationEndpoints"]
        for side in (row["new"], entry, entry["notificationEndpoint"]):
            assert (side["token"], side["url"]) == (shown, shown)
        assert row["old"]["token"] == "secret: k"


def test_the_old_endpoint_of_a_rule_is_the_one_that_it_had() -> None:
    change = plan_pb2.FieldChange(
        path="/endpointName", old_json='{"kind":"NotificationEndpointSlack","id":"00000000000000aa"}', new_json='"e"'
    )
    before = resource_diff("NotificationEndpointSlack", "before", SLACK, None, resource_id="00000000000000aa")
    rule = resource_diff("NotificationRule", "r", {**RULE, "endpointName": "x"}, RULE, changes=[change])
    (row,) = made_diff(before, rule)["notificationRules"]
    assert {key: row["old"][key] for key in ("endpointID", "endpointName", "endpointType")} == {
        "endpointID": 0xAA,
        "endpointName": "s",
        "endpointType": "slack",
    }
    key = object_pb2.ObjectKey(kind="NotificationEndpointSlack", name="before")
    reference = plan_pb2.StepReference(pointer="/endpointName", key=key, resource_id="00000000000000aa")
    by_reference = resource_diff("NotificationRule", "r", RULE, old_references=[reference])
    by_name = resource_diff("NotificationRule", "r", {**RULE, "endpointName": "before"})
    for removed in (by_reference, by_name):
        (row,) = made_diff(before, removed)["notificationRules"]
        assert (row["old"]["endpointID"], row["old"]["endpointType"]) == (0xAA, "slack")


def test_removed_mappings_have_no_names() -> None:
    label = resource_diff("Label", "l", None, {"name": "label", "color": "", "description": ""})
    mappings = [
        plan_pb2.LabelMappingDiff(
            status=status,
            resource=object_pb2.ObjectKey(kind="Label", name="l"),
            label=object_pb2.ObjectKey(kind="Label", name="l"),
        )
        for status in (plan_pb2.DIFF_STATUS_NEW, plan_pb2.DIFF_STATUS_REMOVE)
    ]
    rows = made_diff(label, mappings=mappings)["labelMappings"]
    assert sorted((row["stateStatus"], row["resourceName"], row["labelName"]) for row in rows) == [
        ("new", "label", "label"),
        ("remove", "", ""),
    ]


def test_each_kind_has_a_list_in_the_diff() -> None:
    lists = {each.summary_key for each in KINDS.values()} - {"summaryTask"} | {"tasks", "labelMappings"}
    assert set(made_diff()) == lists
