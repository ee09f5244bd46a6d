"""The contract for lost writes: the result is ambiguous, a write is sent once, and a repetition is safe."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pkger.model.v1 import object_pb2

from services.kinds.registry import KINDS
from tests.drivers.cases import only_platforms
from tests.drivers.client import DriverClient, create, delete, ends, spec, update
from tests.drivers.influxdb.losses import Loss, Losses
from tests.drivers.platforms import PlatformUnderTest

pytestmark = only_platforms(lambda platform: platform.with_losses)

Lossy = tuple[DriverClient, Losses]


@pytest.fixture
async def lossy(platform: PlatformUnderTest, tmp_path: Path) -> AsyncIterator[Lossy]:
    """A driver, and a proxy that loses its requests."""
    assert platform.with_losses
    async with platform.with_losses(tmp_path) as running:
        yield running


async def listed_once_more(driver: DriverClient, kind: str, before: int) -> list[object_pb2.Resource]:
    """All of a kind, once they are more than *before*; a server may list a resource some time after its write."""
    for _ in range(200):
        if len(found := await driver.listing(kind)) > before:
            return found
        await asyncio.sleep(0.05)
    raise TimeoutError(f"the {kind} did not appear")


async def test_a_create_whose_answer_is_lost_is_sent_once_and_is_found(
    lossy: Lossy, platform: PlatformUnderTest
) -> None:
    driver, losses = lossy
    for kind in KINDS.keys() & (await driver.describe()).kinds.keys():
        wanted = platform.sample(kind, f"first {kind}", "")
        mutation = create(kind, wanted)
        if kind == "NotificationRule":
            # Otherwise its referenced resource would be created with it.
            [once] = await driver.made(create(kind, platform.sample(kind, "before", "")))
            mutation = create(kind, wanted, references=once.references)
        before, losses.writes, losses.loss = await driver.listing(kind), 0, Loss.ANSWER
        assert ends(await driver.mutate(mutation)) == ["ambiguous"], kind
        assert losses.writes == 1
        losses.loss = Loss.NOTHING
        await losses.answered()
        found = await listed_once_more(driver, kind, len(before))
        [made] = [each for each in found if each not in before]
        assert spec(made) == wanted


@pytest.mark.parametrize("loss", [Loss.REQUEST, Loss.ANSWER])
async def test_an_update_or_a_deletion_that_is_lost_can_be_sent_again(
    lossy: Lossy, platform: PlatformUnderTest, loss: Loss
) -> None:
    driver, losses = lossy
    for kind in KINDS.keys() & (await driver.describe()).kinds.keys():
        [held] = await driver.made(create(kind, platform.sample(kind, f"first {kind}", "")))
        wanted = platform.sample(kind, f"first {kind}", "changed")
        for mutation in (update(kind, held.id, wanted, held.references), delete(kind, held.id)):
            losses.writes, losses.loss = 0, loss
            assert ends(await driver.mutate(mutation)) == ["ambiguous"], kind
            assert losses.writes == 1
            losses.loss = Loss.NOTHING
            if loss is Loss.ANSWER:
                await losses.answered()
            [now] = await driver.read((kind, held.id))
            if loss is Loss.REQUEST:
                assert now == held
            assert ends(await driver.mutate(mutation)) == ["done"], kind
            [held_now] = await driver.read((kind, held.id))
            if held_now is not None:
                assert spec(held_now) == wanted
                held = held_now
        assert held_now is None
