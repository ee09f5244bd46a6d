"""A client in another language: docs/clients.md, run with a real grpcurl as it stands there."""

import asyncio
import json
import os
import re
import shutil
import sys
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from services.settings import PORTS
from tests.cluster import Cluster
from tests.conftest import ROOT

PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])

pytestmark = pytest.mark.skipif(not shutil.which("grpcurl", path=PATH), reason="grpcurl is not installed")


def blocks(heading: str, language: str = "sh") -> list[str]:
    """The fenced blocks of *language* under *heading* of docs/clients.md."""
    text = (ROOT / "docs" / "clients.md").read_text()
    section = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)


def test_every_section_has_its_test() -> None:
    text = (ROOT / "docs" / "clients.md").read_text()
    sections = ["What is there", "A dry run", "An apply", "A plan, and its apply", "An error", "Limits"]
    assert re.findall("^## (.*)$", text, re.MULTILINE) == sections


async def shell(script: str, services: Cluster) -> tuple[int, str, str]:
    """Exit status, output and error output of *script*, with the default addresses replaced by those of *services*."""
    for name, port in PORTS.items():
        script = script.replace(f"127.0.0.1:{port}", services.addresses[name])
    process = await asyncio.create_subprocess_exec(
        "sh", "-eu", "-c", script, env={**os.environ, "PATH": PATH}, stdout=PIPE, stderr=PIPE
    )
    output, errors = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode is not None
    return process.returncode, output.decode(), errors.decode()


async def answers(script: str, services: Cluster) -> list[Any]:
    """The JSON documents that *script* prints, one after the other."""
    status, output, errors = await shell(script, services)
    assert (status, errors) == (0, "")
    found, decoder, end = [], json.JSONDecoder(), 0
    while output[end:].strip():
        document, end = decoder.raw_decode(output, end + len(output[end:]) - len(output[end:].lstrip()))
        found.append(document)
    return found


async def test_services_and_messages_are_found_by_reflection(services: Cluster) -> None:
    (script,) = blocks("What is there")

    status, output, errors = await shell(script, services)

    assert (status, errors) == (0, "")
    assert output.splitlines()[:3] == [
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
        "pkger.planner.v1.PlannerService",
    ]
    assert "pkger.planner.v1.CreatePlanRequest is a message:" in output
    assert ".pkger.planner.v1.PackageSources package = 3;" in output
    assert '"status": "SERVING"' in output


@pytest.mark.parametrize("service", sorted(PORTS))
async def test_every_server_describes_all_that_it_serves(service: str, services: Cluster) -> None:
    """Without a name, ``describe`` asks for every service that is listed, health and reflection too."""
    status, output, errors = await shell(f"grpcurl -plaintext 127.0.0.1:{PORTS[service]} describe", services)
    assert (status, errors) == (0, "")
    assert output.count("is a service:") >= 3


async def test_a_dry_run_answers_with_the_plan_and_writes_nothing(services: Cluster) -> None:
    (script,) = blocks("A dry run")

    (answer,) = await answers(script, services)

    (step,) = answer["plan"]["steps"]
    assert (step["verb"], step["key"]) == ("VERB_CREATE", {"kind": "Label", "name": "fleet"})
    assert json.loads(step["new_spec_json"])["color"] == "#326bba"
    assert await services.resources() == []
    assert await services.stack_names() == []


async def test_an_apply_streams_its_events_and_the_stack_knows_what_it_owns(services: Cluster) -> None:
    apply, show = blocks("An apply")

    events = [answer["event"] for answer in await answers(apply, services)]

    assert kinds(events) == ["accepted", "stage_started", "steps_ended", "finished"]
    assert [event["seq"] for event in events] == ["1", "2", "3", "4"]
    assert events[-1]["finished"]["state"] == "OPERATION_STATE_SUCCEEDED"
    (label,) = await services.resources()
    (shown,) = await answers(show, services)
    assert [entry["remote_id"] for entry in shown["stack"]["resources"]] == [label.id]
    assert shown["stack"]["id"] == events[-1]["finished"]["stack_id"]


def kinds(events: Sequence[dict[str, Any]]) -> list[str]:
    """What each event tells."""
    return [key for event in events for key in event if key not in {"operation", "seq", "time"}]


async def test_a_second_apply_has_nothing_to_do(services: Cluster) -> None:
    script, _ = blocks("An apply")
    await answers(script, services)

    events = [answer["event"] for answer in await answers(script, services)]

    assert kinds(events) == ["accepted", "finished"]
    assert events[-1]["finished"]["no_change"] is True


async def test_a_stored_plan_is_applied_once_however_often_it_is_asked_for(services: Cluster) -> None:
    (script,) = blocks("A plan, and its apply")

    first, second = [await answers(script, services) for _ in range(2)]

    assert kinds([answer["event"] for answer in first]) == ["accepted", "stage_started", "steps_ended", "finished"]
    assert second == first
    assert len(await services.resources()) == 1


async def test_a_package_that_breaks_rules_is_an_answer_with_places(services: Cluster) -> None:
    (script,) = blocks("A dry run")

    (answer,) = await answers(script.replace("{name: fleet}", "{name: Not a name}"), services)

    (violation,) = answer["invalid_package"]["violations"]
    assert violation["path"].startswith("root[0].metadata.name")
    assert violation["location"]["source"] == "fleet.yml"
    assert violation["location"]["line"] == 3


async def test_an_error_looks_as_it_is_shown(services: Cluster) -> None:
    """Code, message, and the reason with its values; grpcurl finds the types of the details by reflection."""
    (script,) = blocks("An error")
    (shown,) = blocks("An error", "text")

    status, output, errors = await shell(script, services)

    assert status != 0
    assert output == ""
    assert errors == shown
