"""The grpcurl commands of docs/clients.md, run unchanged with a real grpcurl."""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from services.settings import PORTS
from tests import needs
from tests.clients.page import blocks, section, shell
from tests.cluster import Cluster
from tests.ports import Home

pytestmark = [pytest.mark.slow, needs.program("grpcurl")]


async def answers(script: str, home: Home) -> list[Any]:
    """The JSON documents that *script* prints, one after the other."""
    status, output, errors = await shell(script, home)
    assert (status, errors) == (0, "")
    found, decoder, end = [], json.JSONDecoder(), 0
    while output[end:].strip():
        document, end = decoder.raw_decode(output, end + len(output[end:]) - len(output[end:].lstrip()))
        found.append(document)
    return found


async def test_calls_need_a_token_at_a_port_and_none_at_a_socket(home: Home) -> None:
    _, at_socket = blocks("Tokens")
    socket = home.services.addresses["planner"].removeprefix("unix:")
    status, output, errors = await shell(at_socket.replace("~/.pkger/run/planner.sock", socket), home)
    assert (status, errors) == (0, "")
    assert '"name": "embedded"' in output

    (script,) = blocks("Explore a server")
    status, output, errors = await shell(script.replace('-expand-headers -H "$AUTH" ', ""), home)
    assert (status, output) == (1, "")
    assert "code = Unauthenticated desc = no valid token" in errors


async def test_the_containers_need_the_protos(home: Home) -> None:
    """They have no reflection; these servers have it, and the flags of the page take its place."""
    [flags] = re.findall(r"\((-import-path .*?)\)", section("Tokens").replace("\n", " ").replace("`", ""))
    call = "127.0.0.1:50052 pkger.planner.v1.PlannerService/ListPlatforms"
    (answer,) = await answers(f'grpcurl -plaintext -expand-headers -H "$AUTH" {flags} {call}', home)
    assert answer["platforms"][0]["name"] == "embedded"


async def test_services_and_messages_are_found_by_reflection(home: Home) -> None:
    (script,) = blocks("Explore a server")

    status, output, errors = await shell(script, home)

    assert (status, errors) == (0, "")
    assert output.splitlines()[:5] == [
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
        "pkger.journal.v1.PlanningService",
        "pkger.planner.v1.PackageService",
        "pkger.planner.v1.PlannerService",
    ]
    assert "pkger.planner.v1.CreatePlanRequest is a message:" in output
    assert ".pkger.planner.v1.PackageSources package = 3;" in output
    assert '"status": "SERVING"' in output


@pytest.mark.parametrize("service", sorted(PORTS))
async def test_every_server_describes_all_that_it_serves(service: str, home: Home) -> None:
    """Without a name, ``describe`` asks for every service that is listed, health and reflection too."""
    command = f'grpcurl -plaintext -expand-headers -H "$AUTH" 127.0.0.1:{PORTS[service]} describe'
    status, output, errors = await shell(command, home)
    assert (status, errors) == (0, "")
    assert output.count("is a service:") >= 3


async def test_a_dry_run_answers_with_the_plan_and_writes_nothing(home: Home, services: Cluster) -> None:
    (script,) = blocks("A dry run")

    header, steps = [answer["part"] for answer in await answers(script, home)]

    assert header["header"]["counts"] == {"creates": 1}
    (step,) = steps["steps"]["steps"]
    assert (step["create"]["key"], step["create"]["display_name"]) == ({"kind": "Label", "name": "fleet"}, "fleet")
    assert json.loads(step["create"]["spec_json"])["color"] == "#326bba"
    assert await services.resources() == []
    assert await services.stack_names() == []


async def test_an_apply_streams_its_events_and_the_stack_knows_what_it_owns(home: Home, services: Cluster) -> None:
    apply, show = blocks("An apply")

    events = await answers(apply, home)

    assert kinds(events) == ["begun", "accepted", "stage_started", "steps_sent", "steps_ended", "finished"]
    assert [event["seq"] for event in events[1:]] == ["1", "2", "3", "4", "5"]
    assert events[-1]["finished"]["state"] == "OPERATION_STATE_SUCCEEDED"
    (label,) = await services.resources()
    (shown,) = await answers(show, home)
    assert [entry["resource_id"] for entry in shown["resources"]] == [label.id]
    assert shown["generation"] == events[-1]["finished"]["generation"]


def kinds(events: Sequence[dict[str, Any]]) -> list[str]:
    """The kind of each event."""
    return [key for event in events for key in event if key not in {"operation_id", "seq", "time"}]


async def test_a_second_apply_has_nothing_to_do(home: Home) -> None:
    script, _ = blocks("An apply")
    await answers(script, home)

    events = await answers(script, home)

    assert kinds(events) == ["begun", "accepted", "finished"]
    assert events[-1]["finished"]["no_change"] is True


async def test_a_stored_plan_is_applied_once_for_any_number_of_requests(home: Home, services: Cluster) -> None:
    (script,) = blocks("A plan, and its apply")

    first, second = [await answers(script, home) for _ in range(2)]

    assert kinds(first) == [
        "begun",
        "accepted",
        "stage_started",
        "steps_sent",
        "steps_ended",
        "finished",
    ]
    assert second[1:] == first[1:]
    assert second[0]["operation_id"] == first[0]["operation_id"]
    assert len(await services.resources()) == 1


async def test_the_commands_about_a_stack_run_from_its_first_apply_to_its_deletion(
    home: Home, services: Cluster
) -> None:
    apply, _ = blocks("An apply")
    history, looks, changes_of_record, watch, delete = blocks("A stack, its history and its platform")
    for script in (apply, apply.replace("#326bba", "#ff8800")):
        await answers(script, home)

    listed, head, objects, diff, *events = await answers(history, home)
    assert [revision["number"] for revision in listed["revisions"]] == ["2", "1"]
    assert head["revision"] == listed["revisions"][1]
    assert [each["key"]["name"] for each in objects["objects"]["objects"]] == ["fleet"]
    assert "#ff8800" in json.dumps(diff)
    assert events[-1]["finished"]["state"] == "OPERATION_STATE_SUCCEEDED"

    summary, _, header, text, platforms, check = await answers(looks, home)
    assert summary["summary"]["counts"] == {"in_sync": 1}
    assert header["header"]["object_count"] == 1
    assert "kind: Label" in text["text"]
    assert [each["name"] for each in platforms["platforms"]] == ["embedded"]
    assert check["check"]["platform"] == "embedded"

    updated, forgotten, listed, imported, renamed = await answers(changes_of_record, home)
    assert updated["stack"]["description"] == "All vehicles"
    assert "resource_count" not in forgotten["stack"]
    assert "owner" not in listed["resources"][0]
    assert imported["entries"][0]["key"] == {"kind": "Label", "name": "cars"}
    assert [entry.key.name for entry in (await services.record("fleet")).resources] == ["fleet"]
    assert int(renamed["stack"]["generation"]) > int(imported["generation"])

    # The stack is deleted as soon as the watch has begun to answer.
    after = f"{{ read -r _; {delete.strip()} >/dev/null; cat >/dev/null; }}"
    changes = await answers(f"exec 3>&1; {watch.strip()} | tee /dev/fd/3 | {after}", home)
    sorts = [key for change in changes for key in change if key != "position"]
    assert (sorts[0], sorts[-1]) == ("stack", "gone")
    assert await services.stack_names() == []


async def test_the_commands_about_packages_of_repositories_install_one(home: Home) -> None:
    reads, installs = blocks("Packages of repositories")

    repository, packages, resolution, conflict = await answers(reads, home)
    assert repository["repository"]["name"] == "main"
    assert [each["name"] for each in packages["packages"]] == ["base-labels"]
    assert [each["name"] for each in resolution["resolution"]["changes"]] == [
        "base-labels",
        "web-buckets",
        "team-dashboards",
    ]
    assert conflict["conflict"]["code"]

    *events, installed, explained = await answers(installs, home)
    assert events[-1]["finished"]["state"] == "OPERATION_STATE_SUCCEEDED"
    assert [each["name"] for each in installed["packages"]] == ["base-labels", "web-buckets"]
    reachable = {each["installed"]["name"]: each["reachable_version"] for each in explained["packages"]}
    assert reachable == {each["name"]: each["version"] for each in installed["packages"]}


async def test_the_violations_of_a_package_have_locations(home: Home) -> None:
    (script,) = blocks("A dry run")

    (answer,) = await answers(script.replace("{name: fleet}", "{name: Not a name}"), home)

    (violation,) = answer["violations"]["violations"]
    assert violation["path"].startswith("root[0].metadata.name")
    assert violation["location"]["source"] == "fleet.yml"
    assert violation["location"]["line"] == 3


async def test_the_page_shows_an_error_as_grpcurl_prints_it(home: Home) -> None:
    """With code, message, reason and metadata; grpcurl finds the types of the details by reflection."""
    (script,) = blocks("An error")
    (shown,) = blocks("An error", "text")

    status, output, errors = await shell(script, home)

    assert status != 0
    assert output == ""
    assert errors == shown
