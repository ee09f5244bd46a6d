"""
Compares the answers of the gateway: to our own scenarios with expected ones, and to 50 scenarios and 40 packages with
those of a real InfluxDB.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from tests import needs
from tests.gateway import service_scenarios
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
from tests.gateway.service_scenarios import is_by_hand, player

pytestmark = pytest.mark.timeout(600)

recorded = needs.shared(FOLDER)

LABELS_INCLUDED = "the labels of a named resource are exported with it, and each resource once (docs/export.md)"

OURS = {
    ("dry/match-by-name", 10): "the driver reads checks in their normal form, durations and ends of queries as well",
    ("dry/match-by-name", 11): "the same",
    ("stacks/update", 1): "an update without a change is no event",
    ("apply/rollback-removals", 2): "pkger removes last, so after a rollback the resources keep their ids",
    ("apply/system-bucket", 0): "names of buckets of the system are refused, in a dry run too (docs/http.md)",
    ("apply/system-bucket", 1): "the same",
    **{("export/resources", step): LABELS_INCLUDED for step in (10, 12, 13, 14, 16, 17, 18, 19)},
    ("dry/parse-errors", 0): "an object with an invalid name is checked whole (docs/reference/package-format.md)",
    **{
        ("stacks/rename-meta-only", step): "an object keeps its resource under a new metadata.name"
        for step in (1, 2, 3)
    },
    ("package/docker__docker", 10): "an export of the remaining resources does not fail",
    ("package/speedtest__speedtest", 6): "an export names a resource without a name after its object, in every export",
}
"""Steps whose answers differ on purpose, with the reason, by scenario and step."""


@pytest.fixture(scope="module")
def compare() -> ModuleType:
    module: ModuleType = load_compare()
    return module


async def differing(compare: ModuleType, servers: Servers, scenarios: Sequence[Scenario]) -> list[str]:
    """Steps with differences that are not in ``OURS``, and steps of ``OURS`` without differences."""
    found: list[str] = []
    for scenario in scenarios:
        steps = await asyncio.to_thread(played, compare, servers, scenario)
        name = scenario["id"]
        ours = {step for known, step in OURS if known == name}
        found += [f"{name} step {step}: {'; '.join(steps[step][:5])}" for step in steps if step not in ours]
        found += [f"{name} step {step}: is answered as recorded now" for step in ours - steps.keys()]
    return found


def has_user(scenario: Scenario) -> bool:
    """Whether a user of the platform takes part in a scenario of our own."""
    return any(map(is_by_hand, scenario["steps"]))


@pytest.mark.parametrize("is_whole", [False, pytest.param(True, marks=pytest.mark.slow)])
async def test_our_scenarios_are_answered_as_expected_in_front_of_influxdb(tmp_path: Path, is_whole: bool) -> None:
    """
    The quick test runs only the scenarios with a user, which cannot run on the embedded platform: it has no interface
    for users.
    """
    scenarios = [each for each in service_scenarios.read_scenarios() if is_whole or has_user(each)]
    async with on_influxdb(tmp_path) as servers, player(servers) as playing:
        assert [text for scenario in scenarios for text in await playing.play(scenario)] == []
    assert scenarios


async def test_our_scenarios_are_answered_as_expected_in_front_of_the_embedded_platform(tmp_path: Path) -> None:
    scenarios = [each for each in service_scenarios.read_scenarios() if not has_user(each)]
    async with on_embedded(tmp_path) as servers, player(servers) as playing:
        assert [text for scenario in scenarios for text in await playing.play(scenario)] == []
    assert scenarios


@recorded
@pytest.mark.slow
async def test_scenarios_are_answered_as_recorded_in_front_of_influxdb(compare: ModuleType, tmp_path: Path) -> None:
    scenarios = read_scenarios(compare, "scenarios.jsonl")
    # Runs first, as an export without an organization calls the planner for each organization that exists.
    scenarios.sort(key=lambda scenario: scenario["id"] != "export/resources")
    async with on_influxdb(tmp_path) as servers:
        assert await differing(compare, servers, scenarios) == []


@recorded
@pytest.mark.slow
@pytest.mark.faults
async def test_scenarios_are_answered_as_recorded_in_front_of_the_embedded_platform(
    compare: ModuleType, tmp_path: Path
) -> None:
    found = [each for each in read_scenarios(compare, "scenarios.jsonl") if not needs_influxdb(each)]
    async with on_embedded(tmp_path) as servers:
        assert await differing(compare, servers, found) == []


@recorded
@pytest.mark.slow
@pytest.mark.parametrize("part", [slice(3, None, 16), pytest.param(slice(None), marks=pytest.mark.faults)])
async def test_real_packages_are_answered_as_recorded(compare: ModuleType, tmp_path: Path, part: slice) -> None:
    scenarios = read_scenarios(compare, "packages.jsonl.gz")[part]
    async with on_influxdb(tmp_path) as servers:
        assert await differing(compare, servers, scenarios) == []


@recorded
async def test_a_changed_recorded_answer_is_detected(compare: ModuleType) -> None:
    scenario = next(
        each for each in read_scenarios(compare, "scenarios.jsonl") if each["id"] == "dry/all-kinds-empty-org"
    )
    step = scenario["steps"][1]
    answer = compare.copy.deepcopy(step["expect"]["body"])
    assert compare.check(scenario, step, 201, answer) == []
    answer["summary"]["checks"][0]["check"]["name"] += "!"
    assert compare.check(scenario, step, 201, answer) != []
