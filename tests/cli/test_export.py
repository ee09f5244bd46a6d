"""``pkger export``: its arguments, the files that it writes, and its messages."""

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path

import click
import pytest
import yaml
from pkger.driver.v1 import driver_pb2

from services.cli.resource_args import KindNameCommand, ResourceArg, named_resources
from tests.apply.packages import EVERY_KIND, LABEL, an_object, text
from tests.cli.command import environment, pkger
from tests.cluster import Cluster

GOLDEN = Path(__file__).with_name("golden")
MISPLACED = "--as needs a pair before it and a new name after it: KIND NAME --as NEW"
SCHEMA = "package.schema.json"


@pytest.fixture
def env(services: Cluster, tmp_path: Path) -> Mapping[str, str]:
    return environment(tmp_path, services.addresses)


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        (["Bucket", "b"], [ResourceArg("Bucket", "b")]),
        (["Bucket", "b", "--as", "c", "Task", "t"], [ResourceArg("Bucket", "b", "c"), ResourceArg("Task", "t")]),
        (["Bucket", "--flag", "b", "--as=c d"], [ResourceArg("Bucket", "b", "c d")]),
        (["--flag", "Task", "t", "--as", "--x"], [ResourceArg("Task", "t", "--x")]),
        ([], []),
    ],
)
def test_pairs_are_read(typed: list[str], named: list[ResourceArg]) -> None:
    assert parsed(typed) == named


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        (["Bucket"], "write the id or the name of a Bucket after the kind: Bucket NAME"),
        (["Bucket", "b", "Task"], "write the id or the name of a Task after the kind: Task NAME"),
        (["--as", "x"], MISPLACED),
        (["Bucket", "--as", "x", "b"], MISPLACED),
        (["Bucket", "b", "--as"], MISPLACED),
        (["Bucket", "b", "--as", ""], MISPLACED),
        (["Bucket", "b", "--as", "c", "--as", "d"], MISPLACED),
        (["A", "b", "Task", "--as", "c", "t"], MISPLACED),
    ],
)
def test_half_a_pair_is_refused(typed: list[str], problem: str) -> None:
    with pytest.raises(click.UsageError) as caught:
        parsed(typed)
    assert caught.value.message == problem


def parsed(typed: list[str]) -> list[ResourceArg]:
    """The pairs that a command with another flag reads."""

    @click.command(cls=KindNameCommand)
    @click.argument("pairs", nargs=-1, type=click.UNPROCESSED)
    @click.option("--flag", is_flag=True)
    def command(pairs: tuple[str, ...], flag: bool) -> list[ResourceArg]:
        return named_resources(pairs)

    found: list[ResourceArg] = command.main(typed, standalone_mode=False)
    return found


async def test_an_export_of_nothing_is_wrong_usage(tmp_path: Path) -> None:
    result = await pkger("export", "-o", "x.yml", env=environment(tmp_path))
    assert result.code == 2
    assert "nothing to export; use --all, --stack, --kind, --label, or KIND NAME" in result.err


@pytest.mark.parametrize("word", ["text", "json", "yaml"])
async def test_a_format_in_the_place_of_a_file_is_wrong_usage(word: str, tmp_path: Path) -> None:
    result = await pkger("export", "--all", "-o", word, env=environment(tmp_path))
    assert (result.code, "-o names a file here: -e sets the encoding" in result.err) == (2, True)


async def test_the_output_of_an_export(
    services: Cluster, env: Mapping[str, str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Warnings, and the secrets that another target needs, go to standard error."""
    await services.apply(text(*EVERY_KIND), stack="s")
    [bucket] = await services.resources(kinds=["Bucket"])
    update = driver_pb2.UpdateResource(kind="Bucket", id=bucket.id, spec_json='{"name":"b"}')
    await services.mutate(driver_pb2.Mutation(update=update))
    transcript = ""
    for arguments in (
        ["export", "--stack", "s"],
        ["export", "--kind", "Label", "-e", "json"],
        ["export", "--all", "-o", "all.yml"],
        ["export", "--label", "nobody's"],
        ["export", "Label", "label_1", "--as", "Etikett", "--schema", ""],
        ["export", "Bucket", "x", "Label", "y"],
        ["export", "Lable", "y"],
    ):
        ended = await pkger(*[str(tmp_path / word) if word == "all.yml" else word for word in arguments], env=env)
        shown = f"--- stdout\n{ended.out}--- stderr\n{ended.err}--- exit status {ended.code}\n"
        transcript += f"$ pkger {' '.join(arguments)}\n{shown.replace(str(tmp_path), '.')}\n"
    if request.config.getoption("--update-golden"):
        (GOLDEN / "export.txt").write_text(transcript)
    assert transcript == (GOLDEN / "export.txt").read_text()


async def test_a_file_is_private_to_its_owner_and_can_be_applied(
    services: Cluster, env: Mapping[str, str], tmp_path: Path
) -> None:
    await services.apply(text(*EVERY_KIND), stack="s")
    stack = (await services.record("s")).id
    for name, asked in {"p.yml": "s", "p.json": stack, "P.JSON": "s"}.items():
        file = tmp_path / name
        assert (await pkger("export", "--stack", asked, "--out", str(file), env=env)).code == 0
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        applied = await pkger("apply", "-f", str(file), "--stack", "s", "--yes", "--allow-missing", env=env)
        assert (applied.code, "Done: nothing to do, nothing written." in applied.out) == (0, True)
    assert "#" not in (tmp_path / "p.yml").read_text().splitlines()[0]
    assert json.loads((tmp_path / "p.json").read_text()) == list(yaml.safe_load_all((tmp_path / "p.yml").read_text()))
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".p.")]


async def test_a_file_is_replaced_atomically(services: Cluster, env: Mapping[str, str], tmp_path: Path) -> None:
    await services.apply(text(LABEL))
    file, link = tmp_path / "p.yml", tmp_path / "link.yml"
    file.write_text("as it was")
    file.chmod(0o644)
    link.symlink_to(file)
    failed = await pkger("export", "Label", "none", "-o", str(file), env=env)
    assert (failed.code, file.read_text()) == (1, "as it was")
    nowhere = await pkger("export", "--all", "-o", str(tmp_path / "none" / "p.yml"), env=env)
    assert (nowhere.code, nowhere.err) == (
        1,
        f"Error: {tmp_path}/none/p.yml: No such file or directory; nothing was written\n",
    )
    assert (await pkger("export", "--all", "-o", str(link), env=env)).code == 0
    assert link.is_symlink()
    assert "label_1" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_a_device_gets_the_text(services: Cluster, env: Mapping[str, str]) -> None:
    await services.apply(text(LABEL))
    reading, writing = os.pipe()
    assert (await pkger("export", "--all", "-o", f"/dev/fd/{writing}", "--schema", SCHEMA, env=env)).code == 0
    os.close(writing)
    assert os.read(reading, 4096).startswith(f"# yaml-language-server: $schema={SCHEMA}\n".encode())
    os.close(reading)


async def test_a_stack_may_be_called_like_an_id(services: Cluster, env: Mapping[str, str]) -> None:
    await services.apply(text(LABEL), stack="0123456789abcdef")
    assert "label_1" in (await pkger("export", "--stack", "0123456789abcdef", env=env)).out
    unknown = await pkger("export", "--stack", "fedcba9876543210", env=env)
    assert (unknown.code, unknown.out) == (1, "")
    assert unknown.err.startswith("Error: there is no stack 'fedcba9876543210'")


async def test_many_warnings_are_counted(services: Cluster, env: Mapping[str, str]) -> None:
    creations = [
        driver_pb2.Mutation(create=driver_pb2.CreateResource(kind="Task", spec_json=json.dumps({"name": f"t{number}"})))
        for number in range(60)
    ]
    await services.mutate(*creations)
    ended = await pkger("export", "--all", env=env)
    assert ended.out == ""
    assert ended.err.count("warning: Task 't") == 50
    assert ended.err.endswith("and 10 more warnings; --full shows all\nExported 0 objects.\n")
    assert (await pkger("export", "--all", "--full", env=env)).err.count("warning: Task 't") == 60


async def test_control_characters_in_names_are_escaped_in_messages(services: Cluster, env: Mapping[str, str]) -> None:
    name = "\x1b[31mred\u202e"
    create = driver_pb2.CreateResource(kind="Task", spec_json=json.dumps({"name": name}))
    await services.mutate(driver_pb2.Mutation(create=create))
    await services.apply(text(an_object("Label", "l", name)))
    ended = await pkger("export", "--all", env=env)
    assert "\x1b" not in ended.out + ended.err
    assert "\u202e" not in ended.err
    [label] = yaml.safe_load_all(ended.out)
    assert label["spec"]["name"] == name
