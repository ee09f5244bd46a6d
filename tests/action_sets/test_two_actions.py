"""
Two actions at the same time: a phase of the first one, maybe its deferPhase, fails, is cancelled or is late, while the
first phase of the second one runs. All that clients see of it is in a golden file.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf.json_format import MessageToDict
from pkger.model.v1 import action_pb2

from tests.action_sets.functions import fails, waits_for
from tests.action_sets.world import World, action_set, blueprint, do, plain_events

FOLDER = Path(__file__).parent / "two_actions"
PHASES = ("a1", "a2", "ad")
OPEN = (action_pb2.PHASE_STATE_PENDING, action_pb2.PHASE_STATE_RUNNING)
WAYS = ("fails", "is cancelled", "is late")


def definitions(bad: str) -> dict[str, Any]:
    """Two actions with artifacts, of which the phase *bad* has a short timeout."""
    times = {each: {"timeout": "1s"} if each == bad else {} for each in PHASES}
    of = {"keyValue": {"first": "{{ phases.a1.output.out }}"}}, {"keyValue": {"last": "{{ phases.a2.output.out }}"}}
    return blueprint(
        a={
            "phases": [do("a1", **times["a1"]), do("a2", **times["a2"])],
            "deferPhase": do("ad", **times["ad"]),
            "outputArtifacts": {"early": of[0], "late": of[1]},
        },
        b={"phases": [do("b1"), do("b2")], "deferPhase": do("bd")},
    )


async def scenario(here: World, bad: str, way: str) -> str:
    """Let the phase *bad* end in its *way*, then the phase of the other action; returns what is seen."""
    go = asyncio.Event()
    here.script.does("b1", waits_for(go))
    here.script.does(bad, fails("it is broken") if way == "fails" else waits_for(asyncio.Event()))
    created = await here.create(definitions(bad), action_set("a", "b", name="both"))
    await here.script.begun(bad).wait()
    await here.script.begun("b1").wait()
    if way == "is cancelled":
        await here.cancel(created.operation_id)
    await until(here, created, "a")
    go.set()
    events = await here.events(created.operation_id)
    return f"--- events\n{plain_events(events)}--- action set\n{shown(await here.get('both'))}"


async def until(here: World, created: action_pb2.ActionSet, action: str) -> None:
    """Wait until the phases of *action* have ended."""
    while True:
        [found] = [each for each in (await here.get(created.name)).actions if each.name == action]
        phases = [*found.phases, found.defer_phase]
        if not any(each.state in OPEN for each in phases):
            return
        await asyncio.sleep(0.5)


def shown(found: action_pb2.ActionSet) -> str:
    """An action set without ids and times."""
    for action in found.actions:
        for phase in (*action.phases, action.defer_phase):
            phase.ClearField("start_time")
            phase.ClearField("end_time")
    for name in ("operation_id", "create_time", "end_time"):
        found.ClearField(name)
    return yaml.safe_dump(MessageToDict(found, preserving_proto_field_name=True), sort_keys=True, width=120)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("bad", PHASES)
async def test_what_clients_see(here: World, request: pytest.FixtureRequest, bad: str, way: str) -> None:
    file = FOLDER / f"{bad}-{way.replace(' ', '-')}.txt"

    seen = await scenario(here, bad, way)

    if request.config.getoption("--update-golden"):
        file.write_text(seen)
    assert seen == file.read_text()
