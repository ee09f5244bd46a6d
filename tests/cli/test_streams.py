"""Operations as data, one event a line; and how commands behave in pipes."""

import asyncio
import io
import json
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2

from services.cli.operations.progress import Progress
from services.cli.output import status_line
from services.cli.output.status_line import StatusLine
from tests import needs
from tests.apply.packages import STEPS, an_object, text
from tests.cli.command import PKGER, at_terminal, environment, pkger
from tests.cluster import Cluster


async def test_an_operation_is_one_event_a_line(services: Cluster, tmp_path: Path) -> None:
    env, file = environment(tmp_path, services.addresses), tmp_path / "package.json"
    file.write_text(STEPS[1])
    applied = await pkger("apply", "-f", str(file), "--stack", "s", "-o", "json", env=env)
    events = [json.loads(line) for line in applied.out.splitlines()]
    assert (applied.code, applied.err) == (0, "")
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert events[0]["begun"] == {}
    assert events[1]["accepted"]["counts"]["creates"] == 3
    assert events[-1]["finished"]["state"] == "OPERATION_STATE_SUCCEEDED"
    name = events[0]["operation_id"]
    watched = await pkger("operations", "watch", name, "-o", "json", env=env)
    assert watched.out.splitlines() == applied.out.splitlines()[1:]
    removed = await pkger("stacks", "uninstall", "s", "--yes", "-o", "yaml", env=env)
    documents = list(yaml.safe_load_all(removed.out))
    assert documents[-1]["finished"]["counts"]["deletes"] == 3


async def test_with_data_on_standard_output_the_plan_goes_to_standard_error(services: Cluster, tmp_path: Path) -> None:
    env, file = environment(tmp_path, services.addresses), tmp_path / "package.json"
    file.write_text(STEPS[1])
    events, answers = tmp_path / "events", [(b"Plan: 3 to create", b""), (b"Apply this plan? [y/N] ", b"y\n")]
    code, _ = await at_terminal("apply", "-f", str(file), "-o", "json", answers=answers, env=env, stdout=events)
    assert code == 0
    assert all(json.loads(line)["operation_id"] for line in events.read_text().splitlines())


async def test_quiet_commands_print_nothing(services: Cluster, tmp_path: Path) -> None:
    env, file = environment(tmp_path, services.addresses), tmp_path / "package.json"
    file.write_text(STEPS[1])
    export = ["export", "--stack", "s", "-o", str(tmp_path / "copy.yml")]
    for command in (["apply", "-f", str(file), "--stack", "s"], export, ["stacks", "uninstall", "s", "--yes"]):
        result = await pkger(*command, "--quiet", env=env)
        assert (result.code, result.out, result.err) == (0, "", "")


async def test_at_a_terminal_a_status_line_shows_progress(services: Cluster, tmp_path: Path) -> None:
    env, file = environment(tmp_path, services.addresses), tmp_path / "package.json"
    file.write_text(STEPS[1])
    code, shown = await at_terminal("apply", "-f", str(file), "--yes", answers=[], env=env)
    assert code == 0
    assert b"planning for embedded/default, 0 s" in shown
    assert b"0 of 5 steps, 0 s" in shown


async def test_a_large_apply_shows_stages_and_counts(services: Cluster, tmp_path: Path) -> None:
    env, file = environment(tmp_path, services.addresses), tmp_path / "package.json"
    file.write_text(text(*(an_object("Label", f"l{n}", f"label {n}") for n in range(201))))
    applied = await pkger("apply", "-f", str(file), "--stack", "s", env=env)
    lines = applied.out.splitlines()
    assert lines[50] == "  … and 151 more; --full shows all"
    assert lines[51:] == [
        "Plan: 201 to create.",
        "labels: 201 steps",
        "  201 of 201 steps",
        "Done: 201 created.",
        "stack s, generation 1; `pkger stacks show s` shows it",
    ]


async def test_a_reader_that_closes_the_pipe_is_no_error(tmp_path: Path) -> None:
    script = f"{shlex.quote(str(PKGER))} schema 2>{tmp_path}/errors | head -c 1"
    shell = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", script, env=environment(tmp_path), stdout=subprocess.PIPE, start_new_session=True
    )
    assert (await shell.communicate())[0] == b"{"
    assert (tmp_path / "errors").read_text() == ""


def test_closed_streams_are_no_error(tmp_path: Path) -> None:
    script = f"{shlex.quote(str(PKGER))} version >&- 2>{tmp_path}/errors && {shlex.quote(str(PKGER))} version 2>&-"
    done = subprocess.run(
        ["/bin/sh", "-c", script], env=environment(tmp_path), capture_output=True, text=True, check=True
    )
    assert (done.stdout.startswith("pkger "), (tmp_path / "errors").read_text()) == (True, "")


@needs.path("/dev/full")
async def test_a_full_disk_under_standard_output_is_reported_in_one_line(tmp_path: Path) -> None:
    script = f"{shlex.quote(str(PKGER))} kinds > /dev/full"
    shell = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", script, env=environment(tmp_path), stderr=subprocess.PIPE, start_new_session=True
    )
    [line] = (await shell.communicate())[1].decode().splitlines()
    assert line.startswith("Error: cannot write the output: No space left on device")
    assert shell.returncode == 1


async def test_lists_say_when_there_is_more(services: Cluster, tmp_path: Path) -> None:
    env, file = environment(tmp_path, services.addresses), tmp_path / "package.json"
    for name in ("a", "b", "c"):
        file.write_text(text(an_object("Label", name, f"label {name}")))
        await pkger("apply", "-f", str(file), "--stack", name, env=env)
    for collection in ("stacks", "plans", "operations"):
        some = await pkger(collection, "list", "--limit", "2", "-o", "json", env=env)
        assert (len(json.loads(some.out)), some.err) == (2, "there are more; --limit N lists up to N\n")
        whole = await pkger(collection, "list", "--limit", "3", "-o", "json", env=env)
        assert (len(json.loads(whole.out)), whole.err) == (3, "")


def test_a_status_line_has_room_for_the_progress_of_a_stage() -> None:
    step = plan_pb2.Step(create=plan_pb2.CreateStep(key=object_pb2.ObjectKey(kind="Label", name="l")))
    progress = Progress([step] * 40)
    assert progress.summary() == "0 of 40 steps"
    stage = operation_pb2.StageStarted(name="buckets, checkdeadmans, checkthresholds, dashboards", step_count=30)
    progress.show(operation_pb2.OperationEvent(stage_started=stage))
    assert progress.summary() == "buckets and 3 more [..........] 0 of 40 steps"
    done = [operation_pb2.StepOutcome(step=at, done=operation_pb2.StepDone(resource_id="01")) for at in range(29)]
    progress.show(operation_pb2.OperationEvent(steps_ended=operation_pb2.StepsEnded(outcomes=done)))
    assert progress.summary() == "buckets and 3 more [#########.] 29 of 40 steps"
    rollback = operation_pb2.RollbackStarted(step_count=29)
    progress.show(operation_pb2.OperationEvent(rollback_started=rollback))
    assert progress.summary() == "undoing [..........] 0 of 29 steps"


async def test_the_cause_of_a_wait_is_shown_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_line, "HANGING_SECONDS", 0.0)
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    async with StatusLine(stream) as shown:
        shown.show(lambda: "planning", "platform eu")
    assert stream.getvalue().startswith("\rwaiting for platform eu since 0 s; planning, 0 s")
