"""The embedded platform with the traits of a scenario, and with refusals, throttling and ambiguous outcomes."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from services.core.check import PlatformCheck
from services.core.model import Identity, KindTraits, NameUniqueness, Organization, PlatformTraits, Spec
from services.drivers.embedded.driver import EmbeddedDriver
from services.drivers.embedded.kinds import EMBEDDED
from services.drivers.mutation import (
    Ambiguous,
    Create,
    Delete,
    Fence,
    Mutation,
    Rejected,
    ResourceId,
    Result,
    StoredResource,
    Update,
)
from services.engine.outcome import RejectionReason
from tests.simulation.draws import Draws
from tests.simulation.scenario import Platform
from tests.simulation.trace import Trace

RETRY_AFTER = 0.5
"""Seconds after which a throttling platform takes a retry."""

_BUSY = Rejected(None, "too many requests", retry_after=RETRY_AFTER)
_DOUBT = Ambiguous("the platform lost the connection to its disk")


class SimulatedPlatform:
    """
    A ``Driver``.

    A refusal depends on the content: the same mutation is refused each time, and a mutation that took effect is never
    refused when it is sent again (driver.proto). Only throttling refuses one attempt and takes the next.
    ``prepare_specs`` refuses nothing: a plan that is refused writes nothing, and so shows no defect.
    """

    def __init__(
        self,
        driver: EmbeddedDriver,
        platform: Platform,
        draws: Draws,
        decided: dict[str, bool],
        is_calm: Callable[[], bool],
        trace: Trace,
    ) -> None:
        """*decided* says whether a mutation is refused; once *is_calm* returns True, none is refused."""
        self._driver = driver
        self._platform = platform
        self._draws = draws
        self._decided = decided
        self._is_calm = is_calm
        self._trace = trace
        identity = Identity[platform.identity]
        kinds = {kind: replace(traits, identity=_identity(traits, identity)) for kind, traits in EMBEDDED.kinds.items()}
        self._traits = replace(
            EMBEDDED,
            kinds=kinds,
            fences=platform.fences,
            max_batch_size=platform.batch,
            max_concurrency=platform.concurrency,
        )

    async def describe(self) -> PlatformTraits:
        return self._traits

    async def list_resources(self, org: str, kinds: Sequence[str]) -> list[StoredResource]:
        return await self._driver.list_resources(org, kinds)

    async def read_resources(self, org: str, ids: Sequence[ResourceId]) -> list[StoredResource | None]:
        return await self._driver.read_resources(org, ids)

    async def prepare_specs(self, org: str, wanted: Sequence[Create | Update]) -> list[Spec | Rejected]:
        return await self._driver.prepare_specs(org, wanted)

    async def secret_keys(self, org: str) -> list[str]:
        return await self._driver.secret_keys(org)

    async def orgs(self) -> list[Organization]:
        return list(await self._driver.orgs())

    async def check(self, org: str) -> PlatformCheck:
        return await self._driver.check(org)

    async def mutate(self, org: str, fence: Fence | None, batch: Sequence[Mutation]) -> list[Result]:
        answers = {number: answer for number, each in enumerate(batch) if (answer := self._answer_without(each))}
        taken = [self._sent(each) for number, each in enumerate(batch) if number not in answers]
        results = iter(await self._driver.mutate(org, fence if self._platform.fences else None, taken))
        return [answers.get(number) or self._doubted(next(results)) for number in range(len(batch))]

    async def show_token(self, fence: Fence) -> Fence | None:
        return await self._driver.show_token(fence)

    async def close(self) -> None:
        await self._driver.close()

    def _answer_without(self, mutation: Mutation) -> Result | None:
        """The answer to a mutation that is kept from taking effect; None: it goes to the platform."""
        if self._refuses(mutation):
            return Rejected(RejectionReason.CONTENT_REFUSED, "the platform does not like it")
        return _BUSY if self._happens("busy", self._platform.throttled) else None

    def _doubted(self, result: Result) -> Result:
        return _DOUBT if self._happens("doubt", self._platform.doubts) else result

    def _happens(self, what: str, rate: float) -> bool:
        is_drawn = self._draws.chance(what, rate)
        if is_drawn and not self._is_calm():
            self._trace.count(f"platform has {what}")
            return True
        return False

    def _refuses(self, mutation: Mutation) -> bool:
        rate = self._platform.refusals
        match mutation:
            case Create(kind, spec, key, _):
                name = f"{kind} {key} {spec.text}"
            case Update(id_, spec, _):
                name = f"{id_} {spec.text}"
            case Delete(id_):
                name, rate = f"{id_} deletion", self._platform.kept
            case _:
                return False
        digest = hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
        if digest not in self._decided:
            refused = self._draws.chance(f"refusal {digest}", rate)
            self._decided[digest] = refused and not self._is_calm()
        # After the faults have stopped, the operator may decide to retry a refused mutation.
        return self._decided[digest] and not self._is_calm()

    def _sent(self, mutation: Mutation) -> Mutation:
        """*mutation* without its idempotency key, if the platform does not store such keys."""
        if isinstance(mutation, Create) and Identity[self._platform.identity] is not Identity.NATIVE:
            return replace(mutation, idempotency_key="")
        return mutation


def _identity(traits: KindTraits, identity: Identity) -> Identity:
    """*identity*, or a search for a kind whose names may repeat, as such a kind cannot be found by its name."""
    may_repeat = traits.name_uniqueness is NameUniqueness.NONE
    return Identity.SEARCH if may_repeat and identity is Identity.NATURAL_KEY else identity
