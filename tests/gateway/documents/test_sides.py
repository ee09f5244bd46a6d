"""Sides of a diff and entries of a summary of each kind, as tables."""

from typing import Any

import orjson
import pytest
from pkger.model.v1 import object_pb2, plan_pb2

from services.gateway.documents.contents import CONTENTS, task_times
from services.gateway.documents.diff import Diff
from services.gateway.documents.summary import LISTS, Ids, Summary, plain_task
from services.gateway.ids import number_id
from services.views.ids import Entry

ORG = "00000000000000a1"
LABEL = {"name": "l", "color": "#fff", "description": ""}
ZERO = "0001-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("cron", "every", "offset", "shown"),
    [
        ("", "1h0m0s", "", {"every": "1h0m0s"}),
        ("0 * * * *", "", "15s", {"cron": "0 * * * *", "offset": "15s"}),
        ("0 * * * *", "1h0m0s", "", {"cron": "0 * * * *"}),
        ("", "", "", {}),
    ],
)
def test_a_task_shows_the_times_that_it_has(cron: str, every: str, offset: str, shown: dict[str, str]) -> None:
    assert task_times({"cron": cron, "every": every, "offset": offset}) == shown


COLUMNS = [{"name": "m", "columns": [{"name": "time", "type": "timestamp"}]}]


@pytest.mark.parametrize(
    ("members", "shown"),
    [
        ({"retentionPeriod": 0}, {"retentionRules": None}),
        ({"retentionPeriod": 3600 * 10**9}, {"retentionRules": [{"type": "expire", "everySeconds": 3600}]}),
        ({"retentionPeriod": 0, "schemaType": "implicit"}, {"retentionRules": None}),
        ({"retentionPeriod": 0, "schemaType": "other"}, {"retentionRules": None}),
        (
            {"retentionPeriod": 0, "schemaType": "explicit", "measurementSchemas": COLUMNS},
            {"retentionRules": None, "schemaType": "explicit", "measurementSchemas": COLUMNS},
        ),
    ],
)
def test_a_bucket_shows_its_retention_and_explicit_schemas(members: dict[str, Any], shown: dict[str, Any]) -> None:
    assert CONTENTS["buckets"]({"name": "b", "description": "", **members}) == {"name": "b", "description": "", **shown}


def test_a_dashboard_without_charts_has_a_list_without_charts() -> None:
    assert CONTENTS["dashboards"]({"name": "d", "description": "", "charts": None})["charts"] == []


def diff_of(kind: str, name: str, status: Any, old: Any = None, **more: Any) -> plan_pb2.ResourceDiff:
    """An entry of the diffs of a plan, with an old side."""
    key = object_pb2.ObjectKey(kind=kind, name=name)
    return plan_pb2.ResourceDiff(
        key=key, status=status, old_spec_json=orjson.dumps(old).decode() if old else "", **more
    )


def document_of(diffs: plan_pb2.PlanDiffs, *entries: Entry) -> dict[str, list[Any]]:
    """The diff document of a plan whose summary has *entries*."""
    made = Diff(diffs, ORG)
    for each in entries:
        made.add(each)
    found: dict[str, list[Any]] = orjson.loads(orjson.dumps(made.document()))
    return found


SLACK_SPEC = {"name": "e", "description": "", "url": "u", "status": "active", "token": ""}


def test_each_side_of_a_resource_shows_its_own_kind() -> None:
    """A Slack endpoint becomes one for PagerDuty."""
    pager = {"name": "e", "description": "", "url": "u", "status": "active", "routingKey": {"secretRef": {"key": "k"}}}
    diff = diff_of(
        "NotificationEndpointPagerDuty",
        "e",
        plan_pb2.DIFF_STATUS_EXISTS,
        SLACK_SPEC,
        old_kind="NotificationEndpointSlack",
        new_spec_json=orjson.dumps(pager).decode(),
    )
    (row,) = document_of(plan_pb2.PlanDiffs(resources=[diff]))["notificationEndpoints"]
    assert (row["kind"], row["old"]["type"]) == ("NotificationEndpointPagerDuty", "slack")
    assert (row["new"]["type"], row["new"]["routingKey"], row["new"]["orgID"]) == ("pagerduty", "secret: k", ORG)


def test_a_field_that_an_update_ignores_is_the_same_on_both_sides() -> None:
    live = {"name": "l", "color": "#live", "description": "before"}
    wanted = {**live, "description": "after"}
    properties = {"color": "#package", "description": "after"}
    label = {"kind": "Label", "templateMetaName": "l", "name": "l", "properties": properties}
    diff = diff_of("Label", "l", plan_pb2.DIFF_STATUS_EXISTS, live, new_spec_json=orjson.dumps(wanted).decode())
    (row,) = document_of(plan_pb2.PlanDiffs(resources=[diff]), label)["labels"]
    assert (row["old"], row["new"]) == (live, wanted)


def test_unknown_kinds_are_left_out() -> None:
    diffs = plan_pb2.PlanDiffs(resources=[diff_of("Robot", "r", plan_pb2.DIFF_STATUS_REMOVE, {"name": "r"})])
    diffs.label_mappings.add(
        status=plan_pb2.DIFF_STATUS_REMOVE,
        resource=object_pb2.ObjectKey(kind="Robot", name="r"),
        label=object_pb2.ObjectKey(kind="Label", name="l"),
    )
    assert set(map(len, document_of(diffs).values())) == {0}


def test_an_id_that_is_not_a_number_is_the_same_number_everywhere() -> None:
    diff = diff_of("Label", "l", plan_pb2.DIFF_STATUS_EXISTS, LABEL, resource_id="label-7")
    diffs = plan_pb2.PlanDiffs(resources=[diff])
    diffs.label_mappings.add(
        status=plan_pb2.DIFF_STATUS_EXISTS,
        resource=object_pb2.ObjectKey(kind="Bucket", name="b"),
        resource_id="bucket-7",
        label=object_pb2.ObjectKey(kind="Label", name="l"),
        label_id="label-7",
    )
    found = document_of(diffs)
    assert found["labels"][0]["id"] == found["labelMappings"][0]["labelID"] == number_id("label-7") > 0
    assert found["labelMappings"][0]["resourceID"] == number_id("bucket-7") > 0


def test_rows_of_several_kinds_are_sorted_by_their_names() -> None:
    rows = [("NotificationEndpointHTTP", "b"), ("NotificationEndpointHTTP", "d"), ("NotificationEndpointSlack", "a")]
    diffs = [diff_of(kind, name, plan_pb2.DIFF_STATUS_REMOVE) for kind, name in rows]
    found = document_of(plan_pb2.PlanDiffs(resources=diffs))
    assert [row["templateMetaName"] for row in found["notificationEndpoints"]] == ["a", "b", "d"]


def summary_of(ids: Ids, is_applied: bool, **lists: list[dict[str, Any]]) -> dict[str, Any]:
    """A completed summary of entries as the planner makes them."""
    summary = Summary(orjson.dumps(lists).decode(), ids, ORG, is_applied)
    return {name: list(summary.entries(name)) for name in LISTS} | {name: [*each] for name, each in summary.further()}


def entry(kind: str, **members: Any) -> dict[str, Any]:
    """The entry that the planner makes for an object named ``x``."""
    return {"kind": kind, "templateMetaName": "x", "envReferences": [], "labelAssociations": [], **members}


CHECK = {"name": "c", "type": "deadman", "createdAt": ZERO, "id": "00000000000000ff"}
SLACK = {"name": "e", "type": "slack", "status": "active"}
AGENT = {"name": "t", "config": "c"}
NUMBER = {"id": 255}
HEX = {"id": "00000000000000ff"}
ORG_NUMBER, ORG_HEX = {"orgID": 0xA1}, {"orgID": ORG}


@pytest.mark.parametrize(
    ("name", "kind", "made", "unknown", "known", "applied"),
    [
        ("buckets", "Bucket", {}, ORG_NUMBER, NUMBER | ORG_NUMBER, NUMBER | ORG_NUMBER),
        ("dashboards", "Dashboard", {"id": 0}, {"id": 0} | ORG_NUMBER, NUMBER | ORG_NUMBER, NUMBER | ORG_NUMBER),
        ("variables", "Variable", {}, {}, NUMBER, NUMBER | ORG_NUMBER),
        (
            "telegrafConfigs",
            "Telegraf",
            {"telegrafConfig": AGENT},
            {"telegrafConfig": AGENT | ORG_HEX},
            {"telegrafConfig": AGENT | HEX | ORG_HEX},
            {"telegrafConfig": AGENT | HEX | ORG_HEX},
        ),
        (
            "notificationEndpoints",
            "NotificationEndpointSlack",
            {"notificationEndpoint": SLACK},
            {"notificationEndpoint": SLACK, **SLACK, "id": 0},
            {"notificationEndpoint": SLACK | HEX, **SLACK, **NUMBER},
            {"notificationEndpoint": SLACK | HEX | ORG_HEX, **SLACK, **NUMBER, **ORG_HEX},
        ),
        (
            "checks",
            "CheckDeadman",
            {"check": {key: CHECK[key] for key in CHECK if key != "id"}, "status": "inactive"},
            {
                "check": {key: CHECK[key] for key in CHECK if key != "id"} | ORG_HEX,
                **CHECK,
                "id": 0,
                **ORG_HEX,
                "status": "inactive",
            },
            {"check": CHECK | ORG_HEX, **CHECK, **NUMBER, **ORG_HEX, "status": "inactive"},
            {"check": CHECK | ORG_HEX, **CHECK, **NUMBER, **ORG_HEX, "status": "inactive"},
        ),
    ],
)
def test_summaries_have_ids_and_the_organization_where_influxdb_has_them(
    name: str, kind: str, made: dict[str, Any], unknown: dict[str, Any], known: dict[str, Any], applied: dict[str, Any]
) -> None:
    here = {(kind, "x"): 255}
    for ids, is_applied, wanted in (({}, False, unknown), (here, False, known), (here, True, applied)):
        (found,) = summary_of(ids, is_applied, **{name: [entry(kind, **made)]})[name]
        assert found == entry(kind, **wanted)


def test_a_label_is_the_same_in_its_list_and_where_it_is_attached() -> None:
    label = {"kind": "Label", "templateMetaName": "l", "envReferences": [], "id": 0, "orgID": 0, "name": "l"}
    bucket = {**entry("Bucket"), "labelAssociations": [label]}
    mapping = {
        "resourceType": "buckets",
        "resourceTemplateMetaName": "x",
        "resourceID": 0,
        "labelTemplateMetaName": "l",
        "labelID": 0,
    }
    ids = {("Label", "l"): 7, ("Bucket", "x"): 8}
    found = summary_of(ids, False, labels=[label], buckets=[bucket], labelMappings=[mapping])
    assert found["labels"] == found["buckets"][0]["labelAssociations"] == [{**label, "id": 7, **ORG_NUMBER}]
    assert (found["labelMappings"][0]["resourceID"], found["labelMappings"][0]["labelID"]) == (8, 7)


def test_a_rule_has_the_id_of_its_endpoint_and_a_skipped_endpoint_keeps_the_one_of_the_plan() -> None:
    rules = [
        entry("NotificationRule", endpointTemplateMetaName="e", endpointID=0, id=0),
        {**entry("NotificationRule", endpointTemplateMetaName="skipped", endpointID=9, id=0), "templateMetaName": "y"},
    ]
    found = summary_of({("NotificationEndpointHTTP", "e"): 5}, False, notificationRules=rules)
    assert [rule["endpointID"] for rule in found["notificationRules"]] == [5, 9]


def test_tasks_are_in_two_lists_and_only_one_has_empty_times() -> None:
    task = entry("Task", id=0, name="t", cron="", every="1h0m0s", offset="")
    found = summary_of({("Task", "x"): 3}, False, summaryTask=[task])
    assert found["summaryTask"] == [{**task, "id": 3}]
    assert plain_task(found["summaryTask"][0]) == {
        key: value for key, value in {**task, "id": 3}.items() if value != ""
    }
