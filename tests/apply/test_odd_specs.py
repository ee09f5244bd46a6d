"""A platform with an invalid spec: the error names the platform, and nothing is written (driver.proto)."""

import sqlite3
from pathlib import Path

import pytest

from services.core.errors import ServiceUnavailable
from tests.apply.packages import an_object, text
from tests.cluster import Calls, Cluster

HELD, WANTED = (text(an_object("Label", "red", "red", color=color)) for color in ("#ff0000", "#00ff00"))
ODD = ["{oops", "[1]", '{"a":NaN}', r'{"name":"\ud800"}', '{"name":' + "[" * 500 + "]" * 500 + "}"]


def hold(folder: Path, spec: str) -> None:
    """Store *spec* in the platform, past the checks of its driver."""
    with sqlite3.connect(folder / "platform.db") as file:
        file.execute("UPDATE resources SET spec = ?", [spec])
    file.close()


@pytest.mark.parametrize("spec", ODD)
@pytest.mark.parametrize("has_name", [True, False])
async def test_an_invalid_spec_is_reported_with_the_platform(
    services: Cluster, tmp_path: Path, calls: Calls, spec: str, has_name: bool
) -> None:
    await services.apply(HELD, stack="s")
    plan = await services.plan(WANTED, stack="s", store=True)
    hold(tmp_path, spec)
    if not has_name:
        with sqlite3.connect(tmp_path / "platform.db") as file:
            file.execute("UPDATE resources SET display_name = ''")
        file.close()
    calls.methods.clear()
    with pytest.raises(ServiceUnavailable) as raised:
        await services.plan(WANTED, stack="s")
    assert raised.value.metadata["platform"] == "embedded"
    with pytest.raises(ServiceUnavailable) as raised:
        [event async for event in services.apply_plan(plan.name)]
    assert raised.value.metadata["platform"] == "embedded"
    assert calls.count("Mutate") == 0
