"""
Checks and rules whose task somebody deleted: the server lists them no more, refuses every call, and keeps the names of
checks (docs/influxdb.md, "Problems").
"""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.apply.packages import a_check, a_rule, an_endpoint, an_object, text
from tests.cli.command import environment, pkger
from tests.cluster import Cluster
from tests.drivers.client import CONTENT_REFUSED, NAME_TAKEN, DriverClient, create, delete
from tests.drivers.influxdb.lives import FIELD
from tests.drivers.influxdb.samples import influxdb_sample as sample
from tests.drivers.influxdb.test_keeping import asked
from tests.influx.server import Influx

RED = an_object("Label", "red", "red")
CHECK = a_check("Threshold", "c", "cpu", query=FIELD)
WAY_OUT = "Remove its entry from the stack (pkger stacks forget), and give its successor another name"


@pytest.fixture
def env(on_influxdb: Cluster, tmp_path: Path) -> Mapping[str, str]:
    return environment(tmp_path, on_influxdb.addresses)


async def lose_task(server: Influx, collection: str) -> None:
    """Delete the task of the resource that was created last, as a user can."""
    *_, held = server.state.kinds[collection].values()
    await asked(server, "DELETE", f"tasks/{held['taskID']}")


async def test_plans_and_uninstalls_say_why_the_name_of_a_check_is_taken(
    server: Influx, on_influxdb: Cluster, env: Mapping[str, str], tmp_path: Path
) -> None:
    await on_influxdb.apply(text(RED, CHECK), stack="s")
    await lose_task(server, "checks")
    (tmp_path / "p.json").write_text(text(RED, CHECK))
    for command in (["apply", "-f", str(tmp_path / "p.json")], ["stacks", "uninstall", "s"], ["stacks", "delete", "s"]):
        stack = ["--stack", "s"] if command[0] == "apply" else []
        ended = await pkger(*command, *stack, "--yes", env=env)
        shown = " ".join(ended.err.split())
        assert ended.code == 1, command
        assert "somebody deleted the task" in shown, command
        assert "keeps the name of a check taken" in shown, command
        assert WAY_OUT in shown, command
    assert len(server.state.labels) == 1

    assert (await pkger("stacks", "forget", "s", "CheckThreshold:c", env=env)).code == 0
    again = await pkger("apply", "-f", str(tmp_path / "p.json"), "--stack", "s", "--yes", env=env)
    assert again.code != 0
    assert "its name stays taken for ever. Give the check another name" in " ".join((again.err + again.out).split())
    (tmp_path / "p.json").write_text(text(RED, a_check("Threshold", "c", "cpu load", query=FIELD)))
    assert (await pkger("apply", "-f", str(tmp_path / "p.json"), "--stack", "s", "--yes", env=env)).code == 0
    assert (await pkger("stacks", "uninstall", "s", "--yes", env=env)).code == 0
    assert not server.state.labels


async def test_an_uninstall_does_not_take_a_rule_without_its_task_for_deleted(
    server: Influx, on_influxdb: Cluster, env: Mapping[str, str]
) -> None:
    rule = a_rule("r", "chat", "r", messageTemplate="m")
    await on_influxdb.apply(text(an_endpoint("Slack", "chat", "chat"), rule), stack="s")
    await lose_task(server, "notificationRules")
    ended = await pkger("stacks", "uninstall", "s", "--yes", env=env)
    assert (ended.code, WAY_OUT in " ".join(ended.err.split())) == (1, True)


async def test_a_check_out_of_reach_is_neither_deleted_nor_created(client: DriverClient, server: Influx) -> None:
    kind = "CheckThreshold"
    [made] = await client.made(create(kind, sample(kind, "c", "")))
    await lose_task(server, "checks")
    assert await client.refusal(delete(kind, made.id)) == CONTENT_REFUSED
    assert await client.refusal(create(kind, sample(kind, "c", ""))) == NAME_TAKEN
    assert await client.listing(kind) == []
