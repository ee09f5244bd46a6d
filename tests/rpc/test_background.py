"""Loops of a service: no failure ends them, and the health of the server shows when they are late."""

import asyncio
import logging
from collections.abc import Sequence

import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from services.core.errors import ServiceUnavailable
from services.rpc.client import Peer
from services.rpc.periodic_work import MISSED_PERIODS, BackgroundLoop
from services.rpc.process import Service
from tests.rpc.plumbing import SERVICES, registered
from tests.transport import serving_at_socket

PERIOD = 0.001


class Work:
    """Raises each of ``first``, then ``problem`` while there is one; waits while the gate is closed."""

    def __init__(self, problem: Exception | None = None, first: Sequence[Exception] = ()) -> None:
        self.problem = problem
        self.first = list(first)
        self.gate = asyncio.Event()
        self.gate.set()
        self.succeeded = asyncio.Event()
        self.attempts = 0
        self._began = asyncio.Event()

    async def begun(self) -> None:
        """Wait until the next attempt begins."""
        self._began.clear()
        await self._began.wait()

    async def __call__(self) -> None:
        self.attempts += 1
        self._began.set()
        await self.gate.wait()
        if problem := self.first.pop() if self.first else self.problem:
            raise problem
        self.succeeded.set()


class Clock:
    """The time that loops measure, in seconds: a busy machine makes none of them late."""

    def __init__(self) -> None:
        self.now = 0.0

    def pass_too_much(self) -> None:
        """Make a loop late that has no success from now on."""
        self.now += (MISSED_PERIODS + 1) * PERIOD


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("services.rpc.periodic_work.loop_time", lambda: clock.now)
    return clock


@pytest.mark.parametrize("problem", [ServiceUnavailable("stack", "elsewhere", "gone"), KeyError("lost")])
async def test_a_loop_outlives_every_failure_and_counts_it(
    problem: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    work = Work(first=[problem] * 3)
    loop = BackgroundLoop("look", PERIOD, work)
    async with loop.running():
        await work.succeeded.wait()
        assert loop.failures == 0
    logged = [record.__dict__ for record in caplog.records if record.message == "loop failed"]
    assert [each["failures"] for each in logged] == [1, 2, 3]
    assert {(each["loop"], each["problem"]) for each in logged} == {("look", str(problem))}
    assert all(bool(each["exc_info"]) is isinstance(problem, KeyError) for each in logged)


def test_the_pause_grows_with_failures_in_a_row_up_to_a_limit() -> None:
    loop = BackgroundLoop("look", 5.0, Work())
    pauses = []
    for loop.failures in range(6):
        pauses.append(loop.pause)
    assert pauses == [5.0, 5.0, 10.0, 20.0, 20.0, 20.0]


async def test_a_loop_ends_with_its_block() -> None:
    work = Work()
    async with BackgroundLoop("look", PERIOD, work).running():
        await work.succeeded.wait()
    attempts = work.attempts
    work.succeeded.clear()
    await asyncio.sleep(0)
    assert (work.attempts, work.succeeded.is_set()) == (attempts, False)


@pytest.mark.parametrize("hangs", [False, True], ids=["fails", "hangs"])
async def test_health_shows_a_late_loop_and_its_recovery(
    hangs: bool, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    work, other = Work(), Work()
    loops = [BackgroundLoop("look", PERIOD, work), BackgroundLoop("other", PERIOD, other)]
    async with (
        loops[0].running(),
        loops[1].running(),
        serving_at_socket(Service(registered(), SERVICES, loops=loops)) as address,
        Peer("other", address) as peer,
    ):
        watch = HealthStub(peer.channel).Watch(HealthCheckRequest(service=SERVICES[0]))
        assert (await watch.read()).status == HealthCheckResponse.SERVING
        if hangs:
            work.gate.clear()
        else:
            work.problem = KeyError("lost")
        # Until then, an attempt that has begun may succeed.
        await work.begun()
        clock.pass_too_much()
        assert (await watch.read()).status == HealthCheckResponse.NOT_SERVING
        work.gate.set()
        work.problem = None
        assert (await watch.read()).status == HealthCheckResponse.SERVING
        watch.cancel()
    logged = [(record.message, record.__dict__.get("loop")) for record in caplog.records if "healthy" in record.message]
    assert logged[0] == ("not healthy", "look")
    assert logged[-1] == ("healthy again", None)


async def test_a_stopping_server_stays_unhealthy(clock: Clock) -> None:
    """A loop that succeeds again must not make a stopping server look healthy."""
    work = Work(KeyError("lost"))
    loop = BackgroundLoop("look", PERIOD, work)
    draining, drained = asyncio.Event(), asyncio.Event()
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    stop = asyncio.Event()

    async def drain() -> None:
        draining.set()
        await drained.wait()

    async def serve() -> None:
        async with serving_at_socket(Service(registered(), SERVICES, drain, [loop])) as bound:
            address.set_result(bound)
            await stop.wait()

    async with loop.running():
        server = asyncio.create_task(serve())
        async with Peer("other", await address) as peer:
            watch = HealthStub(peer.channel).Watch(HealthCheckRequest())
            clock.pass_too_much()
            while (await watch.read()).status != HealthCheckResponse.NOT_SERVING:
                pass
            stop.set()
            await draining.wait()
            work.problem = None
            await work.succeeded.wait()
            answered = await HealthStub(peer.channel).Check(HealthCheckRequest())
            assert answered.status == HealthCheckResponse.NOT_SERVING
            watch.cancel()
            drained.set()
            await server
