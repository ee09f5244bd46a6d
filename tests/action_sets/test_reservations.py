"""Action sets that change stacks: each has its stack to itself, and everybody else is told who has it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pkger.model.v1 import object_pb2, operation_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core.errors import StackLeased
from tests.action_sets.functions import waits_for
from tests.action_sets.world import CANCELLED, COMPLETE, FAILED, World, action_set, blueprint, do
from tests.cluster import Calls

PACKAGE = """\
apiVersion: influxdata.com/v2alpha1
kind: Label
metadata: {name: red}
spec: {name: Red}
"""


def locking(*steps: str) -> dict[str, Any]:
    """A blueprint with an action that reserves its stack."""
    return blueprint(run={"kind": "Stack", "lock": True, "phases": [do(step) for step in steps]})


def of(stack: str, **more: Any) -> dict[str, Any]:
    return {"name": "run", "object": {"kind": "Stack", "name": stack}, **more}


async def held(here: World, stack: str = "prod") -> tuple[asyncio.Event, str]:
    """An action set that has *stack* until an event is set, and its name."""
    go = asyncio.Event()
    here.script.does("hold", waits_for(go))
    created = await here.create(locking("hold"), action_set(of(stack)))
    await here.script.begun("hold").wait()
    return go, created.name


async def test_a_stack_is_free_again_when_the_action_set_ends(here: World) -> None:
    await here.services.apply(PACKAGE, stack="prod")
    go, name = await held(here)
    with pytest.raises(StackLeased, match=f"is reserved by action set {name}"):
        await here.services.apply(PACKAGE, stack="prod")
    go.set()
    await here.events((await here.get(name)).operation_id)

    assert (await here.services.apply(PACKAGE, stack="prod")).state == operation_pb2.OPERATION_STATE_SUCCEEDED


def _rename(here: World) -> Awaitable[Any]:
    peer = here.services.peers["stack"]
    stack = object_pb2.StackRef(name="prod")
    request = stack_pb2.UpdateStackRequest(stack=stack, name="other")
    return peer.call(StackServiceStub(peer.channel).UpdateStack, request)


def _delete(here: World) -> Awaitable[Any]:
    peer = here.services.peers["stack"]
    request = stack_pb2.DeleteStackRequest(stack=object_pb2.StackRef(name="prod"))
    return peer.call(StackServiceStub(peer.channel).DeleteStack, request)


def _create(here: World) -> Awaitable[Any]:
    peer = here.services.peers["stack"]
    return peer.call(StackServiceStub(peer.channel).CreateStack, stack_pb2.CreateStackRequest(name="new"))


CHANGES: dict[str, tuple[str, Callable[[World], Awaitable[Any]]]] = {
    "rename": ("prod", _rename),
    "delete": ("prod", _delete),
    "uninstall": ("prod", lambda here: here.services.uninstall("prod")),
    "create": ("new", _create),
    "first apply": ("new", lambda here: here.services.apply(PACKAGE, stack="new")),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_others_are_refused_and_told_who_has_the_stack(here: World, change: str) -> None:
    await here.services.apply(PACKAGE, stack="prod")
    stack, make = CHANGES[change]
    go, name = await held(here, stack)

    with pytest.raises(StackLeased, match=f"is reserved by action set {name}"):
        await make(here)
    go.set()


async def test_an_action_set_waits_for_another_one_and_says_for_whom(here: World) -> None:
    await here.services.apply(PACKAGE, stack="prod")
    go, first = await held(here)
    waiting = await here.create(locking("after"), action_set(of("prod")))
    await here.until_event(waiting.operation_id, "waiting")
    go.set()
    events = await here.events(waiting.operation_id)

    [event] = [each.waiting for each in events if each.HasField("waiting")]
    assert (event.action_set, event.stack_name) == (first, "prod")
    assert (await here.get(waiting.name)).state == COMPLETE


async def test_an_action_set_does_not_wait_longer_than_it_says(here: World) -> None:
    await here.services.apply(PACKAGE, stack="prod")
    go, first = await held(here)

    for wait in ("0s", "3s"):
        done = await here.run(locking("never"), action_set(of("prod"), wait=wait))

        assert done.state == FAILED
        assert f"stack prod is in use by action set {first}" in done.cause
        assert ("was not free within 3s" in done.cause) == (wait == "3s")
    go.set()
    assert [step for step, _ in here.script.calls] == ["hold"]


async def test_an_action_set_that_does_not_wait_gets_a_free_stack(here: World) -> None:
    done = await here.run(locking("one"), action_set(of("prod"), wait="0s"))

    assert done.state == COMPLETE


async def test_one_that_waits_can_be_cancelled(here: World) -> None:
    await here.services.apply(PACKAGE, stack="prod")
    go, _ = await held(here)
    waiting = await here.create(locking("never"), action_set(of("prod")))
    await here.until_event(waiting.operation_id, "waiting")

    assert await here.cancel(waiting.operation_id) == operation_pb2.CANCEL_EFFECT_STOPS
    await here.events(waiting.operation_id)

    assert (await here.get(waiting.name)).state == CANCELLED
    go.set()


async def test_many_action_sets_and_applies_share_stacks_one_at_a_time(here: World) -> None:
    """Twenty action sets and five clients that apply, on three stacks."""
    stacks = ["a", "b", "c"]
    here_now: dict[str, int] = dict.fromkeys(stacks, 0)

    async def alone(call):  # type: ignore[no-untyped-def]
        stack = call.object.name
        here_now[stack] += 1
        assert here_now[stack] == 1
        await asyncio.sleep(1)
        here_now[stack] -= 1
        return {"out": stack}

    here.script.does("work", alone)
    for number, stack in enumerate(stacks):
        await here.services.apply(PACKAGE.replace("ed", f"ed{number}"), stack=stack)
    created = [
        await here.create(locking("work"), action_set(of(stacks[number % 3]), wait="24h")) for number in range(20)
    ]

    async def applies(number: int) -> None:
        while True:
            try:
                await here.services.apply(PACKAGE.replace("ed", f"ed{number % 3}"), stack=stacks[number % 3])
            except StackLeased:
                await asyncio.sleep(1)
            else:
                return

    await asyncio.gather(*map(applies, range(5)), *(here.events(each.operation_id) for each in created))

    assert {(await here.get(each.name)).state for each in created} == {COMPLETE}


async def test_of_many_that_wait_for_a_stack_one_asks_the_store(here: World, calls: Calls) -> None:
    """They get it in the order in which they came; one that is cancelled or late meanwhile is passed over."""
    await here.services.apply(PACKAGE, stack="prod")
    go, _ = await held(here)
    created = []
    for number, spec in enumerate(({}, {}, {"wait": "90s"}, {"timeout": "90s"}, {}, {})):
        step = f"work{number}"
        created.append(await here.create(locking(step), action_set(of("prod"), **{"wait": "24h", **spec})))
        await here.until_event(created[-1].operation_id, "waiting")
    before = calls.count("AdvanceOperation")
    await asyncio.sleep(60)
    assert 55 <= calls.count("AdvanceOperation") - before <= 65

    await here.cancel(created[0].operation_id)
    await here.events(created[0].operation_id)
    await asyncio.sleep(40)
    go.set()
    await asyncio.gather(*(here.events(each.operation_id) for each in created))

    states = [(await here.get(each.name)).state for each in created]
    assert states == [CANCELLED, COMPLETE, FAILED, FAILED, COMPLETE, COMPLETE]
    assert [step for step, _ in here.script.calls] == ["hold", "work1", "work4", "work5"]
