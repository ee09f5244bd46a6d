"""The contract for references between resources, shared names and credentials (driver.proto)."""

from typing import Any

import pytest
from pkger.model.v1 import object_pb2

from services.core.model import NameUniqueness, PlatformTraits
from services.kinds.registry import KINDS
from tests.drivers.cases import Use
from tests.drivers.client import (
    CONTENT_REFUSED,
    NAME_TAKEN,
    NOT_FOUND,
    DriverClient,
    create,
    delete,
    ends,
    reference,
    spec,
    update,
)
from tests.drivers.platforms import PlatformUnderTest, Sample

CANARY = "canary-8a1f"


async def two_of(driver: DriverClient, sample: Sample, kind: str) -> list[object_pb2.Resource]:
    return await driver.made(create(kind, sample(kind, "a", ""), "a"), create(kind, sample(kind, "b", ""), "b"))


async def test_a_referring_kind_has_a_later_stage(traits: PlatformTraits, use: Use) -> None:
    kind, _, other = use
    assert traits.kinds[other].stage < traits.kinds[kind].stage


async def test_references_are_read_as_they_were_written(
    driver: DriverClient, platform: PlatformUnderTest, sample: Sample, use: Use
) -> None:
    kind, pointer, other = use
    first, second = await two_of(driver, sample, other)
    wanted = [reference(pointer, other, first.id)]
    [made] = await driver.made(create(kind, sample(kind, "refers", ""), "key", wanted))
    assert list(made.references) == wanted
    assert await driver.read((kind, made.id)) == [made]
    assert await driver.listing(kind) == [made]
    moved = [reference(pointer, other, second.id)]
    [written] = await driver.made(update(kind, made.id, sample(kind, "refers", ""), moved))
    assert list(written.references) == moved
    assert await driver.listing(kind) == [written]
    if platform.needs_references:
        return
    [bare] = await driver.made(update(kind, made.id, sample(kind, "refers", "")))
    assert list(bare.references) == []
    assert await driver.listing(kind) == [bare]


async def test_a_reference_to_a_missing_resource_is_rejected(
    driver: DriverClient, platform: PlatformUnderTest, sample: Sample, use: Use
) -> None:
    kind, pointer, other = use
    nothing = [reference(pointer, other, platform.missing_id)]
    assert await driver.refusal(create(kind, sample(kind, "refers", ""), "key", nothing)) == NOT_FOUND
    assert await driver.listing(kind) == []
    [referred, _] = await two_of(driver, sample, other)
    kept = [reference(pointer, other, referred.id)]
    [made] = await driver.made(create(kind, sample(kind, "refers", ""), "key", kept))
    assert await driver.refusal(update(kind, made.id, sample(kind, "renamed", ""), nothing)) == NOT_FOUND
    # An id is valid only in its own kind and organization.
    mistaken = [reference(pointer, kind, referred.id)]
    assert await driver.refusal(update(kind, made.id, sample(kind, "renamed", ""), mistaken)) == NOT_FOUND
    foreign = create(kind, sample(kind, "refers", ""), "foreign", kept)
    assert await driver.refusal(foreign, org="elsewhere") == NOT_FOUND
    assert await driver.listing(kind) == [made]


async def test_deleting_a_referenced_resource_removes_the_reference(
    driver: DriverClient, sample: Sample, use: Use
) -> None:
    """If it were still returned, the undo of a change would have to write a reference to a missing resource."""
    kind, pointer, other = use
    [referred, _] = await two_of(driver, sample, other)
    wanted = [reference(pointer, other, referred.id)]
    [made] = await driver.made(create(kind, sample(kind, "refers", ""), "key", wanted))
    [gone] = await driver.mutate(delete(other, referred.id))
    assert gone.WhichOneof("result") == "done"
    [left] = await driver.listing(kind)
    assert (left.id, spec(left), list(left.references)) == (made.id, spec(made), [])
    assert await driver.read((kind, made.id)) == [left]


async def test_a_pointer_refers_to_one_resource(driver: DriverClient, sample: Sample, use: Use) -> None:
    kind, pointer, other = use
    both = [reference(pointer, other, resource.id) for resource in await two_of(driver, sample, other)]
    assert await driver.refusal(create(kind, sample(kind, "refers", ""), "key", both)) == CONTENT_REFUSED
    assert await driver.listing(kind) == []


async def test_kinds_of_one_scope_share_their_names(
    driver: DriverClient, traits: PlatformTraits, sample: Sample, kind: str
) -> None:
    own = traits.kinds[kind]
    others = [
        other for other in traits.kinds.values() if other.scope == own.scope and other.kind in KINDS.keys() - {kind}
    ]
    for other in others:
        assert other.name_uniqueness is own.name_uniqueness
        await driver.made(create(other.kind, sample(other.kind, f"of {other.kind}", ""), other.kind))
    [mine] = await driver.made(create(kind, sample(kind, "mine", ""), "mine"))
    for other in others:
        taken = sample(kind, f"of {other.kind}", "")
        results = await driver.mutate(create(kind, taken, f"as {other.kind}"), update(kind, mine.id, taken))
        if own.name_uniqueness is NameUniqueness.NONE:
            assert ends(results) == ["done", "done"]
        else:
            assert [result.rejected.reason for result in results] == [NAME_TAKEN, NAME_TAKEN]


@pytest.mark.parametrize(
    "text", [CANARY, {"secretRef": {"key": "k"}, "text": CANARY}, {"secretRef": {"key": "k", "text": CANARY}}]
)
async def test_a_plain_credential_is_refused_and_not_shown(
    driver: DriverClient, traits: PlatformTraits, sample: Sample, kind: str, text: Any
) -> None:
    [made] = await driver.made(create(kind, sample(kind, "named", ""), "named"))
    for path in traits.kinds[kind].sensitive_paths:
        for wanted in (None, "", {"secretRef": {"key": "k"}}):
            named = update(kind, made.id, _with(sample(kind, "named", ""), path, wanted))
            if await driver.would_hold(named) is not None:
                [made] = await driver.made(named)
            else:
                assert not wanted
        written = _with(sample(kind, "written", ""), path, text)
        results = await driver.mutate(create(kind, written, "written"), update(kind, made.id, written))
        assert [result.rejected.reason for result in results] == [CONTENT_REFUSED] * 2
        assert CANARY not in str(results)
        assert path in results[0].rejected.message
    assert await driver.listing(kind) == [made]


def _with(spec: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """*spec* with *value* at *path*."""
    *holders, key = path.split("/")[1:]
    found = spec
    for holder in holders:
        found = found.setdefault(holder, {})
    found[key] = value
    return spec
