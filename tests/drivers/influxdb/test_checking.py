"""Checks of a server and a token; they never write, and never show the token."""

import socket
from pathlib import Path

from pkger.model.v1 import check_pb2

from tests.drivers.client import ORG, DriverClient, create
from tests.drivers.influxdb.running import influxdb_client
from tests.drivers.influxdb.samples import influxdb_sample as sample
from tests.drivers.influxdb.test_rights import with_token
from tests.influx.server import Influx


def verdicts(check: check_pb2.PlatformCheck) -> dict[str, str]:
    """The verdict by aspect and subject."""
    return {
        " ".join(
            filter(None, (check_pb2.CheckAspect.Name(each.aspect).removeprefix("CHECK_ASPECT_"), each.subject))
        ): check_pb2.CheckVerdict.Name(each.verdict).removeprefix("CHECK_VERDICT_")
        for each in check.findings
    }


def messages(check: check_pb2.PlatformCheck) -> str:
    return "\n".join(each.message for each in check.findings)


async def test_listed_collections_are_readable_and_others_are_unknown(client: DriverClient, server: Influx) -> None:
    await client.made(create("Label", sample("Label", "red", "")), create("Bucket", sample("Bucket", "b", "")))
    server.records.clear()
    found = await client.check(ORG)
    assert verdicts(found) == {
        "PLATFORM": "OK",
        "CREDENTIAL": "OK",
        "ORG": "OK",
        f"ORG {ORG}": "OK",
        "READ buckets": "OK",
        "READ checks": "UNKNOWN",
        "READ dashboards": "UNKNOWN",
        "READ labels": "OK",
        "READ notificationEndpoints": "UNKNOWN",
        "READ notificationRules": "UNKNOWN",
        "READ tasks": "UNKNOWN",
        "READ telegrafs": "UNKNOWN",
        "READ variables": "UNKNOWN",
        "READ secrets": "OK",
        "WRITE": "UNKNOWN",
    }
    assert (found.platform, found.version) == ("influxdb", "v2.9.1")
    assert [org.name for org in found.orgs] == sorted([ORG, server.org_name])
    assert server.records.matching("write") == []
    assert server.token not in str(found)


async def test_a_missing_organization_is_wrong(client: DriverClient) -> None:
    found = await client.check("nowhere")
    assert verdicts(found)["ORG nowhere"] == "WRONG"
    assert "READ labels" not in verdicts(found)


async def test_a_wrong_token_is_a_finding(server: Influx, tmp_path: Path) -> None:
    async with influxdb_client(server.url, "canary-8a1f", {}, tmp_path) as wrong:
        found = await wrong.check(server.org_name)
    assert verdicts(found) == {"PLATFORM": "OK", "CREDENTIAL": "WRONG"}
    assert "unauthorized access" in messages(found)
    assert "canary" not in str(found)


async def test_an_inactive_token_is_a_finding(client: DriverClient, server: Influx, tmp_path: Path) -> None:
    async with with_token(server, tmp_path / "inactive", [("read", "labels")], status="inactive") as inactive:
        found = await inactive.check(ORG)
    assert verdicts(found) == {"PLATFORM": "OK", "CREDENTIAL": "WRONG"}
    assert "token is inactive" in messages(found)


async def test_missing_rights_are_findings_where_they_can_be_checked(
    client: DriverClient, server: Influx, tmp_path: Path
) -> None:
    await client.made(create("Label", sample("Label", "red", "")))
    async with with_token(server, tmp_path / "blind", []) as blind:
        found = await blind.check(ORG)
    assert verdicts(found)["READ labels"] == verdicts(found)["READ buckets"] == "UNKNOWN"
    assert verdicts(found)["READ secrets"] == "WRONG"


async def test_a_token_of_another_organization_is_a_finding(
    client: DriverClient, server: Influx, tmp_path: Path
) -> None:
    async with with_token(server, tmp_path / "other", [], org=server.org_name) as other:
        found = await other.check(ORG)
    assert verdicts(found) == {"PLATFORM": "OK", "CREDENTIAL": "OK", "ORG": "OK", f"ORG {ORG}": "WRONG"}
    assert [org.name for org in found.orgs] == [server.org_name]


async def test_an_unreachable_server_is_a_finding(tmp_path: Path) -> None:
    # A bound port on which no server listens refuses connections.
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with influxdb_client(url, "token", {}, tmp_path) as away:
            found = await away.check()
    assert verdicts(found) == {"PLATFORM": "WRONG"}
    assert url in messages(found)
    assert found.version == ""
