"""The one place where effects are sent to a platform: an intent before, the outcome after, and retries between."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import grpc
from pkger.driver.v1 import driver_pb2
from pkger.driver.v1.driver_pb2_grpc import DriverServiceStub
from pkger.model.v1 import operation_pb2
from tenacity import AsyncRetrying, retry_if_result, stop_after_attempt

from applier_svc.batches import batches, rounds
from applier_svc.ids import Ids
from applier_svc.outcomes import Direction, Done, Failed, Outcome, Skipped, Unknown
from applier_svc.patience import Patience
from services.core.errors import LeaseLost, PkgerError, RequestInvalid, TokenStale
from services.core.model import Identity, PlatformTraits, Step, Verb
from services.rpc.client import Peer
from services.rpc.convert.drivers import mutation_to_pb

log = logging.getLogger("pkger.applier")

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
    """
    Sends the steps of one operation to one platform.

    Attributes:
        halted: Why nothing is sent any more: the lease is lost, or the driver knows of a newer token. None: it is sent.
    """

    def __init__(
        self,
        driver: Peer,
        traits: PlatformTraits,
        org: str,
        operation: str,
        ids: Ids,
        journal: Journal,
        right: Right,
        patience: Patience,
    ) -> None:
        self.halted: LeaseLost | TokenStale | None = None
        self._driver = driver
        self._stub = DriverServiceStub(driver.channel)
        self._traits = traits
        self._org = org
        self._operation = operation
        self._ids = ids
        self._journal = journal
        self._right = right
        self._patience = patience

    async def send(
        self,
        steps: Sequence[Step],
        direction: Direction,
        is_stopped: Callable[[], bool],
        ended: Callable[[Outcomes], Awaitable[None]],
    ) -> None:
        """
        Send *steps*, which may run at the same time, in batches.

        Args:
            steps: The steps.
            direction: Whether they are steps of the plan or inverses of such.
            is_stopped: Asked before each batch; when true, its steps are skipped.
            ended: Gets the outcomes of each batch as it ends; together one for each step.
        """
        slots = asyncio.Semaphore(max(self._traits.max_concurrency, 1))

        async def run(batch: list[Step]) -> None:
            async with slots:
                if self.halted:
                    outcomes: Outcomes = {step.number: Skipped(str(self.halted)) for step in batch}
                elif is_stopped():
                    outcomes = {step.number: Skipped("the operation was stopped before this step") for step in batch}
                else:
                    outcomes = await self._send_batch(batch, direction)
                await self._journal.record(outcomes, direction)
                await ended(outcomes)

        for turn in rounds(steps):
            todo = (run(batch) for batch in batches(turn, self._traits.max_batch_size))
            # A journal that fails for one batch must not leave others running behind the operation's back.
            for result in await asyncio.gather(*todo, return_exceptions=True):
                if isinstance(result, BaseException):
                    raise result

    async def _send_batch(self, batch: list[Step], direction: Direction) -> Outcomes:
        try:
            mutations, outcomes = self._mutations(batch, direction)
            ready = [step for step in batch if step.number in mutations]
            if ready:
                await self._journal.intend(ready, direction)
                outcomes |= await self._answers(ready, mutations)
        except Exception as error:
            log.exception("batch cut off", extra={"operation": self._operation})
            return {step.number: Unknown(f"a defect of the applier: {error!r}") for step in batch}
        for step in batch:
            outcome = outcomes[step.number]
            if isinstance(outcome, Done):
                self._ids.note(step, outcome.remote_id)
        return outcomes

    def _mutations(self, batch: list[Step], direction: Direction) -> tuple[dict[int, driver_pb2.Mutation], Outcomes]:
        """The mutations by step number, and the outcomes of steps that cannot be sent as what they need is missing."""
        mutations: dict[int, driver_pb2.Mutation] = {}
        outcomes: Outcomes = {}
        for step in batch:
            remote_id, label_id = self._ids.of_resource(step), self._ids.of_label(step)
            references = self._ids.of_references(step)
            needed = [reference.id for reference in references]
            needed += [remote_id] if step.verb is not Verb.CREATE else []
            needed += [label_id] if step.label is not None else []
            if not all(needed):
                outcomes[step.number] = Failed("what it needs does not exist", operation_pb2.REJECTION_REASON_NOT_FOUND)
            else:
                key = f"{self._operation}/{step.number}/{direction.value}"
                mutations[step.number] = mutation_to_pb(step, remote_id, label_id, key, references)
        return mutations, outcomes

    async def _answers(self, steps: Sequence[Step], mutations: Mapping[int, driver_pb2.Mutation]) -> Outcomes:
        """Send *steps* in one batch, and again those of them that got no answer and may be repeated."""
        outcomes: Outcomes = {}
        waiting = list(steps)

        async def attempt() -> bool:
            """Send what is waiting; true while there is something worth sending again."""
            try:
                answers = await self._mutate([mutations[step.number] for step in waiting])
            except (LeaseLost, TokenStale) as error:
                # This time nothing was sent, or all was refused. What was sent before may still have had its effect.
                self.halted = error
                for step in waiting:
                    outcomes.setdefault(step.number, Skipped(str(error)))
                return False
            for step, answer in zip(waiting, answers, strict=True):
                outcomes[step.number] = _with_earlier(outcomes.get(step.number), answer)
            waiting[:] = [step for step in waiting if self._is_worth_repeating(step, outcomes[step.number])]
            return bool(waiting)

        await AsyncRetrying(
            retry=retry_if_result(bool),
            wait=self._patience.between_attempts(),
            stop=stop_after_attempt(self._patience.attempts),
            retry_error_callback=lambda state: None,
        )(attempt)
        return outcomes

    def _is_worth_repeating(self, step: Step, outcome: Outcome) -> bool:
        """Whether nobody knows what became of *step*, and sending it twice has its effect once."""
        native = self._traits.kinds[step.key.kind].identity is Identity.NATIVE
        return isinstance(outcome, Unknown) and (step.verb is not Verb.CREATE or native)

    async def _mutate(self, mutations: list[driver_pb2.Mutation]) -> list[Outcome]:
        """
        Send one batch once.

        Raises:
            LeaseLost: Nothing was sent.
            TokenStale: Nothing took effect.
        """
        request = driver_pb2.MutateRequest(org=self._org, mutations=mutations)
        if fence := await self._right.hold(self._patience.mutate):
            request.fence.CopyFrom(fence)
        try:
            answer = await self._driver.call(self._stub.Mutate, request, self._patience.mutate)
        except TokenStale:
            raise
        except RequestInvalid as error:
            return [Failed(str(error)) for _ in mutations]
        except PkgerError as error:
            # Whatever else it says, the outcome of every item is unknown (driver.proto).
            return [Unknown(str(error)) for _ in mutations]
        except grpc.aio.AioRpcError as error:
            return [Unknown(f"the driver failed: {error.details()}") for _ in mutations]
        if len(answer.results) != len(mutations):
            problem = f"the driver gave {len(answer.results)} results for {len(mutations)} mutations"
            return [Unknown(problem) for _ in mutations]
        return [_outcome(mutation, result) for mutation, result in zip(mutations, answer.results, strict=True)]


def _with_earlier(earlier: Outcome | None, answer: Outcome) -> Outcome:
    """
    What *answer* says of a step that was sent before.

    A refusal of the mutation says that it never took effect, or it would count as done (driver.proto). A refusal for
    any other reason, such as credentials that ran out meanwhile, says nothing of what was sent before.
    """
    match earlier, answer:
        case Unknown(before), Failed(now, operation_pb2.REJECTION_REASON_UNSPECIFIED):
            return Unknown(f"{before}; sent again: {now}")
        case _:
            return answer


def _outcome(mutation: driver_pb2.Mutation, result: driver_pb2.MutationResult) -> Outcome:
    match result.WhichOneof("result"):
        case "done" if mutation.HasField("create"):
            if result.done.resource.id:
                return Done(result.done.resource.id)
            return Unknown("the driver did not say what it created")
        case "done":
            return Done(getattr(mutation, mutation.WhichOneof("change") or "").id)
        case "rejected":
            return Failed(result.rejected.message, result.rejected.reason)
        case "ambiguous":
            return Unknown(result.ambiguous.message)
        case _:
            # Anything unlisted is ambiguous (engine.md 4).
            return Unknown("the driver gave no result")
