"""The faults of the stand-in, which a real server does not produce on demand."""

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests import needs
from tests.influx import faults
from tests.influx.certificates import own_certificate, served_with
from tests.influx.server import Influx, influx

LABELS = "/api/v2/labels"
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Client:
    """Requests to one stand-in, with the operator's token."""

    server: Influx
    session: aiohttp.ClientSession

    async def send(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        async with self.session.request(method, self.server.url + path, json=body) as response:
            return response.status, await response.json()

    async def make_label(self, name: str) -> int:
        return (await self.send("POST", LABELS, {"orgID": self.server.org, "name": name}))[0]

    def labels(self) -> set[str]:
        """The labels in the state of the server, without a request."""
        return {label["name"] for label in self.server.state.labels.values()}


@asynccontextmanager
async def _client() -> AsyncIterator[Client]:
    async with influx() as server:
        headers = {"Authorization": f"Token {server.token}"}
        async with aiohttp.ClientSession(headers=headers) as session:
            yield Client(server, session)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with _client() as opened:
        yield opened


@pytest.mark.parametrize("status", [429, 503])
async def test_a_refused_request_has_a_retry_after_and_no_effect(client: Client, status: int) -> None:
    client.server.faults.add(faults.refused(status, retry_after="7"), "POST", LABELS)
    async with client.session.post(client.server.url + LABELS, json={}) as response:
        assert (response.status, response.headers["Retry-After"]) == (status, "7")
    assert client.labels() == set()
    assert await client.make_label("a") == 201


async def test_a_lost_request_has_no_effect(client: Client) -> None:
    client.server.faults.add(faults.lost(), "POST", LABELS)
    with pytest.raises(aiohttp.ClientError):
        await client.make_label("a")
    assert client.labels() == set()


async def test_an_unanswered_request_has_its_effect(client: Client) -> None:
    client.server.faults.add(faults.unanswered(), "POST", LABELS)
    with pytest.raises(aiohttp.ClientError):
        await client.make_label("a")
    assert client.labels() == {"a"}


async def test_a_late_effect_occurs_when_the_event_is_set(client: Client) -> None:
    released = asyncio.Event()
    client.server.faults.add(faults.late(released), "POST", LABELS)
    with pytest.raises(aiohttp.ClientError):
        await client.make_label("a")
    assert client.labels() == set()
    released.set()
    await client.server.records.settled()
    assert client.labels() == {"a"}


async def test_a_slow_request_has_its_effect_before_its_answer(client: Client) -> None:
    released, effect = asyncio.Event(), asyncio.Event()
    client.server.faults.add(faults.slow(released, effect), "POST", LABELS)
    waiting = asyncio.create_task(client.make_label("a"))
    await effect.wait()
    assert client.labels() == {"a"}
    assert not waiting.done()
    released.set()
    assert await waiting == 201


async def test_a_stuck_request_has_its_effect_after_the_client_stopped_waiting(client: Client) -> None:
    released, arrived = asyncio.Event(), asyncio.Event()
    client.server.faults.add(faults.stuck(released, arrived), "POST", LABELS)
    waiting = asyncio.create_task(client.make_label("a"))
    await arrived.wait()
    waiting.cancel()
    assert client.labels() == set()
    released.set()
    await client.server.records.settled()
    assert client.labels() == {"a"}


async def test_a_body_is_cut_in_the_middle(client: Client) -> None:
    client.server.faults.add(faults.cut(), "POST", LABELS)
    with pytest.raises(aiohttp.ClientPayloadError):
        await client.make_label("a")
    assert client.labels() == {"a"}


async def test_a_failure_after_the_effect(client: Client) -> None:
    client.server.faults.add(faults.failed(), "POST", LABELS)
    assert await client.make_label("a") == 500
    assert client.labels() == {"a"}


async def test_a_fault_applies_to_the_nth_matching_request(client: Client) -> None:
    client.server.faults.add(faults.refused(503), "write", nth=2, times=2)
    await client.send("GET", LABELS)
    assert [await client.make_label(name) for name in "abcd"] == [201, 503, 503, 201]


async def test_a_fault_can_apply_to_all_further_requests(client: Client) -> None:
    client.server.faults.add(faults.refused(503), path="/api/v2/*", times=None)
    assert [await client.make_label(name) for name in "abc"] == [503, 503, 503]
    client.server.faults.clear()
    assert await client.make_label("d") == 201


async def test_requests_are_recorded(client: Client) -> None:
    released, arrived = asyncio.Event(), [asyncio.Event() for _ in range(3)]
    for place, event in enumerate(arrived, 1):
        client.server.faults.add(faults.stuck(released, event), "POST", nth=place)
    waiting = [asyncio.create_task(client.make_label(name)) for name in "abc"]
    await asyncio.gather(*(event.wait() for event in arrived))
    await client.send("GET", f"{LABELS}?orgID={client.server.org}")
    released.set()
    await asyncio.gather(*waiting)
    records = client.server.records
    assert (records.count("POST", LABELS), records.count("write"), records.count("GET", "/api/*")) == (3, 3, 1)
    assert records.most_in_flight == 4
    assert {request.status for request in records.matching("POST")} == {201}
    assert records.matching("GET", LABELS)[0].query == f"orgID={client.server.org}"


@pytest.mark.slow
async def test_runs_as_a_process_of_its_own() -> None:
    arguments = (sys.executable, "-m", "tests.influx", "--port", "0", "--token", "known-token")
    process = await asyncio.create_subprocess_exec(*arguments, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        printed = dict([(await process.stdout.readline()).decode().split()[:2] for _ in range(3)])
        async with (
            aiohttp.ClientSession(headers={"Authorization": f"Token {printed['token']}"}) as session,
            session.get(f"{printed['url']}/api/v2/orgs/{printed['org']}") as response,
        ):
            assert response.status == 200
    finally:
        process.terminate()
        await process.communicate()


@needs.program("openssl")
async def test_serves_tls(tmp_path: Path) -> None:
    certificate = own_certificate(tmp_path)
    trusting = ssl.create_default_context(cafile=str(certificate))
    async with influx(tls=served_with(certificate)) as server, aiohttp.ClientSession() as session:
        async with session.get(f"{server.url}/ping", ssl=trusting) as response:
            assert response.status == 204
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(f"{server.url}/ping")
