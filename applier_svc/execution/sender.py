"""Sends each batch to a driver once, under the lease, with as many in flight as the throttle admits."""

import logging
from collections.abc import Mapping, Sequence
from typing import Protocol

from pkger.driver.v1 import driver_pb2
from pkger.driver.v1.driver_pb2_grpc import DriverServiceStub

from applier_svc.execution.secrets import Secrets
from applier_svc.execution.throttle import Throttle
from applier_svc.execution.timeouts import Timeouts
from services.core.errors import PkgerError, RequestInvalid, ServiceUnavailable, TokenStale
from services.core.model import PlatformTraits
from services.engine.effects import AnyEffect
from services.engine.effects.effect import Sending
from services.engine.outcome import Failed, Outcome, Unknown
from services.rpc.call import loop_time
from services.rpc.client import Peer
from services.rpc.convert.drivers import mutation_to_pb, outcome_from_pb

log = logging.getLogger("pkger.applier")


class WriteLease(Protocol):
    """
    The right to write to the platform: the lease, as a sender needs it.

    Attributes:
        token: Its current fencing token.
        is_shown: Whether the platform has answered a request with a token of it.
    """

    token: int
    is_shown: bool

    async def hold(self, seconds: float) -> driver_pb2.Fence:
        """
        Make sure that the right lasts another *seconds*.

        Returns:
            The fence of the request to the driver.

        Raises:
            LeaseLost: Another operation may be writing; send nothing more.
            OperationNotFound: The store lacks the operation since it was restored from a backup; send nothing more.
        """

    async def raise_token(self) -> None:
        """
        Get a higher token.

        Raises:
            LeaseLost: As ``hold``.
            ServiceUnavailable: The token is unknown; send nothing more.
        """


class Sender:
    """
    Sends the batches of one operation to its platform.

    Attributes:
        fences: Whether the platform fences: it says so, and has remembered the tokens that it was shown.
        unanswered: When a batch last ended without a response, by ``loop_time``: its mutations may still take effect.
            None: all batches had responses.
        unanswered_token: The highest token of such a batch; 0: all batches had responses.
        shown_token: The highest token that the platform was shown and answered. If it fences, it refuses lower ones.
    """

    def __init__(
        self, driver: Peer, traits: PlatformTraits, org: str, right: WriteLease, timeouts: Timeouts, secrets: Secrets
    ) -> None:
        self.fences = traits.fences
        self.unanswered: float | None = None
        self.unanswered_token = self.shown_token = 0
        self._driver = driver
        self._stub = DriverServiceStub(driver.channel)
        self._org = org
        self._right = right
        self._timeouts = timeouts
        self._secrets = secrets
        self._throttle = Throttle(traits.max_concurrency)

    async def show_token(self) -> driver_pb2.Fence:
        """
        Show the token to the platform: if it fences, it refuses requests with lower tokens from then on.

        Returns:
            The highest lower token that the platform has seen; empty: there is none.

        Raises:
            LeaseLost: As ``WriteLease.hold``.
            TokenStale: The platform has seen a higher token.
            ServiceUnavailable: It is unknown whether the platform has seen the token.
        """
        fence = await self._right.hold(self._timeouts.mutate)
        request = driver_pb2.MutateRequest(org=self._org, fence=fence)
        try:
            answer = await self._driver.call(self._stub.Mutate, request, self._timeouts.mutate)
        except TokenStale:
            raise
        except PkgerError as error:
            raise self._unknown_token(error) from None
        self._right.is_shown = True
        if self.shown_token < fence.token:
            self.check_memory(answer.seen.token, self.shown_token)
            self.shown_token = fence.token
        return answer.seen

    def _unknown_token(self, error: PkgerError) -> ServiceUnavailable:
        """The error of a platform that may not have seen the token, because of *error*."""
        driver, is_away = self._driver, isinstance(error, ServiceUnavailable) and not error.answered
        problem = self._secrets.masked(error.metadata["problem"] if is_away else str(error))
        return ServiceUnavailable(driver.name, driver.address, problem, driver.platform, answered=not is_away)

    def check_memory(self, seen: int, shown: int) -> None:
        """Stop relying on a platform that claims to fence, but has *seen* only tokens below one that it was *shown*."""
        if self.fences and seen < shown:
            self.fences = False
            facts = {"shown_token": shown, "seen_token": seen}
            log.warning("platform does not remember tokens, so late requests are waited for", extra=facts)

    async def raise_token(self) -> None:
        """
        Get a token higher than ``unanswered_token``, unless the current one is higher.

        Raises:
            PkgerError: As ``WriteLease.raise_token``.
        """
        if self._right.token <= self.unanswered_token:
            await self._right.raise_token()

    async def send(self, effects: Sequence[AnyEffect], sendings: Mapping[int, Sending], key: str) -> dict[int, Outcome]:
        """
        Send *effects* in one batch.

        Args:
            effects: The effects.
            sendings: The ids that each refers to, by step number.
            key: The idempotency keys of creations, with ``{}`` for the step number.

        Returns:
            The outcome of each, by step number.

        Raises:
            LeaseLost: Nothing was sent.
            TokenStale: Nothing took effect.
        """
        async with self._throttle.slot() as slot:
            outcomes = await self._mutate(effects, sendings, key)
            slot.was_refused = any(retry_delay(outcome) is not None for outcome in outcomes)
            slot.was_taken = not any(isinstance(outcome, Unknown) for outcome in outcomes)
        if not slot.was_taken:
            self.mark_unanswered()
        return {effect.number: outcome for effect, outcome in zip(effects, outcomes, strict=True)}

    def mark_unanswered(self) -> None:
        """Mark that a batch may have been sent without a response."""
        self.unanswered, self.unanswered_token = loop_time(), self._right.token

    async def _mutate(self, effects: Sequence[AnyEffect], sendings: Mapping[int, Sending], key: str) -> list[Outcome]:
        fence = await self._right.hold(self._timeouts.mutate)
        mutations = [
            mutation_to_pb(each, sendings[each.number], key.format(each.number), self._secrets.value(each))
            for each in effects
        ]
        request = driver_pb2.MutateRequest(org=self._org, fence=fence, mutations=mutations)
        writes_secrets = any(each.is_of_secret for each in effects)
        try:
            answer = await self._driver.call(self._stub.Mutate, request, self._timeouts.mutate)
        except TokenStale as error:
            if fence.token < self._right.token:
                # The token was raised and shown while this batch was in flight, so none of its mutations took effect.
                return await self._mutate(effects, sendings, key)
            self._secrets.mask_error(error)
            raise error from None
        except RequestInvalid as error:
            return [Failed(self._secrets.masked(str(error), writes_secrets)) for _ in effects]
        except PkgerError as error:
            # After any other error the outcome of every mutation is unknown (driver.proto).
            return [Unknown(self._secrets.masked(str(error), writes_secrets)) for _ in effects]
        self.shown_token, self._right.is_shown = max(self.shown_token, fence.token), True
        if len(answer.results) != len(effects):
            problem = f"the driver gave {len(answer.results)} results for {len(effects)} mutations"
            return [Unknown(problem) for _ in effects]
        if any(result.position != position for position, result in enumerate(answer.results)):
            return [Unknown("the driver gave its results in another order than the mutations") for _ in effects]
        results = zip(effects, answer.results, strict=True)
        return [
            self._secrets.masked_outcome(outcome_from_pb(each, sendings[each.number], result), writes_secrets)
            for each, result in results
        ]


def retry_delay(outcome: Outcome | None) -> float | None:
    """Seconds to wait before the next attempt, as the outcome asks; None: it does not ask."""
    return outcome.retry_after if isinstance(outcome, Failed | Unknown) else None
