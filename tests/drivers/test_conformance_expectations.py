"""
The contract for resources that do not meet the expectation of a mutation (docs/reference/engine.md, "Expectations").
"""

import asyncio
import json
from collections.abc import Iterable

import pytest
from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import object_pb2
from pkger.model.v1.operation_pb2 import REJECTION_REASON_CHANGED as CHANGED

from services.core.model import LABEL, KindTraits, PlatformTraits, Precondition
from services.kinds.format.canonical import canonical_text
from tests.drivers.cases import Use, only_kinds, only_platforms
from tests.drivers.client import DriverClient, attach, create, delete, done, ends, reference, spec, update
from tests.drivers.platforms import Sample
from tests.drivers.test_conformance_references import two_of


def expecting(
    mutation: driver_pb2.Mutation, held: object_pb2.Resource, labels: Iterable[str] | None = None
) -> driver_pb2.Mutation:
    """*mutation*, expecting the state of *held*, or *labels* in place of its labels."""
    change = mutation.update if mutation.HasField("update") else mutation.delete
    change.expect.spec_json = held.spec_json
    change.expect.references.extend(held.references)
    change.expect.label_ids.extend(held.label_ids if labels is None else labels)
    return mutation


async def made(driver: DriverClient, sample: Sample, kind: str) -> object_pb2.Resource:
    [resource] = await driver.made(create(kind, sample(kind, "first", "old"), "key"))
    return resource


async def now(driver: DriverClient, resource: object_pb2.Resource) -> object_pb2.Resource | None:
    [found] = await driver.read((resource.kind, resource.id))
    return found


async def test_an_expected_resource_is_updated_and_deleted(driver: DriverClient, sample: Sample, kind: str) -> None:
    before, wanted = await made(driver, sample, kind), sample(kind, "first", "new")
    assert await driver.mutate(expecting(update(kind, before.id, wanted), before)) == [done()]
    after = await now(driver, before)
    assert after
    assert spec(after) == wanted
    assert await driver.mutate(expecting(delete(kind, before.id), after)) == [done()]
    assert await now(driver, before) is None


async def test_a_write_whose_result_already_exists_is_done(driver: DriverClient, sample: Sample, kind: str) -> None:
    """As for any mutation that is sent twice."""
    before, wanted = await made(driver, sample, kind), sample(kind, "first", "new")
    for mutation in (expecting(update(kind, before.id, wanted), before), expecting(delete(kind, before.id), before)):
        expected = mutation.delete.expect if mutation.HasField("delete") else None
        if expected:
            after = await now(driver, before)
            assert after
            expected.spec_json = after.spec_json
        for _ in range(2):
            assert ends(await driver.mutate(mutation)) == ["done"]
    assert await now(driver, before) is None


@pytest.mark.parametrize("verb", ["update", "delete"])
async def test_an_unexpected_resource_is_kept_and_returned(
    driver: DriverClient, sample: Sample, kind: str, verb: str
) -> None:
    before = await made(driver, sample, kind)
    [theirs] = await driver.made(update(kind, before.id, sample(kind, "first", "theirs")))
    ours = update(kind, before.id, sample(kind, "first", "ours")) if verb == "update" else delete(kind, before.id)

    [result] = await driver.mutate(expecting(ours, before))

    assert (result.WhichOneof("result"), result.rejected.reason) == ("rejected", CHANGED)
    assert result.rejected.live == theirs
    assert await now(driver, before) == theirs


async def test_without_an_expectation_any_state_is_overwritten(driver: DriverClient, sample: Sample, kind: str) -> None:
    before = await made(driver, sample, kind)
    await driver.made(update(kind, before.id, sample(kind, "first", "theirs")))
    assert ends(await driver.mutate(update(kind, before.id, sample(kind, "first", "ours")))) == ["done"]
    assert ends(await driver.mutate(delete(kind, before.id))) == ["done"]


@only_kinds(lambda kind: kind.labelled)
async def test_labels_are_expected_for_a_deletion_only(driver: DriverClient, sample: Sample, kind: str) -> None:
    before, [label] = await made(driver, sample, kind), await driver.made(create(LABEL, {"name": "red"}, "red"))
    assert ends(await driver.mutate(attach(kind, before.id, label.id))) == ["done"]

    wanted = sample(kind, "first", "new")
    assert ends(await driver.mutate(expecting(update(kind, before.id, wanted), before))) == ["done"]
    after = await now(driver, before)
    assert after
    assert await driver.refusal(expecting(delete(kind, before.id), after, labels=[])) == CHANGED
    assert ends(await driver.mutate(expecting(delete(kind, before.id), after))) == ["done"]


async def test_references_are_expected(driver: DriverClient, sample: Sample, use: Use) -> None:
    kind, pointer, other = use
    first, second = await two_of(driver, sample, other)
    wanted = sample(kind, "refers", "")
    [before] = await driver.made(create(kind, wanted, "key", [reference(pointer, other, first.id)]))
    await driver.made(update(kind, before.id, wanted, [reference(pointer, other, second.id)]))
    ours = update(kind, before.id, sample(kind, "refers", "ours"), [reference(pointer, other, first.id)])
    assert await driver.refusal(expecting(ours, before)) == CHANGED
    assert await driver.refusal(expecting(delete(kind, before.id), before)) == CHANGED


def top_level_sets(kind: KindTraits) -> list[str]:
    """Fields of a spec that are lists without an order."""
    return [path.removeprefix("/") for path in kind.set_paths if path.count("/") == 1]


@only_kinds(top_level_sets)
async def test_unordered_lists_are_compared_as_sets(
    driver: DriverClient, sample: Sample, kind: str, traits: PlatformTraits
) -> None:
    name = top_level_sets(traits.kinds[kind])[0]
    before = await made(driver, sample, kind)
    [held] = await driver.made(update(kind, before.id, {**sample(kind, "first", "old"), name: ["b", "a"]}))
    turned = json.loads(held.spec_json)
    turned[name] = turned[name][::-1]
    held.spec_json = canonical_text(turned)
    assert ends(await driver.mutate(expecting(delete(kind, before.id), held))) == ["done"]


@only_platforms(lambda platform: platform.traits.precondition is Precondition.ATOMIC)
async def test_one_of_many_that_expect_the_same_writes(driver: DriverClient, sample: Sample, kind: str) -> None:
    """A platform that reads before it writes overwrites a write in between."""
    before = await made(driver, sample, kind)
    batches = [
        driver.mutate(expecting(update(kind, before.id, sample(kind, "first", f"writer {n}")), before))
        for n in range(8)
    ]
    results = [result for results in await asyncio.gather(*batches) for result in results]
    assert sorted(map(str, ends(results))) == ["done", *["rejected"] * 7]
