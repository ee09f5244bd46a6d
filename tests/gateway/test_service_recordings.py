"""The recorded answers of a real InfluxDB to 50 scenarios and 40 packages, held against those of the gateway."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from tests.gateway.service_recordings import (
    FOLDER,
    Scenario,
    Servers,
    load_compare,
    needs_influxdb,
    on_embedded,
    on_influxdb,
    played,
    read_scenarios,
)

pytestmark = [
    pytest.mark.skipif(not FOLDER.exists(), reason="the recorded answers are not beside this checkout"),
    pytest.mark.timeout(600),
]


LABELS_COME_ALONG = "labels come along with what is named, and each resource is exported once (docs/export.md)"

OURS = {
    ("dry/match-by-name", 10): "the driver reads checks in their normal form, durations and ends of queries as well",
    ("dry/match-by-name", 11): "the same",
    ("stacks/update", 1): "what changes nothing is no event",
    ("apply/rollback-removals", 2): "we remove last, so what would have gone is still there under its ids",
    ("apply/system-bucket", 0): "names of buckets of the system are refused, in a dry run too (docs/http.md)",
    ("apply/system-bucket", 1): "the same",
    **{("export/resources", step): LABELS_COME_ALONG for step in (10, 12, 13, 14, 16, 17, 18, 19)},
    ("package/docker__docker", 10): "an export of what is left does not fail",
    ("package/speedtest__speedtest", 6): "an export names what has no name after its object, in any export alike",
}
"""Where ours answers otherwise for a reason, by scenario and step."""


@pytest.fixture(scope="module")
def compare() -> ModuleType:
    module: ModuleType = load_compare()
    return module


async def differing(compare: ModuleType, servers: Servers, scenarios: Sequence[Scenario]) -> list[str]:
    """The steps that are answered otherwise, with what differs; and those of ``OURS`` that no longer are."""
    found: list[str] = []
    for scenario in scenarios:
        steps = await asyncio.to_thread(played, compare, servers, scenario)
        name = scenario["id"]
        ours = {step for known, step in OURS if known == name}
        found += [f"{name} step {step}: {'; '.join(steps[step][:5])}" for step in steps if step not in ours]
        found += [f"{name} step {step}: is answered as recorded now" for step in ours - steps.keys()]
    return found


async def test_scenarios_are_answered_as_recorded_in_front_of_influxdb(compare: ModuleType, tmp_path: Path) -> None:
    scenarios = read_scenarios(compare, "scenarios.jsonl")
    # The first one asks for resources without saying where they are: each organisation is looked into.
    scenarios.sort(key=lambda scenario: scenario["id"] != "export/resources")
    async with on_influxdb(tmp_path) as servers:
        assert await differing(compare, servers, scenarios) == []


@pytest.mark.faults
async def test_scenarios_are_answered_as_recorded_in_front_of_the_embedded_platform(
    compare: ModuleType, tmp_path: Path
) -> None:
    found = [each for each in read_scenarios(compare, "scenarios.jsonl") if not needs_influxdb(each)]
    async with on_embedded(tmp_path) as servers:
        assert await differing(compare, servers, found) == []


@pytest.mark.parametrize("part", [slice(3, None, 8), pytest.param(slice(None), marks=pytest.mark.faults)])
async def test_real_packages_are_answered_as_recorded(compare: ModuleType, tmp_path: Path, part: slice) -> None:
    scenarios = read_scenarios(compare, "packages.jsonl.gz")[part]
    async with on_influxdb(tmp_path) as servers:
        assert await differing(compare, servers, scenarios) == []


async def test_a_spoiled_answer_is_noticed(compare: ModuleType) -> None:
    scenario = next(
        each for each in read_scenarios(compare, "scenarios.jsonl") if each["id"] == "dry/all-kinds-empty-org"
    )
    step = scenario["steps"][1]
    answer = compare.copy.deepcopy(step["expect"]["body"])
    assert compare.check(scenario, step, 201, answer) == []
    answer["summary"]["checks"][0]["check"]["name"] += "!"
    assert compare.check(scenario, step, 201, answer) != []
