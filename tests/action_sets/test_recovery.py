"""What becomes of action sets whose applier ends while they run: each row of the table of recoveries."""

from collections.abc import Mapping
from typing import Any

import pytest
from pkger.model.v1 import action_pb2

from applier_svc import failpoints
from applier_svc.actions.call import Call, Verdict
from services.core.errors import ActionSetNotFound, LeaseLost
from tests.action_sets.deaths import Deaths, died
from tests.action_sets.functions import fails, gives
from tests.action_sets.world import COMPLETE, FAILED, World, action_set, blueprint, do, outputs, states


async def run(here: World, definitions: dict[str, Any]) -> action_pb2.ActionSet:
    return await here.run(definitions, action_set("run"))


async def test_found_pending_it_goes_on(here: World, deaths: Deaths) -> None:
    """The client gets no answer, and the same request gets the same action set."""
    deaths.at("after_start")
    deaths.at("after_claim")
    definitions = blueprint(run={"phases": [do("one")]}), action_set("run")
    with pytest.raises(LeaseLost):
        await here.create(*definitions, request_id="r")

    done = await here.run(*definitions, request_id="r")

    assert (done.state, deaths.count) == (COMPLETE, 2)
    assert [key for _, key in here.script.calls] == ["0/0/1"]


async def test_a_death_before_the_start_leaves_nothing(here: World, deaths: Deaths) -> None:
    deaths.at("after_begin")
    definitions = blueprint(run={"phases": [do("one")]}), action_set("run", name="first")
    with pytest.raises(LeaseLost):
        await here.create(*definitions, request_id="r")
    with pytest.raises(ActionSetNotFound):
        await here.get("first")

    assert (await here.run(*definitions, request_id="r")).state == COMPLETE


async def test_found_complete_it_is_taken_with_its_outputs(here: World, deaths: Deaths) -> None:
    here.script.does("one", gives(out=7))
    deaths.at("after_phase_record")

    done = await run(here, blueprint(run={"phases": [do("one"), do("two", value="{{ phases.one.output.out }}")]}))

    assert (done.state, deaths.count) == (COMPLETE, 1)
    assert [step for step, _ in here.script.calls] == ["one", "two"]
    assert here.script.seen[1]["value"] == 7


@pytest.mark.parametrize("place", ["after_phase_intent", "after_phase_effect"])
async def test_found_running_a_rerun_runs_again_with_the_same_key(here: World, deaths: Deaths, place: str) -> None:
    deaths.at(place)

    done = await run(here, blueprint(run={"phases": [do("one")]}))

    [phase] = done.actions[0].phases
    assert (done.state, phase.attempt, phase.interruptions) == (COMPLETE, 1, 1)
    assert {key for _, key in here.script.calls} == {"0/0/1"}


async def test_what_was_emitted_is_there_when_it_runs_again(here: World, deaths: Deaths) -> None:
    async def emits(call: Call) -> Mapping[str, Any]:
        if "original" in call.emitted:
            return {"out": f"again, with {call.emitted['original']}"}
        await call.emit({"original": 3})
        return {"out": "first"}

    here.script.does("one", emits)
    deaths.at("after_emit")

    done = await run(here, blueprint(run={"phases": [do("one")]}))

    assert outputs(done) == {"one": {"original": 3, "out": "again, with 3"}}


async def test_found_running_once_has_failed_and_the_defer_phase_runs(here: World, deaths: Deaths) -> None:
    deaths.at("after_phase_effect")
    definitions = blueprint(run={"phases": [do("one", func="DoOnce"), do("two")], "deferPhase": do("after")})

    done = await run(here, definitions)

    assert (done.state, states(done)) == (
        FAILED,
        {"run/one": "FAILED", "run/two": "SKIPPED", "run/after": "COMPLETE"},
    )
    assert done.actions[0].phases[0].message == "an applier ended while it ran, and DoOnce runs at most once"
    assert [step for step, _ in here.script.calls] == ["one", "after"]


async def test_found_running_once_runs_again_on_the_word_of_its_author(here: World, deaths: Deaths) -> None:
    deaths.at("after_phase_effect")

    done = await run(here, blueprint(run={"phases": [do("one", func="DoOnce", idempotent=True)]}))

    assert (done.state, len(here.script.calls)) == (COMPLETE, 2)


@pytest.mark.parametrize(
    ("verdict", "state", "calls"),
    [(Verdict.DONE, COMPLETE, 1), (Verdict.NOT_DONE, COMPLETE, 2), (Verdict.UNKNOWN, FAILED, 1)],
)
async def test_found_running_once_that_can_tell_is_asked(
    here: World, deaths: Deaths, verdict: Verdict, state: int, calls: int
) -> None:
    here.script.checked["0/0/1"] = (verdict, {"out": "told"})
    deaths.at("after_phase_effect")

    done = await run(here, blueprint(run={"phases": [do("one", func="DoOnceKnown")]}))

    assert (done.state, len(here.script.calls)) == (state, calls)
    assert verdict is not Verdict.DONE or outputs(done) == {"one": {"out": "told"}}


async def test_found_running_a_defer_phase_runs_again(here: World, deaths: Deaths) -> None:
    deaths.at("before_defer")

    done = await run(here, blueprint(run={"phases": [do("one")], "deferPhase": do("after")}))

    assert (done.state, [step for step, _ in here.script.calls]) == (COMPLETE, ["one", "after"])


async def test_found_running_a_defer_phase_that_runs_once_has_failed(here: World, deaths: Deaths) -> None:
    async def dies(call: Call) -> Mapping[str, Any]:
        raise died()

    here.script.does("after", dies)

    done = await run(here, blueprint(run={"phases": [do("one")], "deferPhase": do("after", func="DoOnceKnown")}))

    assert (done.state, states(done)) == (FAILED, {"run/one": "COMPLETE", "run/after": "FAILED"})


async def test_a_phase_that_was_interrupted_three_times_fails(here: World, deaths: Deaths) -> None:
    deaths.at("after_phase_intent")
    deaths.at("after_phase_effect", 5)

    done = await run(here, blueprint(run={"phases": [do("one")], "deferPhase": do("after", **{"if": "{{ false }}"})}))

    [phase] = done.actions[0].phases
    assert (done.state, phase.interruptions) == (FAILED, 2)
    assert phase.message == "an applier ended while it ran, 3 times"


async def test_a_timeout_goes_on_while_nobody_works_on_the_action_set(here: World, deaths: Deaths) -> None:
    """Its lease is free after a second only, and the phase may take half a second."""
    here.script.does("one", fails("busy", is_worth_retry=True), gives(out=1))
    deaths.at("after_phase_effect")
    deaths.at("after_phase_record")

    phase = do("one", timeout="500ms", retry={"attempts": 3, "backoff": "0s"})
    done = await run(here, blueprint(run={"phases": [phase]}))

    assert done.state == FAILED
    assert "it took longer than its timeout of 500ms" in done.cause


async def test_outcomes_are_the_same_with_a_death_at_each_place(here: World, deaths: Deaths) -> None:
    definitions = blueprint(
        run={
            "phases": [do("one"), do("two")],
            "deferPhase": do("after"),
            "outputArtifacts": {"made": {"keyValue": {"what": "{{ phases.two.output.out }}"}}},
        }
    )
    for place in failpoints.ACTION_NAMES:
        if place in ("after_reserve", "after_child_begin", "after_child_end", "after_emit"):
            continue
        deaths.at(place)
        before = deaths.count
        done = await run(here, definitions)
        assert deaths.count == before + 1, place
        assert (done.state, set(states(done).values())) == (COMPLETE, {"COMPLETE"})
        assert [dict(each.values) for each in done.actions[0].artifacts] == [{"what": "two"}]
