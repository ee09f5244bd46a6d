"""The embedded platform with the traits and faults of a scenario: refusals, throttling and ambiguous outcomes."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from services.core.check import PlatformCheck
from services.core.model import Identity, KindTraits, NameUniqueness, Organization, PlatformTraits, Spec
from services.drivers.embedded.driver import EmbeddedDriver
from services.drivers.embedded.kinds import EMBEDDED
from services.drivers.mutation import (
    Ambiguous,
    Create,
    Delete,
    Done,
    Fence,
    Mutation,
    Rejected,
    ResourceId,
    Result,
    StoredResource,
    Update,
)
from services.engine.outcome import RejectionReason
from tests.simulation import faults
from tests.simulation.draws import Draws
from tests.simulation.scenario import MutationFault, Platform
from tests.simulation.trace import Trace

RETRY_AFTER = 0.5
"""Seconds after which a throttling platform takes a retry."""

_BUSY = Rejected(None, "too many requests", retry_after=RETRY_AFTER)
_DOUBT = Ambiguous("the platform lost the connection to its disk")

_REFUSED_AGAIN = "refused again"
"""A named refusal of a mutation that took effect before."""

_LONG_RETRY_AFTER = 20.0
"""Seconds after which a mutation that is throttled by name may be sent again: it may be throttled at each retry."""


@dataclass(slots=True)
class NamedFaults:
    """
    The faults of single mutations that a scenario names. They outlive the process of the platform.

    Attributes:
        faults: The faults.
        sent: The number of mutations of each operation so far; the operations in the order in which they first wrote.
        met: The lasting faults that mutations met, by operation and content.
        done: The mutations that took effect, likewise.
    """

    faults: Sequence[MutationFault]
    sent: dict[str, int] = field(default_factory=dict)
    met: dict[tuple[str, str], str] = field(default_factory=dict)
    done: set[tuple[str, str]] = field(default_factory=set)

    def of_next(self, operation: str, mutation: tuple[str, str]) -> tuple[str, str]:
        """Which mutation this one is, for people, and its fault; empty: it meets none."""
        nth = self.sent[operation] = self.sent.get(operation, 0) + 1
        number = list(self.sent).index(operation) + 1
        fault = self.met.get(mutation, faults.NONE)
        for each in self.faults:
            if (each.operation, each.nth) == (number, nth):
                fault = each.fault
                if each.is_lasting:
                    self.met[mutation] = fault
        return f"mutation {nth} of operation {number}", fault


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
        named: NamedFaults,
        is_calm: Callable[[], bool],
        trace: Trace,
    ) -> None:
        """*decided* says whether a mutation is refused; once *is_calm* returns True, none is refused."""
        self._driver = driver
        self._platform = platform
        self._draws = draws
        self._decided = decided
        self._named = named
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

    async def prepare_specs(self, org: str, writes: Sequence[Create | Update]) -> list[Spec | Rejected]:
        return await self._driver.prepare_specs(org, writes)

    async def secret_keys(self, org: str) -> list[str]:
        return await self._driver.secret_keys(org)

    async def orgs(self) -> list[Organization]:
        return list(await self._driver.orgs())

    async def check(self, org: str) -> PlatformCheck:
        return await self._driver.check(org)

    async def mutate(self, org: str, fence: Fence | None, batch: Sequence[Mutation]) -> list[Result]:
        named = [self._named_fault(fence, each) for each in batch]
        answers = {
            number: answer
            for number, each in enumerate(batch)
            if (answer := _answer_of(named[number]) or self._answer_without(each))
        }
        taken = [self._sent(each) for number, each in enumerate(batch) if number not in answers]
        results = iter(await self._driver.mutate(org, fence if self._platform.fences else None, taken))
        given = [answers.get(number) or self._doubted(next(results)) for number in range(len(batch))]
        for number, (mutation, fault) in enumerate(named):
            if isinstance(given[number], Done):
                self._named.done.add(mutation)
            if fault == faults.ANSWER_LOST:
                given[number] = _DOUBT
        return given

    async def show_token(self, fence: Fence) -> Fence | None:
        return await self._driver.show_token(fence)

    async def close(self) -> None:
        await self._driver.close()

    def _named_fault(self, fence: Fence | None, mutation: Mutation) -> tuple[tuple[str, str], str]:
        """The operation and the content of *mutation*, and the fault that the scenario names for it."""
        operation = fence.operation if fence else ""
        content = replace(mutation, expected=None) if isinstance(mutation, Update | Delete) else mutation
        key = (operation, repr(content))
        if not operation:
            return key, faults.NONE
        which, fault = self._named.of_next(operation, key)
        if fault and not self._is_calm():
            self._trace.say("platform", f"{which} is {fault}")
            self._trace.count(f"mutation {fault}")
            if fault == faults.REFUSED and key in self._named.done:
                # A reason would mean that the mutation never took effect (driver.proto).
                return key, _REFUSED_AGAIN
            return key, fault
        self._trace.say("platform", f"takes {which}")
        return key, faults.NONE

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


def _answer_of(named: tuple[tuple[str, str], str]) -> Result | None:
    """The answer to a mutation that its named fault keeps from taking effect; None: it goes to the platform."""
    match named[1]:
        case faults.LOST:
            return _DOUBT
        case faults.THROTTLED:
            return replace(_BUSY, retry_after=_LONG_RETRY_AFTER)
        case faults.REFUSED:
            return Rejected(RejectionReason.CONTENT_REFUSED, "the scenario refuses it")
        case _:
            return Rejected(None, "the scenario refuses it") if named[1] == _REFUSED_AGAIN else None


def _identity(traits: KindTraits, identity: Identity) -> Identity:
    """*identity*, or a search for a kind whose names may repeat, as such a kind cannot be found by its name."""
    may_repeat = traits.name_uniqueness is NameUniqueness.NONE
    return Identity.SEARCH if may_repeat and identity is Identity.NATURAL_KEY else identity
