"""The one place where effects are sent to a platform: an intent before, the outcome after, and retries between."""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

import grpc
from pkger.driver.v1 import driver_pb2
from pkger.driver.v1.driver_pb2_grpc import DriverServiceStub
from pkger.model.v1 import operation_pb2
from tenacity import AsyncRetrying, retry_if_result, stop_after_attempt, stop_after_delay

from applier_svc.batches import batches, rounds
from applier_svc.failpoints import reach
from applier_svc.feed import Happening
from applier_svc.ids import Ids
from applier_svc.outcomes import Direction, Done, Failed, Outcome, Skipped, Unknown
from applier_svc.patience import Patience
from applier_svc.progress import Progress
from services.core.errors import PkgerError, RequestInvalid, TokenStale
from services.core.model import Identity, PlatformTraits, Step, Verb
from services.rpc.client import Peer
from services.rpc.convert.drivers import mutation_to_pb

log = logging.getLogger("pkger.applier")

Outcomes = dict[int, Outcome]
"""Outcome of each step by its number."""


class Journal(Protocol):
    """Where intents and outcomes go; one call stands for one transaction."""

    progress: Progress

    async def intend(self, targets: Mapping[int, str], direction: Direction) -> None:
        """Note which steps are about to be sent to which resources; nothing is sent before this returns."""

    async def record(self, outcomes: Mapping[int, Outcome], direction: Direction, happening: Happening) -> None:
        """Note how steps ended, and tell it."""


class Right(Protocol):
    """The right to write to the platform."""

    async def hold(self, seconds: float) -> driver_pb2.Fence:
        """
        See to it that the right lasts another *seconds*.

        Returns:
            What to show to the driver.

        Raises:
            LeaseLost: Somebody else may be writing; send nothing more.
        """


class Effects:
    """
    Sends the steps of one operation to one platform.

    Attributes:
        halted: Why nothing is sent any more: the lease is lost, the driver knows of a newer token, or the journal
            cannot be written. None: it is sent.
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
        self.halted: PkgerError | None = None
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
        told: Callable[[Outcomes], Happening],
        stubborn: bool = False,
    ) -> None:
        """
        Send *steps*, which may run at the same time, in batches; the journal knows their outcomes.

        Args:
            steps: The steps.
            direction: Whether they are steps of the plan or inverses of such.
            is_stopped: Asked before each batch; when true, its steps are skipped.
            told: Makes the event of the outcomes of a batch.
            stubborn: Whether to ask a driver that does not answer for as long as patience lasts.

        Raises:
            PkgerError: Nothing more may be sent, see ``halted``; the journal names what is open.
        """
        slots = asyncio.Semaphore(max(self._traits.max_concurrency, 1))

        async def run(batch: list[Step]) -> None:
            async with slots:
                if self.halted:
                    return
                try:
                    outcomes: Outcomes = {}
                    if is_stopped():
                        outcomes = {
                            step.number: Skipped("the operation was stopped before this step") for step in batch
                        }
                    else:
                        outcomes = await self._send_batch(batch, direction, stubborn)
                    await self._journal.record(outcomes, direction, told(outcomes))
                    reach("after_undo_record" if direction is Direction.UNDO else "after_record")
                except PkgerError as error:
                    self.halted = self.halted or error

        for turn in rounds(steps):
            todo = (run(batch) for batch in batches(turn, self._traits.max_batch_size))
            # A defect in one batch must not leave others running behind the operation's back.
            for result in await asyncio.gather(*todo, return_exceptions=True):
                if isinstance(result, BaseException):
                    raise result
            if self.halted:
                raise self.halted

    async def _send_batch(self, batch: list[Step], direction: Direction, stubborn: bool) -> Outcomes:
        mutations, outcomes = self._mutations(batch, direction)
        for step in batch:
            failed = isinstance(outcomes.get(step.number), Failed)
            if failed and self._journal.progress.may_have_happened(step, direction):
                outcomes[step.number] = Unknown("it was sent before, and cannot be sent again")
        ready = [step for step in batch if step.number in mutations]
        if ready:
            sent_before = {step.number for step in ready if self._journal.progress.may_have_happened(step, direction)}
            await self._journal.intend({step.number: self._ids.of_resource(step) for step in ready}, direction)
            reach("after_undo_intent" if direction is Direction.UNDO else "after_intent")
            try:
                outcomes |= await self._answers(ready, mutations, sent_before, stubborn)
            except PkgerError:
                raise
            except Exception as error:
                log.exception("batch cut off", extra={"operation": self._operation})
                outcomes |= {step.number: Unknown(f"a defect of the applier: {error!r}") for step in ready}
            reach("after_undo_send" if direction is Direction.UNDO else "after_send")
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
            if not all(needed) and step.verb in (Verb.DELETE, Verb.DETACH):
                # What is to go is gone: an undo that failed at first may find that others took it along.
                outcomes[step.number] = Done(remote_id)
            elif not all(needed):
                outcomes[step.number] = Failed("what it needs does not exist", operation_pb2.REJECTION_REASON_NOT_FOUND)
            else:
                key = f"{self._operation}/{step.number}/{direction.value}"
                mutations[step.number] = mutation_to_pb(step, remote_id, label_id, key, references)
        return mutations, outcomes

    async def _answers(
        self,
        steps: Sequence[Step],
        mutations: Mapping[int, driver_pb2.Mutation],
        sent_before: Collection[int],
        stubborn: bool,
    ) -> Outcomes:
        """
        Send *steps* in one batch, and again those of them that got no answer and may be repeated.

        Raises:
            LeaseLost: This time nothing was sent.
            TokenStale: This time all was refused.
        """
        outcomes: Outcomes = dict.fromkeys(sent_before, Unknown("it was sent before, and not answered"))
        waiting = list(steps)

        async def attempt() -> bool:
            """Send what is waiting; true while there is something worth sending again."""
            answers = await self._mutate([mutations[step.number] for step in waiting])
            for step, answer in zip(waiting, answers, strict=True):
                outcomes[step.number] = _with_earlier(outcomes.get(step.number), answer)
            waiting[:] = [step for step in waiting if self._is_worth_repeating(step, outcomes[step.number])]
            return bool(waiting)

        patience = self._patience
        await AsyncRetrying(
            retry=retry_if_result(bool),
            wait=patience.between_attempts(),
            stop=stop_after_delay(patience.stubborn) if stubborn else stop_after_attempt(patience.attempts),
            retry_error_callback=lambda state: None,
        )(attempt)
        return outcomes

    def is_repeatable(self, step: Step) -> bool:
        """Whether sending *step* twice has its effect once."""
        return step.verb is not Verb.CREATE or self._traits.kinds[step.key.kind].identity is Identity.NATIVE

    def _is_worth_repeating(self, step: Step, outcome: Outcome) -> bool:
        """Whether nobody knows what became of *step*, and it may be sent again."""
        return isinstance(outcome, Unknown) and self.is_repeatable(step)

    async def _mutate(self, mutations: list[driver_pb2.Mutation]) -> list[Outcome]:
        """
        Send one batch once.

        Raises:
            LeaseLost: Nothing was sent.
            TokenStale: Nothing took effect.
        """
        fence = await self._right.hold(self._patience.mutate)
        request = driver_pb2.MutateRequest(org=self._org, fence=fence, mutations=mutations)
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
