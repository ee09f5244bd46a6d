"""Operations that are cancelled, whose callers disconnect, or that a draining service waits for."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import object_pb2, plan_pb2
from pkger.planner.v1 import planner_pb2

from applier_svc.__main__ import action_peers
from applier_svc.actions.functions.table import PRODUCT_FUNCTIONS
from applier_svc.operation.events import Feed
from applier_svc.operation.lifecycle import Peers
from applier_svc.operation.requests import OperationRequest
from applier_svc.registry import Registry
from services.core.errors import Internal, OperationNotFound, ServiceUnavailable, TokenStale
from services.platforms import Platform
from services.rpc.client import Platforms
from services.settings import Settings
from services.system import Clock, machine_clock
from tests.applier.faulty import CallFault
from tests.applier.packages import EXPLICIT, FRESH, IMPLICIT, UPDATED
from tests.applier.test_events import MADE, SMALL
from tests.applier.world import QUICK, ROLLED_BACK, SUCCEEDED, Case, Events, World, end, lines
from tests.cluster import after_begun, place
from tests.transport import transport_of_loop

CANCELLED = "the operation was cancelled"


async def in_the_middle_of(case: Case, call: int, package: str) -> tuple[Events, "asyncio.Task[Events]", asyncio.Event]:
    """An apply that waits in call number *call* of Mutate: its events so far, a task of all events, and the gate."""
    gate = case.driver.gate(call)
    events = Events()

    async def gathered() -> Events:
        async for event in case.events(package):
            events.append(event)
        return await case.planned(events)

    task = asyncio.create_task(gathered())
    await gate.reached.wait()
    return events, task, gate.opened


async def test_there_is_nothing_to_cancel_before_and_after_an_operation(faulty: World) -> None:
    with pytest.raises(OperationNotFound):
        await faulty.services.cancel("operation-unknown")
    events = await faulty.case().apply(SMALL)
    with pytest.raises(OperationNotFound):
        await faulty.services.cancel(events[0].operation_id)


@pytest.mark.parametrize(("call", "undone"), [(0, 1), (1, 3), (2, 4)])
async def test_cancelling_ends_the_batches_in_flight_and_undoes_everything(
    faulty: World, call: int, undone: int
) -> None:
    case = faulty.case()
    events, operation, opened = await in_the_middle_of(case, call, SMALL)
    await faulty.services.cancel(events[0].operation_id)
    await faulty.services.cancel(events[0].operation_id)
    opened.set()
    words = lines(await operation)
    assert f"undo of {undone}: {CANCELLED}" in words
    assert words[-1] == [f"ROLLED_BACK {CANCELLED}", ""]
    after = await case.look()
    assert (after.content, after.record) == ([], None)


async def test_cancelling_reports_the_steps_that_were_not_sent(faulty: World) -> None:
    """With more batches than the driver takes at once, those that wait are skipped."""
    case = faulty.case()
    case.driver.batch_size = 5
    names = range(21)
    package = "\n---\n".join(
        f"apiVersion: influxdata.com/v2alpha1\nkind: Dashboard\nmetadata: {{name: d{n}}}\nspec: {{name: d{n}}}"
        for n in names
    )
    gates = [case.driver.gate(call) for call in range(4)]
    events = Events()
    async for event in case.events(package):
        events.append(event)
        if event.HasField("stage_started"):
            for gate in gates:
                await gate.reached.wait()
            await faulty.services.cancel(event.operation_id)
            for gate in gates:
                gate.opened.set()
    ended = [outcome.WhichOneof("outcome") for event in events for outcome in event.steps_ended.outcomes]
    assert (ended.count("done"), ended.count("skipped")) == (20, 1)
    assert end(events).state == ROLLED_BACK
    assert (await case.look()).content == []


async def test_past_the_seal_an_operation_continues_to_its_end(faulty: World) -> None:
    case = await faulty.case_with(IMPLICIT)
    events, operation, opened = await in_the_middle_of(case, 1, EXPLICIT)
    await faulty.services.cancel(events[0].operation_id)
    opened.set()
    assert lines(await operation) == [
        "accepted 4 steps",
        "stage 0 associations: 1",
        ["done: detach Bucket raw red"],
        "stage 1 irreversible removals: 1",
        ["done: delete Bucket raw"],
        "stage 2 replacements: 1",
        ["done: create Bucket raw"],
        "stage 3 associations of replacements: 1",
        ["done: attach Bucket raw red"],
        ["SUCCEEDED", "1 creates, 1 deletes, 1 attaches, 1 detaches, 1 irreversible"],
    ]


@pytest.fixture
def operation_ended() -> Iterator[asyncio.Event]:
    """Set when an operation of this process ended."""
    ended = asyncio.Event()

    class Ended(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage() == "operation ended":
                ended.set()

    handler, log = Ended(), logging.getLogger("pkger.applier")
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield ended
    log.removeHandler(handler)
    log.setLevel(level)


async def test_a_caller_that_disconnects_changes_nothing(faulty: World, operation_ended: asyncio.Event) -> None:
    case = faulty.case()
    gate = case.driver.gate(0)
    peer = faulty.services.peers["applier"]
    stream = peer.stream(ApplierServiceStub(peer.channel).Apply, case.request(SMALL))
    assert [(await anext(stream)).WhichOneof("event") for _ in range(2)] == ["begun", "accepted"]
    await gate.reached.wait()
    await stream.aclose()
    gate.opened.set()
    await operation_ended.wait()
    after = await case.look()
    assert len(after.ids) == 3
    assert set(after.recorded.values()) == after.ids


async def test_the_deadline_of_the_caller_does_not_limit_the_operation(
    faulty: World, operation_ended: asyncio.Event
) -> None:
    case = faulty.case()
    gate = case.driver.gate(0)
    peer = faulty.services.peers["applier"]
    stream = peer.stream(ApplierServiceStub(peer.channel).Apply, case.request(SMALL), seconds=1.0)
    assert [(await anext(stream)).WhichOneof("event") for _ in range(2)] == ["begun", "accepted"]
    await gate.reached.wait()
    with pytest.raises(ServiceUnavailable, match="no answer in time"):
        [answer async for answer in stream]
    gate.opened.set()
    await operation_ended.wait()
    assert len((await case.look()).recorded) == 3


@asynccontextmanager
async def operations(faulty: World, clock: Clock = machine_clock) -> AsyncIterator[Registry]:
    """The operations of an applier in this process."""
    peers = faulty.services.peers
    connect = transport_of_loop().connect
    configured = {"embedded": Platform("embedded", "embedded", faulty.services.addresses["platform"])}
    async with Platforms(configured, connect) as platforms:
        shared = Peers(peers["planner"], peers["stack"], platforms, QUICK)
        actions = action_peers(shared, PRODUCT_FUNCTIONS, Settings({}, Path(), Path(), Path()), clock)
        yield Registry(shared, actions, "tests", clock)


def request_for(case: Case, package: str) -> OperationRequest:
    request = case.request(package)
    plan = planner_pb2.CreatePlanRequest(**place(object_pb2.Target(org=case.org), case.stack), package=request.package)
    return OperationRequest(kind=plan_pb2.OPERATION_KIND_APPLY, plan=plan)


async def followed(case: Case, feed: Feed) -> Events:
    return await case.collected(after_begun(feed.follow()))


async def test_an_operation_cancelled_before_it_began_writes_nothing(faulty: World) -> None:
    case = faulty.case()
    async with operations(faulty) as applier:
        feed = applier.start(request_for(case, SMALL))
        await applier.cancel(feed.operation)
        assert lines(await followed(case, feed)) == [
            "accepted 4 steps",
            f"undo of 0: {CANCELLED}",
            [f"ROLLED_BACK {CANCELLED}", ""],
        ]
    assert case.driver.calls == 0
    assert (await case.look()).record is None


async def test_all_followers_of_an_operation_see_the_same(faulty: World) -> None:
    async with operations(faulty) as applier:
        case = faulty.case()
        feed = applier.start(request_for(case, SMALL))
        first, second = await asyncio.gather(followed(case, feed), followed(case, feed))
        assert first == second == await followed(case, feed)
        assert end(first).state == SUCCEEDED


async def test_a_service_that_drains_waits_for_its_operations_and_starts_no_more(faulty: World) -> None:
    case = faulty.case()
    gate = case.driver.gate(0)
    async with operations(faulty) as applier:
        feed = applier.start(request_for(case, SMALL))
        await gate.reached.wait()
        drained = asyncio.create_task(applier.drain(30.0))
        await asyncio.sleep(0)
        with pytest.raises(ServiceUnavailable, match="shutting down"):
            applier.start(request_for(case, SMALL))
        assert not drained.done()
        gate.opened.set()
        await drained
        assert lines(await followed(case, feed))[-1] == ["SUCCEEDED", MADE]
        await applier.drain(30.0)


async def test_a_service_that_has_to_end_rolls_its_operations_back(faulty: World) -> None:
    case = faulty.case()
    gate = case.driver.gate(1)
    async with operations(faulty) as applier:
        feed = applier.start(request_for(case, SMALL))
        await gate.reached.wait()
        drained = asyncio.create_task(applier.drain(0.0))
        # A few rounds of the event loop, after which the grace period of the service is over.
        for _ in range(20):
            await asyncio.sleep(0)
        gate.opened.set()
        await drained
        assert end(await followed(case, feed)).state == ROLLED_BACK
    assert (await case.look()).content == []


@pytest.mark.real_time
async def test_a_cancellation_outlasts_the_applier_that_received_it(faulty: World) -> None:
    """It is interrupted with a batch in flight, before the rollback; the applier that resumes reads the request."""
    case = await faulty.case_with(FRESH)
    before = await case.look()
    case.driver.fail(calls={0: CallFault.CUT_OFF})
    gate = case.driver.gate(0)
    stream = case.events(UPDATED)
    operation = (await anext(stream)).operation_id
    await gate.reached.wait()
    await faulty.services.cancel(operation)
    gate.opened.set()
    with pytest.raises(TokenStale):
        [event async for event in stream]
    ended = await case.settled()
    assert (ended.id, ended.state) == (operation, ROLLED_BACK)
    assert (await case.look()).content == before.content


class ClockBroken(Exception):
    """Stands for any defect in the applier."""


async def test_an_operation_that_a_defect_interrupts_is_resumed(faulty: World) -> None:
    """The applier's clock breaks at the events after the first stage; the other applier's does not."""
    left = [0, 0, 0, 0]

    def clock() -> int:
        if not left:
            raise ClockBroken
        return left.pop()

    case = await faulty.case_with(FRESH)
    async with operations(faulty, clock) as applier:
        feed = applier.start(request_for(case, UPDATED))
        with pytest.raises(Internal):
            await followed(case, feed)
    assert (await case.settled()).state == SUCCEEDED
    after = await case.look()
    assert set(after.recorded.values()) == after.ids


async def test_an_operation_with_a_defect_before_its_first_event_fails(faulty: World) -> None:
    def clock() -> int:
        raise ClockBroken

    async with operations(faulty, clock) as applier:
        feed = applier.start(request_for(case := faulty.case(), SMALL))
        with pytest.raises(Internal):
            await followed(case, feed)
