"""Laws of action sets, whatever their functions do, and wherever their appliers die."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from hypothesis import given, settings
from pkger.model.v1 import action_pb2, operation_pb2

from applier_svc import failpoints
from services.core.errors import OperationNotFound
from tests.action_sets.drawn import Effects, Scenario, scenarios
from tests.action_sets.world import CANCELLED, COMPLETE, FAILED, World, action_set, blueprint, do

DEFER = -1
_OPEN = (action_pb2.PHASE_STATE_PENDING, action_pb2.PHASE_STATE_RUNNING)
_STATES = {
    operation_pb2.OPERATION_STATE_SUCCEEDED: COMPLETE,
    operation_pb2.OPERATION_STATE_FAILED: FAILED,
    operation_pb2.OPERATION_STATE_CANCELLED: CANCELLED,
}

Place = tuple[int, int]
"""The index of an action, and that of a phase in it."""


async def carried_out(
    here: World, scenario: Scenario, effects: Effects
) -> tuple[action_pb2.ActionSet, list[operation_pb2.OperationEvent]]:
    """The action set of a scenario once it has ended, and its events."""
    here.script.steps = {step: [effects.step(way) for way in ways] for step, ways in scenario.ways.items()}
    here.script.verdict = effects.verdict
    failpoints.install(scenario.deaths_hook())
    try:
        created = await here.create(scenario.blueprint, scenario.action_set)
        if scenario.cancel is not None:
            await asyncio.sleep(scenario.cancel)
            with suppress(OperationNotFound):
                await here.cancel(created.operation_id)
        events = await here.events(created.operation_id)
        return await here.get(created.name), events
    finally:
        failpoints.install(failpoints.deadly(""))


def phases_of(done: action_pb2.ActionSet) -> dict[Place, action_pb2.Phase]:
    """All phases by their places."""
    return {
        (number, place): phase
        for number, action in enumerate(done.actions)
        for place, phase in (
            *enumerate(action.phases),
            *([(DEFER, action.defer_phase)] if action.HasField("defer_phase") else []),
        )
    }


def place_of(phase: action_pb2.PhaseRef) -> Place:
    return phase.action, phase.index


def check_ends(done: action_pb2.ActionSet, events: Sequence[operation_pb2.OperationEvent], scenario: Scenario) -> None:
    """It has ended, with all its phases; its events agree, and one tells its cause."""
    [*before, last] = events
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert last.HasField("finished")
    assert not any(event.HasField("finished") for event in before)
    assert _STATES[last.finished.state] == done.state
    stops = [event.stopping for event in events if event.HasField("stopping")]
    assert len(stops) == (done.state != COMPLETE)
    assert done.cause == last.finished.cause == (stops[0].cause if stops else "")
    assert (done.progress == 100) == (done.state == COMPLETE)
    failed = {place for place, phase in phases_of(done).items() if phase.state == action_pb2.PHASE_STATE_FAILED}
    assert {place_of(each.phase) for each in done.failures} == failed
    if done.state == COMPLETE:
        assert not failed
    if done.state == CANCELLED:
        assert scenario.cancel is not None
        assert not failed


def check_phases(done: action_pb2.ActionSet, events: Sequence[operation_pb2.OperationEvent]) -> None:
    """Each phase ended once, as its last event says; those that did not begin are skipped without an event."""
    begun = Counter(event.action_started.action for event in events if event.HasField("action_started"))
    assert max(begun.values(), default=1) == 1
    ended = [event.phase_ended for event in events if event.HasField("phase_ended")]
    assert max(Counter(place_of(each.phase) for each in ended).values(), default=1) == 1
    by_place = {place_of(each.phase): each for each in ended}
    starts = Counter(place_of(event.phase_started.phase) for event in events if event.HasField("phase_started"))
    for place, phase in phases_of(done).items():
        assert phase.state not in _OPEN, place
        end = by_place.get(place)
        if end is None:
            assert (phase.state, phase.attempt, starts[place]) == (action_pb2.PHASE_STATE_SKIPPED, 0, 0), place
            # A deferPhase is skipped only if nothing of its action began.
            assert place[1] != DEFER or not begun[place[0]], place
        else:
            told = (end.state, end.attempt, end.reason, end.error_reason, end.message)
            assert told == (phase.state, phase.attempt, phase.reason, phase.error_reason, phase.message), place
            assert begun[place[0]], place
            assert starts[place] == phase.attempt, place


def check_order(done: action_pb2.ActionSet, events: Sequence[operation_pb2.OperationEvent]) -> None:
    """Phases of an action run in order, the deferPhase last; after the stop begin deferPhases only."""
    has_stopped = False
    ended = set[Place]()
    for event in events:
        if event.HasField("stopping"):
            has_stopped = True
        elif event.HasField("phase_ended"):
            ended.add(place_of(event.phase_ended.phase))
        elif event.HasField("phase_started"):
            number, place = place_of(event.phase_started.phase)
            assert not has_stopped or place == DEFER, (number, place)
            if place != DEFER:
                assert {(number, each) for each in range(place)} <= ended
            if done.sequential:
                assert all(each in ended for each in phases_of(done) if each[0] < number)


def check_calls(
    done: action_pb2.ActionSet, events: Sequence[operation_pb2.OperationEvent], effects: Effects, scenario: Scenario
) -> None:
    """A try is called once unless it was interrupted, and a function that runs at most once has its effect once."""
    phases = phases_of(done)
    interruptions = Counter(
        place_of(event.phase_retrying.phase)
        for event in events
        if event.HasField("phase_retrying") and event.phase_retrying.reason == action_pb2.PHASE_REASON_INTERRUPTED
    )
    for key, count in effects.calls.items():
        number, index, try_number = map(int, key.split("/"))
        place = (number, index)
        phase = phases[place]
        assert count <= 1 + interruptions[place], key
        assert interruptions[place] <= phase.interruptions <= interruptions[place] + 1, key
        assert 1 <= try_number <= phase.attempt, key
        if phase.function != "Do" and not idempotent(scenario, phase.name):
            assert count == 1 or phase.function == "DoOnceKnown", key
            assert effects.done[key] <= 1, key
    for place, phase in phases.items():
        if phase.state == action_pb2.PHASE_STATE_COMPLETE:
            key = f"{place[0]}/{place[1]}/{phase.attempt}"
            assert effects.done[key], key


def idempotent(scenario: Scenario, step: str) -> bool:
    return any(
        phase["args"]["step"] == step and phase.get("idempotent", False)
        for action in scenario.blueprint["spec"]["actions"].values()
        for phase in (*action["phases"], action.get("deferPhase", do("none")))
    )


def check_artifacts(done: action_pb2.ActionSet, scenario: Scenario) -> None:
    """Artifacts are rendered, and all there if the action set is complete."""
    actions = scenario.blueprint["spec"]["actions"]
    for action in done.actions:
        declared = actions[action.name].get("outputArtifacts", {})
        names = {each.name for each in action.artifacts}
        assert names <= set(declared)
        assert done.state != COMPLETE or names == set(declared)
        assert not any("{{" in text for each in action.artifacts for text in each.values.values())


async def check_stacks_are_free(here: World) -> None:
    """Nobody has a stack any more."""
    here.script.steps = {}
    runs = [{"name": "run", "object": {"kind": "Stack", "name": name}} for name in "ab"]
    locking = blueprint(run={"kind": "Stack", "lock": True, "phases": [do("free")]})
    assert (await here.run(locking, action_set(*runs, wait="0s"))).state == COMPLETE


@settings(settings.get_profile("faults"))
@given(scenario=scenarios())
async def test_action_sets_end_and_their_events_tell_how(here: World, scenario: Scenario) -> None:
    effects = Effects()
    done, events = await carried_out(here, scenario, effects)
    check_ends(done, events, scenario)
    check_phases(done, events)
    check_order(done, events)
    check_calls(done, events, effects, scenario)
    check_artifacts(done, scenario)
    await check_stacks_are_free(here)
