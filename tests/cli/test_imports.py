"""``pkger stacks import`` of one resource and of a package, and ``pkger resources``, which lists what there is."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pkger.model.v1 import object_pb2

from tests.apply.packages import EVERY_KIND, an_object, text
from tests.cli.command import Ended, at_terminal, environment, pkger
from tests.cluster import Calls, Cluster
from tests.drivers.client import create

QUESTION = b"Import these resources? [y/N] "


@pytest.fixture
def services(shared_services: Cluster) -> Cluster:
    return shared_services


@pytest.fixture
def env(services: Cluster, tmp_path: Path) -> Mapping[str, str]:
    return environment(tmp_path, services.addresses)


class Client:
    """Runs commands in the organization of the test, with files of its folder."""

    def __init__(self, services: Cluster, env: Mapping[str, str], folder: Path) -> None:
        self.services, self.env, self.folder = services, env, folder

    async def run(self, *arguments: str) -> Ended:
        return await pkger(*arguments, "--org", self.services.org, env=self.env)

    async def done(self, *arguments: str) -> str:
        """The output of a command that succeeds."""
        ended = await self.run(*arguments)
        assert (ended.code, ended.err) == (0, "")
        return ended.out

    async def records(self, *arguments: str) -> Any:
        """The JSON output of a command that succeeds."""
        return json.loads(await self.done(*arguments, "-o", "json"))

    def file(self, *objects: dict[str, Any], name: str = "package.json") -> str:
        path = self.folder / name
        path.write_text(text(*objects), "utf-8")
        return str(path)

    async def made(self, kind: str, name: str, key: str = "") -> str:
        """Create a resource outside any stack; returns its id."""
        before = {each.id for each in await self.services.resources()}
        await self.services.mutate(create(kind, {"name": name}, key or name))
        [new] = {each.id for each in await self.services.resources()} - before
        return new

    async def origins(self, stack: str) -> dict[str, str]:
        """The origin of each entry of a stack, by the name of its object."""
        entries = (await self.services.record(stack)).resources
        return {each.key.name: object_pb2.Origin.Name(each.origin) for each in entries}


@pytest.fixture
def client(services: Cluster, env: Mapping[str, str], tmp_path: Path) -> Client:
    return Client(services, env, tmp_path)


async def test_one_resource_is_imported_by_its_display_name(client: Client) -> None:
    await client.done("stacks", "init", "fleet")
    board = await client.made("Dashboard", "Fleet overview")
    printed = await client.done("stacks", "import", "fleet", "Dashboard", "Fleet overview", "--as", "overview")
    assert printed == f"Dashboard overview is resource {board}; add it to the package, or the next apply removes it\n"
    ids = sorted([await client.made("Dashboard", "CPU", "one"), await client.made("Dashboard", "CPU", "two")])
    refused = await client.run("stacks", "import", "fleet", "Dashboard", "CPU")
    assert (refused.code, refused.err.count(ids[0]), refused.err.count(ids[1])) == (1, 1, 1)
    absent = await client.run("stacks", "import", "fleet", "Dashboard", "Disk")
    assert (absent.code, "does not have Dashboard with id or name 'Disk'" in absent.err) == (1, True)
    assert await client.origins("fleet") == {"overview": "ORIGIN_ADOPTED"}


async def test_a_whole_package_is_imported_without_a_step_on_the_platform(client: Client, calls: Calls) -> None:
    package = EVERY_KIND[:-1]
    file = client.file(*package)
    # Without a stack, an apply leaves no record.
    await client.services.apply(text(*package))
    before = await client.services.resources()
    await client.done("stacks", "init", "fleet")
    calls.methods.clear()

    printed = await client.done("stacks", "import", "fleet", "-f", file)

    assert printed.endswith(
        "To import: 12 resources; nothing is written to the platform.\n"
        "Imported 12 resources into stack fleet, generation 1.\n"
    )
    assert (calls.count("ListResources"), calls.count("RecordImport"), calls.count("Mutate")) == (1, 1, 0)
    assert await client.services.resources() == before
    assert set((await client.origins("fleet")).values()) == {"ORIGIN_ADOPTED"}
    plan = await client.services.plan(text(*package), stack="fleet")
    assert (plan.steps, plan.warnings) == ([], [])
    assert await client.done("stacks", "import", "fleet", "-f", file, "--quiet") == ""
    again = await client.done("stacks", "import", "fleet", "-f", file)
    assert again.count("no: it is in the stack already") == 12
    assert (await client.services.record("fleet")).generation == 1


async def test_objects_without_a_certain_resource_are_listed_and_stay(client: Client) -> None:
    await client.services.apply(text(an_object("Bucket", "raw", "Raw")), stack="other")
    raw = (await client.services.record("other")).resources[0].resource_id
    ids = sorted([await client.made("Dashboard", "CPU", "one"), await client.made("Dashboard", "CPU", "two")])
    boards = [f"Dashboard {each}" for each in ids]
    label = await client.made("Label", "Fleet")
    await client.done("stacks", "init", "fleet")
    file = client.file(
        an_object("Label", "fleet", "fleet"),
        an_object("Label", "absent", "Absent"),
        an_object("Bucket", "b", "Raw"),
        an_object("Dashboard", "cpu", "CPU"),
    )
    printed = await client.done("stacks", "import", "fleet", "-f", file)
    assert printed == (
        "KIND       OBJECT  DISPLAY NAME  IMPORT\n"
        f"Bucket     b       Raw           no: stack 'other' owns resource {raw}, as 'raw'\n"
        f"Dashboard  cpu     CPU           no: 2 resources have the name: {', '.join(boards)}\n"
        "Label      absent  Absent        no: it does not exist\n"
        f"Label      fleet   fleet         resource {label}\n"
        "To import: 1 resource; nothing is written to the platform.\n"
        "Imported 1 resource into stack fleet, generation 1.\n"
    )
    found = await client.records("stacks", "import", "fleet", "-f", file)
    assert [(each["key"]["name"], each["status"]) for each in found["objects"]] == [
        ("b", "IMPORT_STATUS_OWNED"),
        ("cpu", "IMPORT_STATUS_AMBIGUOUS"),
        ("absent", "IMPORT_STATUS_MISSING"),
        ("fleet", "IMPORT_STATUS_RECORDED"),
    ]
    assert await client.origins("fleet") == {"fleet": "ORIGIN_ADOPTED"}


async def test_the_import_of_a_package_is_asked_for_at_a_terminal(client: Client) -> None:
    await client.made("Label", "Fleet")
    await client.done("stacks", "init", "fleet")
    file = client.file(an_object("Label", "l", "fleet"))
    command = ("stacks", "import", "fleet", "-f", file, "--org", client.services.org)
    code, shown = await at_terminal(*command, answers=[(QUESTION, b"n\n")], env=client.env)
    assert (code, b"not imported; nothing was written" in shown) == (1, True)
    assert await client.origins("fleet") == {}
    code, shown = await at_terminal(*command, answers=[(QUESTION, b"y\n")], env=client.env)
    assert (code, await client.origins("fleet")) == (0, {"l": "ORIGIN_ADOPTED"}), shown
    # Nothing is left to ask for.
    code, shown = await at_terminal(*command, "--yes", answers=[], env=client.env)
    assert (code, QUESTION in shown) == (0, False)


async def test_a_package_is_read_with_the_options_of_other_commands(client: Client) -> None:
    label = await client.made("Label", "eu")
    await client.done("stacks", "init", "fleet")
    named = an_object("Label", "l", "") | {"spec": {"name": {"envRef": {"key": "region"}}}}
    (client.folder / "packages").mkdir()
    client.file(named, name="packages/a.json")
    command = ("stacks", "import", "fleet", "-R", "-f", str(client.folder / "packages"))
    missing = await client.run(*command)
    assert (missing.code, "the names of objects need values for region" in missing.err) == (1, True)
    await client.done(*command, "--env-ref", "region=eu")
    assert [entry.resource_id for entry in (await client.services.record("fleet")).resources] == [label]
    invalid = await client.run("stacks", "import", "fleet", "-f", client.file(an_object("Label", "l", "")))
    assert (invalid.code, invalid.err.startswith("Error: the package breaks 1 rule")) == (1, True)
    unknown = await client.run("stacks", "import", "unknown", "-f", client.file(an_object("Label", "l", "x")))
    assert (unknown.code, "unknown" in unknown.err) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "name one resource by KIND and NAME, or the files of a package with -f"),
        (("Label",), "name one resource by KIND and NAME, or the files of a package with -f"),
        (("Label", "l", "-f", "x.yml"), "KIND NAME and --as cannot be combined with it"),
        (("-f", "x.yml", "--as", "l"), "KIND NAME and --as cannot be combined with it"),
        (("Label", "l", "-R"), "name its files with -f"),
        (("--env-ref", "a=b"), "name its files with -f"),
    ],
)
async def test_one_resource_or_a_package_is_imported(client: Client, arguments: tuple[str, ...], problem: str) -> None:
    ended = await client.run("stacks", "import", "fleet", *arguments)
    assert (ended.code, problem in ended.err) == (2, True), ended.err


async def test_resources_of_the_platform_are_listed_with_their_owners(client: Client) -> None:
    await client.services.apply(text(an_object("Bucket", "raw", "Raw"), an_object("Label", "l", "fleet")), stack="s")
    ids = {each.display_name: each.id for each in await client.services.resources()}
    await client.made("Bucket", "Archive")
    boards = sorted([await client.made("Dashboard", "CPU", "one"), await client.made("Dashboard", "CPU", "two")])

    printed = await client.done("resources")

    archive = {each.display_name: each.id for each in await client.services.resources()}["Archive"]
    width = max(map(len, (*ids.values(), *boards)))
    rows = [
        ("KIND", "ID", "NAME", "STACK", "OBJECT"),
        ("Label", ids["fleet"], "fleet", "s", "l"),
        ("Bucket", archive, "Archive", "", ""),
        ("Bucket", ids["Raw"], "Raw", "s", "raw"),
        ("Dashboard", boards[0], "CPU", "", ""),
        ("Dashboard", boards[1], "CPU", "", ""),
    ]
    lines = [f"{kind:9}  {id_:{width}}  {name:7}  {stack:5}  {item}".rstrip() for kind, id_, name, stack, item in rows]
    assert printed.splitlines() == lines
    listed = await client.records("resources", "Bucket", "Check")
    stack_id = (await client.services.record("s")).id
    assert listed == [
        {"resource": {"kind": "Bucket", "id": archive}, "display_name": "Archive"},
        {
            "resource": {"kind": "Bucket", "id": ids["Raw"]},
            "display_name": "Raw",
            "owner": {"stack_id": stack_id, "stack_name": "s", "object_name": "raw"},
        },
    ]
    wrong = await client.run("resources", "Buckte")
    assert (wrong.code, "did you mean Bucket?" in wrong.err) == (1, True)
