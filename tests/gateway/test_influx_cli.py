"""Uses the gateway with the real ``influx`` program, whose path is in ``PKGER_TEST_INFLUX_CLI``."""

import asyncio
import json
import os
import re
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import needs
from tests.cluster import Cluster
from tests.conftest import ROOT
from tests.gateway.cases import read_cases
from tests.gateway.gateway import TOKEN, gateway, settings

INFLUX = os.environ.get("PKGER_TEST_INFLUX_CLI", "")

pytestmark = [pytest.mark.slow, needs.variable("PKGER_TEST_INFLUX_CLI")]

(EVERY_KIND,) = [
    case["request"]["body"]["templates"][0]["contents"] for case in read_cases() if case["id"] == "summary-all-kinds"
]

LESS = EVERY_KIND[:2]

NEVER = ("PANIC", "is not a valid ErrorCode", "unable to decode response content type", "<parsing err>")


class Influx:
    """The program, in a folder of its own, with one organization."""

    def __init__(self, address: str, folder: Path) -> None:
        self._folder = folder
        self._environ = {
            "INFLUX_HOST": f"http://{address}",
            "INFLUX_TOKEN": TOKEN,
            "INFLUX_ORG": "example",
            "INFLUX_CONFIGS_PATH": str(folder / "configs"),
        }

    async def __call__(self, *words: str, code: int = 0, **environ: str) -> str:
        """The output of a command, stdout and stderr."""
        process = await asyncio.create_subprocess_exec(
            INFLUX,
            *words,
            cwd=self._folder,
            env={**self._environ, **environ},
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
        )
        out, err = await process.communicate()
        output = out.decode() + err.decode()
        assert process.returncode == code, f"{words}: {output}"
        assert not any(word in output for word in NEVER), output
        return output


def write(folder: Path, name: str, objects: list[dict[str, Any]]) -> str:
    (folder / name).write_text("---\n".join(yaml.safe_dump(each) for each in objects))
    return name


TABLES = ("--disable-color", "--disable-table-borders")


async def test_the_program_manages_packages_and_stacks(services: Cluster, tmp_path: Path) -> None:
    every, less = write(tmp_path, "every.yml", EVERY_KIND), write(tmp_path, "less.yml", LESS)
    (tmp_path / "trailing.yml").write_text((tmp_path / every).read_text() + "---\n")
    bad = write(tmp_path, "bad.yml", [{**EVERY_KIND[0], "kind": "Wat"}])
    async with gateway(settings(tmp_path), services) as address:
        influx = Influx(address, tmp_path)
        assert (await influx("ping")).strip() == "OK"
        assert "example" in await influx("org", "list")
        assert await influx("template", "validate", "-f", every) == ""
        assert await influx("template", "validate", "-f", "trailing.yml") == ""
        output = await influx("template", "validate", "-f", bad, code=1)
        assert re.search(r"template failed validation:\s+kind=Wat field=root\[0\]\.kind reason=", output)
        tables = await influx("template", "-f", every, *TABLES)
        assert all(word in tables for word in ("chk", "ep", "task two", "10m0s", "0 * * * *"))
        json.loads(await influx("template", "-f", every, "--json"))

        row = await influx("stacks", "init", "-n", "first", "-d", "words")
        (stack,) = re.findall(r"\b[0-9a-f]{16}\b", row)[:1]
        apply = ("apply", "--stack-id", stack, "--force", "yes", *TABLES)
        given = ("--secret", "tok=value", "--env-ref", "bkt-name=from-env")
        assert f"Stack ID: {stack}" in await influx(*apply, "-f", every, *given)
        assert f"Stack ID: {stack}" in await influx(*apply, "-f", every, *given)
        assert await influx(*apply, "-f", every, *given, "-q") == ""
        assert "aborted application of template" in await influx("apply", "-f", every, "--stack-id", stack, code=1)
        assert "422 Unprocessable Entity" in await influx(*apply, code=1)
        assert f"Stack ID: {stack}" in await influx(*apply, "-f", less)
        assert "first" in await influx("apply", "-f", less, "--force", "yes", code=1)

        exported = await influx("export", "stack", stack)
        assert [each["metadata"]["name"] for each in yaml.safe_load_all(exported)] == ["label-1", "bkt-1"]
        assert "one" in await influx("export", "all", "--filter", "kind=Label", "--filter", "labelName=one")
        assert "first" in await influx("stacks", "--stack-name", "first", "--hide-headers")
        assert "second" in await influx("stacks", "update", "-i", stack, "-n", "second")
        for words in (("-t", "wrong"), ("--org-id", "zz"), ("--org-id", "00000000deadbeef"), ("-o", "nope")):
            assert "Error: " in await influx("stacks", *words, code=1)
        assert "401 Unauthorized" in await influx("stacks", code=1, INFLUX_TOKEN="")
        await influx("stacks", "rm", "--stack-id", stack, "--force")
        assert await influx("stacks", "rm", "--stack-id", stack, "--force") == ""
        assert await services.resources("example") == []
        examples = [f"-f={ROOT / 'examples' / name}" for name in ("labels.json", "fleet.yml")]
        first = await influx("apply", *examples, "--force", "yes")
        again = await influx("apply", *examples, "--force", "yes")
        assert re.findall("Stack ID: (.*)", first) == re.findall("Stack ID: (.*)", again)
