"""What the embedded platform removes after a day, and what it keeps without end."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import sqlite_utils

from services.core.errors import TokenStale
from services.drivers.embedded.driver import EmbeddedDriver
from services.drivers.embedded.retention import DAY, MOST_ROWS, PERIOD_SECONDS
from services.system import MachineIds
from tests.databases import copy_database
from tests.drivers.client import DriverClient, client_of, create
from tests.drivers.platforms import sample

HOUR = DAY // 24


class Time:
    """The time of day, and a monotonic clock that stops while the machine sleeps."""

    def __init__(self) -> None:
        self.now = 1_800_000_000_000_000
        self.awake = 0.0

    def pass_(self, hours: int) -> None:
        """Advance both clocks, as on a machine that is awake."""
        self.now += hours * HOUR
        self.awake += hours * PERIOD_SECONDS


@pytest.fixture
def time() -> Time:
    return Time()


@asynccontextmanager
async def platform(folder: Path, time: Time) -> AsyncIterator[DriverClient]:
    copy_database("platform", folder / "platform.db")
    driver = EmbeddedDriver(folder / "platform.db", MachineIds(), lambda: time.now, lambda: time.awake)
    try:
        async with client_of(driver) as client:
            yield client
    finally:
        await driver.close()


async def made(driver: DriverClient, key: str, fence: tuple[str, int] | None, transient: bool = False) -> str:
    """Create a resource with *key*; return its id."""
    task = create("Task", sample("Task", "nightly", ""), key)
    [result] = await driver.mutate(task, fence=fence, transient=transient)
    return result.done.id


async def swept(driver: DriverClient) -> None:
    """Let the platform sweep, which it does beside its writes."""
    await driver.mutate()


async def test_a_key_is_valid_for_a_day(tmp_path: Path, time: Time) -> None:
    async with platform(tmp_path, time) as driver:
        first = await made(driver, "1", None)
        for _ in range(24):
            time.pass_(hours=1)
            assert await made(driver, "1", None) == first
        for _ in range(2):
            time.pass_(hours=1)
            await swept(driver)
        assert await made(driver, "1", None) != first


async def test_a_key_is_valid_while_its_operation_is_the_last_of_its_stack(tmp_path: Path, time: Time) -> None:
    """The operation may be BLOCKED for a month, and then send the creation again."""
    async with platform(tmp_path, time) as driver:
        first = await made(driver, "1", ("stack", 1))
        for _ in range(30):
            time.pass_(hours=24)
            assert await made(driver, "1", ("stack", 1)) == first
        await driver.mutate(fence=("stack", 2))
        time.pass_(hours=1)
        assert await made(driver, "1", ("stack", 2)) != first


async def test_the_fence_of_an_operation_without_a_stack_is_removed_after_a_day(tmp_path: Path, time: Time) -> None:
    async with platform(tmp_path, time) as driver:
        first = await made(driver, "1", ("alone", 2), transient=True)
        await driver.mutate(fence=("stack", 3))
        time.pass_(hours=24)
        await swept(driver)
        with pytest.raises(TokenStale):
            await driver.mutate(fence=("alone", 1), transient=True)
        for _ in range(2):
            time.pass_(hours=1)
            await swept(driver)
        assert await driver.mutate(fence=("alone", 1), transient=True) == []
        assert await made(driver, "1", ("alone", 1), transient=True) != first


async def test_the_fence_of_a_stack_stays(tmp_path: Path, time: Time) -> None:
    """Its token shows that a store is older than the platform, however old the backup is."""
    async with platform(tmp_path, time) as driver:
        await driver.mutate(fence=("stack", 7))
        for _ in range(40):
            time.pass_(hours=240)
            await swept(driver)
        assert await driver.show_token("stack", 8, "operation-b") == (7, "by 7")
        with pytest.raises(TokenStale):
            await driver.mutate(fence=("stack", 6))


async def test_after_a_machine_wakes_up_requests_are_repeated_before_a_sweep(tmp_path: Path, time: Time) -> None:
    async with platform(tmp_path, time) as driver:
        first = await made(driver, "1", ("alone", 2), transient=True)
        await swept(driver)
        time.now += 3 * DAY
        await swept(driver)
        assert await made(driver, "1", ("alone", 2), transient=True) == first
    time.now += 3 * DAY
    async with platform(tmp_path, time) as driver:
        await swept(driver)
        assert await made(driver, "1", ("alone", 2), transient=True) == first


async def test_a_clock_set_forward_and_back_removes_no_recent_row(tmp_path: Path, time: Time) -> None:
    async with platform(tmp_path, time) as driver:
        time.now += 30 * DAY
        await swept(driver)
        time.now -= 30 * DAY
        first = await made(driver, "1", None)
        time.pass_(hours=2)
        await swept(driver)
        assert await made(driver, "1", None) == first


async def test_many_rows_are_removed_in_several_sweeps(tmp_path: Path, time: Time) -> None:
    """No call waits for the removal of a million keys."""
    path = tmp_path / "platform.db"
    copy_database("platform", path)
    db = sqlite_utils.Database(path)
    rows = [("o", "Task", str(n), "0", "", time.now - 3 * DAY) for n in range(2 * MOST_ROWS + 1)]
    with db.conn:
        db.conn.executemany("INSERT INTO creates VALUES (?, ?, ?, ?, ?, ?)", rows)
    async with platform(tmp_path, time) as driver:
        left = []
        for hours in (0, 1, 0, 0):
            time.pass_(hours)
            await swept(driver)
            left.append(db.execute("SELECT count(*) FROM creates").fetchone()[0])
        assert left == [2 * MOST_ROWS + 1, MOST_ROWS + 1, 1, 0]
    db.close()
