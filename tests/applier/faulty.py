"""A driver with scripted faults in front of the embedded platform."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

import grpc
from pkger.driver.v1 import driver_pb2
from pkger.driver.v1.driver_pb2_grpc import (
    DriverServiceServicer,
    DriverServiceStub,
    add_DriverServiceServicer_to_server,
)
from pkger.model.v1 import object_pb2, operation_pb2

from services.core.errors import ServiceUnavailable, TokenStale
from services.drivers.registry import opened as opened_driver
from services.drivers.servicer import SERVICES, register
from services.platforms import Platform
from services.rpc.client import Peer
from services.rpc.process import Service
from tests.transport import transport_of_loop

Context = grpc.aio.ServicerContext[Any, Any]


class ItemFault(Enum):
    """A fault of one mutation."""

    REJECT = "the platform rejects it; if it took effect before, for a reason that is unrelated to it"
    LOSE_REQUEST = "it never gets there"
    LOSE_RESPONSE = "it takes effect and the answer is lost"
    BUSY = "the platform throttles it"
    OVERLOADED = "it takes effect, and the answer is that the platform is overloaded and throttles"
    DELAY = "the answer is lost, and it takes effect when the test says so"


class CallFault(Enum):
    """A fault of one call of Mutate."""

    AWAY = "the driver does not answer"
    AWAY_AFTERWARDS = "it takes effect and then the driver does not answer"
    RESET = "it takes effect and the connection is cut"
    DEFECT = "it takes effect and the driver fails"
    BARE = "it takes effect and a proxy answers with a bare status"
    SHORT = "it takes effect and a result is missing"
    STALE = "the driver knows of a newer token"
    CUT_OFF = "it takes effect and then the driver refuses the token: the applier stops as if it had died"


class Memory(Enum):
    """The traits of the platform by which the engine finds outcomes of requests without a response."""

    KEYS = "it keeps idempotency keys, and fences"
    NAMES = "it forgets keys: what was created is looked up by name, or searched for; it fences"
    NOTHING = "it forgets keys and tokens"
    LIES = "as NOTHING, but it says that it fences"
    SEARCHED = "as NOTHING, and unique names are not looked up: all that was created is searched for"


class Gate:
    """A call that waits until the test lets it pass."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()

    async def passing(self) -> None:
        self.reached.set()
        await self.opened.wait()


class FaultyDriver(DriverServiceServicer):
    """
    Forwards all calls, except for scripted faults.

    Attributes:
        memory: The traits of the platform; ``heal`` keeps them.
        echoes: Whether the messages of faults include the values of all secrets that arrived.
        sent: The mutations that arrived, in order, including lost ones.
        calls: Number of calls of Mutate, without those that only show a token.
        batch_size: Most mutations in a batch, as described; None: as many as the platform takes.
        in_flight: Number of concurrent calls of Mutate at the arrival of each one, itself included.
        looks: Number of answered listings and reads.
        raised: Set when a token was shown after a mutation was sent.
        unshown: How many of the next calls that only show a token get no response.
        seen: The answer to calls that only show a token, instead of that of the platform; None: that of the platform.
        descriptions: Responses to the next calls of Describe, one after another.
        reset: Resets all connections to this driver.
    """

    _DESCRIBED = frozenset({"memory", "batch_size", "descriptions"})
    """The attributes on which the description depends."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name in self._DESCRIBED:
            self.ask_again()

    def ask_again(self) -> None:
        """Make the services ask for the description again, as they do at a new connection."""
        getattr(self, "reset", lambda: None)()

    def __init__(self, behind: Peer) -> None:
        self.memory = Memory.KEYS
        self.batch_size: int | None = None
        self._answering = 0
        self._behind = behind
        self._stub = DriverServiceStub(behind.channel)
        self.reset: Callable[[], None] = lambda: None
        self.heal()

    def heal(self) -> None:
        """Remove all faults and count from 0 again."""
        self.sent: list[driver_pb2.Mutation] = []
        self.calls = self.looks = 0
        self._late: list[driver_pb2.MutateRequest] = []
        self._arrival: float = 0
        self.in_flight: list[int] = []
        self._allowed: int | None = None
        self._blind_from: int | None = None
        self._lacking: tuple[int, ...] = ()
        self._old: Mapping[int, Sequence[object_pb2.Resource]] = {}
        self._hidden_kinds: tuple[str, ...] = ()
        self.echoes = False
        self._items: Mapping[int, ItemFault] = {}
        self._lasting = False
        self._lasting_for: dict[bytes, ItemFault] = {}
        self._calls: Mapping[int, CallFault] = {}
        self._all_later: CallFault | None = None
        self._gates: dict[int, Gate] = {}
        self._said_ids: Mapping[int, str] = {}
        self._forwarded: set[bytes] = set()
        self.unshown = 0
        self.seen: driver_pb2.Fence | TokenStale | None = None
        self.raised = asyncio.Event()
        self.descriptions: list[grpc.StatusCode | driver_pb2.DescribeResponse] = []
        self._descriptions_until_gate = 0
        self._description_gate = Gate()

    def fail(
        self,
        items: Mapping[int, ItemFault] | None = None,
        calls: Mapping[int, CallFault] | None = None,
        lasting: bool = False,
        later: CallFault | None = None,
    ) -> None:
        """
        Script the faults from now on; they replace all others.

        Args:
            items: The fault of each mutation, counted from 0 over all calls.
            calls: The fault of each call of Mutate, counted from 0.
            lasting: Whether a mutation has its fault each time it is sent.
            later: The fault of all calls after the last one in *calls*.
        """
        self.heal()
        self._items, self._calls = items or {}, calls or {}
        self._lasting, self._all_later = lasting, later

    def arrive_before_look(self, look: float) -> None:
        """Let delayed calls arrive right before that listing or read, counted from 0."""
        self._arrival = look

    def mistake(self, ids: Mapping[int, str]) -> None:
        """Answer creations with the *ids* of other resources, by the number of the mutation over all calls."""
        self._said_ids = ids

    def allow(self, calls: int) -> None:
        """Throttle each call of Mutate that arrives while *calls* others are being answered."""
        self._allowed = calls

    def hide(self, look: int = 0) -> None:
        """Answer no listing and no read from number *look* on, counted from 0."""
        self._blind_from = look

    def hide_kinds(self, *kinds: str) -> None:
        """Answer no listing of any of *kinds*."""
        self._hidden_kinds = kinds

    def lack(self, *looks: int) -> None:
        """Return empty listings at these numbers of listings and reads, counted from 0."""
        self._lacking = looks

    def list_old(self, old: Mapping[int, Sequence[object_pb2.Resource]]) -> None:
        """Return these stale listings, by number as of ``lack``."""
        self._old = old

    def gate(self, call: int) -> Gate:
        """Make call number *call* of Mutate wait; can be combined with other faults."""
        self._gates[call] = Gate()
        return self._gates[call]

    def gate_description(self, number: int) -> Gate:
        """Make call number *number* of Describe from now on wait, counted from 1."""
        self._descriptions_until_gate, self._description_gate = number, Gate()
        self.ask_again()
        return self._description_gate

    async def deny_fencing(self) -> None:
        """Make the next description for each of planner and applier not say that the platform fences."""
        described = await self._described()
        described.fences = False
        self.descriptions = [described, described]

    async def forget(self, kind: str) -> None:
        """Make the next description lack *kind*."""
        described = await self._described()
        kinds = [each for each in described.kinds if each.kind != kind]
        del described.kinds[:]
        described.kinds.extend(kinds)
        self.descriptions = [described]

    async def _described(self) -> driver_pb2.DescribeResponse:
        return await self._behind.call(self._stub.Describe, driver_pb2.DescribeRequest())

    async def change(self, org: str, *mutations: driver_pb2.Mutation) -> driver_pb2.MutateResponse:
        """Change the platform as a writer outside pkger does."""
        return await self._behind.call(self._stub.Mutate, driver_pb2.MutateRequest(org=org, mutations=mutations))

    async def Describe(self, request: driver_pb2.DescribeRequest, context: Context) -> driver_pb2.DescribeResponse:
        self._descriptions_until_gate -= 1
        if self._descriptions_until_gate == 0:
            await self._description_gate.passing()
        match self.descriptions.pop(0) if self.descriptions else None:
            case driver_pb2.DescribeResponse() as scripted:
                return scripted
            case grpc.StatusCode() as code:
                context.set_code(code)
                return driver_pb2.DescribeResponse()
        description = await self._behind.call(self._stub.Describe, request)
        description.max_batch_size = self.batch_size or description.max_batch_size
        if self.memory is not Memory.KEYS:
            description.fences = self.memory in (Memory.NAMES, Memory.LIES)
            for traits in description.kinds:
                is_named = traits.name_uniqueness != driver_pb2.NAME_UNIQUENESS_NONE
                is_looked_up = is_named and self.memory is not Memory.SEARCHED
                traits.identity = driver_pb2.IDENTITY_NATURAL_KEY if is_looked_up else driver_pb2.IDENTITY_SEARCH
        return description

    async def ListResources(
        self, request: driver_pb2.ListResourcesRequest, context: Context
    ) -> AsyncIterator[driver_pb2.ListResourcesResponse]:
        await self._look()
        if not {*request.kinds}.isdisjoint(self._hidden_kinds):
            raise ServiceUnavailable("platform", "elsewhere", "scripted")
        if self.looks - 1 in self._lacking:
            return
        if self.looks - 1 in self._old:
            yield driver_pb2.ListResourcesResponse(resources=self._old[self.looks - 1])
            return
        async for chunk in self._behind.stream(self._stub.ListResources, request):
            yield chunk

    async def ReadResources(
        self, request: driver_pb2.ReadResourcesRequest, context: Context
    ) -> driver_pb2.ReadResourcesResponse:
        await self._look()
        return await self._behind.call(self._stub.ReadResources, request)

    async def PrepareSpecs(
        self, request: driver_pb2.PrepareSpecsRequest, context: Context
    ) -> driver_pb2.PrepareSpecsResponse:
        """Accepts every spec, so that the platform rejects invalid ones only when they are written."""
        held = [driver_pb2.StoredSpec(kind=spec.kind) for spec in request.specs]
        prepared = [driver_pb2.PreparedSpec(stored=each, position=position) for position, each in enumerate(held)]
        return driver_pb2.PrepareSpecsResponse(specs=prepared)

    async def ListSecretKeys(
        self, request: driver_pb2.ListSecretKeysRequest, context: Context
    ) -> driver_pb2.ListSecretKeysResponse:
        await self._look()
        return await self._behind.call(self._stub.ListSecretKeys, request)

    async def ListOrgs(self, request: driver_pb2.ListOrgsRequest, context: Context) -> driver_pb2.ListOrgsResponse:
        return await self._behind.call(self._stub.ListOrgs, request)

    async def Check(self, request: driver_pb2.CheckRequest, context: Context) -> driver_pb2.CheckResponse:
        return await self._behind.call(self._stub.Check, request)

    async def _look(self) -> None:
        if self._blind_from is not None and self.looks >= self._blind_from:
            raise ServiceUnavailable("platform", "elsewhere", self._words("scripted"))
        if self.looks >= self._arrival:
            await self.arrive()
        self.looks += 1

    async def arrive(self) -> int:
        """Let delayed calls arrive; returns how many the platform refuses because it has seen a newer token."""
        refused = 0
        for late in self._late:
            try:
                await self._behind.call(self._stub.Mutate, self._forgetting(late))
            except TokenStale:
                refused += 1
        self._late.clear()
        return refused

    def _forgetting(self, request: driver_pb2.MutateRequest) -> driver_pb2.MutateRequest:
        """The request without the keys or tokens that the platform does not keep."""
        kept = driver_pb2.MutateRequest()
        kept.CopyFrom(request)
        if self.memory is not Memory.KEYS:
            for mutation in kept.mutations:
                if mutation.HasField("create"):
                    mutation.create.ClearField("idempotency_key")
        if self.memory not in (Memory.KEYS, Memory.NAMES):
            kept.ClearField("fence")
        return kept

    async def Mutate(self, request: driver_pb2.MutateRequest, context: Context) -> driver_pb2.MutateResponse:
        if not request.mutations and self.unshown:
            self.unshown -= 1
            raise ServiceUnavailable("platform", "elsewhere", "scripted")
        if not request.mutations:
            answer = await self._behind.call(self._stub.Mutate, self._forgetting(request))
            if self.calls:
                self.raised.set()
            if isinstance(self.seen, TokenStale):
                raise self.seen
            return driver_pb2.MutateResponse(seen=self.seen) if self.seen else answer
        self._answering += 1
        self.in_flight.append(self._answering)
        try:
            return await self._answer(request, context)
        finally:
            self._answering -= 1

    async def _answer(self, request: driver_pb2.MutateRequest, context: Context) -> driver_pb2.MutateResponse:
        call, self.calls = self.calls, self.calls + 1
        first = len(self.sent)
        faults = [self._fault_of(mutation) for mutation in request.mutations]
        fault = self._calls.get(call)
        if fault is None and self._all_later and call > max(self._calls, default=-1):
            fault = self._all_later
        if call in self._gates:
            await self._gates[call].passing()
        if self._allowed is not None and self._answering > self._allowed:
            busy = driver_pb2.MutationResult()
            busy.rejected.message = "scripted: too many at once"
            busy.rejected.retry_after.FromMilliseconds(1)
            return _in_order(driver_pb2.MutateResponse(results=[busy] * len(request.mutations)))
        match fault:
            case CallFault.AWAY:
                raise ServiceUnavailable("platform", "elsewhere", self._words("scripted"))
            case CallFault.STALE:
                raise TokenStale(self._words(request.fence.scope), request.fence.token, request.fence.token + 1)
        response = await self._forward(request, faults)
        for number, result in enumerate(response.results, first):
            if number in self._said_ids:
                result.done.id = self._said_ids[number]
        match fault:
            case CallFault.AWAY_AFTERWARDS:
                raise ServiceUnavailable("platform", "elsewhere", self._words("scripted"))
            case CallFault.RESET:
                self.reset()
            case CallFault.CUT_OFF:
                # A higher token would be the answer of a platform that is newer than the store.
                raise TokenStale(self._words(request.fence.scope), request.fence.token, request.fence.token)
            case CallFault.DEFECT:
                raise PlatformBroken
            case CallFault.BARE:
                context.set_code(grpc.StatusCode.UNKNOWN)
                context.set_details(self._words("502 bad gateway"))
            case CallFault.SHORT:
                del response.results[-1]
        return _in_order(response)

    def _words(self, text: str) -> str:
        """The message of a fault."""
        return f"{text} ({', '.join(mutation.put_secret.value for mutation in self.sent)})" if self.echoes else text

    def _fault_of(self, mutation: driver_pb2.Mutation) -> ItemFault | None:
        number = len(self.sent)
        self.sent.append(mutation)
        content = _content(mutation)
        if number in self._items and self._lasting:
            self._lasting_for.setdefault(content, self._items[number])
        return self._lasting_for.get(content) or self._items.get(number)

    async def _forward(
        self, request: driver_pb2.MutateRequest, faults: list[ItemFault | None]
    ) -> driver_pb2.MutateResponse:
        passed = driver_pb2.MutateRequest()
        passed.CopyFrom(request)
        del passed.mutations[:]
        stopped = (ItemFault.REJECT, ItemFault.BUSY, ItemFault.LOSE_REQUEST, ItemFault.DELAY)
        for mutation, fault in zip(request.mutations, faults, strict=True):
            if fault not in stopped:
                passed.mutations.append(mutation)
            elif fault is ItemFault.DELAY:
                self._late.append(driver_pb2.MutateRequest(org=request.org, fence=request.fence, mutations=[mutation]))
        answers = iter((await self._behind.call(self._stub.Mutate, self._forgetting(passed))).results)
        response = driver_pb2.MutateResponse()
        for mutation, fault in zip(request.mutations, faults, strict=True):
            result = response.results.add()
            match fault:
                case ItemFault.REJECT:
                    if _content(mutation) not in self._forwarded:
                        result.rejected.reason = operation_pb2.REJECTION_REASON_CONTENT_REFUSED
                    result.rejected.message = self._words("scripted refusal")
                case ItemFault.BUSY:
                    result.rejected.message = "scripted: busy"
                    result.rejected.retry_after.FromMilliseconds(1)
                case ItemFault.OVERLOADED:
                    next(answers)
                    result.ambiguous.message = "scripted: overloaded"
                    result.ambiguous.retry_after.FromMilliseconds(1)
                case ItemFault.LOSE_REQUEST | ItemFault.DELAY:
                    result.ambiguous.message = self._words("scripted loss")
                case ItemFault.LOSE_RESPONSE:
                    next(answers)
                    result.ambiguous.message = self._words("scripted loss")
                case None:
                    result.CopyFrom(next(answers))
        self._forwarded |= set(map(_content, passed.mutations))
        return response


def _in_order(response: driver_pb2.MutateResponse) -> driver_pb2.MutateResponse:
    """*response* with the position of its mutation in each result."""
    for position, result in enumerate(response.results):
        result.position = position
    return response


def _content(mutation: driver_pb2.Mutation) -> bytes:
    return mutation.SerializeToString(deterministic=True)


class PlatformBroken(Exception):
    """A defect of a driver, as its callers see it."""


@asynccontextmanager
async def faulty_platform(data: Path) -> AsyncIterator[tuple[FaultyDriver, str]]:
    """The driver in front of an embedded platform in the folder *data*, and its address."""
    transport = transport_of_loop()
    async with (
        opened_driver(Platform("embedded", "embedded", ""), data, clock=transport.clock) as embedded,
        transport.serving(Service([register(embedded)], SERVICES), 0) as inner,
        Peer("platform", inner, connect=transport.connect) as behind,
    ):
        driver = FaultyDriver(behind)
        service = Service([partial(add_DriverServiceServicer_to_server, driver)], SERVICES)
        async with transport.resettable(service) as (address, driver.reset):
            yield driver, address
