"""Exit statuses, by which scripts decide what to do."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from services.cli.errors import failed
from services.cli.exit_codes import Exit
from services.core.errors import ERRORS, OperationUnfinished
from tests.applier.faulty import ItemFault
from tests.applier.world import World, world
from tests.apply.packages import an_object, text
from tests.cli.command import ended, environment, pkger, started
from tests.cluster import Cluster

LABEL, OTHER = text(an_object("Label", "l", "label")), text(an_object("Label", "l", "other"))


def test_each_reason_has_a_status() -> None:
    assert {Exit[error.exit_status] for error in ERRORS.values()} == {
        Exit.ERROR,
        Exit.STALE,
        Exit.LOCKED,
        Exit.UNAUTHENTICATED,
    }


def test_a_blocked_operation_has_another_status_than_a_running_one() -> None:
    assert failed(OperationUnfinished("prod", "operation-1", "BLOCKED")).code is Exit.BLOCKED
    assert failed(OperationUnfinished("prod", "operation-1", "APPLYING")).code is Exit.LOCKED


@pytest.fixture
async def faulty(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as running:
        yield running


@pytest.fixture
def env(services: Cluster, tmp_path: Path) -> Mapping[str, str]:
    return environment(tmp_path, services.addresses)


async def test_the_status_of_a_plan_says_whether_it_has_changes(env: Mapping[str, str], tmp_path: Path) -> None:
    file = tmp_path / "package.json"
    file.write_text(LABEL)
    command = ["-f", str(file), "--stack", "s"]
    assert (await pkger("plan", *command, env=env)).code == 0
    assert (await pkger("plan", *command, "--detailed-exitcode", env=env)).code == 2
    assert (await pkger("apply", *command, env=env)).code == 0
    assert (await pkger("dry-run", *command, "--detailed-exitcode", env=env)).code == 0
    # With --detailed-exitcode, 2 means changes, so wrong usage is 1.
    assert (await pkger("plan", "--detailed-exitcode", "--nonsense", env=env)).code == 1
    assert (await pkger("plan", "--nonsense", env=env)).code == 2


async def test_a_stale_plan_is_3(env: Mapping[str, str], tmp_path: Path) -> None:
    file, saved = tmp_path / "package.json", tmp_path / "saved.plan"
    file.write_text(LABEL)
    assert (await pkger("plan", "-f", str(file), "--stack", "s", "--out", str(saved), env=env)).code == 0
    assert sorted(json.loads(saved.read_text())) == ["digest", "id"]
    file.write_text(OTHER)
    assert (await pkger("apply", "-f", str(file), "--stack", "s", env=env)).code == 0
    stale = await pkger("apply", "--plan", str(saved), "-o", "json", env=env)
    error = json.loads(stale.err.splitlines()[-1])["error"]
    assert (stale.code, error["exit_code"], error["reason"]) == (3, 3, "STACK_MOVED")


async def test_a_plan_runs_by_the_file_that_names_it(env: Mapping[str, str], tmp_path: Path) -> None:
    file, saved = tmp_path / "package.json", tmp_path / "saved.plan"
    file.write_text(LABEL)
    await pkger("plan", "-f", str(file), "--stack", "s", "--out", str(saved), env=env)
    assert (await pkger("apply", "--plan", str(saved), env=env)).code == 0
    again = await pkger("apply", "--plan", str(saved), env=env)
    assert (again.code, "a plan is applied once" in again.err) == (3, True)
    saved.write_text("{}")
    assert "is not a file that `pkger plan --out` wrote" in (await pkger("apply", "--plan", str(saved), env=env)).err


async def test_rolled_back_is_5_and_locked_is_4(faulty: World, tmp_path: Path) -> None:
    env, file = environment(tmp_path, faulty.services.addresses), tmp_path / "package.json"
    file.write_text(LABEL)
    command = ["apply", "-f", str(file), "--stack", "s", "--yes"]
    faulty.driver.fail({0: ItemFault.REJECT})
    assert (await pkger(*command, env=env)).code == 5
    faulty.driver.heal()
    gate = faulty.driver.gate(0)
    first = asyncio.create_task(pkger(*command, env=env))
    await gate.reached.wait()
    assert (await pkger(*command, env=env)).code == 4
    waiting = await started(*command, "--wait", "60", env=env)
    assert waiting.stdout
    assert b"waiting for another operation" in await waiting.stdout.readline()
    gate.opened.set()
    assert [(await first).code, (await ended(waiting)).code] == [0, 0]


async def test_errors_are_data_if_the_output_format_is_data(env: Mapping[str, str]) -> None:
    missing = await pkger("stacks", "show", "nobody", "-o", "json", env=env)
    (line,) = missing.err.splitlines()
    assert (missing.code, missing.out) == (1, "")
    assert json.loads(line)["error"] | {"message": ""} == {
        "message": "",
        "reason": "STACK_NOT_FOUND",
        "metadata": {"stack": "nobody"},
        "exit_code": 1,
    }
    mistyped = await pkger("stacks", "show", "-o", "json", env=env)
    assert json.loads(mistyped.err)["error"]["exit_code"] == mistyped.code == 2
