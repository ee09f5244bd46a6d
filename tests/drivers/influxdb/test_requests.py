"""The number of requests for a stack, which determines the time on a real server."""

import math
import re
from collections import Counter

from tests.apply.packages import an_object, text
from tests.cluster import Cluster
from tests.drivers.influxdb.lives import FULL
from tests.influx.server import Influx

_ID = re.compile("[0-9a-f]{16}")

PAGED = ("buckets", "checks", "notificationEndpoints", "notificationRules", "tasks")
MANY = 130


def paths(server: Influx) -> Counter[str]:
    """The number of requests by method and path, without ids."""
    asked = Counter[str]()
    for each in server.records.requests:
        asked[f"{each.method} {_ID.sub('ID', each.path.removeprefix('/api/v2/'))}"] += 1
    return asked


async def test_a_plan_without_changes_costs_one_request_for_each_kind_and_dashboard(
    server: Influx, on_influxdb: Cluster
) -> None:
    await on_influxdb.apply(FULL, stack="s")
    server.records.clear()
    assert (await on_influxdb.apply(FULL, stack="s")).no_change
    asked = paths(server)
    for collection in PAGED:
        # The page, and the empty page after it.
        assert asked.pop(f"GET {collection}") == 2
    assert asked == {
        # Before the lists, before the reads by id, and before the keys of secrets.
        "GET orgs/ID": 3,
        "GET orgs/ID/secrets": 1,
        "GET labels": 1,
        "GET variables": 1,
        "GET telegrafs": 1,
        "GET dashboards/ID": 1,
    }


async def test_each_further_hundred_resources_cost_one_request(server: Influx, on_influxdb: Cluster) -> None:
    package = text(
        *(an_object("Bucket", f"b{n}", f"b{n}") for n in range(MANY)),
        *(an_object("Label", f"l{n}", f"l{n}") for n in range(MANY)),
    )
    await on_influxdb.apply(package, stack="s")
    asked = paths(server)
    assert (asked["POST buckets"], asked["POST labels"]) == (MANY, MANY)
    server.records.clear()
    assert (await on_influxdb.apply(package, stack="s")).no_change
    assert paths(server) == {"GET orgs/ID": 1, "GET labels": 1, "GET buckets": math.ceil(MANY / 100) + 1}
