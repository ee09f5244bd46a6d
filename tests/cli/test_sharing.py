"""The output of commands about resources that several stacks use."""

import json
from pathlib import Path

from tests.apply.packages import an_object, text
from tests.cli.command import environment, pkger
from tests.cluster import Cluster

LABELS = text(an_object("Label", "l", "sensors"), an_object("Label", "own", "own"))
THEIRS = text(an_object("Label", "tag", "sensors"))


async def test_a_stack_shows_owners_and_users_of_its_resources(services: Cluster, tmp_path: Path) -> None:
    env = environment(tmp_path, services.addresses)
    await services.apply(LABELS, stack="mine")
    await services.apply(THEIRS, stack="theirs")
    await services.apply(THEIRS, stack="others")

    mine, theirs = [(await pkger("stacks", "show", name, env=env)).out.splitlines() for name in ("mine", "theirs")]
    document = json.loads((await pkger("stacks", "show", "theirs", "-o", "json", env=env)).out)

    assert [line.split()[1] for line in mine if line.endswith("used by theirs, others")] == ["l"]
    assert [line.split()[1] for line in mine if line.startswith("Label")] == ["l", "own"]
    assert theirs[-1].endswith("owned by mine; used by others")
    [resource] = document["resources"]
    assert [(each["stack_name"], each["resource"]["id"]) for each in document["owners"]] == [
        ("mine", resource["resource_id"])
    ]
    assert [each["stack_name"] for each in document["users"]] == ["others"]


async def test_a_plan_shows_its_effects_on_other_stacks(services: Cluster, tmp_path: Path) -> None:
    env, file = environment(tmp_path, services.addresses), tmp_path / "package.json"
    await services.apply(LABELS, stack="mine")
    await services.apply(THEIRS, stack="theirs")
    file.write_text(text(an_object("Label", "l", "sensors", color="#000001")))

    changing = await pkger("plan", "-f", str(file), "--stack", "mine", env=env)
    file.write_text(text(an_object("Label", "tag", "sensors", color="#000002")))
    refused = await pkger("plan", "-f", str(file), "--stack", "theirs", env=env)
    file.write_text(LABELS)
    sharing = await pkger("plan", "-f", str(file), "--stack", "third", env=env)
    gone = await pkger("stacks", "uninstall", "mine", "--yes", env=env)

    assert "Label 'l' is used by stack 'theirs': the change is theirs as well" in changing.out + changing.err
    assert "(shared: another stack owns it, and this one uses it unchanged)" in sharing.out
    assert refused.code == 1
    assert "Label 'tag' shares Label 'sensors' of stack 'mine', where color is" in refused.err
    assert gone.code == 0
    assert "stack 'theirs' becomes its owner" in gone.out + gone.err
