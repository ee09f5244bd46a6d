"""The life of a stack from its first apply to its last, through real servers."""

import json

from tests.apply.packages import STEPS
from tests.cluster import Calls, Cluster, Record

LABEL = [("Label", "lucid_einstein")]


async def platform(services: Cluster) -> list[tuple[str, str, int]]:
    """Kind, name and number of labels of each resource."""
    return [
        (resource.kind, json.loads(resource.spec_json)["name"], len(resource.label_ids))
        for resource in await services.resources()
    ]


def owned(record: Record) -> list[tuple[str, str, list[tuple[str, str]]]]:
    return [
        (entry.key.kind, entry.key.name, [(label.kind, label.name) for label in entry.associations])
        for entry in record.resources
    ]


async def test_the_six_steps(services: Cluster, calls: Calls) -> None:
    await services.apply(STEPS[1], stack="s")
    first = await services.record("s")
    assert await platform(services) == [("Bucket", "bucket_1", 1), ("Dashboard", "dash_1", 1), ("Label", "label_1", 0)]
    assert first.stack.create_time == first.stack.update_time
    assert owned(first) == [
        ("Bucket", "pristine_noir", LABEL),
        ("Dashboard", "charmed_saratoba", LABEL),
        ("Label", "lucid_einstein", []),
    ]
    assert {entry.resource_id for entry in first.resources} == {resource.id for resource in await services.resources()}

    writes = calls.count("Mutate")
    finished = await services.apply(STEPS[2], stack="s")
    assert finished.no_change
    assert calls.count("Mutate") == writes
    second = await services.record("s")
    assert second == first

    await services.apply(STEPS[3], stack="s")
    third = await services.record("s")
    assert ("Label", "cool label name", 0) in await platform(services)
    assert third.resources == first.resources
    assert third.stack.update_time.ToNanoseconds() > first.stack.update_time.ToNanoseconds()
    assert third.stack.create_time == first.stack.create_time

    await services.apply(STEPS[4], stack="s")
    fourth = await services.record("s")
    assert ("Task", "task_1", 1) in await platform(services)
    assert ("Task", "alcord_mumphries", LABEL) in owned(fourth)

    await services.apply(STEPS[5], stack="s")
    fifth = await services.record("s")
    assert "Task" not in {resource.kind for resource in await services.resources()}
    assert fifth.resources == first.resources

    await services.apply(STEPS[6], stack="s")
    sixth = await services.record("s")
    assert await platform(services) == [("Bucket", "bucket_1", 0), ("Dashboard", "dash_1", 0)]
    assert owned(sixth) == [("Bucket", "pristine_noir", []), ("Dashboard", "charmed_saratoba", [])]


async def test_a_renamed_label_keeps_its_id(services: Cluster) -> None:
    await services.apply(STEPS[1], stack="s")
    before = {resource.id for resource in await services.resources(kinds=["Label"])}
    await services.apply(STEPS[3], stack="s")
    assert {resource.id for resource in await services.resources(kinds=["Label"])} == before


async def test_an_uninstalled_stack_leaves_nothing(services: Cluster) -> None:
    await services.apply(STEPS[4], stack="s")
    await services.uninstall("s")
    assert await services.resources() == []
    assert await services.stack_names() == []
