"""The one place where effects are sent to a platform: an intent before, the outcome after, and retries between."""

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Protocol

import grpc
from pkger.driver.v1 import driver_pb2
from pkger.driver.v1.driver_pb2_grpc import DriverServiceStub
from pkger.model.v1 import operation_pb2
from tenacity import AsyncRetrying, RetryCallState, retry_if_result, stop_after_attempt, stop_after_delay

from applier_svc.batches import batches, rounds
from applier_svc.failpoints import reach
from applier_svc.feed import Happening
from applier_svc.ids import Ids
from applier_svc.outcomes import Direction, Done, Failed, NotHappened, Outcome, Skipped, Unknown
from applier_svc.patience import Patience
from applier_svc.progress import Progress
from applier_svc.resolver import UNREADABLE, IdsByName, Resolver
from applier_svc.resolving import Doubt
from applier_svc.secrets import Secrets
from applier_svc.throttle import Budget, Throttle
from applier_svc.undo import inverse
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

    async def intend(
        self, targets: Mapping[int, str], direction: Direction, before_ids: Mapping[int, tuple[str, ...]]
    ) -> None:
        """Note which steps are about to be sent to which resources; nothing is sent before this returns."""

    async def retract(self, steps: Collection[int], direction: Direction) -> None:
        """Note that steps were sent and certainly had no effect."""

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
        secrets: What the operation was given.
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
        resolver: Resolver,
        secrets: Secrets,
        claimed: float | None = None,
    ) -> None:
        """*claimed* is when the operation was taken over, by the clock of *patience*; None: it began here."""
        self.secrets = secrets
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
        self._resolver = resolver
        self._claimed = claimed
        self._throttle = Throttle(traits.max_concurrency)
        # What is waited on the way forward leaves an undo all the time it may take.
        self._budgets = {False: Budget(patience.busy), True: Budget(patience.stubborn)}
        # When a batch of this applier last got no answer; what it sent may still take effect.
        self._unanswered: float | None = None

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

        A step that gets no answer is sent again where that has its effect once. Of all others, and of those that never
        get one, the platform tells what became of them; what did not happen is sent again, as often as patience has it.

        Args:
            steps: The steps.
            direction: Whether they are steps of the plan or inverses of such.
            is_stopped: Asked before each batch; when true, its steps are skipped.
            told: Makes the event of the outcomes of a batch.
            stubborn: Whether to ask a driver that does not answer for as long as patience lasts.

        Raises:
            PkgerError: Nothing more may be sent, see ``halted``; the journal names what is open.
        """
        before = await self._there_before(steps, stubborn)
        for turn in rounds(steps):
            waiting = turn

            async def attempt() -> bool:
                """Send what is waiting; true while some of it certainly did not happen, and may in another attempt."""
                nonlocal waiting
                await self._send_round(waiting, direction, is_stopped, told, stubborn, before)
                failed = await self.resolve(self._doubtful(waiting, direction), direction, told)
                # Those that can be repeated were, as often as patience has it.
                await self._give_up([step for step in failed if self._is_repeatable(step)], direction, told)
                waiting = [step for step in failed if not self._is_repeatable(step)]
                return bool(waiting)

            await self._patiently(attempt, stubborn)
            await self._give_up(waiting, direction, told)

    async def resolve(
        self, steps: Sequence[Step], direction: Direction, told: Callable[[Outcomes], Happening]
    ) -> list[Step]:
        """
        Find out what became of steps that were sent and not answered, by reading; the journal knows what came out.

        Those of ``is_remembered`` are left alone: to send them again tells, and has its effect once.

        Args:
            steps: The steps, as they were sent.
            direction: Whether they are steps of the plan or inverses of such.
            told: Makes the event of what came out.

        Returns:
            Those of them that certainly did not happen.

        Raises:
            PkgerError: Nothing more may be sent, see ``halted``.
        """
        asked = [step for step in steps if not self.is_remembered(step)]
        if not asked:
            return []
        await self.settle()
        findings = await self._resolver.find_out([self._doubt(step) for step in asked], self._ids.known())
        outcomes: Outcomes = {}
        for step in asked:
            found = findings[step.number]
            if isinstance(found, NotHappened):
                continue
            outcomes[step.number] = found
            if isinstance(found, Done):
                self._ids.note(step, found.remote_id)
        failed = [step for step in asked if step.number not in outcomes]
        if failed:
            await self._journal.retract([step.number for step in failed], direction)
        if outcomes:
            await self._journal.record(outcomes, direction, told(outcomes))
        return failed

    async def settle(self) -> None:
        """
        Wait until what was sent before can no longer take effect.

        Raises:
            LeaseLost: As ``Right.hold``.
            TokenStale: Somebody else is writing.
        """
        if self._claimed is not None and self._traits.fences:
            # From here on the platform refuses what the applier before this one sent.
            await self._mutate([])
            self._claimed = None
        times = [time for time in (self._unanswered, self._claimed) if time is not None]
        if times:
            await asyncio.sleep(max(times) + self._patience.settle - self._patience.clock())

    @property
    def may_be_late(self) -> bool:
        """Whether something that was sent may take effect after nobody waits for it any more."""
        has_doubted = self._claimed is not None or self._unanswered is not None
        return has_doubted and not self._traits.fences

    def is_remembered(self, step: Step) -> bool:
        """
        Whether sending *step* again is the way to find out what became of it.

        That is so for creations that the platform remembers by their idempotency key, and for secrets: nobody can read
        them.
        """
        return step.is_secret or (step.verb is Verb.CREATE and self._identity(step) is Identity.NATIVE)

    async def _send_round(
        self,
        steps: Sequence[Step],
        direction: Direction,
        is_stopped: Callable[[], bool],
        told: Callable[[Outcomes], Happening],
        stubborn: bool,
        before: IdsByName | Failed,
    ) -> None:
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
                        outcomes = await self._send_batch(batch, direction, stubborn, before)
                    await self._journal.record(outcomes, direction, told(outcomes))
                    reach("after_undo_record" if direction is Direction.UNDO else "after_record")
                except PkgerError as error:
                    self.halted = self.halted or error

        todo = (run(batch) for batch in batches(steps, self._traits.max_batch_size))
        # A defect in one batch must not leave others running behind the operation's back.
        for result in await asyncio.gather(*todo, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result
        if self.halted:
            raise self.halted

    async def _there_before(self, steps: Sequence[Step], stubborn: bool) -> IdsByName | Failed:
        """What is there before *steps* are sent, of the kinds whose creations may have to be searched for."""
        kinds = {step.key.kind for step in steps if self._is_to_be_searched_for(step)}
        found: IdsByName | Failed = {}

        async def attempt() -> bool:
            """List them; true when they cannot be listed."""
            nonlocal found
            try:
                found = await self._resolver.ids_by_name(kinds)
            except UNREADABLE as error:
                problem = self.secrets.masked(str(error))
                found = Failed(f"it was not sent, as what is there before it cannot be listed: {problem}")
            return isinstance(found, Failed)

        if kinds:
            await self._patiently(attempt, stubborn)
        return found

    async def _give_up(
        self, steps: Sequence[Step], direction: Direction, told: Callable[[Outcomes], Happening]
    ) -> None:
        """Note *steps* as failed: they did not happen, however often they were sent."""
        if steps:
            problem = "the platform gave no answer, and it did not happen"
            outcomes: Outcomes = {step.number: Failed(problem) for step in steps}
            await self._journal.record(outcomes, direction, told(outcomes))

    def _doubtful(self, steps: Sequence[Step], direction: Direction) -> list[Step]:
        return [step for step in steps if self._journal.progress.may_have_happened(step, direction)]

    def _doubt(self, step: Step) -> Doubt:
        return Doubt(
            step,
            self._ids.of_resource(step),
            self._ids.of_label(step),
            tuple(self._ids.of_references(step)),
            tuple(self._ids.of_references(inverse(step))),
            self._journal.progress.before_ids.get(step.number, ()),
        )

    async def _send_batch(
        self, batch: list[Step], direction: Direction, stubborn: bool, before: IdsByName | Failed
    ) -> Outcomes:
        mutations, outcomes = self._mutations(batch, direction, before)
        for step in batch:
            failed = isinstance(outcomes.get(step.number), Failed)
            if failed and self._journal.progress.may_have_happened(step, direction):
                outcomes[step.number] = Unknown("it was sent before, and cannot be sent again")
        ready = [step for step in batch if step.number in mutations]
        if ready:
            sent_before = {step.number for step in ready if self._journal.progress.may_have_happened(step, direction)}
            targets = {step.number: self._ids.of_resource(step) for step in ready}
            await self._journal.intend(targets, direction, self._before_ids(ready, before))
            reach("after_undo_intent" if direction is Direction.UNDO else "after_intent")
            try:
                outcomes |= await self._answers(ready, mutations, sent_before, stubborn)
            except PkgerError:
                raise
            except Exception as error:
                trace = self.secrets.masked(traceback.format_exc())
                log.error("batch cut off", extra={"operation": self._operation, "trace": trace})  # noqa: TRY400
                problem = self.secrets.masked(repr(error))
                outcomes |= {step.number: Unknown(f"a defect of the applier: {problem}") for step in ready}
                self._unanswered = self._patience.clock()
            reach("after_undo_send" if direction is Direction.UNDO else "after_send")
        for step in batch:
            outcome = outcomes[step.number]
            if isinstance(outcome, Done):
                self._ids.note(step, outcome.remote_id)
        return outcomes

    def _before_ids(self, steps: Sequence[Step], before: IdsByName | Failed) -> dict[int, tuple[str, ...]]:
        """Of each creation that may have to be searched for: what has its kind and display name before it is sent."""
        if isinstance(before, Failed):
            return {}
        return {
            step.number: before.get((step.key.kind, step.new_spec.display_name), ())
            for step in steps
            if step.new_spec and self._is_to_be_searched_for(step)
        }

    def _mutations(
        self, batch: list[Step], direction: Direction, before: IdsByName | Failed
    ) -> tuple[dict[int, driver_pb2.Mutation], Outcomes]:
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
            elif step.is_secret:
                mutations[step.number] = self.secrets.mutation(step)
            elif isinstance(before, Failed) and self._is_to_be_searched_for(step):
                outcomes[step.number] = before
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
            answers = await self._unhurried(waiting, mutations, stubborn)
            for step, answer in zip(waiting, answers, strict=True):
                outcomes[step.number] = _with_earlier(outcomes.get(step.number), answer)
            waiting[:] = [step for step in waiting if self._is_worth_repeating(step, outcomes[step.number])]
            return bool(waiting)

        await self._patiently(attempt, stubborn)
        return outcomes

    async def _unhurried(
        self, steps: Sequence[Step], mutations: Mapping[int, driver_pb2.Mutation], stubborn: bool
    ) -> list[Outcome]:
        """Send one batch, and again what the platform asks patience for and can be sent again, while patience lasts."""
        answers: dict[int, Outcome] = {}
        waiting = list(steps)

        async def attempt() -> float | None:
            """Send what is waiting; for how long the platform asks to wait, None when there is nothing to wait for."""
            async with self._throttle.slot() as slot:
                said = await self._mutate([mutations[step.number] for step in waiting])
                slot.was_refused = any(_asked_wait(answer) is not None for answer in said)
                slot.was_taken = not any(isinstance(answer, Unknown) for answer in said)
            if not slot.was_taken:
                self._unanswered = self._patience.clock()
            for step, answer in zip(waiting, said, strict=True):
                answers[step.number] = _with_earlier(answers.get(step.number), answer)
            waiting[:] = [step for step in waiting if self._is_worth_waiting_for(step, answers[step.number])]
            return max((_asked_wait(answers[step.number]) or 0.0 for step in waiting), default=None)

        jitter = self._patience.between_attempts()

        def wait(state: RetryCallState) -> float:
            asked = state.outcome.result() if state.outcome else 0.0
            return max(asked, jitter(state))

        def is_over(state: RetryCallState) -> bool:
            budget = self._budgets[stubborn].after_wait(self._patience.clock(), state.upcoming_sleep)
            self._budgets[stubborn] = budget or self._budgets[stubborn]
            return budget is None

        await AsyncRetrying(
            retry=retry_if_result(lambda asked: asked is not None),
            wait=wait,
            stop=is_over,
            retry_error_callback=lambda state: None,
        )(attempt)
        return [answers[step.number] for step in steps]

    def _is_worth_waiting_for(self, step: Step, outcome: Outcome) -> bool:
        """Whether the platform asks for patience with *step*, and it may be sent again."""
        may_repeat = isinstance(outcome, Failed) or self._is_repeatable(step)
        return may_repeat and _asked_wait(outcome) is not None

    async def _patiently(self, attempt: Callable[[], Awaitable[bool]], stubborn: bool) -> None:
        """Make attempts, with waits between them, while they return true and patience lasts."""
        patience = self._patience
        await AsyncRetrying(
            retry=retry_if_result(bool),
            wait=patience.between_attempts(),
            stop=stop_after_delay(patience.stubborn) if stubborn else stop_after_attempt(patience.attempts),
            retry_error_callback=lambda state: None,
        )(attempt)

    def _is_repeatable(self, step: Step) -> bool:
        """Whether sending *step* twice has its effect once."""
        return step.verb is not Verb.CREATE or self.is_remembered(step)

    def _is_to_be_searched_for(self, step: Step) -> bool:
        """Whether *step* is a creation that, without an answer, has to be searched for among others of its name."""
        return step.verb is Verb.CREATE and not step.is_secret and self._identity(step) is Identity.SEARCH

    def _is_worth_repeating(self, step: Step, outcome: Outcome) -> bool:
        """Whether nobody knows what became of *step*, and it may be sent again."""
        return isinstance(outcome, Unknown) and self._is_repeatable(step)

    def _identity(self, step: Step) -> Identity:
        return self._traits.kinds[step.key.kind].identity

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
        except TokenStale as error:
            self.secrets.mask_error(error)
            raise error from None
        except RequestInvalid as error:
            return [Failed(self.secrets.masked(str(error))) for _ in mutations]
        except PkgerError as error:
            # Whatever else it says, the outcome of every item is unknown (driver.proto).
            return [Unknown(self.secrets.masked(str(error))) for _ in mutations]
        except grpc.aio.AioRpcError as error:
            problem = self.secrets.masked(str(error.details()))
            return [Unknown(f"the driver failed: {problem}") for _ in mutations]
        if len(answer.results) != len(mutations):
            problem = f"the driver gave {len(answer.results)} results for {len(mutations)} mutations"
            return [Unknown(problem) for _ in mutations]
        outcomes = [_outcome(mutation, result) for mutation, result in zip(mutations, answer.results, strict=True)]
        return list(map(self.secrets.masked_outcome, outcomes))


def _with_earlier(earlier: Outcome | None, answer: Outcome) -> Outcome:
    """
    What *answer* says of a step that was sent before.

    A refusal of the mutation says that it never took effect, or it would count as done (driver.proto). A refusal for
    any other reason, such as credentials that ran out meanwhile, says nothing of what was sent before.
    """
    match earlier, answer:
        case Unknown(before), Failed(now, operation_pb2.REJECTION_REASON_UNSPECIFIED, retry_after):
            return Unknown(f"{before}; sent again: {now}", retry_after=retry_after)
        case _:
            return answer


def _outcome(mutation: driver_pb2.Mutation, result: driver_pb2.MutationResult) -> Outcome:
    match result.WhichOneof("result"):
        case "done" if mutation.HasField("create"):
            if result.done.resource.id:
                return Done(result.done.resource.id)
            return Unknown("the driver did not say what it created")
        case "done":
            change = getattr(mutation, mutation.WhichOneof("change") or "")
            is_secret = isinstance(change, driver_pb2.PutSecret | driver_pb2.DeleteSecret)
            return Done(change.key if is_secret else change.id)
        case "rejected":
            return Failed(result.rejected.message, result.rejected.reason, _seconds(result.rejected))
        case "ambiguous":
            return Unknown(result.ambiguous.message, retry_after=_seconds(result.ambiguous))
        case _:
            # Anything unlisted is ambiguous (engine.md 4).
            return Unknown("the driver gave no result")


def _seconds(message: driver_pb2.Rejected | driver_pb2.Ambiguous) -> float | None:
    """For how long the platform asks to wait; None when it does not ask."""
    return message.retry_after.ToMicroseconds() / 1e6 if message.HasField("retry_after") else None


def _asked_wait(outcome: Outcome) -> float | None:
    return outcome.retry_after if isinstance(outcome, Failed | Unknown) else None
