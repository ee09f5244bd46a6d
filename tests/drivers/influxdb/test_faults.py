"""The driver with a server that is busy, unreachable, slow or wrong: it guesses nothing, and sends no write twice."""

import asyncio
import logging
from pathlib import Path

import pytest
from pkger.driver.v1 import driver_pb2

from services.core.errors import OrgUnknown, ServiceUnavailable
from services.drivers.influxdb.client import Client, Unanswered
from services.system import MachineIds, machine_clock
from tests.drivers.client import (
    NAME_TAKEN,
    NOT_FOUND,
    ORG,
    DriverClient,
    attach,
    create,
    delete,
    ends,
    put_secret,
    update,
)
from tests.drivers.influxdb.running import influxdb_client
from tests.drivers.influxdb.samples import influxdb_sample as sample
from tests.influx import faults
from tests.influx.server import Influx

LABELS = "/api/v2/labels"


def a_label(name: str = "l") -> driver_pb2.Mutation:
    return create("Label", sample("Label", name, ""))


async def ended(client: DriverClient, mutation: driver_pb2.Mutation) -> driver_pb2.MutationResult:
    [result] = await client.mutate(mutation)
    return result


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_a_read_is_retried_until_the_server_is_back(client: DriverClient, server: Influx, status: int) -> None:
    await client.made(a_label())
    server.faults.add(faults.refused(status), "GET", LABELS, times=2)
    assert len(await client.listing("Label")) == 1
    assert server.records.count("GET", LABELS) == 3


@pytest.mark.parametrize("fault", [faults.lost(), faults.unanswered(), faults.cut()])
async def test_a_read_without_an_answer_is_retried(client: DriverClient, server: Influx, fault: faults.Fault) -> None:
    await client.made(a_label())
    server.faults.add(fault, "GET", LABELS)
    assert len(await client.listing("Label")) == 1


async def test_a_list_that_is_refused_is_an_error_and_never_empty(client: DriverClient, server: Influx) -> None:
    server.faults.add(faults.refused(500), "GET", LABELS, times=None)
    with pytest.raises(ServiceUnavailable):
        await client.listing("Label")


async def test_a_throttled_write_is_sent_once_and_returns_the_wait(client: DriverClient, server: Influx) -> None:
    server.faults.add(faults.refused(429, retry_after="7"), "POST", LABELS)
    result = await ended(client, a_label())
    assert (result.WhichOneof("result"), result.rejected.reason) == ("rejected", 0)
    assert result.rejected.retry_after.seconds == 7
    server.faults.add(faults.refused(503, retry_after="9"), "POST", LABELS)
    result = await ended(client, a_label())
    assert result.WhichOneof("result") == "ambiguous"
    assert result.ambiguous.retry_after.seconds == 9
    assert server.records.count("POST", LABELS) == 2


@pytest.mark.parametrize("fault", [faults.lost(), faults.unanswered(), faults.cut(), faults.failed(500)])
@pytest.mark.parametrize("verb", ["create", "update", "delete"])
async def test_a_write_without_an_answer_is_sent_once_and_ambiguous(
    client: DriverClient, server: Influx, fault: faults.Fault, verb: str
) -> None:
    """Variables are replaced by PUT, which some HTTP libraries retry."""
    [made] = await client.made(create("Variable", sample("Variable", "made", "")))
    mutation = {
        "create": create("Variable", sample("Variable", "new", "")),
        "update": update("Variable", made.id, sample("Variable", "renamed", "")),
        "delete": delete("Variable", made.id),
    }[verb]
    server.records.clear()
    server.faults.add(fault, "write")
    result = await ended(client, mutation)
    # A deletion has no body, so its answer cannot be cut.
    assert result.WhichOneof("result") == ("done" if verb == "delete" and fault == faults.cut() else "ambiguous")
    assert server.records.count("write") == 1


async def test_a_late_create_is_found_by_a_later_read(client: DriverClient, server: Influx) -> None:
    until = asyncio.Event()
    server.faults.add(faults.late(until), "POST", LABELS)
    assert ends([await ended(client, a_label())]) == ["ambiguous"]
    assert await client.listing("Label") == []
    until.set()
    await server.records.settled()
    assert [label.display_name for label in await client.listing("Label")] == ["l"]
    assert await client.refusal(a_label()) == NAME_TAKEN


async def test_an_answer_after_the_timeout_is_ignored(server: Influx) -> None:
    client = Client(server.url, server.token, True, MachineIds(), machine_clock, timeout=0.2)
    until = asyncio.Event()
    server.faults.add(faults.slow(until), "POST", LABELS)
    with pytest.raises(Unanswered):
        await client.send("POST", LABELS, {"orgID": server.org, "name": "slow"})
    until.set()
    await client.close()
    assert server.records.count("POST", LABELS) == 1


async def test_without_a_connection_nothing_was_sent(tmp_path: Path) -> None:
    async with influxdb_client("http://127.0.0.1:1", "t", {}, tmp_path) as client:
        with pytest.raises(ServiceUnavailable):
            await client.describe()


async def test_at_most_eight_requests_are_in_flight(client: DriverClient, server: Influx) -> None:
    batches = [[a_label(f"{batch} {n}") for n in range(20)] for batch in range(6)]
    answers = await asyncio.gather(*(client.mutate(*batch) for batch in batches))
    assert {end for results in answers for end in ends(results)} == {"done"}
    await asyncio.gather(*(client.listing("Label", "Bucket", "Task", "Variable", "Telegraf") for _ in range(4)))
    assert server.records.most_in_flight <= 8


async def test_secrets_of_a_batch_are_one_request(client: DriverClient, server: Influx) -> None:
    server.records.clear()
    assert set(ends(await client.mutate(*(put_secret(f"k/{n}", "v") for n in range(30))))) == {"done"}
    assert server.records.count("write") == 1


async def test_labels_of_a_batch_are_attached_with_one_read_of_each_list(client: DriverClient, server: Influx) -> None:
    labels = await client.made(*(a_label(str(n)) for n in range(10)))
    [task] = await client.made(create("Task", sample("Task", "t", "")))
    server.records.clear()
    assert set(ends(await client.mutate(*(attach("Task", task.id, label.id) for label in labels)))) == {"done"}
    # A page of tasks, the empty page after it, and all labels.
    assert (server.records.count("GET", "/api/v2/tasks"), server.records.count("GET", LABELS)) == (2, 1)


async def test_a_missing_organization_is_named(client: DriverClient, server: Influx) -> None:
    with pytest.raises(OrgUnknown, match="nowhere"):
        await client.listing("Label", org="nowhere")
    assert await client.refusal(a_label(), org="nowhere") == NOT_FOUND
    assert server.records.count("write") == 0


async def test_an_unknown_token_is_an_error_whose_message_does_not_show_it(
    client: DriverClient, server: Influx, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.records.clear()
    async with influxdb_client(server.url, "canary-token", {}, tmp_path) as blind:
        with pytest.raises(ServiceUnavailable) as caught:
            await blind.listing("Label")
        [result] = await blind.mutate(a_label())
    assert "unknown or inactive" in str(caught.value)
    assert result.WhichOneof("result") == "rejected"
    assert server.records.count("write") == 0
    assert "canary-token" not in f"{caught.value} {caught.value.metadata} {result} {caplog.text}"


async def test_a_resource_missing_in_a_list_is_read_before_it_is_gone(client: DriverClient, server: Influx) -> None:
    made = await client.made(*(a_label(str(n)) for n in range(3)))
    gone = ("Label", "00000000deadbeef")
    server.records.clear()
    found = await client.read(*(("Label", label.id) for label in made), gone)
    assert found == [*made, None]
    assert server.records.count("GET", LABELS) == 1
    assert server.records.count("GET", f"{LABELS}/*") == 1


async def test_lists_are_read_to_their_end(client: DriverClient, server: Influx) -> None:
    """A page has a hundred resources."""
    for kind in ("CheckDeadman", "Bucket"):
        for start in (0, 60):
            mutations = [create(kind, sample(kind, f"{n:03}", "")) for n in range(start, start + 60)]
            assert set(ends(await client.mutate(*mutations))) == {"done"}
        assert len(await client.listing(kind)) == 120
    assert await client.orgs() == [(name, name) for name in sorted([ORG, server.org_name])]
