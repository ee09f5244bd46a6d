"""What an action set costs the store: transactions, which are counted, and the bytes of its events."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from applier_svc.actions.call import Call
from tests.action_sets.functions import Step, fails, gives, waits_for
from tests.action_sets.world import COMPLETE, FAILED, World, action_set, blueprint, do, outputs
from tests.cluster import Calls
from tests.databases import written

__all__ = ["written"]

LARGEST_EVENT = 4096
"""Most bytes of an event."""

NAME = "n" * 62
"""With one letter more, the longest name inside a definition."""

LONG = "🛰" * 200
"""The longest name of a stack."""


def emits(count: int) -> Step:
    """A step that emits an output so many times."""

    async def step(call: Call) -> Mapping[str, Any]:
        for number in range(count):
            await call.emit({"out": number})
        return {}

    return step


def of_stack(name: str, action: str = "run") -> dict[str, Any]:
    """A run of an action on a stack."""
    return {"name": action, "object": {"kind": "Stack", "name": name}}


@pytest.mark.parametrize("emit_count", [0, 3])
@pytest.mark.parametrize("phase_count", [1, 5])
async def test_a_phase_is_two_transactions_and_one_more_for_each_emit(
    here: World, calls: Calls, written: Counter[str], phase_count: int, emit_count: int
) -> None:
    """Begin, start and finish; before and after each phase, the deferPhase too."""
    here.script.does("emitting", emits(emit_count))
    phases = [do(f"p{number}") for number in range(phase_count)]
    definitions = blueprint(run={"phases": [*phases, do("emitting")], "deferPhase": do("after")})

    done = await here.run(definitions, action_set("run"))

    assert done.state == COMPLETE
    await calls.ended("FinishOperation")
    assert written["stack"] == 3 + 2 * (phase_count + 2) + emit_count
    assert calls.count("AdvanceOperation") == written["stack"] - 2


async def test_a_reservation_is_one_transaction_more(here: World, calls: Calls, written: Counter[str]) -> None:
    definitions = blueprint(run={"kind": "Stack", "lock": True, "phases": [do("one")]})

    assert (await here.run(definitions, action_set(of_stack("a"), of_stack("b"), sequential=True))).state == COMPLETE

    await calls.ended("FinishOperation")
    assert written["stack"] == 4 + 2 * 2


async def test_phases_that_begin_or_end_at_the_same_time_are_stored_together(
    here: World, written: Counter[str]
) -> None:
    meeting = asyncio.Barrier(10)

    async def meets(call: Call) -> Mapping[str, Any]:
        await meeting.wait()
        return {}

    here.script.does("one", meets)
    definitions = blueprint(run={"phases": [do("one"), {**do("one"), "name": "two"}]})

    assert (await here.run(definitions, action_set(*["run"] * 10))).state == COMPLETE

    # Twenty phases alone would be forty.
    assert written["stack"] <= 12


async def test_an_action_set_takes_few_calls(here: World, calls: Calls) -> None:
    assert (await here.run(blueprint(run={"phases": [do("one")]}), action_set("run"))).state == COMPLETE

    await calls.ended("FinishOperation")
    of_clients = ("CreateActionSet", "WatchOperation", "GetActionSet", "ListEvents", "GetOperation")
    assert sorted(method for method in calls.methods if method not in of_clients) == [
        "AdvanceOperation",
        "AdvanceOperation",
        "AdvanceOperation",
        "BeginOperation",
        "FinishOperation",
    ]


async def test_events_are_small_with_the_longest_names_and_messages(here: World) -> None:
    """Failures of two phases at the same time, with their retries, deferPhases and artifacts, and a reserved stack."""
    message, action = "é" * 100_000, f"{NAME}a"
    free = asyncio.Event()
    here.script.does("holds", waits_for(free))
    here.script.does("bad", fails(message, is_worth_retry=True, error_reason="SERVICE_UNAVAILABLE"))
    holding: dict[str, Any] = {action: {"kind": "Stack", "lock": True, "phases": [do("holds")]}}
    holder = await here.create(blueprint(**holding), action_set(of_stack(LONG, action)))
    await here.script.begun("holds").wait()
    artifacts = {f"{NAME[:-4]}a{number}": {"keyValue": {"k": "{{ time }}"}} for number in range(1000, 1300)}
    phase = {**do("bad", retry={"attempts": 2, "backoff": "1ms"}), "name": f"{NAME}p"}
    actions: dict[str, Any] = {
        "kind": "Stack",
        "lock": True,
        "outputArtifacts": artifacts,
        "phases": [do("one"), phase],
        "deferPhase": {**do("bad"), "name": f"{NAME}d"},
    }
    created = await here.create(
        blueprint("b" * 63, **{action: actions}),
        action_set(*[{**of_stack(LONG, action), "blueprint": "b" * 63}] * 2, name="s" * 63),
    )
    await here.until_event(created.operation_id, "waiting")
    free.set()
    events = await here.events(created.operation_id)
    await here.events(holder.operation_id)

    done = await here.get("s" * 63)
    assert done.state == FAILED
    kinds = {str(event.WhichOneof("event")) for event in events}
    assert {"waiting", "phase_retrying", "artifacts_rendered", "phase_ended", "stopping", "finished"} <= kinds
    assert max(event.ByteSize() for event in events) <= LARGEST_EVENT
    names = [name for event in events for name in event.artifacts_rendered.names]
    assert sorted(set(names)) == sorted(artifacts)
    assert {phase.message[-40:] for each in done.actions for phase in (each.phases[1], each.defer_phase)} == {
        "é… (this message of 200,000 bytes was cut)"[-40:]
    }


async def test_events_have_no_outputs(here: World) -> None:
    here.script.does("large", gives(out="x" * 200_000))
    created = await here.create(blueprint(run={"phases": [do("large"), do("two")]}), action_set("run"))

    events = await here.events(created.operation_id)

    assert len(outputs(await here.get(created.name))["large"]["out"]) == 200_000
    assert max(event.ByteSize() for event in events) <= LARGEST_EVENT
