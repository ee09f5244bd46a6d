"""
An accepted plan can be finished: the largest one is applied, and resumed (docs/reference/engine.md,
"Cases", case 14).
"""

import random
from functools import partial
from pathlib import Path

import pytest

import planner_svc.__main__ as planner
import stack_svc.__main__ as stack
from services.core.errors import PlanTooLarge, TokenStale
from services.rpc.process import Opened
from tests.applier.faulty import CallFault
from tests.applier.world import SUCCEEDED, world
from tests.apply.packages import an_object, text

COUNT = 250
CHANCE = random.Random(14)
PACKAGE = text(
    *(an_object("Label", f"label-{n}", f"label {n}", description=CHANCE.randbytes(500).hex()) for n in range(COUNT))
)


def limited(limit: int, *names: str) -> dict[str, Opened]:
    opened: dict[str, Opened] = {
        "planner": partial(planner.opened, limit=limit),
        "stack": partial(stack.opened, limit=limit),
    }
    return {name: opened[name] for name in names}


async def size(folder: Path) -> int:
    """The size of the plan of ``PACKAGE``, as the refusal of the planner reports it."""
    async with world(folder, replaced=limited(0, "planner")) as faulty:
        case = faulty.case()
        with pytest.raises(PlanTooLarge, match="split the package into several stacks") as raised:
            await case.apply(PACKAGE)
        assert (raised.value.metadata["limit"], faulty.driver.calls) == ("0", 0)
        assert await faulty.services.stack_names() == []
        return int(raised.value.metadata["bytes"])


@pytest.mark.slow
@pytest.mark.real_time
async def test_the_largest_plan_that_is_accepted_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by an applier that claims it, over connections with exactly that limit."""
    largest = await size(tmp_path / "measured")
    for module in ("services.rpc.server", "services.rpc.channel"):
        monkeypatch.setattr(f"{module}.MESSAGE_LIMIT", largest)
    async with world(tmp_path / "run", replaced=limited(largest, "planner", "stack")) as faulty:
        case = faulty.case()
        faulty.driver.fail(calls={0: CallFault.CUT_OFF})
        with pytest.raises(TokenStale):
            await case.apply(PACKAGE)
        assert (await case.settled()).state == SUCCEEDED
        assert len((await case.look()).recorded) == COUNT


async def test_a_plan_that_is_larger_is_refused_before_the_first_write(tmp_path: Path) -> None:
    largest = await size(tmp_path / "measured")
    async with world(tmp_path / "run", replaced=limited(largest - 1, "planner")) as faulty:
        case = faulty.case()
        with pytest.raises(PlanTooLarge):
            await case.apply(PACKAGE)
        assert faulty.driver.calls == 0
        assert await faulty.services.stack_names() == []


async def test_a_store_neither_stores_nor_starts_a_plan_that_is_too_large(tmp_path: Path) -> None:
    """It does not depend on the planner to refuse it."""
    async with world(tmp_path, replaced=limited(100_000, "stack")) as faulty:
        case = faulty.case()
        with pytest.raises(PlanTooLarge):
            await case.apply(PACKAGE)
        assert faulty.driver.calls == 0
        assert await faulty.services.stack_names() == []
        with pytest.raises(PlanTooLarge):
            await faulty.services.plan(PACKAGE, store=True)
        assert (await faulty.services.plan(PACKAGE)).header.counts.creates == COUNT


async def test_a_dry_run_says_that_a_plan_is_too_large(tmp_path: Path) -> None:
    async with world(tmp_path, replaced=limited(100_000, "planner")) as faulty:
        for store in (False, True):
            with pytest.raises(PlanTooLarge):
                await faulty.services.plan(PACKAGE, store=store)
