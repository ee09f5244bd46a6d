"""Sends batches to a driver: with the right to write, as many at a time as it takes, and again what got no answer."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Protocol

import grpc
from pkger.driver.v1 import driver_pb2
from pkger.driver.v1.driver_pb2_grpc import DriverServiceStub
from pkger.model.v1 import operation_pb2
from tenacity import AsyncRetrying, RetryCallState, retry_if_result, stop_after_attempt, stop_after_delay

from applier_svc.outcomes import Done, Failed, Outcome, Outcomes, Unknown
from applier_svc.patience import Patience
from applier_svc.repeating import is_repeatable
from applier_svc.secrets import Secrets
from applier_svc.throttle import Budget, Throttle
from services.core.errors import PkgerError, RequestInvalid, TokenStale
from services.core.model import PlatformTraits, Step
from services.rpc.client import Peer

Mutations = Mapping[int, driver_pb2.Mutation]
"""What is sent for each step, by its number."""


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


class Sender:
    """
    The way of one operation to its platform.

    Attributes:
        unanswered: When a batch last got no answer, by the clock of the patience: what it sent may still take effect.
            None: all were answered.
    """

    def __init__(
        self, driver: Peer, traits: PlatformTraits, org: str, right: Right, patience: Patience, secrets: Secrets
    ) -> None:
        self.unanswered: float | None = None
        self._driver = driver
        self._stub = DriverServiceStub(driver.channel)
        self._traits = traits
        self._org = org
        self._right = right
        self._patience = patience
        self._secrets = secrets
        self._throttle = Throttle(traits.max_concurrency)
        # What is waited on the way forward leaves an undo all the time it may take.
        self._budgets = {False: Budget(patience.busy), True: Budget(patience.stubborn)}

    async def show_token(self) -> None:
        """
        Make a platform that fences refuse whatever was sent under an older right.

        Raises:
            LeaseLost: As ``Right.hold``.
            TokenStale: Somebody else is writing.
        """
        await self._mutate([])

    async def answers(
        self,
        steps: Sequence[Step],
        mutations: Mutations,
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

        await self.patiently(attempt, stubborn)
        return outcomes

    async def patiently(self, attempt: Callable[[], Awaitable[bool]], stubborn: bool) -> None:
        """Make attempts, with waits between them, while they return true and patience lasts."""
        patience = self._patience
        await AsyncRetrying(
            retry=retry_if_result(bool),
            wait=patience.between_attempts(),
            stop=stop_after_delay(patience.stubborn) if stubborn else stop_after_attempt(patience.attempts),
            retry_error_callback=lambda state: None,
        )(attempt)

    async def _unhurried(self, steps: Sequence[Step], mutations: Mutations, stubborn: bool) -> list[Outcome]:
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
                self.unanswered = self._patience.clock()
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

    def _is_worth_repeating(self, step: Step, outcome: Outcome) -> bool:
        """Whether nobody knows what became of *step*, and it may be sent again."""
        return isinstance(outcome, Unknown) and is_repeatable(step, self._traits)

    def _is_worth_waiting_for(self, step: Step, outcome: Outcome) -> bool:
        """Whether the platform asks for patience with *step*, and it may be sent again."""
        may_repeat = isinstance(outcome, Failed) or is_repeatable(step, self._traits)
        return may_repeat and _asked_wait(outcome) is not None

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
            self._secrets.mask_error(error)
            raise error from None
        except RequestInvalid as error:
            return [Failed(self._secrets.masked(str(error))) for _ in mutations]
        except PkgerError as error:
            # Whatever else it says, the outcome of every item is unknown (driver.proto).
            return [Unknown(self._secrets.masked(str(error))) for _ in mutations]
        except grpc.aio.AioRpcError as error:
            problem = self._secrets.masked(str(error.details()))
            return [Unknown(f"the driver failed: {problem}") for _ in mutations]
        if len(answer.results) != len(mutations):
            problem = f"the driver gave {len(answer.results)} results for {len(mutations)} mutations"
            return [Unknown(problem) for _ in mutations]
        outcomes = [_outcome(mutation, result) for mutation, result in zip(mutations, answer.results, strict=True)]
        return list(map(self._secrets.masked_outcome, outcomes))


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
