"""Exports through real servers: the selected resources, their names and their dependencies (docs/export.md)."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import object_pb2
from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub

from services.core.errors import (
    PlatformUnknown,
    RequestInvalid,
    ResourceNotFound,
    StackNotFound,
)
from services.kinds.registry import KINDS
from tests.apply.packages import EVERY_KIND, LABEL, a_check, a_rule, an_endpoint, an_object, text
from tests.cluster import Calls, Cluster, Export
from tests.parser.written import CHART_KINDS

ALL = planner_pb2.ExportFilter()
COUNTS = Counter(item["kind"] for item in EVERY_KIND)
CHART: dict[str, Any] = {
    "name": "chart",
    "width": 3,
    "height": 2,
    "xPos": 4,
    "geom": "line",
    "axes": [{"name": "x", "domain": [0, 10.5]}, {"name": "y", "base": "10"}],
    "colors": [{"type": "min", "hex": "#fff"}, {"type": "max", "hex": "#000", "value": 5}],
    "position": "overlaid",
    "queries": [{"query": 'from(bucket: "b")\n\t|> range(start: -1h)  \n'}],
    "tableOptions": {"wrapping": "wrap", "fixFirstColumn": True, "sortBy": "_time"},
    "fieldOptions": [{"fieldName": "_time", "displayName": "Time", "visible": True}],
    "timeFormat": "YYYY",
    "staticLegend": {"show": True},
}


def keys(export: Export) -> list[tuple[str, str]]:
    return [(item["kind"], item["metadata"]["name"]) for item in export.objects]


def shown(export: Export) -> list[tuple[str, str]]:
    """Kinds and display names."""
    return [(item["kind"], item["spec"].get("name", item["metadata"]["name"])) for item in export.objects]


def labels(export: Export) -> dict[str, list[str]]:
    """Display names of the labels of each object, by its display name."""
    names = {item["metadata"]["name"]: name for item, (_, name) in zip(export.objects, shown(export), strict=True)}
    return {
        name: [names[label["name"]] for label in item["spec"]["associations"]]
        for item, (_, name) in zip(export.objects, shown(export), strict=True)
        if "associations" in item["spec"]
    }


def the(kind: str, **which: str) -> planner_pb2.NamedResource:
    return planner_pb2.NamedResource(kind=kind, **which)


async def only(services: Cluster, kind: str) -> object_pb2.Resource:
    [found] = await services.resources(kinds=[kind])
    return found


@pytest.mark.parametrize(
    "item", [each for each in EVERY_KIND if each["metadata"]["name"] != "to_pager"], ids=lambda each: each["kind"]
)
async def test_one_of_each_kind_by_id_by_name_and_renamed(services: Cluster, item: dict[str, Any]) -> None:
    """Rows 70, 72."""
    kind, display_name = item["kind"], item["spec"]["name"]
    await services.apply(text(*(each for each in EVERY_KIND if each["metadata"]["name"] != "to_pager")))
    resource = await only(services, kind)
    for which in (
        {"id": resource.id},
        {"name": display_name},
        {"id_or_name": resource.id},
        {"id_or_name": display_name},
    ):
        export = await services.export(resources=[the(kind, **which)])
        assert (kind, display_name) in shown(export)
        assert await services.plan(export.text)
        renamed = await services.export(resources=[the(kind, **which, new_name="Another")])
        assert renamed.text.count("Another") == 1
        assert (kind, "Another") in shown(renamed)
        assert keys(renamed) == keys(export)
        assert await services.plan(renamed.text)


@pytest.mark.parametrize("kind", CHART_KINDS)
async def test_charts_of_all_kinds_come_back(services: Cluster, kind: str) -> None:
    """Row 71."""
    dashboard = an_object("Dashboard", "d", "dd", charts=[{**CHART, "kind": kind}, {**CHART, "kind": kind, "xPos": 0}])
    await services.apply(text(dashboard), stack="s")
    before = await only(services, "Dashboard")
    export = await services.export(stack="s")
    assert (await services.plan(export.text, stack="s")).no_change
    assert kind.lower() == "markdown" or "|> range(start: -1h)" in export.text
    copy = services.in_org(f"{services.org}-copy")
    await copy.apply(export.text, stack="s")
    assert (await only(copy, "Dashboard")).spec_json == before.spec_json


async def test_all_that_share_a_name_are_exported_and_rules_share_their_endpoint(services: Cluster) -> None:
    """Rows 72, 73."""
    tasks = [an_object("Task", f"t{n}", "same", every=f"{n}h", query="x") for n in (1, 2)]
    rules = [a_rule(f"r{n}", "hook", "alike") for n in (1, 2)]
    await services.apply(text(*tasks, an_endpoint("Slack", "hook", "Our hook"), *rules))
    export = await services.export(resources=[the("Task", name="same"), the("NotificationRule", name="alike")])
    assert shown(export) == [
        ("NotificationEndpointSlack", "Our hook"),
        *[("NotificationRule", "alike")] * 2,
        *[("Task", "same")] * 2,
    ]
    [endpoint] = [name for kind, name in keys(export) if kind == "NotificationEndpointSlack"]
    assert endpoint.startswith("our-hook-")
    assert [item["spec"]["endpointName"] for item in export.objects[1:3]] == [endpoint] * 2
    assert export.secret_keys == ["slack-token"]


async def test_the_options_of_a_script_are_part_of_what_is_live(services: Cluster) -> None:
    """Differs from row 74, by the law of exports: without its options, the task would differ from the live one."""
    script = 'option task = {name: "x", every: 1h}\n\nfrom(bucket: "b")'
    await services.apply(text(an_object("Task", "t", "t", every="1h", query=script)), stack="s")
    assert (await services.plan((await services.export(stack="s")).text, stack="s")).no_change


async def test_labels_come_along_once(services: Cluster) -> None:
    """Row 75."""
    shared = [an_object("Label", name, name) for name in ("blue", "red")]
    both = [an_object(kind, kind.lower(), kind, ["blue", "red"]) for kind in ("Bucket", "Dashboard")]
    await services.apply(text(*shared, an_object("Label", "green", "green"), *both))
    export = await services.export(resources=[the("Bucket", name="Bucket"), the("Dashboard", name="Dashboard")])
    assert shown(export) == [("Label", "blue"), ("Label", "red"), ("Bucket", "Bucket"), ("Dashboard", "Dashboard")]
    assert labels(export) == {"Bucket": ["blue", "red"], "Dashboard": ["blue", "red"]}
    assert shown(await services.export(resources=[the("Label", name="red"), the("Label", name=" RED ")])) == [
        ("Label", "red")
    ]


async def test_a_whole_target_has_everything_of_it_and_of_no_other(services: Cluster) -> None:
    """Rows 76, 77."""
    await services.apply(text(*EVERY_KIND))
    await services.apply(text(an_object("Label", "other", "other")), org=f"{services.org}-other")
    export = await services.export(everything=ALL)
    assert dict(export.header.kind_counts) == COUNTS
    assert export.header.object_count == len(EVERY_KIND)
    assert sum(map(len, labels(export).values())) >= len(EVERY_KIND) - 2
    assert export.secret_keys == ["http-token", "routing-key", "slack-token"]
    assert export.header.secret_count == 3
    assert export.warning_texts == []


RED, BLUE = an_object("Label", "red", "Red"), an_object("Label", "blue", "Blue")
LABELLED = (
    *(RED, BLUE),
    an_object("Bucket", "b1", "red bucket", ["red"]),
    an_object("Bucket", "b2", "plain bucket"),
    an_object("Variable", "v", "both", ["blue", "red"], type="constant", values=["x"]),
    an_endpoint("Slack", "chat", "chat", ["blue", "red"]),
    a_check("Deadman", "silent", "silent"),
    a_check("Threshold", "hot", "hot", ["blue"]),
    a_rule("r", "chat", "rule", ["red"]),
)


@pytest.mark.parametrize(
    ("kinds", "names", "expected"),
    [
        (["Bucket"], [], ["Label Red", "Bucket plain bucket", "Bucket red bucket"]),
        (["Check"], [], ["Label Blue", "CheckDeadman silent", "CheckThreshold hot"]),
        (["CheckDeadman"], [], ["CheckDeadman silent"]),
        (["Label"], [], ["Label Blue", "Label Red"]),
        (["Label"], ["red"], ["Label Red"]),
        (
            [],
            [" rED"],
            [
                *("Label Red", "Bucket red bucket", "NotificationEndpointSlack chat"),
                *("NotificationRule rule", "Variable both"),
            ],
        ),
        (["Bucket", "Variable"], ["blue"], ["Label Blue", "Variable both"]),
        (["NotificationRule"], ["red"], ["Label Red", "NotificationEndpointSlack chat", "NotificationRule rule"]),
        (["Dashboard"], [], []),
    ],
)
async def test_filters_hold_for_all_kinds_alike(
    services: Cluster, kinds: Sequence[str], names: Sequence[str], expected: Sequence[str]
) -> None:
    """Row 78; a resource that a filter of labels selects keeps only the labels that the filter names."""
    await services.apply(text(*LABELLED))
    export = await services.export(everything=planner_pb2.ExportFilter(kinds=kinds, labels=names))
    assert [" ".join(each) for each in shown(export)] == expected
    wanted = {name.strip().lower() for name in names}
    carried = {label.lower() for found in labels(export).values() for label in found}
    assert carried <= wanted if names else True
    if expected:
        assert await services.plan(export.text)


async def test_a_resource_named_beside_a_filter_has_all_its_labels(services: Cluster) -> None:
    await services.apply(text(*LABELLED))
    export = await services.export(
        everything=planner_pb2.ExportFilter(labels=["red"]), resources=[the("Variable", name="both")]
    )
    assert labels(export)["both"] == ["Blue", "Red"]
    assert labels(export)["chat"] == ["Red"]


async def test_by_ids_with_two_of_them_renamed(services: Cluster) -> None:
    """Row 79."""
    await services.apply(text(*EVERY_KIND))
    new_names = {"Bucket": "new bucket", "Label": "new label"}
    asked = [the(each.kind, id=each.id, new_name=new_names.get(each.kind, "")) for each in await services.resources()]
    export = await services.export(resources=asked)
    assert export.header.object_count == len(EVERY_KIND)
    assert labels(export)["new bucket"] == ["new label"]
    assert len(labels(export)) >= len(EVERY_KIND) - 2


async def test_a_stack_is_exported_with_its_names_and_its_drift(services: Cluster) -> None:
    """Row 80."""
    dashboard = an_object("Dashboard", "d", "dash", ["lucid_einstein"], charts=[{**CHART, "kind": "xy"}])
    await services.apply(text(LABEL, an_object("Bucket", "b", "bucket", ["lucid_einstein"]), dashboard), stack="s")
    await services.apply(text(an_object("Label", "foreign", "Foreign")))
    ids = (await services.record("s")).ids
    [foreign] = [each.id for each in await services.resources(kinds=["Label"]) if each.display_name == "Foreign"]
    bucket, label = ids["Bucket", "b"], ids["Label", "lucid_einstein"]
    await services.mutate(
        driver_pb2.Mutation(detach=driver_pb2.DetachLabel(kind="Bucket", id=bucket, label_id=label)),
        driver_pb2.Mutation(
            attach=driver_pb2.AttachLabel(kind="Dashboard", id=ids["Dashboard", "d"], label_id=foreign)
        ),
    )
    export = await services.export(stack="s")
    [named] = [name for _, name in keys(export) if name.startswith("foreign-")]
    assert keys(export) == [("Label", named), ("Label", "lucid_einstein"), ("Bucket", "b"), ("Dashboard", "d")]
    assert labels(export) == {"dash": ["Foreign", "label_1"]}
    assert len(export.objects[-1]["spec"]["charts"]) == 1
    assert not (await services.plan(export.text, stack="s")).steps[1:]


async def test_names_of_another_stack_come_before_generated_ones(services: Cluster) -> None:
    await services.apply(text(LABEL), stack="labels")
    uses = an_object("Label", "ours", "label_1")
    await services.apply(text(uses, an_object("Bucket", "b", "bucket", ["ours"])), stack="s")
    assert keys(await services.export(stack="s")) == [("Label", "ours"), ("Bucket", "b")]
    assert keys(await services.export(everything=ALL)) == [("Label", "lucid_einstein"), ("Bucket", "b")]


async def test_a_resource_of_a_stack_that_is_gone_is_a_warning(services: Cluster) -> None:
    await services.apply(text(*EVERY_KIND), stack="s")
    pager = await only(services, "NotificationEndpointPagerDuty")
    await services.mutate(driver_pb2.Mutation(delete=driver_pb2.DeleteResource(kind=pager.kind, id=pager.id)))
    export = await services.export(stack="s")
    assert export.warning_texts == [
        "NotificationEndpointPagerDuty 'pager' of the stack is left out: its resource is gone",
        "NotificationRule 'rule': its endpointName refers to no resource, so it is left out",
    ]
    assert [(warning.resource.kind, warning.display_name) for warning in export.warnings] == [
        ("NotificationEndpointPagerDuty", "pager"),
        ("NotificationRule", "rule"),
    ]
    assert export.header.warning_count == 2
    assert export.header.object_count == len(EVERY_KIND) - 2


async def test_a_resource_that_breaks_a_rule_of_packages_is_a_warning(services: Cluster) -> None:
    for kind, spec in {"Bucket": {"name": "b"}, "Label": {"name": "fine", "odd": 1}, "Task": {"name": "idle"}}.items():
        create = driver_pb2.CreateResource(kind=kind, spec_json=json.dumps(spec))
        assert (await services.mutate(driver_pb2.Mutation(create=create))).results[0].HasField("done")
    export = await services.export(everything=ALL)
    assert shown(export) == [("Label", "fine")]
    bucket, label, task = export.warning_texts
    assert bucket.startswith("Bucket 'b': it breaks a rule of packages (spec.name: the name 'b' is too short")
    assert label == (
        "Label 'fine': a package cannot express /color, /description, /odd exactly, so a plan of the package will show"
        " a difference there"
    )
    assert task.startswith("Task 'idle': it breaks a rule of packages (spec.every: ")


async def test_an_export_of_nothing_is_empty(services: Cluster) -> None:
    for encoding, empty in ((parser_pb2.ENCODING_YAML, ""), (parser_pb2.ENCODING_JSON, "[]\n")):
        export = await services.export(everything=ALL, encoding=encoding)
        assert (export.text, export.header) == (empty, planner_pb2.ExportHeader())


async def test_json_says_the_same(services: Cluster) -> None:
    await services.apply(text(*EVERY_KIND), stack="s")
    exported = await services.export(stack="s", encoding=parser_pb2.ENCODING_JSON, schema="ignored.json")
    assert json.loads(exported.text) == (await services.export(stack="s")).objects
    assert (await services.plan(exported.text, stack="s")).no_change


async def test_the_first_line_names_the_schema(services: Cluster) -> None:
    await services.apply(text(*EVERY_KIND))
    export = await services.export(everything=ALL, schema="package.schema.json")
    unnamed = await services.export(everything=ALL)
    assert export.text == f"# yaml-language-server: $schema=package.schema.json\n{unnamed.text}"
    assert (await services.plan(export.text)).missing_env_refs == []


async def test_no_message_is_large_and_few_calls_are_made(services: Cluster, calls: Calls) -> None:
    large = an_object("Telegraf", "t", "t", config="# ünicode\n" * 110_000)
    many = [an_object("Label", f"l{number}", f"label {number}") for number in range(300)]
    await services.apply(text(large, *many), stack="s")
    calls.methods.clear()
    request = planner_pb2.ExportPackageRequest(target=services.target(), everything=ALL)
    planner = services.peers["planner"]
    stream = planner.stream(PlannerServiceStub(planner.channel).ExportPackage, request)
    messages = [message async for message in stream]
    assert max(message.ByteSize() for message in messages) < 2**20
    assert sum(len(message.text) for message in messages) > 2**20
    assert sorted(calls.methods) == ["ExportPackage", "FindOwners", "ListResources"]


async def test_all_missing_resources_are_named_at_once(services: Cluster) -> None:
    await services.apply(text(LABEL))
    asked = [
        the("Bucket", name="none"),
        the("Label", name="label_1"),
        the("Label", id="0000000000000009"),
        the("Check", id_or_name="neither"),
    ]
    with pytest.raises(ResourceNotFound) as caught:
        await services.export(resources=asked)
    assert str(caught.value).startswith(
        f"embedded/{services.org} does not have Bucket 'none'; Label with id '0000000000000009'; Check 'neither'. "
    )
    assert caught.value.metadata == {
        "platform": "embedded",
        "org": services.org,
        "resources": "Bucket 'none'\nLabel with id '0000000000000009'\nCheck 'neither'",
        "count": "3",
    }


NO_RESOURCE = "resources[0]: say which resource: by id, by name, or by id_or_name"
NONSENSE: list[tuple[dict[str, Any], str]] = [
    ({}, "resources: name what to export: a stack, everything, or resources"),
    ({"stack_ref": object_pb2.StackRef()}, "stack: name it by id, or by name with its target"),
    ({"resources": [the("", name="x")]}, "resources[0].kind: name a kind"),
    (
        {"resources": [the("Label", name="x"), the("bucket", id="x")]},
        "resources[1].kind: there is no kind 'bucket'; write Bucket",
    ),
    ({"resources": [the("Label")]}, NO_RESOURCE),
    ({"resources": [the("Label", name="")]}, NO_RESOURCE),
    (
        {"everything": planner_pb2.ExportFilter(kinds=["Check", "Lable"])},
        "everything.kinds[1]: there is no kind 'Lable'; write Label",
    ),
    (
        {"everything": planner_pb2.ExportFilter(labels=[""])},
        "everything.labels[0]: is empty; give the name of a label",
    ),
    (
        {"everything": ALL, "encoding": parser_pb2.ENCODING_JSONNET},
        "encoding: packages are written as YAML or JSON",
    ),
    (
        {"everything": ALL, "schema": "a\nkind: b"},
        "schema: it has control characters; give the file or the address of a JSON Schema",
    ),
]


@pytest.mark.parametrize(("fields", "problem"), NONSENSE)
async def test_a_request_that_makes_no_sense_is_refused(
    services: Cluster, fields: dict[str, Any], problem: str
) -> None:
    with pytest.raises(RequestInvalid) as caught:
        await services.export(**fields)
    assert str(caught.value) == problem


async def test_a_stack_a_target_or_a_platform_that_is_not_there(services: Cluster) -> None:
    with pytest.raises(StackNotFound):
        await services.export(stack="none")
    with pytest.raises(StackNotFound):
        await services.export(stack_ref=object_pb2.StackRef(id="0123456789abcdef"))
    with pytest.raises(PlatformUnknown):
        await services.export(everything=ALL, platform="none")
    await services.apply(text(LABEL), stack="s")
    ref = object_pb2.StackRef(id=(await services.record("s")).id)
    assert keys(await services.export(stack_ref=ref)) == [("Label", "lucid_einstein")]
    ref.target.CopyFrom(services.target())
    with pytest.raises(RequestInvalid, match=r"stack.target: leave it out: the stack with this id has its own target"):
        await services.export(stack_ref=ref)


async def test_new_names_that_are_taken_or_invalid_are_refused(services: Cluster) -> None:
    await services.apply(text(RED, BLUE))
    with pytest.raises(RequestInvalid, match=r"resources\[0\].new_name: .*has the name 'Blue', which only one object"):
        await services.export(everything=ALL, resources=[the("Label", name="Red", new_name="Blue")])
    with pytest.raises(RequestInvalid, match=r"resources\[0\].new_name: the name 'x' is too short"):
        await services.export(resources=[the("Label", name="Red", new_name="x")])


async def test_a_label_that_does_not_exist_is_a_warning(services: Cluster) -> None:
    export = await services.export(everything=planner_pb2.ExportFilter(labels=["none"]))
    assert export.warning_texts == ["there is no label 'none', so nothing carries it"]
    assert not export.warnings[0].HasField("resource")


def test_kinds_are_all_tried() -> None:
    assert COUNTS.keys() == KINDS.keys()
