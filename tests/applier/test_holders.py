"""The queues of the action sets of one applier that wait for stacks."""

from collections.abc import Callable

from applier_svc.actions.holders import Holders


def waker(woken: list[str], name: str) -> Callable[[], None]:
    return lambda: woken.append(name)


def test_one_that_waits_for_nobody_asks() -> None:
    holders, wake = Holders(), waker([], "a")
    assert holders.is_first("op", wake)
    holders.leave("op", wake)
    assert holders.is_first("op", wake)


def test_the_first_of_those_that_wait_for_an_operation_asks() -> None:
    holders, woken = Holders(), list[str]()
    first, second, third, other = (waker(woken, name) for name in ("first", "second", "third", "other"))
    for wake in (first, second, third):
        holders.join("op", wake)
    holders.join("another", other)
    assert [holders.is_first("op", each) for each in (first, second, third)] == [True, False, False]
    assert holders.is_first("another", other)

    holders.leave("op", second)
    assert woken == []
    holders.leave("op", first)
    assert (woken, holders.is_first("op", third)) == (["third"], True)
    holders.leave("op", third)
    assert woken == ["third"]
