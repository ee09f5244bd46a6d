"""While a package is parsed, no cyclic garbage is collected."""

import asyncio
import gc
import traceback
import weakref
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from services.rpc.gc_pause import gc_paused


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if was_enabled else gc.disable)()


def test_the_collector_waits_until_the_last_call_has_ended() -> None:
    first, second = ExitStack(), ExitStack()
    first.enter_context(gc_paused())
    second.enter_context(gc_paused())
    assert not gc.isenabled()
    first.close()
    assert not gc.isenabled()
    second.close()
    assert gc.isenabled()


def test_an_error_ends_the_pause() -> None:
    with pytest.raises(ValueError, match="wrong"), gc_paused():
        raise ValueError("wrong")
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    with gc_paused():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_calls_that_always_overlap_do_not_keep_garbage_for_ever() -> None:
    with gc_paused():
        with gc_paused():
            for _ in range(250_000):
                cycle: list[object] = []
                cycle.append(cycle)
            assert gc.get_count()[0] > 200_000
        assert gc.get_count()[0] < 1000


def test_an_error_does_not_keep_what_was_read() -> None:
    class Value:
        pass

    values: list[weakref.ref[Value]] = []

    def read() -> None:
        value = Value()
        values.append(weakref.ref(value))
        raise ValueError("no scalar")

    def fail() -> None:
        try:
            read()
        except ValueError:
            raise ValueError("no package") from None

    with pytest.raises(ValueError, match="no package") as caught:
        gc_paused()(fail)()
    assert [value() for value in values] == [None]
    assert "in read" in "".join(traceback.format_exception(caught.value.__context__))


async def test_an_error_leaves_a_coroutine_that_handles_it_alone() -> None:
    """Tasks that wait for the same one receive the same error."""
    failing = asyncio.get_running_loop().create_future()
    handling, may_end = asyncio.Event(), asyncio.Event()

    async def handle() -> str:
        value = "kept"
        try:
            await failing
        except ValueError:
            handling.set()
            await may_end.wait()
        return value

    async def fail() -> None:
        with gc_paused():
            await handling.wait()
            await failing

    tasks = [asyncio.create_task(handle()), asyncio.create_task(fail())]
    await asyncio.sleep(0)
    failing.set_exception(ValueError("shared"))
    with pytest.raises(ValueError, match="shared"):
        await tasks[1]
    may_end.set()
    assert await tasks[0] == "kept"
