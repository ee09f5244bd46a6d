"""Help is quick and has examples; commands that need no server start none."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from services.cli.main import main
from tests.apply.packages import STEPS, an_object, text
from tests.cli.command import environment, parts, pkger

HEAVY = ("asyncio", "grpc", "google", "importlib.metadata", "orjson", "pkger", "rich", "services.core", "yaml")


def test_help_imports_no_heavy_module() -> None:
    """Help must print at once, and each of these imports takes as long as all the rest."""
    script = f"import sys, services.cli.main; print([name for name in {HEAVY!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert found.stdout == "[]\n"


def commands(group: click.Group, path: str = "pkger") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")


@pytest.mark.parametrize(("path", "command"), [pytest.param(*each, id=each[0]) for each in commands(main)])
def test_each_command_has_help_and_examples(path: str, command: click.Command) -> None:
    assert command.help
    if not isinstance(command, click.Group):
        assert command.epilog
        assert "Examples:\n" in command.epilog
        assert path.replace("dry-run", "plan") in command.epilog


async def test_commands_that_need_no_server_start_none(tmp_path: Path) -> None:
    """Services that run for a command leave logs in its home."""
    env, file = environment(tmp_path / "home"), tmp_path / "package.json"
    file.write_text(STEPS[1])
    assert (await pkger("validate", "-f", str(file), env=env)).code == 0
    kinds = json.loads((await pkger("kinds", "-o", "json", env=env)).out)
    assert [kind["name"] for kind in kinds if json.loads(kind["schema_json"])["title"] == "Bucket"] == ["Bucket"]
    assert json.loads((await pkger("schema", "Package", env=env)).out)["title"] == "Package"
    schema = json.loads((await pkger("schema", "--array", env=env)).out)
    assert (schema["type"], schema["items"]["title"]) == ("array", "Object of a package")
    assert not (tmp_path / "home").exists()


async def test_jsonnet_may_come_from_standard_input(tmp_path: Path) -> None:
    program = f"[{json.dumps(an_object('Label', 'l', 'label'))} + {{ metadata: {{ name: 'l' + '2' }} }}]"
    result = await pkger("validate", "-f", "-", "-e", "jsonnet", env=environment(tmp_path), typed=program.encode())
    assert (result.code, result.out) == (0, "The package is valid: 1 Label.\n")


async def test_the_file_of_a_workspace_is_not_read_as_a_package(tmp_path: Path) -> None:
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "a.json").write_text(text(an_object("Label", "l", "label")))
    (tmp_path / "packages" / "pkger.yml").write_text("what: ever\n")
    result = await pkger("validate", "-R", "-f", str(tmp_path / "packages"), env=environment(tmp_path))
    assert (result.code, result.out) == (0, "The package is valid: 1 Label.\n")


async def test_a_source_that_cannot_be_read_does_not_hide_violations_of_others(tmp_path: Path) -> None:
    """References to objects that may be in that source are no violations."""
    (tmp_path / "a.json").write_text('[{"kind": "Label", "kind": "Bucket"}]')
    (tmp_path / "b.yml").write_text("a: [\n")
    (tmp_path / "c.json").write_text(
        text(
            an_object("Bucket", "b", "bucket", ["elsewhere"]),
            an_object("Bucket", "c", "other", retentionRules=[{"type": "expire", "everySeconds": 60}]),
        )
    )
    env = environment(tmp_path / "home")
    result = await pkger("validate", "-R", "-f", str(tmp_path), "-f", str(tmp_path / "no.yml"), "-o", "json", env=env)
    codes = [violation["code"] for violation in parts(result.out)["violations"]["violations"]]
    broken = ["source-unreadable", "source-undecodable", "source-undecodable"]
    assert (result.code, codes) == (1, [*broken, "value-out-of-range"])
    result = await pkger("validate", "-f", str(tmp_path / "no.yml"), env=env)
    assert (result.code, result.err) == (1, f"Error: {tmp_path / 'no.yml'}: No such file or directory\n")
