"""The contract for a token that may read but not write: nothing changes, and every rejection says why."""

from pathlib import Path

from pkger.model.v1.operation_pb2 import REJECTION_REASON_NOT_PERMITTED as NOT_PERMITTED

from services.kinds.registry import KINDS
from tests.drivers.cases import only_platforms
from tests.drivers.client import attach, create, delete, detach, done, put_secret, update
from tests.drivers.platforms import PlatformUnderTest


@only_platforms(lambda platform: platform.with_reader)
async def test_a_forbidden_write_is_rejected_and_has_no_effect(platform: PlatformUnderTest, tmp_path: Path) -> None:
    assert platform.with_reader
    sample = platform.sample
    async with platform.with_reader(tmp_path) as (driver, reader):
        traits = await driver.describe()
        label, other = await driver.made(
            *(create("Label", sample("Label", name, "")) for name in ("attached", "other"))
        )
        for kind in KINDS.keys() & traits.kinds.keys():
            [held] = await driver.made(create(kind, sample(kind, f"held {kind}", "")))
            assert held in await reader.listing(kind)
            assert await reader.read((kind, held.id)) == [held]
            refused = [
                create(kind, sample(kind, f"new {kind}", ""), references=held.references),
                update(kind, held.id, sample(kind, f"renamed {kind}", ""), held.references),
                delete(kind, held.id),
            ]
            if traits.kinds[kind].labelled and kind not in platform.freely_labelled:
                await driver.mutate(attach(kind, held.id, label.id))
                refused += [attach(kind, held.id, other.id), detach(kind, held.id, label.id)]
            before = await driver.listing(kind)
            for mutation in refused:
                assert await reader.refusal(mutation) == NOT_PERMITTED, mutation
            assert await driver.listing(kind) == before
        if traits.holds_secrets:
            assert await reader.refusal(put_secret("k", "v")) == NOT_PERMITTED
            assert await driver.secret_keys() == []


@only_platforms(lambda platform: platform.freely_labelled)
async def test_labels_that_the_platform_does_not_guard_are_attached_and_detached(
    platform: PlatformUnderTest, tmp_path: Path
) -> None:
    assert platform.with_reader
    async with platform.with_reader(tmp_path) as (driver, reader):
        [label] = await driver.made(create("Label", platform.sample("Label", "attached", "")))
        for kind in platform.freely_labelled:
            [held] = await driver.made(create(kind, platform.sample(kind, f"held {kind}", "")))
            assert await reader.mutate(attach(kind, held.id, label.id)) == [done()]
            [labelled] = await driver.read((kind, held.id))
            assert labelled
            assert list(labelled.label_ids) == [label.id]
            assert await reader.mutate(detach(kind, held.id, label.id)) == [done()]
            assert await driver.read((kind, held.id)) == [held]
