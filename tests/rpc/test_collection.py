"""While a package is parsed, no cyclic garbage is collected."""

import gc
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
