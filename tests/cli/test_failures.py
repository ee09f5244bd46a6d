"""What an apply says that did not do all: the reason of each failure once, and one end on both outputs."""

import asyncio
import re
import signal
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.applier.faulty import ItemFault, Memory
from tests.applier.world import World, world
from tests.apply.packages import LABEL, an_object, text
from tests.cli.command import Ended, ended, environment, pkger, started
from tests.cluster import Cluster

REASON = "bucket names that start with an underscore are reserved"
NOTHING_DONE = "nothing was done that had to be undone"
UNDONE = "everything that was done is undone"
REFUSED = an_object("Bucket", "m", "_mine")
RED, BUCKET = an_object("Label", "red", "red"), an_object("Bucket", "b", "bucket")
SCRIPTED = "scripted refusal"
UNSEEN = "nobody could look what became of it"


def check(told: Ended, reasons: Sequence[str], what: str, end: str) -> None:
    """Each reason stands once, on standard error; the end closes standard error, and stands on standard output."""
    is_undone = "nothing was done" in told.err or UNDONE in told.err
    assert told.code == (5 if is_undone else 1 if " left to do: the next apply" in told.err else 6)
    for reason in reasons:
        assert (told.out + told.err).count(reason) == reasons.count(reason), told
    assert all(reason in told.err for reason in reasons)
    assert told.err.splitlines()[-1] == f"Error: {what}; {end}"
    assert told.out.splitlines()[-1].removeprefix("Done: ") == end


@pytest.mark.parametrize(
    ("package", "reasons", "what", "end"),
    [
        (text(REFUSED), [REASON], "create Bucket 'm' failed", NOTHING_DONE),
        (text(LABEL, REFUSED), [REASON], "create Bucket 'm' failed", UNDONE),
        (
            text(REFUSED, an_object("Bucket", "n", "_others")),
            [f"{REASON} for the system; choose a name other than '_mine'", "other than '_others'"],
            "create Bucket 'm' failed (and 1 more)",
            NOTHING_DONE,
        ),
    ],
)
@pytest.mark.parametrize("stack", [[], ["--stack", "s"]])
async def test_a_refusal_of_the_platform_is_told_once(
    older_services: Cluster,
    tmp_path: Path,
    package: str,
    reasons: Sequence[str],
    what: str,
    end: str,
    stack: Sequence[str],
) -> None:
    file = tmp_path / "package.json"
    file.write_text(package)
    env = environment(tmp_path, older_services.addresses)
    check(await pkger("apply", "-f", str(file), "--yes", *stack, env=env), reasons, what, end)
    name = (await pkger("operations", "list", env=env)).out.splitlines()[1].split()[0]
    check(await pkger("operations", "watch", name, env=env), reasons, what, f"rolled back: {end}")


@pytest.fixture
async def faulty(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as running:
        yield running


async def begun(faulty: World, folder: Path, *objects: dict[str, Any]) -> asyncio.subprocess.Process:
    """An apply that runs."""
    file = folder / "package.json"
    file.write_text(text(*objects))
    env = environment(folder, faulty.services.addresses)
    return await started("apply", "-f", str(file), "--stack", "s", "--yes", env=env)


def way_out(told: Ended, problem: str) -> str:
    """The end of a blocked operation, with its name."""
    found = re.search("pkger operations show [0-9a-f]{16}", told.err)
    assert found
    return f"{problem}: `{found.group()}` tells why, and the ways out"


async def test_a_blocked_undo_tells_both_reasons_and_the_way_on(faulty: World, tmp_path: Path) -> None:
    faulty.driver.fail({2: ItemFault.REJECT}, lasting=True)
    told = await ended(await begun(faulty, tmp_path, RED, REFUSED))
    end = way_out(told, "not everything could be undone")
    check(told, [REASON, SCRIPTED], "create Bucket 'm' failed", end)
    assert "undoing 1 step" in told.out


async def test_a_step_of_unknown_outcome_tells_of_the_decision(faulty: World, tmp_path: Path) -> None:
    faulty.driver.memory = Memory.NOTHING
    faulty.driver.fail({0: ItemFault.LOSE_RESPONSE})
    gate = faulty.driver.gate(0)
    process = await begun(faulty, tmp_path, RED)
    await gate.reached.wait()
    faulty.driver.hide()
    gate.opened.set()
    told = await ended(process)
    check(told, [UNSEEN], "create Label 'red' has an unknown outcome", way_out(told, "it waits for a decision"))


async def test_what_failed_past_the_seal_is_not_counted_as_done(faulty: World, tmp_path: Path) -> None:
    await ended(await begun(faulty, tmp_path, RED, BUCKET))
    faulty.driver.fail({0: ItemFault.REJECT}, lasting=True)
    told = await ended(await begun(faulty, tmp_path, RED))
    check(
        told,
        [SCRIPTED],
        "delete Bucket 'b' failed",
        "1 left to do: the next apply or uninstall tries again",
    )
    assert "Done: nothing.\n" in told.out
    faulty.driver.heal()
    assert "Done: 1 deleted.\n" in (await ended(await begun(faulty, tmp_path, RED))).out


async def test_a_cancelled_apply_tells_one_end(faulty: World, tmp_path: Path) -> None:
    gate = faulty.driver.gate(1)
    process = await begun(faulty, tmp_path, RED, BUCKET)
    await gate.reached.wait()
    process.send_signal(signal.SIGINT)
    assert process.stdout
    told = b""
    while b"the operation was asked to roll back" not in told:
        told += await process.stdout.readline()
    gate.opened.set()
    check(await ended(process), ["the operation was cancelled"], "the operation was cancelled", UNDONE)
