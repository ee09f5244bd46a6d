"""
Twenty action sets and five clients that apply, with two appliers on three stacks: each stack is worked on by one at a
time, all end, and who waits says for whom (docs/actions.md, "Action sets").
"""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations, groupby
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from pkger.model.v1 import action_pb2, operation_pb2

from services.core.errors import PkgerError, Reason
from tests.action_applier import notes
from tests.action_sets.world import COMPLETE, World, action_set, do
from tests.applier.world import SUCCEEDED, Case, end
from tests.apply.packages import an_object, text
from tests.cluster import Cluster
from tests.crash.action_sets import chains, check_nothing_left, definitions
from tests.crash.world import Crashing
from tests.samples import rare, slow

STACKS = ("a", "b", "c")
APPLIERS = ("applier", "another")
ACTION_SETS = 20
CLIENTS = 5
APPLIES = 3

_AGAIN = (Reason.SERVICE_UNAVAILABLE, Reason.LEASE_LOST, Reason.TOKEN_STALE, Reason.STACK_LEASED)
"""Errors after which a request is repeated: its applier died, or its stack is in use."""


class Work(NamedTuple):
    """A span of the time of the store in which an operation or an action set had a stack to itself."""

    stack: str
    operation: str
    begin: int
    end: int


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[Crashing]:
    async with chains(tmp_path) as running:
        yield running


def package(stack: str, version: int) -> str:
    return text(an_object("Label", "red", f"red of {stack}", description=str(version)))


def blueprint() -> dict[str, Any]:
    """The blueprint of the examples, with an action that reserves its stack for some calls."""
    document = definitions()
    phases = [do(f"note{number}", func="Note") for number in range(3)]
    document["spec"]["actions"]["alone"] = {"lock": True, "phases": phases}
    return document


def request(number: int, org: str) -> dict[str, Any]:
    """The action set of a number: every second one restores a backup."""
    name, stack = f"set-{number}", STACKS[number % len(STACKS)]
    if number % 2:
        source: dict[str, Any] = {"from": {"actionSet": f"backup-{stack}", "action": "restore"}}
        return action_set(name=name, wait="24h", **source)
    return action_set(of(stack, org, "alone"), name=name, wait="24h")


def of(stack: str, org: str, action: str) -> dict[str, Any]:
    """An action on a stack."""
    place = {"kind": "Stack", "name": stack, "target": {"org": org}}
    return {"name": action, "blueprint": "stack-backup", "object": place}


async def answered(
    rng: random.Random, callers: Sequence[Cluster], document: dict[str, Any], request_id: str
) -> action_pb2.ActionSet:
    """An action set that has ended; any applier gets its request, and again if it does not answer."""
    while True:
        here = World(rng.choice(callers), None)  # type: ignore[arg-type]
        with repeated_later():
            created = await here.create(blueprint(), document, request_id=request_id)
            await here.events(created.operation_id)
            return await here.get(created.name)


async def applied(rng: random.Random, callers: Sequence[Cluster], client: int) -> None:
    """Apply to any stack, again and again."""
    for version in range(1, APPLIES + 1):
        stack = rng.choice(STACKS)
        while True:
            case = Case(rng.choice(callers), None, "org", stack)  # type: ignore[arg-type]
            with repeated_later():
                changed = package(stack, 10 * client + version)
                stream = case.events(changed, request_id=f"apply-{client}-{version}")
                events = [event async for event in stream]
                assert events[-1].finished.state == SUCCEEDED, events[-1].finished.cause
                break
            # Nothing tells a client that a stack is free.
            await asyncio.sleep(0.1)


@contextmanager
def repeated_later() -> Iterator[None]:
    """Suppress the errors after which a request is repeated."""
    try:
        yield
    except PkgerError as error:
        if error.reason not in _AGAIN:
            raise


async def all_operations(here: World) -> list[operation_pb2.Operation]:
    """All operations."""
    store, request = here.services.peers["stack"], journal_pb2.ListOperationsRequest(page_size=500)
    return list((await store.call(JournalServiceStub(store.channel).ListOperations, request)).operations)


def works(done: Sequence[action_pb2.ActionSet]) -> Iterator[Work]:
    """The time of each action set, from the beginning of its first phase."""
    for each in done:
        [action] = each.actions
        began = min(phase.start_time.ToMicroseconds() for phase in action.phases)
        yield Work(action.object.name, each.operation_id, began, each.end_time.ToMicroseconds())


def applies_of(operations: Sequence[operation_pb2.Operation]) -> Iterator[Work]:
    """The time of each apply of a client."""
    for each in operations:
        if each.stack_name and not each.parent:
            yield Work(each.stack_name, each.id, each.create_time.ToMicroseconds(), each.update_time.ToMicroseconds())


def check_alone(works: Sequence[Work]) -> None:
    """Check that no two of *works* had a stack at the same time."""
    assert len(works) > ACTION_SETS
    for one, other in combinations(works, 2):
        assert one.stack != other.stack or one.end <= other.begin or other.end <= one.begin, (one, other)


def check_children(done: Sequence[action_pb2.ActionSet], operations: Sequence[operation_pb2.Operation]) -> None:
    """Check that the operations of phases ran while their action sets had the stack, and one of each succeeded."""
    by_id = {each.operation: each for each in works(done)}
    children = [each for each in operations if each.parent in by_id]
    for each in children:
        parent = by_id[each.parent]
        assert parent.begin <= each.create_time.ToMicroseconds() <= each.update_time.ToMicroseconds() <= parent.end
    succeeded = [each.parent for each in children if each.state == SUCCEEDED]
    assert len(set(succeeded)) == len(succeeded) == ACTION_SETS // 2


def check_notes(folder: Path, done: Sequence[action_pb2.ActionSet]) -> None:
    """Check that calls of different action sets on one stack do not alternate."""
    stacks = {each.operation_id: each.actions[0].object.name for each in done}
    for stack in STACKS:
        order = [key.partition("/")[0] for _, key in notes(folder) if stacks.get(key.partition("/")[0]) == stack]
        turns = [operation for operation, _ in groupby(order)]
        assert len(turns) == len(set(turns)) == list(stacks.values()).count(stack)


def check_waiting(
    events: Mapping[str, Sequence[operation_pb2.OperationEvent]], operations: Sequence[operation_pb2.Operation]
) -> None:
    """Check that those that waited said for whom."""
    by_id = {each.id: each for each in operations}
    waits = [
        (operation, each.waiting) for operation, of_one in events.items() for each in of_one if each.HasField("waiting")
    ]
    assert waits
    for operation, waiting in waits:
        holder = by_id[waiting.operation_id]
        assert holder.id != operation
        assert holder.action_set == waiting.action_set
        assert holder.action_set or holder.stack_name == waiting.stack_name


@pytest.mark.parametrize("deaths", [slow(2), rare(0), rare(6)])
@pytest.mark.timeout(400)
async def test_on_each_stack_one_at_a_time(world: Crashing, tmp_path: Path, deaths: int) -> None:
    rng, cases = random.Random(deaths), [Case(world.services, None, "org", stack) for stack in STACKS]  # type: ignore[arg-type]
    await asyncio.gather(*(world.processes.start("applier", called=name) for name in APPLIERS))
    async with world.callers(APPLIERS) as callers:
        here = World(callers[0], None)  # type: ignore[arg-type]
        for case in cases:
            assert end(await case.apply(package(case.stack, 0))).state == SUCCEEDED
            backup = action_set(of(case.stack, "org", "backup"), name=f"backup-{case.stack}")
            assert (await here.run(blueprint(), backup)).state == COMPLETE
        ended = asyncio.Semaphore(0)

        async def run(number: int) -> action_pb2.ActionSet:
            done = await answered(rng, callers, request(number, "org"), f"request-{number}")
            ended.release()
            return done

        async def die() -> None:
            for _ in range(deaths):
                await ended.acquire()
                name = rng.choice(APPLIERS)
                await world.processes.kill(name)
                await world.processes.start("applier", called=name)

        action_sets = asyncio.gather(*map(run, range(ACTION_SETS)))
        applies = asyncio.gather(*(applied(rng, callers, number) for number in range(CLIENTS)))
        await asyncio.gather(action_sets, applies, die())
        done = [await here.get(each.name) for each in action_sets.result()]
        assert {each.state for each in done} == {COMPLETE}
        events = {each.operation_id: await here.events(each.operation_id) for each in done}
        operations = await all_operations(here)
    check_alone([*works(done), *applies_of(operations)])
    check_children(done, operations)
    check_notes(tmp_path, done)
    check_waiting(events, operations)
    check_nothing_left(tmp_path)
