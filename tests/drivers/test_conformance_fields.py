"""The contract for fields: each field of each kind and chart type is stored when set, changed, emptied and restored."""

from typing import Any

from pkger.model.v1 import object_pb2

from tests.drivers.client import CONTENT_REFUSED, DriverClient, create, delete, ends, spec, update
from tests.drivers.specs import full, full_chart, normal, small, small_chart

Spec = dict[str, Any]


async def written(driver: DriverClient, held: object_pb2.Resource, wanted: Spec) -> object_pb2.Resource:
    """Update *held*, which is then *wanted*, or unchanged if the platform refuses it."""
    change = update(held.kind, held.id, wanted, held.references)
    prepared = await driver.would_hold(change)
    if prepared is None:
        assert await driver.refusal(change) == CONTENT_REFUSED
        [now] = await driver.read((held.kind, held.id))
        assert now == held
        return held
    [now] = await driver.made(change)
    assert spec(now) == prepared
    assert list(now.references) == list(held.references)
    return now


async def walked(driver: DriverClient, kind: str, first: Spec, last: Spec) -> int:
    """Change one spec into another field by field, and back at once; return the number of updates that took effect."""
    [held] = await driver.made(create(kind, first, "key"))
    assert spec(held) == first
    wanted, count = dict(first), 0
    for key in sorted(first.keys() | last.keys(), key=list(last).index):
        wanted[key] = last[key]
        now = await written(driver, held, wanted)
        count += now != held
        held = now
    assert spec(held) == last
    assert spec(await written(driver, held, first)) == first
    assert spec(await written(driver, held, last)) == last
    assert await driver.listing(kind) == await driver.read((kind, held.id))
    return count


async def test_each_field_of_a_kind_is_stored(driver: DriverClient, kind: str) -> None:
    first, last = small(kind), full(kind)
    assert await walked(driver, kind, first, last) > 0


async def test_each_field_of_a_chart_is_stored(driver: DriverClient, chart: str) -> None:
    [first], [last] = (
        normal("Dashboard", "board", {"charts": [made]})["charts"] for made in (small_chart(chart), full_chart(chart))
    )
    fields = [key for key in last if first[key] != last[key]]
    assert len(fields) >= len(last) - len(("kind", *(["geom"] if chart == "band" else [])))
    board = normal("Dashboard", "board", {})
    [held] = await driver.made(create("Dashboard", {**board, "charts": [first]}, "key"))
    shown = dict(first)
    for key in fields:
        shown[key] = last[key]
        held = await written(driver, held, {**board, "charts": [shown]})
        assert spec(held)["charts"] == [shown]
    assert shown == last
    for charts in ([first], [last, first, last], [first, last], []):
        held = await written(driver, held, {**board, "charts": charts})
        assert spec(held)["charts"] == charts


async def test_a_read_spec_undoes_an_update_and_a_deletion(driver: DriverClient, kind: str) -> None:
    for before, after in ((small(kind), full(kind)), (full(kind), small(kind))):
        [held] = await driver.made(create(kind, before, f"{len(str(before))}"))
        changed = await written(driver, held, after)
        assert await written(driver, changed, spec(held)) == held
        assert ends(await driver.mutate(delete(kind, held.id))) == ["done"]
        [again] = await driver.made(create(kind, spec(held), f"again {len(str(before))}", held.references))
        assert spec(again) == spec(held)
        assert list(again.references) == list(held.references)
        assert ends(await driver.mutate(delete(kind, again.id))) == ["done"]
