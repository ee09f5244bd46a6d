"""The list of organizations, and the warning about an empty one, which may be mistyped."""

import json
from pathlib import Path

from tests import older_platform
from tests.apply.packages import an_object, text
from tests.cli.command import environment, pkger
from tests.cluster import Cluster, cluster

PACKAGE = text(an_object("Label", "l", "label"))
WARNING = "warning: organization 'defualt' of platform 'embedded' holds nothing, and others do: default, other\n"


async def test_an_empty_organization_gets_a_warning_as_it_may_be_mistyped(services: Cluster, tmp_path: Path) -> None:
    env, file = environment(tmp_path, services.addresses), tmp_path / "package.json"
    file.write_text(PACKAGE)
    assert "holds nothing" not in (await pkger("plan", "-f", str(file), "--org", "first", env=env)).out
    for org in ("default", "other"):
        assert (await pkger("apply", "-f", str(file), "--stack", "s", "--org", org, env=env)).code == 0
    assert WARNING in (await pkger("plan", "-f", str(file), "--stack", "s", "--org", "defualt", env=env)).out
    assert "holds nothing" not in (await pkger("plan", "-f", str(file), "--org", "other", env=env)).out
    listed = await pkger("platforms", "list", env=env)
    assert listed.out == "PLATFORM  ORG      NAME\nembedded  default\nembedded  other\n"
    (platform,) = json.loads((await pkger("platforms", "list", "-o", "json", env=env)).out)
    assert platform == {
        "name": "embedded",
        "orgs": [{"id": name, "name": name, "native_id": ""} for name in ("default", "other")],
        "problem": "",
    }


async def test_a_driver_that_does_not_list_organizations_is_no_problem(tmp_path: Path) -> None:
    async with cluster(tmp_path, {"platform": older_platform.opened}) as services:
        env, file = environment(tmp_path, services.addresses), tmp_path / "package.json"
        file.write_text(PACKAGE)
        for org in ("default", "other"):
            assert (await pkger("apply", "-f", str(file), "--stack", "s", "--org", org, env=env)).code == 0
        listed = await pkger("platforms", "list", env=env)
    assert listed.out.splitlines()[1].split(maxsplit=1) == ["embedded", "its driver does not list organizations"]
