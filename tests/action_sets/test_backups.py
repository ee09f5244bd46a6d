"""Backups of a stack: restored over changes, after the stack is gone, and deleted; each chained to the one before."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from pkger.model.v1 import action_pb2

from services.core.errors import ArtifactGone, RequestIdReused
from tests.action_sets.world import COMPLETE, Invalid, World, action_set, outputs, states

EXAMPLE = Path(__file__).parents[2] / "examples" / "backup.yml"

PACKAGE = """\
apiVersion: influxdata.com/v2alpha1
kind: Label
metadata: {name: red}
spec: {name: Red, color: "#ff0000"}
---
apiVersion: influxdata.com/v2alpha1
kind: Bucket
metadata: {name: raw}
spec: {name: Readings, associations: [{kind: Label, name: red}]}
"""

CHANGED = """\
apiVersion: influxdata.com/v2alpha1
kind: Label
metadata: {name: red}
spec: {name: Red, color: "#00ff00"}
---
apiVersion: influxdata.com/v2alpha1
kind: Bucket
metadata: {name: new}
spec: {name: New}
"""


def example() -> dict[str, Any]:
    """The blueprint of the examples."""
    [document] = yaml.safe_load_all(EXAMPLE.read_text())
    return document  # type: ignore[no-any-return]


def of_stack(action: str, stack: str = "fleet", **more: Any) -> dict[str, Any]:
    return {"name": action, "blueprint": "stack-backup", "object": {"kind": "Stack", "name": stack}, **more}


def follows(predecessor: str, action: str, **spec: Any) -> dict[str, Any]:
    return action_set(**{"from": {"actionSet": predecessor, "action": action}, **spec})


async def backup(here: World, stack: str = "fleet") -> str:
    """Back a stack up; returns the name of the action set."""
    done = await here.run(example(), action_set(of_stack("backup", stack)))
    assert done.state == COMPLETE, done.cause
    return done.name


async def test_a_backup_is_restored_over_changes(here: World) -> None:
    await here.services.apply(PACKAGE, stack="fleet")
    name = await backup(here)
    await here.services.apply(CHANGED, stack="fleet")

    done = await here.run(example(), follows(name, "restore"))

    assert (done.state, set(states(done).values())) == (COMPLETE, {"COMPLETE"}), done.cause
    assert (await here.services.plan(PACKAGE, stack="fleet")).no_change


async def test_a_stack_that_is_gone_is_made_again(here: World) -> None:
    await here.services.apply(PACKAGE, stack="fleet")
    name = await backup(here)
    await here.services.uninstall("fleet")
    assert await here.services.resources() == []

    done = await here.run(example(), follows(name, "restore"))

    assert done.state == COMPLETE, done.cause
    assert (await here.services.plan(PACKAGE, stack="fleet")).no_change
    again = await here.get(await backup(here))
    first = await here.get(name)
    assert outputs(again)["export"]["digest"] == outputs(first)["export"]["digest"]
    assert outputs(again)["export"]["snapshot"] != outputs(first)["export"]["snapshot"]


async def test_a_deleted_backup_is_refused(here: World) -> None:
    await here.services.apply(PACKAGE, stack="fleet")
    name = await backup(here)

    done = await here.run(example(), follows(name, "delete"))

    assert (done.state, outputs(done)) == (COMPLETE, {"drop": {"deleted": True}})
    with pytest.raises(ArtifactGone, match=f"was deleted by {done.name}"):
        await here.create(example(), follows(name, "restore"))
    [artifact] = (await here.get(name)).actions[0].artifacts
    assert [each.deleted_by for each in artifact.deleted_snapshots] == [done.name]


async def test_a_repeated_request_has_its_answer_although_its_snapshot_is_gone(here: World) -> None:
    await here.services.apply(PACKAGE, stack="fleet")
    request = example(), follows(await backup(here), "delete")
    done = await here.run(*request, request_id="r")

    assert (await here.create(*request, request_id="r")).name == done.name
    with pytest.raises(RequestIdReused):
        await here.create(example(), follows(done.name, "delete"), request_id="r")


@pytest.mark.parametrize("argument", ["stack", "snapshot"])
async def test_an_empty_argument_is_not_the_stack_of_the_object(here: World, argument: str) -> None:
    await here.services.apply(PACKAGE, stack="fleet")
    await here.services.apply(CHANGED.replace("Red", "Blue"), stack="other")
    snapshot = outputs(await here.get(await backup(here, "other")))["export"]["snapshot"]
    arguments = {"snapshot": snapshot, "prune": True, argument: "{{ options.text }}"}
    phase = {"name": "restore", "func": "RestoreStack", "args": arguments}
    definition = {**example(), "spec": {"actions": {"go": {"options": {"text": {}}, "phases": [phase]}}}}

    done = await here.run(definition, action_set(of_stack("go", options={"text": ""})))

    assert [each.reason for each in done.failures] == [action_pb2.PHASE_REASON_ARGUMENT_INVALID]
    assert f"args.{argument}: " in done.cause
    assert (await here.services.plan(PACKAGE, stack="fleet")).no_change


async def test_one_object_does_not_take_the_place_of_several(here: World) -> None:
    """Both backups would be restored into it, one over the other."""
    await here.services.apply(PACKAGE, stack="fleet")
    await here.services.apply(CHANGED.replace("Red", "Blue").replace("New", "Newer"), stack="other")
    both = await here.run(example(), action_set(of_stack("backup"), of_stack("backup", "other")))
    overrides = {"object": {"kind": "Stack", "name": "fleet"}}

    with pytest.raises(Invalid, match="the predecessor has 2 actions, and all would get this object"):
        await here.create(example(), follows(both.name, "restore", overrides=overrides))

    assert (await here.run(example(), follows(both.name, "restore"))).state == COMPLETE
