"""Tokens with few rights: an unreadable resource is never gone, and a forbidden write is rejected with its reason."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pkger.model.v1.operation_pb2 import REJECTION_REASON_NOT_FOUND as NOT_FOUND
from pkger.model.v1.operation_pb2 import REJECTION_REASON_NOT_PERMITTED as NOT_PERMITTED

from services.core.errors import OrgUnknown, ServiceUnavailable
from services.rpc.call import loop_time, until
from tests.drivers.client import ORG, DriverClient, create, delete, update
from tests.drivers.influxdb.running import influxdb_client
from tests.drivers.influxdb.samples import influxdb_sample as sample
from tests.drivers.influxdb.test_keeping import asked
from tests.influx import faults
from tests.influx.orgs import add_org
from tests.influx.server import Influx

READ_LABELS = ("read", "labels")


@asynccontextmanager
async def with_token(
    server: Influx, folder: Path, rights: Sequence[tuple[str, str]], org: str = ORG, status: str = "active"
) -> AsyncIterator[DriverClient]:
    """A driver whose token can read the organization *org*, and has some *rights* in it."""
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


async def test_an_endpoint_that_the_token_may_not_read_is_not_gone(
    client: DriverClient, server: Influx, tmp_path: Path
) -> None:
    [rule] = await client.made(create("NotificationRule", sample("NotificationRule", "it", "")))
    async with with_token(server, tmp_path / "reader", [("read", "notificationRules")]) as reader:
        with pytest.raises(ServiceUnavailable, match=r"may not read .* of notificationEndpoints: 401"):
            await reader.listing("NotificationRule")
    assert await client.listing("NotificationRule") == [rule]


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
async def test_a_list_that_the_server_refuses_is_an_error_that_says_so(
    client: DriverClient, server: Influx, status: int
) -> None:
    server.faults.add(faults.refused(status, retry_after="60"), "GET", "/api/v2/labels", times=None)
    with pytest.raises(
        ServiceUnavailable, match=f"in organization '{ORG}', the .*list of labels.*: {status}"
    ) as raised:
        await client.listing("Label")
    assert raised.value.answered
    assert "does not answer" not in str(raised.value)


async def test_an_answer_that_is_cut_off_is_an_answer(client: DriverClient, server: Influx) -> None:
    server.faults.add(faults.cut(), "GET", "/api/v2/labels", times=None)
    with until(loop_time() + 0.5), pytest.raises(ServiceUnavailable, match="status 200 is incomplete") as raised:
        await client.listing("Label")
    assert "does not answer" not in str(raised.value)


async def test_for_an_inactive_token_an_organization_is_not_empty(
    client: DriverClient, server: Influx, tmp_path: Path
) -> None:
    server.records.clear()
    async with with_token(server, tmp_path / "inactive", [READ_LABELS], status="inactive") as inactive:
        with pytest.raises(ServiceUnavailable, match="inactive"):
            await inactive.listing("Label")


async def test_a_token_of_another_organization_reads_none(client: DriverClient, server: Influx, tmp_path: Path) -> None:
    async with with_token(server, tmp_path / "other", [READ_LABELS], org=server.org_name) as other:
        with pytest.raises(OrgUnknown):
            await other.listing("Label")
        assert await other.refusal(create("Label", sample("Label", "red", ""))) == NOT_FOUND
        assert await other.listing("Label", org=server.org_name) == []


async def test_organizations_are_listed_completely(client: DriverClient, server: Influx, tmp_path: Path) -> None:
    """A page leaves out organizations that the token may not read."""
    for number in range(120):
        add_org(server.state, f"org {number:03}")
    assert len(await client.orgs()) == 122
    readable = sorted(server.state.orgs)[::40]
    permissions = [{"action": "read", "resource": {"type": "orgs", "id": id_}} for id_ in readable]
    made = await asked(server, "POST", "authorizations", {"orgID": readable[0], "permissions": permissions})
    (tmp_path / "some").mkdir()
    async with influxdb_client(server.url, made["token"], {}, tmp_path / "some") as some:
        assert len(await some.orgs()) == len(readable) == 4
