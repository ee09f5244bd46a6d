"""StackService and JournalService on the wire: they translate and delegate, each call one transaction."""

from functools import partial

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from pkger.model.v1.operation_pb2 import OPERATION_KIND_UNSPECIFIED
from pkger.stack.v1 import journal_pb2, journal_pb2_grpc, stack_pb2, stack_pb2_grpc

from services.core.errors import RequestInvalid
from services.database import Database
from services.rpc.convert.objects import entries_from_pb, entry_to_pb, key_to_pb, target_from_pb, target_to_pb
from services.rpc.server import Register
from stack_svc import inventory, journal, leases, pages, stacks
from stack_svc.inventory import Ownership
from stack_svc.leases import Clock, machine_clock
from stack_svc.stacks import Choice, Named, Stack

SERVICES = ("pkger.stack.v1.StackService", "pkger.stack.v1.JournalService")
"""Full names, for health and reflection."""


def registrations(database: Database, clock: Clock = machine_clock) -> list[Register]:
    """Both services over one database, for ``serving``; *clock* is read within the transactions."""
    return [
        partial(stack_pb2_grpc.add_StackServiceServicer_to_server, StackServicer(database, clock)),
        partial(journal_pb2_grpc.add_JournalServiceServicer_to_server, JournalServicer(database, clock)),
    ]


class StackServicer(stack_pb2_grpc.StackServiceServicer):
    """StackService: what people and planners ask of the store."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def CreateStack(
        self, request: stack_pb2.CreateStackRequest, context: object
    ) -> stack_pb2.CreateStackResponse:
        """Make an empty stack."""
        named = Named(target_from_pb(request.target), request.name)
        stack = await self._database.write(
            lambda db: stacks.create(db, named, request.description, request.request_id, self._clock())
        )
        return stack_pb2.CreateStackResponse(stack=_stack_to_pb(stack))

    async def GetStack(self, request: stack_pb2.GetStackRequest, context: object) -> stack_pb2.GetStackResponse:
        """Read one stack with all that it owns."""
        choice = _choice(request)
        stack = await self._database.read(lambda db: stacks.whole(db, choice))
        return stack_pb2.GetStackResponse(stack=_stack_to_pb(stack))

    async def ListStacks(self, request: stack_pb2.ListStacksRequest, context: object) -> stack_pb2.ListStacksResponse:
        """Read one page of stacks."""
        target = target_from_pb(request.target) if request.HasField("target") else None
        after, size = pages.place_of(request.page_token), pages.size_of(request.page_size)
        page, last = await self._database.read(lambda db: stacks.page(db, target, after, size))
        return stack_pb2.ListStacksResponse(
            stacks=map(_stack_to_pb, page), next_page_token=pages.token_of(last) if last else ""
        )

    async def DeleteStack(
        self, request: stack_pb2.DeleteStackRequest, context: object
    ) -> stack_pb2.DeleteStackResponse:
        """Remove the record of a stack that owns nothing."""
        await self._database.write(lambda db: stacks.delete(db, request.id, self._clock()))
        return stack_pb2.DeleteStackResponse()

    async def FindOwners(self, request: stack_pb2.FindOwnersRequest, context: object) -> stack_pb2.FindOwnersResponse:
        """Tell which stacks own the given resources."""
        target = target_from_pb(request.target)
        resources = [(resource.kind, resource.id) for resource in request.resources]
        owners = await self._database.read(lambda db: inventory.owners(db, target, resources))
        return stack_pb2.FindOwnersResponse(owners=map(_ownership_to_pb, owners))


class JournalServicer(journal_pb2_grpc.JournalServiceServicer):
    """JournalService: what appliers write."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def BeginOperation(
        self, request: journal_pb2.BeginOperationRequest, context: object
    ) -> journal_pb2.BeginOperationResponse:
        """Take the lease of a stack for one operation."""
        choice, ttl = _choice(request), _microseconds(request.ttl)
        if request.kind == OPERATION_KIND_UNSPECIFIED:
            raise RequestInvalid("kind", "must be set")
        stack, lease = await self._database.write(
            lambda db: journal.begin(
                db, choice, request.create_missing, request.operation, request.holder, ttl, self._clock()
            )
        )
        return journal_pb2.BeginOperationResponse(
            stack=_stack_to_pb(stack), token=lease.token, expire_time=_time(lease.expires)
        )

    async def RenewLease(
        self, request: journal_pb2.RenewLeaseRequest, context: object
    ) -> journal_pb2.RenewLeaseResponse:
        """Make the lease last its time again."""
        ttl = _microseconds(request.ttl)
        expires = await self._database.write(
            lambda db: leases.renew(db, request.stack_id, request.token, ttl, self._clock())
        )
        return journal_pb2.RenewLeaseResponse(expire_time=_time(expires))

    async def FinishOperation(
        self, request: journal_pb2.FinishOperationRequest, context: object
    ) -> journal_pb2.FinishOperationResponse:
        """Record what the operation left behind and give the lease back."""
        stack = await self._finish(request)
        return journal_pb2.FinishOperationResponse(stack=_stack_to_pb(stack) if stack else None)

    async def _finish(self, request: journal_pb2.FinishOperationRequest) -> Stack | None:
        stack_id, token, base = request.stack_id, request.token, request.base_generation
        match request.WhichOneof("outcome"):
            case "record":
                resources, sources = entries_from_pb(request.record.resources), tuple(request.record.sources)
                changed = request.record.platform_changed
                return await self._database.write(
                    lambda db: journal.record(db, stack_id, token, base, resources, sources, changed, self._clock())
                )
            case "abandon":
                return await self._database.write(lambda db: journal.abandon(db, stack_id, token, self._clock()))
            case "remove":
                await self._database.write(lambda db: journal.remove(db, stack_id, token, base, self._clock()))
                return None
            case _:
                raise RequestInvalid("outcome", "must be set")


def _choice(request: stack_pb2.GetStackRequest | journal_pb2.BeginOperationRequest) -> Choice:
    match request.WhichOneof("stack"):
        case "id":
            return request.id
        case "named":
            stacks.check_name(request.named.name, "named.name")
            return Named(target_from_pb(request.named.target), request.named.name)
        case _:
            raise RequestInvalid("stack", "name it by id or by target and name")


def _microseconds(duration: Duration) -> int:
    return duration.ToMicroseconds()


def _stack_to_pb(stack: Stack) -> stack_pb2.Stack:
    record = stack.record
    return stack_pb2.Stack(
        id=record.id,
        target=target_to_pb(record.target),
        name=record.name,
        description=stack.description,
        config_json=stack.config,
        generation=record.generation,
        sources=record.sources,
        create_time=_time(stack.create_time),
        update_time=_time(stack.update_time),
        resources=map(entry_to_pb, record.resources),
        resource_count=stack.resource_count,
    )


def _time(microseconds: int) -> Timestamp:
    """A time in microseconds since 1970."""
    time = Timestamp()
    time.FromMicroseconds(microseconds)
    return time


def _ownership_to_pb(owner: Ownership) -> stack_pb2.Ownership:
    return stack_pb2.Ownership(
        resource=stack_pb2.ResourceRef(kind=owner.key.kind, id=owner.remote_id),
        stack_id=owner.stack,
        stack_name=owner.stack_name,
        key=key_to_pb(owner.key),
    )
