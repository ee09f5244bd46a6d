"""The contract for labels (driver.proto): attached, detached, and detached with the deletion of either end."""

import pytest
from pkger.model.v1 import object_pb2

from services.core.model import Identity, PlatformTraits
from tests.drivers.cases import only_kinds
from tests.drivers.client import (
    CONTENT_REFUSED,
    NOT_FOUND,
    DriverClient,
    attach,
    create,
    delete,
    detach,
    done,
    ends,
    update,
)
from tests.drivers.platforms import PlatformUnderTest, Sample

pytestmark = only_kinds(lambda kind: kind.labelled)

Made = tuple[object_pb2.Resource, list[object_pb2.Resource]]


@pytest.fixture
async def made(driver: DriverClient, sample: Sample, kind: str) -> Made:
    """A resource of each kind that can be labelled, and three labels in the order of their ids."""
    [resource] = await driver.made(create(kind, sample(kind, "labelled", "old"), "resource"))
    labels = await driver.made(*(create("Label", sample("Label", f"l{n}", ""), f"label {n}") for n in range(3)))
    return resource, sorted(labels, key=lambda label: label.id)


async def label_ids(driver: DriverClient, resource: object_pb2.Resource) -> list[str]:
    """The labels of *resource*, which are equal in a read and a list."""
    [read] = await driver.read((resource.kind, resource.id))
    assert read in await driver.listing(resource.kind)
    assert read is not None
    return list(read.label_ids)


async def test_attached_labels_are_returned_sorted(driver: DriverClient, made: Made) -> None:
    resource, labels = made
    for label in reversed(labels):
        [result] = await driver.mutate(attach(resource.kind, resource.id, label.id))
        assert result == done()
    assert await label_ids(driver, resource) == [label.id for label in labels]


async def test_a_label_attached_again_stays_attached_once(driver: DriverClient, made: Made) -> None:
    resource, [label, *_] = made
    same = attach(resource.kind, resource.id, label.id)
    assert ends(await driver.mutate(same, same)) == ["done", "done"]
    assert ends(await driver.mutate(same)) == ["done"]
    assert await label_ids(driver, resource) == [label.id]


async def test_a_label_is_detached_and_detaching_it_again_succeeds(driver: DriverClient, made: Made) -> None:
    resource, [first, second, _] = made
    await driver.mutate(attach(resource.kind, resource.id, first.id), attach(resource.kind, resource.id, second.id))
    for _ in range(2):
        assert ends(await driver.mutate(detach(resource.kind, resource.id, first.id))) == ["done"]
        assert await label_ids(driver, resource) == [second.id]


async def test_detaching_succeeds_if_either_end_is_gone(
    driver: DriverClient, platform: PlatformUnderTest, made: Made
) -> None:
    resource, [label, *_] = made
    results = await driver.mutate(
        detach(resource.kind, platform.missing_id, label.id), detach(resource.kind, resource.id, platform.missing_id)
    )
    assert ends(results) == ["done", "done"]


async def test_attaching_is_rejected_if_either_end_is_missing(
    driver: DriverClient, platform: PlatformUnderTest, made: Made
) -> None:
    resource, [label, *_] = made
    for mutation in (
        attach(resource.kind, platform.missing_id, label.id),
        attach(resource.kind, resource.id, platform.missing_id),
        attach(resource.kind, resource.id, resource.id),  # no label has that id
    ):
        assert await driver.refusal(mutation) == NOT_FOUND
    assert await label_ids(driver, resource) == []


async def test_labels_of_another_organization_cannot_be_attached(
    driver: DriverClient, sample: Sample, made: Made
) -> None:
    resource, _ = made
    [foreign] = await driver.made(create("Label", sample("Label", "l", ""), "foreign"), org="theirs")
    assert await driver.refusal(attach(resource.kind, resource.id, foreign.id)) == NOT_FOUND


async def test_kinds_without_labels_refuse_them(driver: DriverClient, traits: PlatformTraits, sample: Sample) -> None:
    [label] = await driver.made(create("Label", sample("Label", "l", ""), "label"))
    for kind in (traits.kind for traits in traits.kinds.values() if not traits.labelled):
        [resource] = await driver.made(create(kind, sample(kind, "unlabelled", ""), "resource"))
        assert await driver.refusal(attach(kind, resource.id, label.id)) == CONTENT_REFUSED


async def test_an_update_keeps_and_returns_the_labels(driver: DriverClient, sample: Sample, made: Made) -> None:
    resource, [first, second, _] = made
    await driver.mutate(attach(resource.kind, resource.id, second.id), attach(resource.kind, resource.id, first.id))
    [written] = await driver.made(update(resource.kind, resource.id, sample(resource.kind, "renamed", "new")))
    assert list(written.label_ids) == [first.id, second.id] == await label_ids(driver, resource)


@only_kinds(lambda kind: kind.identity is Identity.NATIVE)
async def test_a_repeated_create_returns_the_labels(driver: DriverClient, sample: Sample, made: Made) -> None:
    resource, [label, *_] = made
    await driver.mutate(attach(resource.kind, resource.id, label.id))
    [again] = await driver.made(create(resource.kind, sample(resource.kind, "labelled", "old"), "resource"))
    assert again.id == resource.id
    assert list(again.label_ids) == [label.id]


async def test_deleting_a_label_detaches_it_everywhere(driver: DriverClient, sample: Sample, made: Made) -> None:
    resource, [first, second, _] = made
    [other] = await driver.made(create(resource.kind, sample(resource.kind, "other", ""), "other"))
    for labelled in (resource, other):
        await driver.mutate(*(attach(labelled.kind, labelled.id, label.id) for label in (first, second)))
    assert ends(await driver.mutate(delete("Label", first.id))) == ["done"]
    assert await label_ids(driver, resource) == [second.id]
    assert await label_ids(driver, other) == [second.id]


async def test_deleting_a_resource_leaves_its_labels(driver: DriverClient, made: Made) -> None:
    resource, labels = made
    await driver.mutate(attach(resource.kind, resource.id, labels[0].id))
    await driver.mutate(delete(resource.kind, resource.id))
    assert await driver.listing("Label") == labels
    assert await driver.refusal(attach(resource.kind, resource.id, labels[0].id)) == NOT_FOUND


async def test_a_label_can_be_renamed_while_attached(driver: DriverClient, sample: Sample, made: Made) -> None:
    resource, [label, *_] = made
    await driver.mutate(attach(resource.kind, resource.id, label.id))
    await driver.made(update("Label", label.id, sample("Label", "renamed", "")))
    assert await label_ids(driver, resource) == [label.id]
