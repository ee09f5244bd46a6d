"""Action sets from their request to their end: order, conditions, failures, retries, cancels, artifacts."""

import asyncio
from collections.abc import Mapping
from typing import Any

from pkger.model.v1 import action_pb2

from applier_svc.actions.call import Call
from applier_svc.actions.run import RUNNING_PHASES
from tests.action_sets.functions import fails, gives, waits_for
from tests.action_sets.world import (
    CANCELLED,
    COMPLETE,
    FAILED,
    World,
    action_set,
    blueprint,
    do,
    outputs,
    states,
)


async def test_phases_run_in_order_and_use_the_outputs_before(here: World) -> None:
    here.script.does("one", gives(out=7))
    definitions = blueprint(run={"phases": [do("one"), do("two", value="{{ phases.one.output.out + 1 }}")]})

    done = await here.run(definitions, action_set("run"))

    assert (done.state, states(done)) == (COMPLETE, {"run/one": "COMPLETE", "run/two": "COMPLETE"})
    assert [step for step, _ in here.script.calls] == ["one", "two"]
    assert here.script.seen[1]["value"] == 8
    assert outputs(done) == {"one": {"out": 7}, "two": {"out": "two"}}
    assert (done.progress, done.cause) == (100, "")


async def test_actions_run_at_the_same_time(here: World) -> None:
    first, second = asyncio.Event(), asyncio.Event()
    here.script.does("one", waits_for(first))
    here.script.does("two", waits_for(second))
    definitions = blueprint(a={"phases": [do("one")]}, b={"phases": [do("two")]})

    created = await here.create(definitions, action_set("a", "b"))
    await asyncio.gather(here.script.begun("one").wait(), here.script.begun("two").wait())
    second.set()
    first.set()
    await here.events(created.operation_id)

    assert (await here.get(created.name)).state == COMPLETE


async def test_a_failure_stops_siblings_at_their_next_phase_and_runs_the_defer_phases(here: World) -> None:
    go = asyncio.Event()
    here.script.does("bad", fails("it is broken"))
    here.script.does("slow", waits_for(go))
    definitions = blueprint(
        a={"phases": [do("bad"), do("never")], "deferPhase": do("after_a")},
        b={"phases": [do("slow"), do("later")], "deferPhase": do("after_b", value="{{ failure }}")},
        c={"phases": [do("bad"), do("never")]},
    )

    created = await here.create(definitions, action_set("a", "b"))
    await here.script.begun("after_a").wait()
    go.set()
    await here.events(created.operation_id)
    done = await here.get(created.name)

    assert done.state == FAILED
    assert states(done) == {
        "a/bad": "FAILED",
        "a/never": "SKIPPED",
        "a/after_a": "COMPLETE",
        "b/slow": "COMPLETE",
        "b/later": "SKIPPED",
        "b/after_b": "COMPLETE",
    }
    assert done.cause == 'phase "bad" of action "a" failed: it is broken'
    assert here.script.seen[-1]["value"] == {"phase": "bad", "reason": "FAILED", "message": "it is broken"}


async def test_a_false_condition_skips_a_phase(here: World) -> None:
    definitions = blueprint(
        run={
            "options": {"go": {"default": "no"}},
            "phases": [do("one", **{"if": '{{ options.go == "yes" }}'}), do("two")],
        }
    )

    assert states(await here.run(definitions, action_set("run"))) == {"run/one": "SKIPPED", "run/two": "COMPLETE"}
    yes = await here.run(definitions, action_set({"name": "run", "options": {"go": "yes"}}))
    assert states(yes) == {"run/one": "COMPLETE", "run/two": "COMPLETE"}


async def test_a_phase_is_tried_again_with_another_key(here: World) -> None:
    here.script.does("one", fails("busy", is_worth_retry=True), fails("busy", is_worth_retry=True), gives(out=1))
    definitions = blueprint(run={"phases": [do("one", retry={"attempts": 3, "backoff": "1ms"})]})

    done = await here.run(definitions, action_set("run"))

    assert done.state == COMPLETE
    assert done.actions[0].phases[0].attempt == 3
    assert [key for _, key in here.script.calls] == ["0/0/1", "0/0/2", "0/0/3"]


async def test_a_cancel_ends_the_running_phase_and_runs_the_defer_phase(here: World) -> None:
    here.script.does("slow", waits_for(asyncio.Event()))
    definitions = blueprint(run={"phases": [do("slow"), do("later")], "deferPhase": do("after")})

    created = await here.create(definitions, action_set("run"))
    await here.script.begun("slow").wait()
    await here.cancel(created.operation_id)
    await here.events(created.operation_id)
    done = await here.get(created.name)

    assert done.state == CANCELLED
    assert states(done) == {"run/slow": "CANCELLED", "run/later": "SKIPPED", "run/after": "COMPLETE"}


async def test_a_late_phase_fails(here: World) -> None:
    here.script.does("slow", waits_for(asyncio.Event()))
    definitions = blueprint(run={"phases": [do("slow", timeout="50ms")]})

    done = await here.run(definitions, action_set("run"))

    assert done.state == FAILED
    assert done.cause == 'phase "slow" of action "run" failed: it took longer than its timeout of 50ms'


async def test_artifacts_are_there_at_the_end(here: World) -> None:
    definitions = blueprint(
        run={
            "phases": [do("one")],
            "outputArtifacts": {"made": {"keyValue": {"what": "{{ phases.one.output.out }}", "in": "{{ run.name }}"}}},
        }
    )

    done = await here.run(definitions, action_set("run", name="first"))

    assert [(each.name, dict(each.values)) for each in done.actions[0].artifacts] == [
        ("made", {"what": "one", "in": "first"})
    ]


async def test_an_action_whose_first_phase_is_skipped_starts_all_the_same(here: World) -> None:
    definitions = blueprint(run={"phases": [do("one", **{"if": "{{ false }}"}), do("two")]})
    created = await here.create(definitions, action_set("run"))

    kinds = [event.WhichOneof("event") for event in await here.events(created.operation_id)]

    assert kinds == ["accepted", "action_started", "phase_ended", "phase_started", "phase_ended", "finished"]


async def test_phases_that_fail_at_the_same_time_have_one_cause(here: World) -> None:
    here.script.does("one", fails("first"))
    here.script.does("two", fails("second"))
    definitions = blueprint(a={"phases": [do("one")]}, b={"phases": [do("two")]})
    created = await here.create(definitions, action_set("a", "b"))

    events = await here.events(created.operation_id)

    [stopping] = [event.stopping for event in events if event.HasField("stopping")]
    done = await here.get(created.name)
    assert stopping.cause == done.cause == events[-1].finished.cause == 'phase "one" of action "a" failed: first'
    assert [each.message for each in done.failures] == ["first", "second"]


async def test_an_action_set_that_takes_too_long_fails(here: World) -> None:
    here.script.does("slow", waits_for(asyncio.Event()))
    definitions = blueprint(a={"phases": [do("slow"), do("never")], "deferPhase": do("after")})

    done = await here.run(definitions, action_set("a", timeout="5s"))

    assert (done.state, done.cause) == (FAILED, "the action set took longer than its timeout")
    assert states(done) == {"a/slow": "FAILED", "a/never": "SKIPPED", "a/after": "COMPLETE"}
    assert [each.reason for each in done.failures] == [action_pb2.PHASE_REASON_TIMEOUT]


async def test_an_action_that_takes_too_long_ends_the_phase_that_runs(here: World) -> None:
    async def slow(call: Call) -> Mapping[str, Any]:
        await asyncio.sleep(3)
        return {"out": 1}

    here.script.does("one", slow)
    here.script.does("two", slow)
    definitions = blueprint(a={"phases": [do("one"), do("two")], "timeout": "5s", "deferPhase": do("after")})

    assert states(await here.run(definitions, action_set("a"))) == {
        "a/one": "COMPLETE",
        "a/two": "FAILED",
        "a/after": "COMPLETE",
    }


async def test_a_phase_that_waits_for_others_to_end_stops_at_once(here: World) -> None:
    """No more phases run in an applier than its bound; a deferPhase does not wait for it."""
    never = asyncio.Event()
    here.script.does("slow", waits_for(never))
    actions: dict[str, Any] = {f"a{number}": {"phases": [do("slow")]} for number in range(RUNNING_PHASES)}
    full = blueprint(**actions)
    first = await here.create(full, action_set(*actions))
    await here.script.begun("slow").wait()
    waiting = await here.create(blueprint(run={"phases": [do("waits")], "deferPhase": do("after")}), action_set("run"))
    late = await here.create(blueprint(run={"phases": [do("waits")]}), action_set("run", timeout="5s"))

    await here.cancel(waiting.operation_id)
    await here.events(waiting.operation_id)
    await here.events(late.operation_id)

    assert (await here.get(waiting.name)).state == CANCELLED
    assert (await here.get(late.name)).state == FAILED
    assert "waits" not in here.script.started
    await here.cancel(first.operation_id)
    await here.events(first.operation_id)


async def test_a_late_action_is_named_in_the_cause(here: World) -> None:
    here.script.does("slow", waits_for(asyncio.Event()))

    done = await here.run(blueprint(a={"phases": [do("slow")], "timeout": "1s"}), action_set("a"))

    assert done.cause == 'phase "slow" of action "a" failed: its action took longer than its timeout of 1s'


async def test_artifacts_may_use_the_stack(here: World) -> None:
    await here.services.apply("{apiVersion: influxdata.com/v2alpha1, kind: Label, metadata: {name: red}}", stack="prod")
    keys = {"keyValue": {"generation": "{{ stack.generation }}"}}
    definitions = blueprint(run={"kind": "Stack", "phases": [do("one")], "outputArtifacts": {"seen": keys}})

    done = await here.run(definitions, action_set({"name": "run", "object": {"kind": "Stack", "name": "prod"}}))

    assert [dict(each.values) for each in done.actions[0].artifacts] == [{"generation": "1"}]


async def test_a_secret_that_was_not_passed_is_named(here: World) -> None:
    definitions = blueprint(run={"secretNames": ["pg"], "phases": [do("one", secret="{{ secrets.pg.password }}")]})

    done = await here.run(
        definitions,
        action_set({"name": "run", "secrets": {"pg": {"other": {"given": True}}}}),
        secrets={"pg.other": "1234"},
    )

    assert [each.reason for each in done.failures] == [action_pb2.PHASE_REASON_SECRET_MISSING]
    assert done.failures[0].message == "secret pg.password was not passed to the action"


async def test_a_phase_that_is_to_begin_when_another_one_fails_does_not_begin(here: World) -> None:
    definitions = blueprint(
        bad={"phases": [do("never", **{"if": "{{ 1 }}"})]}, good={"phases": [do("one")], "deferPhase": do("after")}
    )

    done = await here.run(definitions, action_set("bad", "good"))

    assert (done.state, states(done)) == (
        FAILED,
        {"bad/never": "FAILED", "good/one": "SKIPPED", "good/after": "SKIPPED"},
    )
    assert here.script.calls == []
