"""
Finished operations take no more space than the settings allow, on the disk as well (docs/reference/engine.md, "Cases",
case 15).
"""

import sqlite3
from pathlib import Path

import pytest

from services.settings import SettingInvalid, load
from stack_svc.store.store import RetentionLimits
from tests.stack.service import Client, Clock, entry, service_in_memory

MIB = 1024 * 1024


def used(path: Path) -> int:
    """Size of the database at *path* with its log, after a checkpoint, in bytes."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return sum(each.stat().st_size for each in path.parent.glob(f"{path.name}*"))


async def applied(service: Client, clock: Clock, number: int, content: int) -> None:
    """Run an apply whose plan has a content of *content* bytes."""
    clock.forward(1)
    begun = await service.begin("prod", operation=f"operation-{number}", steps=None)
    await service.start(begun, content=bytes(content))
    await service.record(begun, [entry("one")])


async def kept(service: Client, limits: RetentionLimits) -> None:
    assert service.store
    while (await service.store.sweep(limits)).is_full(limits):
        pass


async def applies(path: Path, clock: Clock, small: int, large: int) -> tuple[int, int]:
    """
    Run applies, a few of them large, with a sweep after each tenth.

    Returns:
        The largest size of the store after a sweep, and the size at the end.
    """
    limits, sizes = RetentionLimits(operations=100, bytes=8 * MIB), []
    async with service_in_memory(path, clock) as service:
        for number in range(small):
            await applied(service, clock, number, 4 * MIB if number % (small // large) == 0 else 1000)
            if number % 10 == 9:
                await kept(service, limits)
                sizes.append(used(path))
    return max(sizes), sizes[-1]


async def test_the_store_stays_below_its_bound(tmp_path: Path, clock: Clock) -> None:
    most, last = await applies(tmp_path / "stack.db", clock, 120, 12)
    assert most < 10 * MIB
    assert last < 10 * MIB


@pytest.mark.faults
async def test_the_store_stays_below_its_bound_after_5000_applies(tmp_path: Path, clock: Clock) -> None:
    most, last = await applies(tmp_path / "stack.db", clock, 5000, 20)
    assert most < 10 * MIB
    # The last large operation has been removed by then.
    assert last < 2 * MIB


async def test_the_space_of_removed_rows_is_released(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "stack.db"
    async with service_in_memory(path, clock) as service:
        for number in range(4):
            await applied(service, clock, number, 6 * MIB)
        full = used(path)
        await kept(service, RetentionLimits(operations=1))
        assert used(path) < full / 3


@pytest.mark.parametrize(
    ("variable", "value", "most"),
    [
        ("PKGER_KEEP_OPERATIONS", "0", "1,000,000,000"),
        ("PKGER_KEEP_DAYS", "36501", "36,500"),
        ("PKGER_KEEP_DAYS", "-1", "36,500"),
        ("PKGER_KEEP_BYTES", "512 MiB", "1,000,000,000,000,000"),
        ("PKGER_KEEP_ACTION_SETS", "0", "1,000,000,000"),
    ],
)
def test_an_invalid_bound_is_refused(variable: str, value: str, most: str) -> None:
    with pytest.raises(SettingInvalid) as raised:
        load({variable: value})
    assert str(raised.value) == f"Error: {variable}={value}: write a whole number from 1 to {most}"


def test_bounds_are_read_from_the_environment() -> None:
    bounds = {"OPERATIONS": "7", "DAYS": "8", "BYTES": "9", "ACTION_SETS": "10"}
    keep = load({f"PKGER_KEEP_{bound}": value for bound, value in bounds.items()}).keep
    assert (keep.operations, keep.days, keep.bytes, keep.action_sets) == (7, 8, 9, 10)
