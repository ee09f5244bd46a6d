"""Tokens with few rights: an unreadable resource is never gone, and a forbidden write is rejected with its reason."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pkger.model.v1.operation_pb2 import REJECTION_REASON_NOT_FOUND as NOT_FOUND
from pkger.model.v1.operation_pb2 import REJECTION_REASON_NOT_PERMITTED as NOT_PERMITTED

from services.core.errors import OrgUnknown, ServiceUnavailable
from tests.drivers.client import ORG, DriverClient, create, delete, update
from tests.drivers.influxdb.running import influxdb_client
from tests.drivers.influxdb.samples import influxdb_sample as sample
from tests.drivers.influxdb.test_keeping import asked
from tests.influx.orgs import add_org
from tests.influx.server import Influx

READ_LABELS = ("read", "labels")


@asynccontextmanager
async def with_token(
    server: Influx, folder: Path, rights: Sequence[tuple[str, str]], org: str = ORG, status: str = "active"
) -> AsyncIterator[DriverClient]:
    """A driver whose token can read the organisation *org*, and has some *rights* in it."""
    [found] = [each for each in (await asked(server, "GET", "orgs"))["orgs"] if each["name"] == org]
    resources: list[tuple[str, dict[str, Any]]] = [("read", {"type": "orgs", "id": found["id"]})]
    resources += [(action, {"type": type_, "orgID": found["id"]}) for action, type_ in rights]
    body = {
        "orgID": found["id"],
        "status": status,
        "permissions": [{"action": action, "resource": resource} for action, resource in resources],
    }
    made = await asked(server, "POST", "authorizations", body)
    folder.mkdir()
    async with influxdb_client(server.url, made["token"], {}, folder) as client:
        yield client


async def test_a_forbidden_read_is_an_error_and_never_gone(
    client: DriverClient, server: Influx, tmp_path: Path
) -> None:
    made = await client.made(
        *(create(kind, sample(kind, "it", "")) for kind in ("Label", "Task", "Dashboard", "Bucket"))
    )
    async with with_token(server, tmp_path / "blind", []) as blind:
        for resource in made:
            with pytest.raises(ServiceUnavailable, match="may not"):
                await blind.read((resource.kind, resource.id))
            assert await blind.refusal(delete(resource.kind, resource.id)) == NOT_PERMITTED
    assert await client.read(*((each.kind, each.id) for each in made)) == made


async def test_a_forbidden_write_is_rejected_with_its_reason(
    client: DriverClient, server: Influx, tmp_path: Path
) -> None:
    kinds = ("Label", "Task", "Dashboard")
    made = await client.made(*(create(kind, sample(kind, "it", "")) for kind in kinds))
    rights = [("read", "labels"), ("read", "tasks"), ("read", "dashboards")]
    async with with_token(server, tmp_path / "reader", rights) as reader:
        for resource in made:
            assert await reader.listing(resource.kind) == [resource]
            for mutation in (
                create(resource.kind, sample(resource.kind, "new", "")),
                update(resource.kind, resource.id, sample(resource.kind, "renamed", "")),
                delete(resource.kind, resource.id),
            ):
                assert await reader.refusal(mutation) == NOT_PERMITTED
    assert await client.read(*((each.kind, each.id) for each in made)) == made


async def test_for_an_inactive_token_an_organisation_is_not_empty(
    client: DriverClient, server: Influx, tmp_path: Path
) -> None:
    server.records.clear()
    async with with_token(server, tmp_path / "inactive", [READ_LABELS], status="inactive") as inactive:
        with pytest.raises(ServiceUnavailable, match="inactive"):
            await inactive.listing("Label")


async def test_a_token_of_another_organisation_reads_none(client: DriverClient, server: Influx, tmp_path: Path) -> None:
    async with with_token(server, tmp_path / "other", [READ_LABELS], org=server.org_name) as other:
        with pytest.raises(OrgUnknown):
            await other.listing("Label")
        assert await other.refusal(create("Label", sample("Label", "red", ""))) == NOT_FOUND
        assert await other.listing("Label", org=server.org_name) == []


async def test_organisations_are_listed_completely(client: DriverClient, server: Influx, tmp_path: Path) -> None:
    """A page leaves out organisations that the token may not read."""
    for number in range(120):
        add_org(server.state, f"org {number:03}")
    assert len(await client.orgs()) == 122
    readable = sorted(server.state.orgs)[::40]
    permissions = [{"action": "read", "resource": {"type": "orgs", "id": id_}} for id_ in readable]
    made = await asked(server, "POST", "authorizations", {"orgID": readable[0], "permissions": permissions})
    (tmp_path / "some").mkdir()
    async with influxdb_client(server.url, made["token"], {}, tmp_path / "some") as some:
        assert len(await some.orgs()) == len(readable) == 4
