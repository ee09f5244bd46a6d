"""The steps of ``docs/kinds.md``, followed on a copy of the services, which then run with the new kind."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.cli.command import environment, parts, sockets
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "kinds.md").read_text()
COPIED = ("services", "parser_svc", "planner_svc", "applier_svc", "stack_svc")
BLOCK = re.compile(
    r"^(?:`(?P<file>[\w./]+)`[^\n]*\n\n)?```(?P<language>\w+)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """
    A fenced block of the page. ``file`` is the file name at the start of the paragraph before the block; empty: none.
    """

    language: str
    text: str
    file: str = ""


BLOCKS = [Block(found["language"], found["text"], found["file"] or "") for found in BLOCK.finditer(PAGE)]


def patched(text: str, diff: str) -> str:
    """*text* with the changes of *diff*; each of its hunks has to match exactly once."""
    for part in diff.split("@@\n"):
        lines = part.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line[0] != "+")
        assert text.count(before) == 1, f"this is not in the file exactly once:\n{before}"
        text = text.replace(before, "".join(line[1:] for line in lines if line[0] != "-"))
    return text


def follow_the_page(copy: Path) -> list[str]:
    """Change the services in *copy* as the page says; returns the new and changed files."""
    changed = []
    for block in BLOCKS:
        if block.language in ("python", "diff"):
            path = copy / block.file
            assert path.exists() == (block.language == "diff"), block.file
            path.write_text(block.text if block.language == "python" else patched(path.read_text(), block.text))
            changed.append(block.file)
    return changed


def block(language: str) -> Block:
    """The one block of the page in a language."""
    [found] = [each for each in BLOCKS if each.language == language]
    return found


@dataclass(frozen=True)
class Copy:
    """The services with the new kind, running, and a folder to work in."""

    folder: Path
    env: Mapping[str, str]

    def run(self, script: str) -> str:
        """The output of a script that succeeds."""
        done = self._done("bash", "-euc", script)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def fails(self, script: str) -> str:
        """The output of a script that fails."""
        done = self._done("bash", "-euc", script)
        assert done.returncode != 0
        return done.stdout + done.stderr

    def write(self, changes: Mapping[str, str] = MappingProxyType({})) -> None:
        """Write the package of the page, with each text of *changes* replaced."""
        package = block("yaml")
        text = package.text
        for old, new in changes.items():
            text = text.replace(old, new)
        (self.folder / package.file).write_text(text)

    def _done(self, *command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    top = tmp_path_factory.mktemp("kind")
    source, bin_, folder = top / "source", top / "bin", top / "folder"
    for name in COPIED:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyi"))
    assert len(follow_the_page(source)) == 3
    bin_.mkdir()
    folder.mkdir()
    pkger = bin_ / "pkger"
    pkger.write_text(f'#!/bin/sh\nexec {sys.executable} -m services.cli.main "$@"\n')
    pkger.chmod(0o755)
    with tempfile.TemporaryDirectory(prefix="pkger-test-") as short_path:
        env = environment(top / "home", sockets(Path(short_path)))
        env["PATH"] = f"{bin_}{os.pathsep}{env['PATH']}"
        env["PYTHONPATH"] = f"{source}{os.pathsep}{source / 'services' / 'gen'}"
        with subprocess.Popen([pkger, "up"], env=env, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            try:
                assert any(line.startswith("ready") for line in process.stdout)
                yield Copy(folder, env)
            finally:
                process.terminate()
                process.communicate()


def test_a_kind_that_refers_to_another_is_added_as_the_page_says(copy: Copy) -> None:
    copy.write()
    script = block("sh").text
    assert script.count("pkger") == 5
    [planned] = [each.text for each in BLOCKS if each.language == "text"]
    output = copy.run(script)
    assert output.startswith(f"The package is valid: 1 Bucket, 1 Notebook.\n{planned}")
    assert "Done: 2 created." in output
    assert "Done: nothing to do, nothing written." in output
    assert "Done: 2 deleted." in output


def test_the_new_kind_has_all_that_a_kind_has(copy: Copy) -> None:
    assert json.loads(copy.run("pkger schema Notebook"))["title"] == "Notebook"

    copy.write({"bucket: readings": "description: None"})
    error = copy.fails("pkger validate -f notebook.yml")
    assert "a notebook needs a bucket; write the metadata.name of one of the package as bucket [field-missing]" in error
    copy.write({"bucket: readings": "bucket: reading"})
    error = copy.fails("pkger validate -f notebook.yml")
    assert "the package has no bucket with the metadata.name 'reading'; it has readings [value-not-allowed]" in error

    copy.write()
    plan = parts(copy.run("pkger plan -f notebook.yml --stack notes -o json"))
    [entry] = json.loads(plan["summary_json"])["notebooks"]
    assert (entry["kind"], entry["templateMetaName"], entry["text"]) == ("Notebook", "guide", "One point a minute.")
    assert (entry["bucketID"], entry["bucketTemplateMetaName"]) == (0, "readings")
    assert [diff["key"]["kind"] for diff in plan["diffs"]["resources"]] == ["Bucket", "Notebook"]


def test_a_changed_reference_of_the_new_kind_is_a_difference(copy: Copy) -> None:
    second = "---\napiVersion: influxdata.com/v2alpha1\nkind: Bucket\nmetadata: {name: alarms}\n"
    copy.write()
    copy.run("pkger apply -f notebook.yml --stack notes --yes")
    copy.write({"bucket: readings": "bucket: alarms", "minute.\n": f"minute.\n{second}"})
    output = copy.run("pkger plan -f notebook.yml --stack notes")
    assert output == (
        '  + Bucket alarms "alarms"\n'
        '  ~ Notebook guide "guide"\n'
        '      bucket: "readings" -> "alarms"\n'
        "Bucket    1 to create\n"
        "Notebook  1 to update\n"
        "Plan: 1 to create, 1 to update.\n"
    )
    assert "Done: 1 created, 1 updated." in copy.run("pkger apply -f notebook.yml --stack notes --yes")
    assert "Done: nothing to do" in copy.run("pkger apply -f notebook.yml --stack notes --yes")
    plan = parts(copy.run("pkger plan -f notebook.yml --stack notes -o json"))
    summary = json.loads(plan["summary_json"])
    buckets = {entry["templateMetaName"]: entry["id"] for entry in summary["buckets"]}
    assert [entry["bucketID"] for entry in summary["notebooks"]] == [buckets["alarms"]]
    # The reference keeps the order of a removal: the notebook goes before its bucket.
    output = copy.run("pkger stacks uninstall notes --yes")
    assert output.index("- Notebook guide") < output.index("- Bucket alarms")
    assert "Done: 3 deleted." in output
