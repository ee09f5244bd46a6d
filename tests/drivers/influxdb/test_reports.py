"""What users reported of InfluxDB, by the steps of the recorded folders (golden/reports)."""

import json
from pathlib import Path

from tests import needs
from tests.cli.command import environment, pkger
from tests.cluster import Cluster
from tests.corpora import RECORDED
from tests.drivers.influxdb.test_keeping import asked
from tests.drivers.influxdb.test_unexpressed import made_by_hand
from tests.influx.server import Influx

SHARDS, CALENDAR = RECORDED / "reports" / "shard-group", RECORDED / "reports" / "task-calendar"


@needs.shared(SHARDS)
async def test_the_shard_group_duration_of_a_bucket_is_kept(
    server: Influx, on_influxdb: Cluster, tmp_path: Path
) -> None:
    env = environment(tmp_path, on_influxdb.addresses)
    bucket = await made_by_hand(server, "buckets", **json.loads((SHARDS / "bucket.json").read_text("utf-8")))
    exported = await pkger("export", "Bucket", "fine", env=env)
    assert (exported.code, "shardGroupDurationSeconds" in exported.err) == (0, True)
    assert (await pkger("apply", "-f", str(SHARDS / "p.yml"), "--stack", "s", "--yes", env=env)).code == 0
    [rule] = (await asked(server, "GET", f"buckets/{bucket['id']}"))["retentionRules"]
    assert (rule["everySeconds"], rule["shardGroupDurationSeconds"]) == (345_600, 3600)


@needs.shared(CALENDAR)
async def test_calendar_units_and_options_of_a_task_survive(
    server: Influx, on_influxdb: Cluster, tmp_path: Path
) -> None:
    env, file = environment(tmp_path, on_influxdb.addresses), tmp_path / "p.yml"
    task = await made_by_hand(server, "tasks", flux=(CALENDAR / "task.flux").read_text("utf-8"))
    assert (await pkger("stacks", "init", "s", env=env)).code == 0
    assert (await pkger("stacks", "import", "s", "Task", task["id"], "--as", "monthly", env=env)).code == 0
    exported = await pkger("export", "--stack", "s", "-o", str(file), env=env)
    assert exported.code == 0, exported
    package = file.read_text("utf-8")
    assert "every: 1mo" in package
    file.write_text(package.replace("-1h", "-2h"), "utf-8")
    applied = await pkger("apply", "-f", str(file), "--stack", "s", "--yes", env=env)
    assert applied.code == 0, applied
    live = await asked(server, "GET", f"tasks/{task['id']}")
    assert (live["every"], "concurrency: 3" in live["flux"], "retry: 4" in live["flux"]) == ("1mo", True, True)
    assert "range(start: -2h)" in live["flux"]
