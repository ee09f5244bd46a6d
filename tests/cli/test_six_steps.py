"""The six steps by ``pkger``."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.apply.packages import STEPS
from tests.cli.command import environment, pkger
from tests.cluster import Cluster


async def test_the_six_steps(services: Cluster, tmp_path: Path) -> None:
    await take(environment(tmp_path, services.addresses), tmp_path / "package.json")


@pytest.mark.slow
async def test_the_six_steps_without_running_services(tmp_path: Path) -> None:
    await take(environment(tmp_path / "home"), tmp_path / "package.json")


async def take(env: Mapping[str, str], file: Path) -> None:
    """Take the six steps, and remove the stack; *file* is written anew for each step."""
    records = {}
    for step, text in STEPS.items():
        file.write_text(text)
        applied = await pkger("apply", "-f", str(file), "--stack", "s", "--yes", env=env)
        assert (applied.code, applied.err) == (0, "")
        shown = await pkger("stacks", "show", "s", "-o", "json", env=env)
        assert shown.code == 0
        records[step] = shown.out
        if step == 2:
            assert "nothing written" in applied.out

    first, last = json.loads(records[1]), json.loads(records[6])
    assert list(first) == ["stack", "resources", "owners", "users"]
    assert first["stack"]["create_time"] == first["stack"]["update_time"]
    assert first["resources"][0] == {
        "key": {"kind": "Bucket", "name": "pristine_noir"},
        "resource_id": first["resources"][0]["resource_id"],
        "origin": "ORIGIN_CREATED",
        "associations": [{"kind": "Label", "name": "lucid_einstein"}],
        "is_pending_delete": False,
        "lacks_baseline": False,
        "policy_json": "",
        "own_policy_json": "",
    }
    assert records[2] == records[1]
    assert json.loads(records[3])["resources"] == first["resources"]
    assert json.loads(records[3])["stack"]["update_time"] > first["stack"]["update_time"]
    assert [each["key"]["name"] for each in json.loads(records[4])["resources"]] == [
        "pristine_noir",
        "charmed_saratoba",
        "lucid_einstein",
        "alcord_mumphries",
    ]
    assert json.loads(records[5])["resources"] == first["resources"]
    assert [(each["key"]["name"], each["associations"]) for each in last["resources"]] == [
        ("pristine_noir", []),
        ("charmed_saratoba", []),
    ]

    listed = await pkger("stacks", "list", env=env)
    assert listed.out.splitlines()[1].split()[0] == "s"
    kept = await pkger("stacks", "uninstall", "s", "--yes", env=env)
    assert kept.code == 0
    assert json.loads((await pkger("stacks", "show", "s", "-o", "json", env=env)).out)["resources"] == []
    gone = await pkger("stacks", "delete", "s", "--yes", env=env)
    assert gone.code == 0
    assert (await pkger("stacks", "list", "-o", "json", env=env)).out.strip() == "[]"
