"""Messages of an apply that does not succeed: each reason once, and the same end on both outputs."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests import older_platform
from tests.applier.faulty import ItemFault, Memory
from tests.applier.world import World, world
from tests.apply.packages import LABEL, an_object, text
from tests.cli.command import Ended, environment, pkger
from tests.cluster import Cluster, cluster

REASON = "bucket names that start with an underscore are reserved"
NOTHING_DONE = "no change had to be undone"
UNDONE = "all changes are undone"
REJECTED = an_object("Bucket", "m", "_mine")
RED, BUCKET = an_object("Label", "red", "red"), an_object("Bucket", "b", "bucket")
SCRIPTED = "scripted refusal"
UNSEEN = "its outcome could not be looked up"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def module_services(module_folder: Path) -> AsyncIterator[Cluster]:
    """All services, whose platform refuses at the write."""
    async with cluster(module_folder, {"platform": older_platform.opened}) as running:
        yield running


def check(result: Ended, reasons: Sequence[str], failure: str, end: str) -> None:
    """Each reason is printed once, on standard error; the last lines of both outputs have the end."""
    is_undone = NOTHING_DONE in result.err or UNDONE in result.err
    assert result.code == (5 if is_undone else 1 if " left to do: the next apply" in result.err else 6)
    for reason in reasons:
        assert (result.out + result.err).count(reason) == reasons.count(reason), result
    assert all(reason in result.err for reason in reasons)
    assert result.err.splitlines()[-1] == f"Error: {failure}; {end}"
    assert result.out.splitlines()[-1].removeprefix("Done: ") == end


@pytest.mark.parametrize(
    ("package", "reasons", "failure", "end"),
    [
        (text(REJECTED), [REASON], "create Bucket 'm' failed", NOTHING_DONE),
        (text(LABEL, REJECTED), [REASON], "create Bucket 'm' failed", UNDONE),
        (
            text(REJECTED, an_object("Bucket", "n", "_others")),
            [f"{REASON} for the system; choose a name other than '_mine'", "other than '_others'"],
            "create Bucket 'm' failed (and 1 more)",
            NOTHING_DONE,
        ),
    ],
)
@pytest.mark.parametrize("stack", [[], ["--stack", "s"]])
async def test_a_rejection_of_the_platform_is_reported_once(
    module_services: Cluster,
    tmp_path: Path,
    package: str,
    reasons: Sequence[str],
    failure: str,
    end: str,
    stack: Sequence[str],
) -> None:
    file = tmp_path / "package.json"
    file.write_text(package)
    env = environment(tmp_path, module_services.addresses)
    check(await pkger("apply", "-f", str(file), "--yes", *stack, env=env), reasons, failure, end)
    name = (await pkger("operations", "list", env=env)).out.splitlines()[1].split()[0]
    check(await pkger("operations", "watch", name, env=env), reasons, failure, f"rolled back: {end}")


@pytest.fixture
async def faulty(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as running:
        yield running


def applying(folder: Path, *objects: dict[str, Any]) -> list[str]:
    """The arguments of an apply."""
    file = folder / "package.json"
    file.write_text(text(*objects))
    return ["apply", "-f", str(file), "--stack", "s", "--yes"]


async def applied(faulty: World, folder: Path, *objects: dict[str, Any]) -> Ended:
    """The end of an apply."""
    return await pkger(*applying(folder, *objects), env=environment(folder, faulty.services.addresses))


def blocked_end(result: Ended, problem: str) -> str:
    """The last line of a blocked operation, with its name."""
    found = re.search("pkger operations show [0-9a-f]{16}", result.err)
    assert found
    return f"{problem}: `{found.group()}` lists the causes and the possible decisions"


async def test_a_blocked_undo_reports_both_reasons_and_a_hint(faulty: World, tmp_path: Path) -> None:
    faulty.driver.fail({2: ItemFault.REJECT}, lasting=True)
    result = await applied(faulty, tmp_path, RED, REJECTED)
    end = blocked_end(result, "not all changes could be undone")
    check(result, [REASON, SCRIPTED], "create Bucket 'm' failed", end)
    assert "undoing 1 step" in result.out


async def test_a_step_with_an_unknown_outcome_reports_that_it_needs_a_decision(faulty: World, tmp_path: Path) -> None:
    faulty.driver.memory = Memory.NOTHING
    faulty.driver.fail({0: ItemFault.LOSE_RESPONSE})
    gate = faulty.driver.gate(0)
    apply = asyncio.create_task(applied(faulty, tmp_path, RED))
    await gate.reached.wait()
    faulty.driver.hide()
    gate.opened.set()
    result = await apply
    check(result, [UNSEEN], "create Label 'red' has an unknown outcome", blocked_end(result, "it waits for a decision"))


async def test_a_failure_past_the_seal_is_not_counted_as_done(faulty: World, tmp_path: Path) -> None:
    await applied(faulty, tmp_path, RED, BUCKET)
    faulty.driver.fail({0: ItemFault.REJECT}, lasting=True)
    result = await applied(faulty, tmp_path, RED)
    check(
        result,
        [SCRIPTED],
        "delete Bucket 'b' failed",
        "1 left to do: the next apply or uninstall retries",
    )
    assert "Done: nothing.\n" in result.out
    faulty.driver.heal()
    assert "Done: 1 deleted.\n" in (await applied(faulty, tmp_path, RED)).out


async def test_a_cancelled_apply_prints_one_end(faulty: World, tmp_path: Path) -> None:
    gate = faulty.driver.gate(1)
    apply = asyncio.create_task(applied(faulty, tmp_path, RED, BUCKET))
    await gate.reached.wait()
    await faulty.services.cancel((await faulty.services.newest_operation()).id)
    gate.opened.set()
    check(await apply, ["the operation was cancelled"], "the operation was cancelled", UNDONE)
