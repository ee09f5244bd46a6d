"""The contract for secrets: they are written by key, and only their keys are returned."""

import pytest

from services.core.errors import TokenStale
from tests.drivers.cases import only_platforms
from tests.drivers.client import (
    CONTENT_REFUSED,
    DriverClient,
    create,
    delete_secret,
    done,
    ends,
    put_secret,
)
from tests.drivers.platforms import Sample

CANARY = "canary-8a1f"


pytestmark = only_platforms(lambda platform: platform.traits.holds_secrets)


async def test_the_keys_of_secrets_are_listed_sorted(driver: DriverClient) -> None:
    assert await driver.secret_keys() == []
    results = await driver.mutate(put_secret("token", "1"), put_secret("a key ☂", "2"), put_secret("routing-key", "3"))
    assert ends(results) == ["done"] * 3
    assert await driver.secret_keys() == ["a key ☂", "routing-key", "token"]


async def test_writing_a_secret_keeps_the_others(driver: DriverClient) -> None:
    await driver.mutate(put_secret("theirs", "1"))
    await driver.mutate(put_secret("ours", "2"))
    assert await driver.secret_keys() == ["ours", "theirs"]


async def test_a_secret_may_be_written_and_deleted_any_number_of_times(driver: DriverClient) -> None:
    for _ in range(2):
        assert ends(await driver.mutate(put_secret("k", CANARY), put_secret("k", "another"))) == ["done", "done"]
        assert await driver.secret_keys() == ["k"]
    for _ in range(2):
        assert ends(await driver.mutate(delete_secret("k"))) == ["done"]
        assert await driver.secret_keys() == []


async def test_no_response_contains_a_value(driver: DriverClient) -> None:
    results = await driver.mutate(put_secret("k", CANARY), put_secret("", CANARY), put_secret("k", CANARY))
    assert ends(results) == ["done", "rejected", "done"]
    assert results[0] == results[2] == done()
    assert CANARY not in f"{results} {await driver.secret_keys()}"


async def test_a_key_that_is_empty_is_rejected(driver: DriverClient) -> None:
    assert await driver.refusal(put_secret("", CANARY)) == CONTENT_REFUSED
    assert await driver.secret_keys() == []


async def test_organizations_have_secrets_of_their_own(driver: DriverClient) -> None:
    await driver.mutate(put_secret("k", "ours"), org="ours")
    assert await driver.secret_keys(org="theirs") == []
    await driver.mutate(delete_secret("k"), org="theirs")
    assert await driver.secret_keys(org="ours") == ["k"]


async def test_a_batch_may_mix_secrets_with_resources(driver: DriverClient, sample: Sample) -> None:
    label = create("Label", sample("Label", "l", ""), "l")
    assert ends(await driver.mutate(put_secret("k", CANARY), label, delete_secret("nobody"))) == ["done"] * 3
    assert await driver.secret_keys() == ["k"]
    assert len(await driver.listing("Label")) == 1


@only_platforms(lambda platform: platform.traits.fences)
async def test_an_old_fencing_token_writes_no_secret(driver: DriverClient) -> None:
    await driver.mutate(put_secret("kept", "1"), fence=("stack", 2))
    for late in (put_secret("k", CANARY), delete_secret("kept")):
        with pytest.raises(TokenStale) as caught:
            await driver.mutate(late, fence=("stack", 1))
        assert CANARY not in f"{caught.value} {caught.value.metadata}"
    assert await driver.secret_keys() == ["kept"]
