"""
Stacks that share resources, while a person edits and appliers die: each resource has one owner, no resource is lost,
and none is left (docs/reference/engine.md, "Shared resources").
"""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from pkger.model.v1 import object_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from tests.cluster import Record
from tests.crash import recording
from tests.crash.actors import Client, Person
from tests.crash.stacks import APPLIERS, Shared, live, survive
from tests.crash.world import Crashing, crashing
from tests.samples import rare

pytestmark = pytest.mark.slow

ROUNDS = [(0, 6), rare(1, 6), *(rare(seed, 16) for seed in range(2, 22))]
"""Seeds, and the number of requests of each stack. A seed draws the actions of each actor, not their interleaving."""

_MOST_ROUNDS = 6
"""How often a stack may become the owner of a shared resource, and so has to be uninstalled again."""


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[Crashing]:
    async with crashing(tmp_path, modules={"platform": "tests.crash.recording"}) as running:
        yield running


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("seed", "actions"), ROUNDS)
async def test_stacks_share_and_appliers_die(world: Crashing, tmp_path: Path, seed: int, actions: int) -> None:
    rng = random.Random(seed)
    async with world.callers(APPLIERS) as callers:
        shared = Shared(world.services, callers, world.processes)
        clients = [Client(shared, f"s{number}", _of(rng)) for number in range(rng.randrange(2, 5))]
        person = Person(shared, _of(rng))
        meddling = [live(shared, name, _of(rng), 100) for name in APPLIERS]
        async with asyncio.TaskGroup() as tasks:
            for work in meddling:
                tasks.create_task(work)
            for client in clients:
                await client.begin()
            tasks.create_task(person.work(actions // 2))
            async with asyncio.TaskGroup() as working:
                for client in clients:
                    working.create_task(client.work(actions))
            await shared.pulse.end()
        await survive(shared)
        await shared.quiet()

        records = await _records(shared)
        await _check_owners(shared, records)
        await _check_records(shared, records, tmp_path)
        await _check_writes(shared, records, person, tmp_path)

        await person.tidy_up()
        await _uninstall(shared, clients)
        await _check_nothing_left(shared, tmp_path)
        print(dict(sorted(shared.heard.items())))


def _of(rng: random.Random) -> random.Random:
    """A generator of its own for each actor, so that its draws do not depend on other actors."""
    return random.Random(rng.random())


async def _records(shared: Shared) -> list[Record]:
    return [await shared.services.record(name) for name in await shared.services.stack_names()]


async def _check_owners(shared: Shared, records: Sequence[Record]) -> None:
    """The store's owners and users are those of the records, and no claim is left."""
    peer = shared.services.peers["stack"]
    entries = [(record.id, entry) for record in records for entry in record.resources]
    resources = {(entry.key.kind, entry.resource_id) for _, entry in entries}
    resources |= {(each.kind, each.id) for each in await shared.services.resources()}
    request = stack_pb2.FindOwnersRequest(
        target=object_pb2.Target(),
        resources=[object_pb2.ResourceId(kind=kind, id=id_) for kind, id_ in sorted(resources)],
    )
    answer = await peer.call(StackServiceStub(peer.channel).FindOwners, request)
    assert [each for each in (*answer.owners, *answer.users) if each.operation_id] == []
    owned, used = (
        sorted((each.resource.kind, each.resource.id, each.stack_id, each.key.name) for each in found)
        for found in (answer.owners, answer.users)
    )
    of_records: dict[bool, list[tuple[str, str, str, str]]] = {True: [], False: []}
    for stack, entry in entries:
        is_shared = entry.origin == object_pb2.ORIGIN_SHARED
        of_records[is_shared].append((entry.key.kind, entry.resource_id, stack, entry.key.name))
    assert owned == sorted(of_records[False])
    assert used == sorted(of_records[True])
    shared.heard["owned"], shared.heard["used"] = len(owned), len(used)
    by_owner = [each[:2] for each in owned]
    assert len(by_owner) == len(set(by_owner))
    assert {each[:2] for each in used} <= set(by_owner)


async def _check_records(shared: Shared, records: Sequence[Record], folder: Path) -> None:
    """Resources and labels of the records are on the platform, unless the person removed them."""
    there = {(each.kind, each.id): set(each.label_ids) for each in await shared.services.resources()}
    deleted, detached = recording.taken_by_person(recording.writes(folder))
    for record in records:
        ids = record.ids
        for entry in record.resources:
            resource = (entry.key.kind, entry.resource_id)
            if entry.resource_id in deleted or entry.is_pending_delete:
                continue
            assert resource in there, f"{record.name} lacks {entry.key}"
            wanted = {ids[label.kind, label.name] for label in entry.associations} - deleted
            lost = {label for _, label in detached if (entry.resource_id, label) in detached}
            assert wanted - lost <= there[resource], f"{entry.key} of {record.name} lacks labels"


async def _check_writes(shared: Shared, records: Sequence[Record], person: Person, folder: Path) -> None:
    """No operation overwrote an edit that its plan did not see, and each resource that one created has an owner."""
    account = recording.writes(folder)
    planned = {
        each.id: shared.planned[each.plan_id] for each in await shared.operations() if each.plan_id in shared.planned
    }
    assert recording.overwritten(account, planned, person.labels) == []
    owned = {entry.resource_id for record in records for entry in record.resources}
    there = {each.id for each in await shared.services.resources()}
    made = recording.made(account)
    assert {id_: made[id_] for id_ in there & made.keys() - owned if made[id_] not in shared.decided} == {}


async def _uninstall(shared: Shared, clients: Sequence[Client]) -> None:
    """Uninstall all stacks at the same time, and repeat it for those that became owners of shared resources."""
    for _ in range(_MOST_ROUNDS):
        left = set(await shared.services.stack_names())
        if not left:
            return
        await asyncio.gather(*(client.uninstall() for client in clients if client.stack in left))
        await shared.quiet()
    raise AssertionError(f"cannot be uninstalled: {left}")


async def _check_nothing_left(shared: Shared, folder: Path) -> None:
    made = recording.made(recording.writes(folder))
    there = {each.id for each in await shared.services.resources()}
    assert {id_: made[id_] for id_ in there & made.keys() if made[id_] not in shared.decided} == {}
