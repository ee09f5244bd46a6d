"""The one place where effects are sent to a platform: an intent before, the outcome after, and retries between."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Protocol

import grpc
from pkger.driver.v1 import driver_pb2
from pkger.driver.v1.driver_pb2_grpc import DriverServiceStub
from pkger.model.v1 import operation_pb2
from tenacity import AsyncRetrying, retry_if_result, stop_after_attempt, wait_random_exponential

from applier_svc.batches import batches, rounds
from applier_svc.ids import Ids
from applier_svc.outcomes import Direction, Done, Failed, Outcome, Skipped, Unknown
from services.core.errors import ServiceUnavailable
from services.core.model import Identity, PlatformTraits, Step, Verb
from services.rpc.client import Peer
from services.rpc.convert import mutation_to_pb, platform_from_pb

MUTATE_SECONDS = 10.0
"""Deadline of one batch. The lease has to outlive it (engine.md 6)."""

ATTEMPTS = 6
"""How often a batch without an answer is sent: with full jitter, about 10 s of a driver being restarted."""

Outcomes = dict[int, Outcome]
"""Outcome of each step by its number."""


class Journal(Protocol):
    """Where intents and outcomes go; one call stands for one transaction."""

    async def intend(self, steps: Sequence[Step], direction: Direction) -> None:
        """Note that *steps* are about to be sent; nothing is sent before this returns."""

    async def record(self, outcomes: Mapping[int, Outcome], direction: Direction) -> None:
        """Note how steps ended."""


class Right(Protocol):
    """The right to write to the platform."""

    async def hold(self, seconds: float) -> driver_pb2.Fence | None:
        """
        See to it that the right lasts another *seconds*.

        Returns:
            What to show to the driver; None for an operation on behalf of no stack.

        Raises:
            LeaseLost: Somebody else may be writing; send nothing more.
        """


class Effects:
    """Sends the steps of one operation to one platform."""

    def __init__(self, driver: Peer, org: str, operation: str, ids: Ids, journal: Journal, right: Right) -> None:
        self._driver = driver
        self._stub = DriverServiceStub(driver.channel)
        self._org = org
        self._operation = operation
        self._ids = ids
        self._journal = journal
        self._right = right
        self._traits: PlatformTraits | None = None

    async def send(
        self, steps: Sequence[Step], direction: Direction, stopped: Callable[[], bool]
    ) -> AsyncIterator[Outcomes]:
        """
        Send *steps*, which may run at the same time, in batches.

        Args:
            steps: The steps.
            direction: Whether they are steps of the plan or inverses of such.
            stopped: Asked before each batch; when true, the rest of the steps is skipped.

        Yields:
            The outcomes of each batch as it ends; together one for each step.

        Raises:
            LeaseLost: The right to write is gone; batches in flight have ended.
            TokenStale: The driver knows of a newer token.
        """
        traits = await self._platform()
        slots = asyncio.Semaphore(max(traits.max_concurrency, 1))

        async def run(batch: list[Step]) -> Outcomes:
            async with slots:
                if stopped():
                    return {step.number: Skipped("the operation was stopped before this step") for step in batch}
                return await self._send_batch(batch, direction, traits)

        for turn in rounds(steps):
            tasks = [asyncio.create_task(run(batch)) for batch in batches(turn, traits.max_batch_size)]
            try:
                for done in asyncio.as_completed(tasks):
                    yield await done
            finally:
                # An error must not leave batches running behind the operation's back.
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _platform(self) -> PlatformTraits:
        if self._traits is None:
            self._traits = platform_from_pb(await self._driver.call(self._stub.Describe, driver_pb2.DescribeRequest()))
        return self._traits

    async def _send_batch(self, batch: list[Step], direction: Direction, traits: PlatformTraits) -> Outcomes:
        mutations, outcomes = self._mutations(batch, direction)
        open_steps = {step.number: step for step in batch if step.number in mutations}
        await self._journal.intend(list(open_steps.values()), direction)

        async def attempt() -> bool:
            """Send what is open; true while there is something worth sending again."""
            answers = await self._mutate([mutations[number] for number in open_steps])
            outcomes.update(zip(open_steps, answers, strict=True))
            for number, step in list(open_steps.items()):
                if not isinstance(outcomes[number], Unknown) or not _may_repeat(step, traits):
                    del open_steps[number]
            return bool(open_steps)

        if open_steps:
            await AsyncRetrying(
                retry=retry_if_result(bool),
                wait=wait_random_exponential(multiplier=0.2, max=4),
                stop=stop_after_attempt(ATTEMPTS),
                retry_error_callback=lambda state: None,
            )(attempt)
        for step in batch:
            outcome = outcomes[step.number]
            if isinstance(outcome, Done):
                self._ids.note(step, outcome.remote_id)
        await self._journal.record(outcomes, direction)
        return outcomes

    def _mutations(self, batch: list[Step], direction: Direction) -> tuple[dict[int, driver_pb2.Mutation], Outcomes]:
        """The mutations by step number, and the outcomes of steps that cannot be sent as what they need is missing."""
        mutations: dict[int, driver_pb2.Mutation] = {}
        outcomes: Outcomes = {}
        for step in batch:
            remote_id, label_id = self._ids.of_resource(step), self._ids.of_label(step)
            missing = (step.verb is not Verb.CREATE and not remote_id) or (step.label is not None and not label_id)
            if missing:
                outcomes[step.number] = Failed(
                    "what it needs was not created", operation_pb2.REJECTION_REASON_NOT_FOUND
                )
            else:
                key = f"{self._operation}/{step.number}/{direction.value}"
                mutations[step.number] = mutation_to_pb(step, remote_id, label_id, key)
        return mutations, outcomes

    async def _mutate(self, mutations: list[driver_pb2.Mutation]) -> list[Outcome]:
        request = driver_pb2.MutateRequest(org=self._org, mutations=mutations)
        if fence := await self._right.hold(MUTATE_SECONDS):
            request.fence.CopyFrom(fence)
        try:
            answer = await self._driver.call(self._stub.Mutate, request, MUTATE_SECONDS)
        except (ServiceUnavailable, grpc.aio.AioRpcError) as error:
            message = str(error) if isinstance(error, ServiceUnavailable) else f"the driver failed: {error.details()}"
            return [Unknown(message) for _ in mutations]
        results = zip(mutations, answer.results, strict=True)
        return [_outcome(mutation, result) for mutation, result in results]


def _may_repeat(step: Step, traits: PlatformTraits) -> bool:
    """Whether sending *step* twice has its effect once."""
    return step.verb is not Verb.CREATE or traits.kinds[step.key.kind].identity is Identity.NATIVE


def _outcome(mutation: driver_pb2.Mutation, result: driver_pb2.MutationResult) -> Outcome:
    match result.WhichOneof("result"):
        case "done":
            if result.done.HasField("resource"):
                return Done(result.done.resource.id)
            return Done(getattr(mutation, mutation.WhichOneof("change") or "").id)
        case "rejected":
            return Failed(result.rejected.message, result.rejected.reason)
        case "ambiguous":
            return Unknown(result.ambiguous.message)
        case _:
            # Anything unlisted is ambiguous (engine.md 4).
            return Unknown("the driver gave no result")
