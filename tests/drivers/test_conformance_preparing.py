"""The contract for PrepareSpecs (driver.proto): the spec as it will be read, or the rejection of Mutate."""

import json

from services.core.model import PlatformTraits
from tests.drivers.cases import only_platforms
from tests.drivers.client import (
    CONTENT_REFUSED,
    KIND_UNSUPPORTED,
    DriverClient,
    create,
    reference,
    set_spec,
    spec,
    update,
    wanted,
)
from tests.drivers.platforms import PlatformUnderTest, Sample
from tests.drivers.test_conformance import INVALID_SPECS


async def test_a_written_spec_is_read_as_it_was_prepared(driver: DriverClient, sample: Sample, kind: str) -> None:
    """Otherwise every plan would find a difference."""
    creation = create(kind, sample(kind, "first", "what it is"), "key")
    [(new, _)] = await driver.prepared(wanted(creation))
    assert await driver.listing(kind) == []
    [made] = await driver.made(creation)
    assert spec(made) == json.loads(new)
    change = update(kind, made.id, sample(kind, "renamed", "new"))
    [(changed, _)] = await driver.prepared(wanted(change))
    assert await driver.listing(kind) == [made]
    [written] = await driver.made(change)
    assert spec(written) == json.loads(changed)


async def test_a_prepared_spec_is_prepared_to_itself(driver: DriverClient, sample: Sample, kind: str) -> None:
    creation = create(kind, sample(kind, "first", ""))
    [once] = await driver.prepared(wanted(creation))
    creation.create.spec_json = once[0]
    assert await driver.prepared(wanted(creation)) == [once]


async def test_content_that_is_never_valid_is_refused(driver: DriverClient, sample: Sample, kind: str) -> None:
    """As by a write (test_conformance.py)."""
    [made] = await driver.made(create(kind, sample(kind, "first", ""), "first"))
    faulty = []
    for text in INVALID_SPECS:
        for mutation in (create(kind, {}), update(kind, made.id, {})):
            set_spec(mutation, text)
            faulty.append(wanted(mutation))
    assert {refused and refused.reason for _, refused in await driver.prepared(*faulty)} == {CONTENT_REFUSED}


async def test_a_change_at_an_immutable_path_is_refused(driver: DriverClient, platform: PlatformUnderTest) -> None:
    for (kind, _), (before, after) in platform.immutable_change.items():
        [made] = await driver.made(create(kind, before, "key"))
        creation = create(kind, {**after, "name": "another"})
        (_, refused), new = await driver.prepared(wanted(update(kind, made.id, after)), wanted(creation))
        assert refused
        assert refused.reason == CONTENT_REFUSED
        # Some platforms refuse it in every resource.
        assert new[1] is None or await driver.refusal(creation) == new[1].reason == CONTENT_REFUSED


async def test_credentials_are_refused_and_not_shown(
    driver: DriverClient, traits: PlatformTraits, sample: Sample, kind: str
) -> None:
    for path in traits.kinds[kind].sensitive_paths:
        if path.count("/") == 1:
            written = {**sample(kind, "first", ""), path.lstrip("/"): "canary-8a1f"}
            [(_, refused)] = await driver.prepared(wanted(create(kind, written)))
            assert refused
            assert refused.reason == CONTENT_REFUSED
            assert "canary" not in refused.message


async def test_only_content_is_checked(
    driver: DriverClient, platform: PlatformUnderTest, sample: Sample, kind: str
) -> None:
    """By the time of the write a name may be free, and a resource may exist."""
    taken = sample(kind, "taken", "")
    await driver.made(create(kind, taken, "key"))
    for mutation in (create(kind, taken), update(kind, platform.missing_id, sample(kind, "x", ""))):
        [(_, refused)] = await driver.prepared(wanted(mutation))
        assert refused is None


@only_platforms(lambda platform: {"NotificationRule", "NotificationEndpointHTTP"} <= platform.traits.kinds.keys())
async def test_a_referenced_resource_may_not_exist_yet(driver: DriverClient, sample: Sample) -> None:
    planned = reference("/endpointName", "NotificationEndpointHTTP", "")
    rule = create("NotificationRule", sample("NotificationRule", "rule", ""), references=[planned])
    [(_, refused)] = await driver.prepared(wanted(rule))
    assert refused is None
    [(_, refused)] = await driver.prepared(
        wanted(create("NotificationRule", sample("NotificationRule", "rule", ""), references=[planned, planned]))
    )
    assert refused


async def test_a_refused_spec_stops_no_other_and_results_keep_their_order(driver: DriverClient, sample: Sample) -> None:
    assert await driver.prepared() == []
    names = [str(number) for number in range(20)]
    refused = create("Spaceship", {"name": "x"})
    specs = [wanted(create("Label", sample("Label", name, ""))) for name in names]
    answers = await driver.prepared(wanted(refused), *specs, wanted(create("Label", {"name": ""})))
    assert [answer and answer.reason for _, answer in (answers[0], answers[-1])] == [KIND_UNSUPPORTED, CONTENT_REFUSED]
    assert [json.loads(text)["name"] for text, _ in answers[1:-1]] == names
