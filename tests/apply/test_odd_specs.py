"""A platform with an invalid spec: the error names the platform, and nothing is written (driver.proto)."""

import sqlite3
from pathlib import Path

import pytest

from services.core.errors import ServiceUnavailable
from tests.apply.packages import an_object, text
from tests.cluster import Calls, Cluster

HELD, WANTED = (text(an_object("Label", "red", "red", color=color)) for color in ("#ff0000", "#00ff00"))
ODD = ["{oops", "[1]", '{"a":NaN}', r'{"name":"\ud800"}', '{"name":' + "[" * 500 + "]" * 500 + "}"]


def hold(folder: Path, org: str, spec: str, has_name: bool) -> None:
    """Store *spec* in the platform, past the checks of its driver."""
    with sqlite3.connect(folder / "platform.db") as file:
        file.execute("UPDATE resources SET spec = ? WHERE org = ?", [spec, org])
        if not has_name:
            file.execute("UPDATE resources SET display_name = '' WHERE org = ?", [org])
    file.close()


@pytest.mark.parametrize("spec", ODD)
@pytest.mark.parametrize("has_name", [True, False])
async def test_an_invalid_spec_is_reported_with_the_platform(
    services: Cluster, module_folder: Path, calls: Calls, spec: str, has_name: bool
) -> None:
    await services.apply(HELD, stack="s")
    plan = await services.plan(WANTED, stack="s", store=True)
    hold(module_folder, services.org, spec, has_name)
    calls.methods.clear()
    with pytest.raises(ServiceUnavailable) as raised:
        await services.plan(WANTED, stack="s")
    assert raised.value.metadata["platform"] == "embedded"
    with pytest.raises(ServiceUnavailable) as raised:
        [event async for event in services.apply_plan(plan.name)]
    assert raised.value.metadata["platform"] == "embedded"
    assert calls.count("Mutate") == 0
