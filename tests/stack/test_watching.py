"""Watching a stack: the record as it is, each change of it, the operations on it, and its end."""

import asyncio
import math
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pkger.journal.v1 import journal_pb2
from pkger.model.v1.object_pb2 import StackRef
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core.errors import RequestInvalid, ServiceUnavailable, StackNotFound
from services.core.model import OperationKind, StackRecord, Target
from services.engine.operation import OperationState
from services.rpc.client import Peer
from services.rpc.server import serving
from services.rpc.watching import watch_stack
from services.settings import Settings
from services.times import Times
from stack_svc.__main__ import opened
from stack_svc.notify import Watchers
from stack_svc.rules.watching import Phase, PhaseChange, Snapshot, WatchPosition, changes
from stack_svc.store.operations import Operation
from stack_svc.store.stacks import Stack, State
from tests.stack.service import Client, Clock, entry
from tests.transport import socket_entrance

BEGUN, BLOCKED, ENDED = Phase.BEGUN, Phase.BLOCKED, Phase.ENDED
STACK = Stack(StackRecord("s", Target(), "prod", 3), "", State.ACTIVE, 1, 1)
APPLYING = OperationState.APPLYING


def an_operation(name: str, token: int, state: OperationState = OperationState.SUCCEEDED) -> Operation:
    return Operation(name, "s", False, "prod", Target(), OperationKind.APPLY, state, "me", token, 1, 1)


def reported(position: WatchPosition, stack: Stack | None, *operations: Operation, record: str = "r") -> list[object]:
    """Names of the changes that a watcher at *position* receives; it checks that no more follow."""
    found: list[object] = []
    last = position
    for change, after in changes(position, Snapshot(stack, operations), record):
        match change:
            case PhaseChange(operation, phase):
                found.append((operation.id, phase))
            case _:
                found.append("record" if change else "gone")
        last = after
    later = [operation for operation in operations if operation.token >= last.token]
    again = [change for change, _ in changes(last, Snapshot(stack, later), record)]
    assert again == ([None] if stack is None else [])
    return found


AT_A = WatchPosition("s", "r", "a", 5, BEGUN)
"""The position after operation "a" has begun."""


@pytest.mark.parametrize(
    ("position", "operations", "expected"),
    [
        (WatchPosition(), [], ["record"]),
        (WatchPosition(), [an_operation("a", 5)], ["record"]),
        (WatchPosition(), [an_operation("a", 5, APPLYING)], ["record", ("a", BEGUN)]),
        (WatchPosition(), [an_operation("a", 5, OperationState.BLOCKED)], ["record", ("a", BEGUN), ("a", BLOCKED)]),
        (WatchPosition("s", "r"), [an_operation("a", 5)], [("a", BEGUN), ("a", ENDED)]),
        (AT_A, [an_operation("a", 5, APPLYING)], []),
        (AT_A, [an_operation("a", 5)], [("a", ENDED)]),
        (AT_A, [an_operation("a", 9, APPLYING)], []),
        (AT_A, [an_operation("a", 6, OperationState.BLOCKED)], [("a", BLOCKED)]),
        (AT_A, [an_operation("a", 9), an_operation("b", 10, APPLYING)], [("a", ENDED), ("b", BEGUN)]),
        (AT_A, [an_operation("b", 6), an_operation("c", 7)], [(n, p) for n in "bc" for p in (BEGUN, ENDED)]),
        (AT_A, [an_operation("a", 5, OperationState.BLOCKED)], [("a", BLOCKED)]),
        (AT_A._replace(phase=BLOCKED), [an_operation("a", 5, OperationState.BLOCKED)], []),
        (AT_A._replace(phase=BLOCKED), [an_operation("a", 6, OperationState.BLOCKED)], [("a", BLOCKED)]),
        (AT_A._replace(phase=BLOCKED), [an_operation("a", 6, OperationState.ROLLED_BACK)], [("a", ENDED)]),
        (AT_A._replace(phase=ENDED), [an_operation("a", 5)], []),
        (AT_A._replace(record="older"), [an_operation("a", 5)], [("a", ENDED), "record"]),
    ],
)
def test_each_change_since_a_position_is_reported_once(
    position: WatchPosition, operations: list[Operation], expected: list[object]
) -> None:
    assert reported(position, STACK, *operations) == expected


def test_the_removal_of_a_stack_is_reported_last() -> None:
    assert reported(AT_A, None, an_operation("a", 5)) == [("a", ENDED), "gone"]
    assert reported(WatchPosition(), None) == ["gone"]


@pytest.fixture
def watch_seconds() -> float:
    """Switch periodic reads off: watchers receive a change only if it wakes them."""
    return 3600.0


class Watch:
    """A watcher, and the position of the last change that it received."""

    def __init__(self, messages: AsyncIterator[stack_pb2.WatchStackResponse]) -> None:
        self._messages = messages
        self.position = ""

    async def next(self) -> str:
        """The next change: its type, with a name and a generation."""
        message = await anext(self._messages)
        self.position = message.position
        what = str(message.WhichOneof("change"))
        if what == "stack":
            return f"stack {message.stack.name} {message.stack.generation}"
        return what if what == "gone" else f"{what} {getattr(message, what).id}"

    async def rest(self) -> list[str]:
        """All changes until the end."""
        found = []
        while True:
            try:
                found.append(await self.next())
            except StopAsyncIteration:
                return found


def watch(client: Client, stack_id: str = "", name: str = "", position: str = "") -> Watch:
    ref = StackRef(id=stack_id) if stack_id else StackRef(name=name) if name else None
    request = stack_pb2.WatchStackRequest(stack=ref, position=position)
    return Watch(client.peer.stream(client.stacks.WatchStack, request))


async def test_a_watcher_receives_each_change_until_the_removal(service: Client) -> None:
    made = await service.create("prod")
    watching = watch(service, name="prod")
    assert await watching.next() == "stack prod 0"

    await service.update(made.id, description="x")
    assert await watching.next() == "stack prod 0"
    begun = await service.begin("prod", operation="operation-1")
    assert await watching.next() == "operation_begun operation-1"
    await service.record(begun, [entry("one")])
    assert [await watching.next() for _ in range(2)] == ["operation_ended operation-1", "stack prod 1"]
    await service.update(made.id, name="other")
    assert await watching.next() == "stack other 1"
    await service.remove(await service.begin("other", operation="operation-2"))

    assert await watching.rest() == ["operation_begun operation-2", "operation_ended operation-2", "gone"]


async def test_an_operation_with_nothing_to_do_changes_no_record(service: Client) -> None:
    stack = await service.apply("prod", [entry("one")])
    watching = watch(service, stack.id)
    assert await watching.next() == "stack prod 1"
    await service.record(await service.begin("prod", operation="operation-1"), [entry("one")])

    assert await watching.next() == "operation_begun operation-1"
    assert await watching.next() == "operation_ended operation-1"
    await service.update(stack.id, description="x")
    assert await watching.next() == "stack prod 1"


async def test_a_watcher_resumes_from_a_position(service: Client) -> None:
    made = await service.create("prod")
    first = watch(service, made.id)
    await first.next()
    await service.record(await service.begin("prod", operation="operation-1"), [entry("one")])
    begun = await service.begin("prod", operation="operation-2")

    again = watch(service, position=first.position)

    assert [await again.next() for _ in range(4)] == [
        "operation_begun operation-1",
        "operation_ended operation-1",
        "operation_begun operation-2",
        "stack prod 1",
    ]
    later = watch(service, position=again.position)
    await service.remove(begun)
    assert await later.rest() == ["operation_ended operation-2", "gone"]
    # A watcher that missed the end receives it.
    assert await watch(service, position=first.position).rest() == [
        "operation_begun operation-1",
        "operation_ended operation-1",
        "operation_begun operation-2",
        "operation_ended operation-2",
        "gone",
    ]


async def test_each_block_of_an_operation_is_reported(service: Client, clock: Clock) -> None:
    begun = await service.begin(stack_id=(await service.create("prod")).id, operation="operation-1")
    watching = watch(service, begun.stack.id)
    assert [await watching.next() for _ in range(2)] == ["stack prod 0", "operation_begun operation-1"]
    for _ in range(2):
        for _ in range(3):
            clock.forward(3600)
            heir, _ = await service.claim("operation-1")
            request = journal_pb2.ReportDefectRequest(operation_id="operation-1", token=heir.token, problem="x")
            await service.peer.call(service.journal.ReportDefect, request)
        assert await watching.next() == "operation_blocked operation-1"


@pytest.mark.parametrize("watch_seconds", [0.01])
async def test_writes_of_another_process_are_found_by_the_periodic_read(service: Client) -> None:
    made = await service.create("prod")
    watching = watch(service, made.id)
    await watching.next()

    # Written without the service, so no watcher is woken.
    assert service.store
    await service.store.write(lambda tx: tx.stacks.delete(made.id))

    assert await watching.rest() == ["gone"]


async def test_only_an_existing_stack_is_watched(service: Client) -> None:
    pending = await service.begin("first")
    for call in (watch(service, "0" * 16), watch(service, name="none"), watch(service, pending.stack.id)):
        with pytest.raises(StackNotFound):
            await call.next()
    for call, field in ((watch(service), "stack"), (watch(service, position="x"), "position")):
        with pytest.raises(RequestInvalid) as raised:
            await call.next()
        assert raised.value.metadata["field"] == field


async def test_the_deletion_of_a_stack_without_an_operation_is_reported(service: Client) -> None:
    made = await service.create("prod")
    watching = watch(service, made.id)
    await watching.next()

    await service.delete(made.id)

    assert await watching.rest() == ["gone"]


@pytest.fixture
def address() -> Iterator[str]:
    """A socket with a short path, which does not change with restarts."""
    folder = tempfile.mkdtemp(prefix="pkger-")
    yield f"unix:{folder}/stack.sock"
    shutil.rmtree(folder)


@asynccontextmanager
async def running(folder: Path, address: str) -> AsyncIterator[str]:
    """The stack service, as its process runs it."""
    async with (
        opened(Settings({}, folder, folder, folder)) as service,
        serving(service.register, service.names, [socket_entrance(address)], 5, service.drain, service.loops),
    ):
        yield address


async def create(peer: Peer, name: str) -> stack_pb2.Stack:
    stub = StackServiceStub(peer.channel)
    return (await peer.call(stub.CreateStack, stack_pb2.CreateStackRequest(name=name))).stack


async def test_a_watch_survives_a_restart_of_the_store(tmp_path: Path, address: str) -> None:
    async with Peer("stack", address) as peer:
        async with running(tmp_path, address):
            made = await create(peer, "prod")
            request = stack_pb2.WatchStackRequest(stack=StackRef(id=made.id))
            watching = Watch(watch_stack(peer, request))
            plain = Watch(peer.stream(StackServiceStub(peer.channel).WatchStack, request, math.inf))
            assert [await watching.next(), await plain.next()] == ["stack prod 0"] * 2
            following = asyncio.create_task(watching.next())
        with pytest.raises(ServiceUnavailable):
            await plain.next()
        async with running(tmp_path, address):
            stub = StackServiceStub(peer.channel)
            update = stack_pb2.UpdateStackRequest(stack=StackRef(id=made.id), name="other")
            await peer.call(stub.UpdateStack, update)
            assert await following == "stack other 0"
            await peer.call(stub.DeleteStack, stack_pb2.DeleteStackRequest(stack=StackRef(id=made.id)))
            assert await watching.rest() == ["gone"]


async def test_a_watch_ends_when_the_store_stays_unreachable(address: str) -> None:
    async with Peer("stack", address, times=Times(ready=0.05, unreachable=0.1)) as peer:
        request = stack_pb2.WatchStackRequest(stack=StackRef(name="prod"))
        with pytest.raises(ServiceUnavailable):
            await Watch(watch_stack(peer, request)).next()


async def test_a_change_wakes_only_the_watchers_of_its_stack() -> None:
    watchers = Watchers()
    with watchers.waiting("a") as mine, watchers.waiting("b") as theirs:
        watchers.wake("a")
        assert (mine.is_set(), theirs.is_set()) == (True, False)
    with watchers.waiting("a") as mine:
        assert not mine.is_set()
        await watchers.close()
        with pytest.raises(ServiceUnavailable):
            await watchers.next_change(mine)
