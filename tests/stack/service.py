"""A stack service on a port of its own, as its callers see it, with a clock that the test turns."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from google.protobuf.duration_pb2 import Duration
from pkger.model.v1.object_pb2 import Target
from pkger.model.v1.operation_pb2 import OPERATION_KIND_APPLY
from pkger.stack.v1 import journal_pb2, stack_pb2
from pkger.stack.v1.journal_pb2_grpc import JournalServiceStub
from pkger.stack.v1.stack_pb2 import Stack
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core import model
from services.database import Database
from services.rpc.client import Peer
from services.rpc.convert.objects import entry_to_pb, target_to_pb
from services.rpc.server import serving
from stack_svc.schema import MIGRATIONS
from stack_svc.servicer import SERVICES, registrations

HERE = model.Target()
ELSEWHERE = model.Target(org="another")


@dataclass
class Clock:
    """Stands still until it is turned; microseconds."""

    now: int = 1_700_000_000_000_000

    def __call__(self) -> int:
        return self.now

    def forward(self, seconds: float) -> None:
        """Turn the clock; a negative number sets it back."""
        self.now += int(seconds * 1_000_000)


@dataclass
class Client:
    """Calls one stack service."""

    address: str
    peer: Peer = field(init=False)

    def __post_init__(self) -> None:
        self.peer = Peer("stack", self.address)
        self.stacks = StackServiceStub(self.peer.channel)
        self.journal = JournalServiceStub(self.peer.channel)

    async def create(
        self, name: str, target: model.Target = HERE, description: str = "", request_id: str = ""
    ) -> Stack:
        request = stack_pb2.CreateStackRequest(
            request_id=request_id, target=target_to_pb(target), name=name, description=description
        )
        return (await self.peer.call(self.stacks.CreateStack, request)).stack

    async def get(self, stack_id: str) -> Stack:
        return (await self.peer.call(self.stacks.GetStack, stack_pb2.GetStackRequest(id=stack_id))).stack

    async def get_named(self, name: str, target: model.Target = HERE) -> Stack:
        request = stack_pb2.GetStackRequest(named=_named(name, target))
        return (await self.peer.call(self.stacks.GetStack, request)).stack

    async def page(
        self, target: Target | None = None, page_size: int = 0, page_token: str = ""
    ) -> stack_pb2.ListStacksResponse:
        request = stack_pb2.ListStacksRequest(target=target, page_size=page_size, page_token=page_token)
        return await self.peer.call(self.stacks.ListStacks, request)

    async def names(self) -> list[str]:
        return [stack.name for stack in (await self.page()).stacks]

    async def delete(self, stack_id: str) -> None:
        await self.peer.call(self.stacks.DeleteStack, stack_pb2.DeleteStackRequest(id=stack_id))

    async def owners(
        self, resources: Iterable[tuple[str, str]], target: model.Target = HERE
    ) -> list[tuple[str, str, str, str, str]]:
        """Kind, id, stack id, stack name and object name of each resource that has an owner."""
        refs = [stack_pb2.ResourceRef(kind=kind, id=remote_id) for kind, remote_id in resources]
        request = stack_pb2.FindOwnersRequest(target=target_to_pb(target), resources=refs)
        answer = await self.peer.call(self.stacks.FindOwners, request)
        return [
            (owner.resource.kind, owner.resource.id, owner.stack_id, owner.stack_name, owner.key.name)
            for owner in answer.owners
        ]

    async def begin(
        self,
        name: str = "",
        stack_id: str = "",
        target: model.Target = HERE,
        create_missing: bool = True,
        operation: str = "op-1",
        holder: str = "applier-1",
        seconds: float = 30,
    ) -> journal_pb2.BeginOperationResponse:
        request = journal_pb2.BeginOperationRequest(
            named=_named(name, target),
            create_missing=create_missing,
            operation=operation,
            kind=OPERATION_KIND_APPLY,
            holder=holder,
            ttl=duration(seconds),
        )
        if stack_id:
            request.id = stack_id
        return await self.peer.call(self.journal.BeginOperation, request)

    async def renew(
        self, begun: journal_pb2.BeginOperationResponse, seconds: float = 30
    ) -> journal_pb2.RenewLeaseResponse:
        request = journal_pb2.RenewLeaseRequest(stack_id=begun.stack.id, token=begun.token, ttl=duration(seconds))
        return await self.peer.call(self.journal.RenewLease, request)

    async def record(
        self,
        begun: journal_pb2.BeginOperationResponse,
        resources: Iterable[model.InventoryEntry] = (),
        sources: Iterable[str] = (),
        base_generation: int | None = None,
    ) -> Stack:
        record = journal_pb2.Record(resources=map(entry_to_pb, resources), sources=sources)
        return (await self._finish(begun, base_generation, record=record)).stack

    async def abandon(
        self, begun: journal_pb2.BeginOperationResponse, base_generation: int | None = None
    ) -> journal_pb2.FinishOperationResponse:
        return await self._finish(begun, base_generation, abandon=journal_pb2.Abandon())

    async def remove(
        self, begun: journal_pb2.BeginOperationResponse, base_generation: int | None = None
    ) -> journal_pb2.FinishOperationResponse:
        return await self._finish(begun, base_generation, remove=journal_pb2.Remove())

    async def apply(
        self,
        name: str,
        resources: Iterable[model.InventoryEntry],
        sources: Iterable[str] = (),
        target: model.Target = HERE,
    ) -> Stack:
        """A whole operation that leaves *resources* behind."""
        return await self.record(await self.begin(name, target=target), resources, sources)

    async def _finish(
        self,
        begun: journal_pb2.BeginOperationResponse,
        base_generation: int | None,
        record: journal_pb2.Record | None = None,
        abandon: journal_pb2.Abandon | None = None,
        remove: journal_pb2.Remove | None = None,
    ) -> journal_pb2.FinishOperationResponse:
        request = journal_pb2.FinishOperationRequest(
            stack_id=begun.stack.id,
            token=begun.token,
            base_generation=begun.stack.generation if base_generation is None else base_generation,
            record=record,
            abandon=abandon,
            remove=remove,
        )
        return await self.peer.call(self.journal.FinishOperation, request)


@asynccontextmanager
async def stack_service(path: Path, clock: Clock) -> AsyncIterator[Client]:
    """A stack service over the database at *path*, and a client of it."""
    database = Database(path, MIGRATIONS)
    try:
        async with serving(registrations(database, clock), SERVICES, "127.0.0.1:0", grace=0) as address:
            client = Client(address)
            yield client
            await client.peer.close()
    finally:
        database.close()


def entry(
    name: str,
    remote_id: str = "",
    kind: str = "Bucket",
    origin: model.Origin = model.Origin.CREATED,
    labels: Iterable[str] = (),
) -> model.InventoryEntry:
    """What a stack owns for one object."""
    associations = tuple(model.Key(model.LABEL, label) for label in labels)
    return model.InventoryEntry(model.Key(kind, name), remote_id or f"id-{name}", origin, associations)


def duration(seconds: float) -> Duration:
    return Duration(seconds=int(seconds), nanos=round(seconds % 1 * 1_000_000_000))


def microseconds(stack: Stack) -> tuple[int, int]:
    """When the stack was made and last changed."""
    return stack.create_time.ToMicroseconds(), stack.update_time.ToMicroseconds()


def _named(name: str, target: model.Target) -> stack_pb2.NamedStack:
    return stack_pb2.NamedStack(target=target_to_pb(target), name=name)
