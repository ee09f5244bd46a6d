"""Questions are asked at the terminal, even if standard input is a pipe; without a terminal, deletions are refused."""

import asyncio
import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pkger.driver.v1 import driver_pb2
from pkger.planner.v1 import planner_pb2

from services.cli.plan.approval import waited_for
from services.cli.process.terminal import Terminal
from tests.apply.packages import STEPS, an_endpoint, an_object, text
from tests.cli.command import PKGER, at_terminal, environment, parts, pkger, process_at_terminal
from tests.cluster import Cluster

SHELL = Path("/bin/sh")
QUESTION = b"Apply this plan? [y/N] "
CANARY = "canary-8a1f"
STAGED = an_object("Label", "l", "x") | {"spec": {"name": {"envRef": {"key": "stage"}}}}


@pytest.fixture
def env(services: Cluster, tmp_path: Path) -> Mapping[str, str]:
    return environment(tmp_path, services.addresses)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "package.json"
    path.write_text(STEPS[1])
    return path


async def plans(env: Mapping[str, str]) -> list[str]:
    """States of all stored plans."""
    return [each["state"] for each in json.loads((await pkger("plans", "list", "-o", "json", env=env)).out)]


async def test_a_package_on_standard_input_is_asked_for_at_the_terminal(
    services: Cluster, env: Mapping[str, str], file: Path
) -> None:
    apply = ["apply", "-f", "-", "--stack", "s"]
    code, shown = await at_terminal(*apply, answers=[(QUESTION, b"n\n")], env=env, stdin=file)
    assert (code, await services.resources()) == (1, []), shown
    assert await plans(env) == []
    # The terminal that a process finds, and a pipe.
    script = f"cat {shlex.quote(str(file))} | {shlex.join([str(PKGER), *apply])}"
    code, shown = await process_at_terminal("-c", script, answers=[(QUESTION, b"y\n")], env=env, program=SHELL)
    assert (code, len(await services.resources())) == (0, 3), shown
    uninstall, nothing = ["stacks", "uninstall", "s"], Path(os.devnull)
    code, shown = await at_terminal(*uninstall, answers=[(QUESTION, b"n\n")], env=env, stdin=nothing)
    assert (code, len(await services.resources())) == (1, 3), shown


async def test_without_a_terminal_nothing_is_deleted_unasked(
    services: Cluster, env: Mapping[str, str], file: Path
) -> None:
    """A plan that only creates and updates runs, as scripts expect."""
    applied = await pkger("apply", "-f", str(file), "--stack", "s", env=env)
    assert applied.code == 0
    file.write_text(text(an_object("Label", "lucid_einstein", "label_1")))
    for command in (["apply", "-f", str(file), "--stack", "s"], ["stacks", "uninstall", "s"]):
        refused = await pkger(*command, env=env)
        count = 2 if command[0] == "apply" else 3
        assert refused.code == 1
        assert f"the plan deletes {count} resources, and there is no terminal to ask at" in refused.err
    assert len(await services.resources()) == 3
    assert await plans(env) == ["PLAN_STATE_APPLIED"]
    assert (await pkger("apply", "-f", str(file), "--stack", "s", "--yes", env=env)).code == 0
    assert len(await services.resources()) == 1


async def test_without_a_terminal_no_two_resources_are_doubled_unasked(
    services: Cluster, env: Mapping[str, str], file: Path
) -> None:
    file.write_text(text(*(an_object("Dashboard", name, name) for name in ("one", "two"))))
    apply = ["apply", "-f", str(file), "--stack"]
    assert (await pkger(*apply, "s", env=env)).code == 0
    refused = await pkger(*apply, "mistyped", env=env)
    assert refused.code == 1
    assert (
        "the plan creates 2 resources beside others of the same kind and name, and there is no terminal" in refused.err
    )
    assert await services.stack_names() == ["s"]
    code, shown = await at_terminal(*apply, "mistyped", answers=[(QUESTION, b"n\n")], env=env)
    assert (code, len(await services.resources())) == (1, 2), shown
    assert (await pkger(*apply, "meant", "--yes", env=env)).code == 0
    assert len(await services.resources()) == 4


async def test_a_refusal_names_all_that_needs_an_answer(env: Mapping[str, str], file: Path) -> None:
    doubled = [an_object("Dashboard", name, name) for name in ("one", "two")]
    for stack, objects in (("s", doubled), ("other", [an_object("Label", "gone", "gone")])):
        file.write_text(text(*objects))
        assert (await pkger("apply", "-f", str(file), "--stack", stack, env=env)).code == 0
    file.write_text(text(*doubled))
    refused = await pkger("apply", "-f", str(file), "--stack", "other", env=env)
    assert "the plan deletes 1 resource and creates 2 resources beside others of the same kind and name" in refused.err


async def test_without_a_terminal_one_resource_is_doubled_with_a_warning(
    services: Cluster, env: Mapping[str, str], file: Path
) -> None:
    file.write_text(text(an_object("Dashboard", "one", "one")))
    for stack in ("s", "other"):
        applied = await pkger("apply", "-f", str(file), "--stack", stack, env=env)
        assert applied.code == 0
    assert "warning: Dashboard 'one' is created beside another one named 'one', of stack 's'" in applied.out


async def test_a_saved_plan_stays_when_it_is_refused(services: Cluster, env: Mapping[str, str], file: Path) -> None:
    """Another user saved it, and others may still apply it."""
    saved = parts((await pkger("plan", "-f", str(file), "--save", "-o", "json", env=env)).out)["header"]
    code, _ = await at_terminal("apply", "--plan", saved["id"], answers=[(QUESTION, b"\n")], env=env)
    assert (code, await services.resources(), await plans(env)) == (1, [], ["PLAN_STATE_PENDING"])
    assert (await pkger("plans", "delete", saved["id"], env=env)).code == 0
    assert await plans(env) == []


async def test_missing_values_are_asked_for(services: Cluster, env: Mapping[str, str], file: Path) -> None:
    file.write_text(text(STAGED, an_endpoint("Slack", "chat", "chat")))
    answers = [
        (b"Value for environment reference stage: ", b"prod\n"),
        (b"Secret slack-token: ", f"{CANARY}\n".encode()),
        (b'Label l "prod"', b""),
        (QUESTION, b"y\n"),
    ]
    code, shown = await at_terminal("apply", "-f", str(file), "--stack", "s", answers=answers, env=env)
    assert code == 0, shown
    assert CANARY.encode() not in shown
    assert await services.secret_keys() == ["slack-token"]
    assert [each.display_name for each in await services.resources(kinds=["Label"])] == ["prod"]
    assert await plans(env) == ["PLAN_STATE_APPLIED"]


async def test_another_plan_than_the_approved_one_is_not_applied(
    services: Cluster, env: Mapping[str, str], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody creates a label of the package while the user reads the plan."""

    async def confirm(terminal: Terminal, question: str, interrupts: object) -> bool:
        create = driver_pb2.CreateResource(kind="Label", spec_json='{"name":"label_1"}')
        # The command has a loop of its own.
        made = asyncio.run_coroutine_threadsafe(services.mutate(driver_pb2.Mutation(create=create)), loop)
        await asyncio.wrap_future(made)
        return True

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(Terminal, "confirm", confirm)
    code, shown = await at_terminal("apply", "-f", str(file), "--stack", "s", answers=[], env=env)
    assert (code, b"nothing was written, plan again" in shown) == (3, True), shown
    assert ([each.display_name for each in await services.resources()], await plans(env)) == (["label_1"], [])
    assert await services.stack_names() == []


async def test_without_a_value_nothing_is_applied(services: Cluster, env: Mapping[str, str], file: Path) -> None:
    file.write_text(text(STAGED))
    for run, typed in ((at_terminal, b"\n"), (process_at_terminal, b"\x03")):
        answers = [(b"Value for environment reference stage: ", typed)]
        code, shown = await run("apply", "-f", str(file), answers=answers, env=env)
        assert (code, b"nothing was written" in shown) == (1, True), shown
    assert (await services.resources(), await plans(env)) == ([], [])


async def test_values_come_from_files_and_have_types(services: Cluster, env: Mapping[str, str], tmp_path: Path) -> None:
    number = an_object("Label", "m", "x") | {"spec": {"name": {"envRef": {"key": "number"}}}}
    package, values, secrets = (tmp_path / name for name in ("package.json", "values.yml", "secrets.yml"))
    package.write_text(text(STAGED, number, an_endpoint("Slack", "chat", "chat")))
    values.write_text("stage: on   # a text, as in packages\nnumber: 7200\n")
    secrets.write_text(f"slack-token: {CANARY}\n")
    command = ["apply", "-f", str(package), "--env-file", str(values), "--secret-file", str(secrets)]
    applied = await pkger(*command, env=env)
    assert applied.code == 0, applied.err
    assert sorted(each.display_name for each in await services.resources(kinds=["Label"])) == ["7200", "on"]
    typed = ["--env-ref", "number:=36.5", "--env-ref", "stage=x=y", "--env-ref", "unused=1"]
    planned = await pkger("plan", *command[1:5], *typed, env=env)
    assert ('Label m "36.5"' in planned.out, 'Label l "x=y"' in planned.out) == (True, True), planned.out
    assert "warning: the environment value 'unused' is given, and the package does not refer to it" in planned.out


async def test_an_integer_keeps_all_digits(env: Mapping[str, str], tmp_path: Path) -> None:
    package, values = tmp_path / "package.json", tmp_path / "values.yml"
    package.write_text(text(STAGED))
    values.write_text(f"stage: {2**63 - 1}\n")
    for given in (("--env-ref", f"stage:={2**63 - 1}"), ("--env-file", str(values))):
        planned = await pkger("plan", "-f", str(package), *given, env=env)
        assert 'Label l "9223372036854775807"' in planned.out, planned.err


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["--env-ref", "seconds:=abc"], "not a JSON value"),
        (["--env-ref", "seconds:=NaN"], "not a JSON value"),
        (["--env-ref", "=x"], "write KEY=VALUE"),
        (["--env-file", "list.yml"], "must hold one mapping"),
        (["--env-file", "nothing.yml"], "No such file"),
        (["--env-file", "broken.yml"], "--env-file broken.yml:2"),
    ],
)
async def test_malformed_values_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: list[str], message: str
) -> None:
    (tmp_path / "list.yml").write_text("[a]\n")
    (tmp_path / "broken.yml").write_text("a: 1\na: 2\n")
    monkeypatch.chdir(tmp_path)
    ended = await pkger("plan", "-f", "x.yml", *typed, env=environment(tmp_path))
    assert (ended.code, message in ended.err) == (2 if "--env-ref" in typed else 1, True), ended


async def test_a_broken_file_of_secrets_is_not_quoted(tmp_path: Path) -> None:
    (tmp_path / "secrets.yml").write_text(f"slack-token: [{CANARY}\n")
    ended = await pkger(
        "apply", "-f", "x.yml", "--secret-file", str(tmp_path / "secrets.yml"), env=environment(tmp_path)
    )
    assert (ended.code, CANARY in ended.out + ended.err) == (1, False)
    assert "is not YAML or JSON" in ended.err


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"package": {"sources": [{"text": "x"}]}}, "platform eu"),
        ({"package": {"sources": [{"url": "http://a/b.yml"}]}}, "platform eu or http://a/b.yml"),
        ({"package": {"sources": [{"url": f"http://a/{at}"} for at in range(3)]}}, "platform eu or 3 addresses"),
        ({}, "platform eu or the URLs of the stack"),
        ({"revision": 3}, "platform eu"),
        ({"revision": 3, "stack": {"id": "0"}}, "its platform"),
    ],
)
def test_a_wait_for_a_plan_names_platform_and_sources(wanted: dict[str, Any], message: str) -> None:
    asked: dict[str, Any] = {"stack": {"name": "s", "target": {"platform": "eu"}}, **wanted}
    assert waited_for(planner_pb2.CreatePlanRequest(**asked)) == message
