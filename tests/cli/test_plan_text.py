"""Plans as text, as golden files; ``pytest --update-golden`` rewrites them."""

import io
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from services.cli.output.plan_text import FIRST_ENTRIES, print_plan
from tests.apply.packages import an_object, text
from tests.cluster import Cluster, Shown

GOLDEN = Path(__file__).with_name("golden")
QUERY = "\n".join(
    ['from(bucket: "fleet")', "  |> range(start: -1h)", *(f"  // step {n}" for n in range(9)), "  |> mean()"]
)


def chart(name: str, note: str = "") -> dict[str, Any]:
    return {"kind": "Markdown", "name": name, "xPos": 1, "yPos": 2, "width": 4, "height": 5, "note": note}


def task(query: str, key: str = "hourly", **spec: Any) -> dict[str, Any]:
    return an_object("Task", key, "hourly", every="1h", query=query, **spec)


BEFORE = (
    task(QUERY),
    an_object("Dashboard", "fleet", "fleet", charts=[chart("speed"), chart("fuel", "in litres"), chart("map")]),
    an_object("Bucket", "raw", "raw"),
    an_object("Variable", "vehicle", "vehicle", type="constant", values=[f"vehicle {n}" for n in range(30)]),
    an_object("Label", "old-key", "kept", color="#111111"),
)
AFTER = (
    task(QUERY.replace("step 4", "step four").replace("mean()", "mean() "), description="means " * 20 + "a"),
    an_object("Dashboard", "fleet", "fleet", charts=[chart("speed"), chart("new", "n"), chart("fuel", "in gallons")]),
    an_object("Variable", "vehicle", "vehicle", type="constant", values=[f"vehicle {n}" for n in range(31)]),
    an_object("Label", "new-key", "kept", color="#111111"),
    an_object("Label", "there", "there", color="#222222"),
    an_object("Label", "there-too", "there too"),
    an_object("Telegraf", "agent", "agent", config='[agent]\n  interval = "10s"\n'),
)
UNOWNED = (an_object("Label", "x", "there"), an_object("Label", "y", "there too"))


def printed(plan: Shown, full: bool = False) -> str:
    out = io.StringIO()
    print_plan(Console(file=out, soft_wrap=True, width=1000), plan.parts, full)
    return re.sub(r"\b[0-9a-f]{16}\b", "0" * 16, out.getvalue())


async def test_the_text_of_a_plan(services: Cluster, request: pytest.FixtureRequest) -> None:
    await services.apply(text(*BEFORE), stack="s")
    await services.apply(text(*UNOWNED))
    plan = await services.plan(text(*AFTER), stack="s")
    transcripts = {"plan-folded": printed(plan), "plan-full": printed(plan, full=True)}
    if request.config.getoption("--update-golden"):
        for name, shown in transcripts.items():
            (GOLDEN / f"{name}.txt").write_text(shown)
    assert transcripts == {name: (GOLDEN / f"{name}.txt").read_text() for name in transcripts}
    assert max(len(line) for line in transcripts["plan-folded"].splitlines() if line.startswith("  ")) <= 80


async def test_a_large_plan_is_cut_after_the_first_entries(services: Cluster) -> None:
    plan = await services.plan(text(*(an_object("Label", f"l{n}", f"l{n}") for n in range(201))))
    lines = printed(plan).splitlines()
    assert lines[FIRST_ENTRIES:] == ["  … and 151 more; --full shows all", "Plan: 201 to create."]
    assert len(printed(plan, full=True).splitlines()) == 202
