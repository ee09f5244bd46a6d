"""The one place where effects are sent to a platform from: an intent before, the outcome after."""

import asyncio
import logging
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import operation_pb2

from applier_svc.batches import batches, rounds
from applier_svc.failpoints import reach
from applier_svc.feed import Happening
from applier_svc.ids import Ids
from applier_svc.outcomes import Direction, Done, Failed, NotHappened, Outcome, Outcomes, Skipped, Unknown
from applier_svc.patience import Patience
from applier_svc.progress import Progress
from applier_svc.repeating import is_remembered, is_repeatable, is_to_be_searched_for
from applier_svc.resolver import UNREADABLE, IdsByName, Resolver
from applier_svc.resolving import Doubt
from applier_svc.secrets import Secrets
from applier_svc.sender import Sender
from applier_svc.undo import inverse
from services.core.errors import PkgerError
from services.core.model import PlatformTraits, Step, Verb
from services.rpc.convert.drivers import mutation_to_pb

log = logging.getLogger("pkger.applier")


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
        sender: Sender,
        traits: PlatformTraits,
        operation: str,
        ids: Ids,
        journal: Journal,
        patience: Patience,
        resolver: Resolver,
        secrets: Secrets,
        claimed: float | None = None,
    ) -> None:
        """*claimed* is when the operation was taken over, by the clock of *patience*; None: it began here."""
        self.secrets = secrets
        self.halted: PkgerError | None = None
        self._sender = sender
        self._traits = traits
        self._operation = operation
        self._ids = ids
        self._journal = journal
        self._patience = patience
        self._resolver = resolver
        self._claimed = claimed

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
                await self._give_up([step for step in failed if is_repeatable(step, self._traits)], direction, told)
                waiting = [step for step in failed if not is_repeatable(step, self._traits)]
                return bool(waiting)

            await self._sender.patiently(attempt, stubborn)
            await self._give_up(waiting, direction, told)

    async def resolve(
        self, steps: Sequence[Step], direction: Direction, told: Callable[[Outcomes], Happening]
    ) -> list[Step]:
        """
        Find out what became of steps that were sent and not answered, by reading; the journal knows what came out.

        Those that are remembered are left alone: to send them again tells, and has its effect once.

        Args:
            steps: The steps, as they were sent.
            direction: Whether they are steps of the plan or inverses of such.
            told: Makes the event of what came out.

        Returns:
            Those of them that certainly did not happen.

        Raises:
            PkgerError: Nothing more may be sent, see ``halted``.
        """
        asked = [step for step in steps if not is_remembered(step, self._traits)]
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
            await self._sender.show_token()
            self._claimed = None
        times = [time for time in (self._sender.unanswered, self._claimed) if time is not None]
        if times:
            await asyncio.sleep(max(times) + self._patience.settle - self._patience.clock())

    @property
    def may_be_late(self) -> bool:
        """Whether something that was sent may take effect after nobody waits for it any more."""
        has_doubted = self._claimed is not None or self._sender.unanswered is not None
        return has_doubted and not self._traits.fences

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
        kinds = {step.key.kind for step in steps if is_to_be_searched_for(step, self._traits)}
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
            await self._sender.patiently(attempt, stubborn)
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
                outcomes |= await self._sender.answers(ready, mutations, sent_before, stubborn)
            except PkgerError:
                raise
            except Exception as error:
                trace = self.secrets.masked(traceback.format_exc())
                log.error("batch cut off", extra={"operation": self._operation, "trace": trace})  # noqa: TRY400
                problem = self.secrets.masked(repr(error))
                outcomes |= {step.number: Unknown(f"a defect of the applier: {problem}") for step in ready}
                self._sender.unanswered = self._patience.clock()
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
            step.number: before.get(self._traits.compared(step.key.kind, step.new_spec), ())
            for step in steps
            if step.new_spec and is_to_be_searched_for(step, self._traits)
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
            elif isinstance(before, Failed) and is_to_be_searched_for(step, self._traits):
                outcomes[step.number] = before
            else:
                key = f"{self._operation}/{step.number}/{direction.value}"
                mutations[step.number] = mutation_to_pb(step, remote_id, label_id, key, references)
        return mutations, outcomes
