"""
The reported state of an operation that is cancelled, watched or waited for is true (docs/reference/engine.md, "Cases",
case 13).
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from tests.applier.faulty import ItemFault, Memory
from tests.applier.world import World, world
from tests.apply.packages import an_object, text
from tests.cli.command import ended, environment, pkger, started
from tests.cluster import Cluster

RED, BUCKET = an_object("Label", "red", "red"), an_object("Bucket", "b", "bucket")
IMPLICIT, EXPLICIT = (an_object("Bucket", "raw", "raw", schemaType=schema) for schema in ("implicit", "explicit"))
PAST_THE_SEAL = "cannot roll back: it is past the point after which steps cannot be undone, and runs to its end"


@pytest.fixture
async def faulty(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as running:
        yield running


@pytest.fixture
def env(faulty: World, tmp_path: Path) -> Mapping[str, str]:
    return environment(tmp_path, faulty.services.addresses)


def apply(folder: Path, *objects: dict[str, object]) -> list[str]:
    file = folder / "package.json"
    file.write_text(text(*objects))
    return ["apply", "-f", str(file), "--stack", "s", "--yes"]


async def newest(env: Mapping[str, str]) -> str:
    """Name of the newest operation, without its prefix."""
    return (await pkger("operations", "list", env=env)).out.splitlines()[1].split()[0]


async def blocked(faulty: World, env: Mapping[str, str], folder: Path) -> str:
    """Name of an operation that is blocked because a lookup cannot find the bucket that it created."""
    faulty.driver.memory = Memory.NOTHING
    faulty.driver.fail({1: ItemFault.LOSE_RESPONSE})
    gate = faulty.driver.gate(1)
    applying = asyncio.create_task(pkger(*apply(folder, RED, BUCKET), env=env))
    await gate.reached.wait()
    faulty.driver.hide()
    gate.opened.set()
    assert "it waits for a decision" in (await applying).err
    return await newest(env)


async def test_a_cancellation_past_the_seal_reports_that_there_is_no_rollback(
    faulty: World, env: Mapping[str, str], tmp_path: Path
) -> None:
    assert (await pkger(*apply(tmp_path, RED, BUCKET), env=env)).code == 0
    faulty.driver.heal()
    gate = faulty.driver.gate(0)
    applying = asyncio.create_task(pkger(*apply(tmp_path, RED), env=env))
    await gate.reached.wait()
    name = await newest(env)
    result = await pkger("operations", "cancel", name, env=env)
    assert (result.code, result.out, result.err) == (1, "", f"Error: operation {name} {PAST_THE_SEAL}\n")
    gate.opened.set()
    end = await applying
    assert (end.code, end.err) == (0, "")
    assert "Done: 1 deleted." in end.out


@pytest.mark.slow
async def test_ctrl_c_past_the_seal_reports_that_there_is_no_rollback(
    faulty: World, env: Mapping[str, str], tmp_path: Path
) -> None:
    assert (await pkger(*apply(tmp_path, RED, BUCKET), env=env)).code == 0
    faulty.driver.heal()
    gate = faulty.driver.gate(0)
    process = await started(*apply(tmp_path, RED), env=env)
    await gate.reached.wait()
    process.send_signal(signal.SIGINT)
    assert process.stdout
    shown = b""
    while PAST_THE_SEAL.encode() not in shown:
        shown += await process.stdout.readline()
    gate.opened.set()
    end = await ended(process)
    assert (end.code, end.err) == (0, "")
    assert "Done: 1 deleted." in end.out


async def test_a_blocked_operation_rolls_back_when_it_is_resumed(
    faulty: World, env: Mapping[str, str], tmp_path: Path
) -> None:
    name = await blocked(faulty, env, tmp_path)
    result = await pkger("operations", "cancel", name, env=env)
    effect = "it rolls back, or stops if it is an action set, when"
    hints = f"`pkger operations recover {name}` resumes it; `pkger operations watch {name}` shows it"
    assert (result.code, result.out) == (0, f"operation {name} is blocked: {effect} {hints}\n")
    assert "blocked" in (await pkger("operations", "show", name, env=env)).out
    faulty.driver.heal()
    recovered = await pkger("operations", "recover", name, env=env)
    assert recovered.code == 5
    assert recovered.err == ("Error: the operation was cancelled; rolled back: all changes are undone\n")
    assert await faulty.services.resources() == []


async def test_decisions_for_a_cancelled_operation_are_executed_before_it_rolls_back(
    faulty: World, env: Mapping[str, str], tmp_path: Path
) -> None:
    name = await blocked(faulty, env, tmp_path)
    await pkger("operations", "cancel", name, env=env)
    faulty.driver.heal()
    recovered = await pkger("operations", "recover", name, "--step", "1=skip", env=env)
    assert "not sent: given up by a decision" in recovered.out
    assert recovered.err.endswith("rolled back: all changes are undone\n")
    assert [(resource.kind, resource.display_name) for resource in await faulty.services.resources()] == [
        ("Bucket", "bucket")
    ]


async def test_a_finished_operation_cannot_be_cancelled(faulty: World, env: Mapping[str, str], tmp_path: Path) -> None:
    assert (await pkger(*apply(tmp_path, RED), env=env)).code == 0
    name = await newest(env)
    result = await pkger("operations", "cancel", name, env=env)
    assert (result.code, result.err) == (1, f"Error: operation {name} has already ended: succeeded\n")
    assert "there is no operation" in (await pkger("operations", "cancel", "nothing", env=env)).err


async def test_watching_reports_steps_left_to_do(faulty: World, env: Mapping[str, str], tmp_path: Path) -> None:
    assert (await pkger(*apply(tmp_path, RED, BUCKET), env=env)).code == 0
    faulty.driver.fail({0: ItemFault.REJECT}, lasting=True)
    assert (await pkger(*apply(tmp_path, RED), env=env)).code == 1
    watched = await pkger("operations", "watch", await newest(env), env=env)
    end = "succeeded: 1 left to do: the next apply or uninstall retries"
    assert watched.code == 1
    assert watched.out.splitlines()[-1] == end
    assert watched.err.splitlines()[-1] == f"Error: delete Bucket 'b' failed; {end}"


async def test_a_creation_that_failed_past_the_seal_is_not_done(
    faulty: World, env: Mapping[str, str], tmp_path: Path
) -> None:
    assert (await pkger(*apply(tmp_path, IMPLICIT), env=env)).code == 0
    faulty.driver.fail({1: ItemFault.REJECT}, lasting=True)
    result = await pkger(*apply(tmp_path, EXPLICIT), env=env)
    assert result.code == 1
    assert "Done: 1 deleted.\n" in result.out
    assert result.err.splitlines()[-1].startswith("Error: create Bucket 'raw' failed; 1 left to do")
    shown = await pkger("operations", "show", await newest(env), env=env)
    assert "1 of 2" in shown.out
    assert shown.out.splitlines()[-1] == "1 left to do: the next apply or uninstall retries"


@pytest.mark.slow
async def test_ctrl_c_ends_watching_and_not_the_operation(
    faulty: World, env: Mapping[str, str], tmp_path: Path
) -> None:
    gate = faulty.driver.gate(0)
    applying = asyncio.create_task(pkger(*apply(tmp_path, RED), env=env))
    await gate.reached.wait()
    name = await newest(env)
    watching = await started("operations", "watch", name, env=env)
    assert watching.stdout
    assert await watching.stdout.readline()
    watching.send_signal(signal.SIGINT)
    result = await ended(watching)
    assert result.code == 1
    assert result.err == (
        f"Error: interrupted; the operation continues: `pkger operations watch {name}` shows it,"
        f" `pkger operations cancel {name}` rolls it back\n"
    )
    gate.opened.set()
    assert (await applying).code == 0


async def test_a_lease_is_reported_with_its_expiry(faulty: World, env: Mapping[str, str], tmp_path: Path) -> None:
    """The store knows only when a lease expires, not whether its holder is alive."""
    gate = faulty.driver.gate(0)
    applying = asyncio.create_task(pkger(*apply(tmp_path, RED), env=env))
    await gate.reached.wait()
    result = await pkger(*apply(tmp_path, RED), env=env)
    assert result.code == 4
    assert f"operation {await newest(env)} of applier " in result.err
    assert "and may renew it" in result.err
    assert "if the applier died, another one resumes the operation" in result.err
    gate.opened.set()
    assert (await applying).code == 0


@pytest.mark.slow
async def test_a_cycle_of_2000_names_is_a_cycle(services: Cluster, tmp_path: Path) -> None:
    """docs/reference/engine.md, "Cases", case 14."""
    count, env = 2000, environment(tmp_path, services.addresses)
    named = [an_object("Label", f"label-{number:04}", f"name {number}") for number in range(count)]
    turned = [an_object("Label", f"label-{number:04}", f"name {(number + 1) % count}") for number in range(count)]
    assert (await pkger(*apply(tmp_path, *named), env=env)).code == 0
    result = await pkger(*apply(tmp_path, *turned), env=env)
    assert result.code == 1
    assert result.err.startswith(
        "Error: each of these objects takes the name of the next one, so none can be renamed first: Label"
        " 'label-0000' -> Label 'label-"
    )
    assert {resource.display_name for resource in await services.resources()} == {
        f"name {number}" for number in range(count)
    }
