"""The embedded platform with the traits that a scenario gives it, and one that refuses what it can do."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from services.core.model import Identity, PlatformTraits
from services.drivers.embedded.driver import EmbeddedDriver
from services.drivers.embedded.kinds import EMBEDDED
from services.drivers.mutation import Create, Done, Fence, Mutation, Rejected, ResourceId, StoredResource, Update
from services.engine.outcome import RejectionReason
from tests.simulation.draws import Draws
from tests.simulation.scenario import Platform


class SimulatedPlatform:
    """
    A ``Driver``.

    A refusal is of the content: the same mutation, sent again or late, is refused again, and what took effect is never
    refused when it is sent again (driver.proto).
    """

    def __init__(
        self,
        driver: EmbeddedDriver,
        platform: Platform,
        draws: Draws,
        decided: dict[str, bool],
        is_calm: Callable[[], bool],
    ) -> None:
        """*decided* says of each mutation whether it is refused; *is_calm*, whether new ones are taken all."""
        self._driver = driver
        self._platform = platform
        self._draws = draws
        self._decided = decided
        self._is_calm = is_calm
        identity = Identity[platform.identity]
        kinds = {kind: replace(traits, identity=identity) for kind, traits in EMBEDDED.kinds.items()}
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

    async def secret_keys(self, org: str) -> list[str]:
        return await self._driver.secret_keys(org)

    async def mutate(self, org: str, fence: Fence | None, batch: Sequence[Mutation]) -> list[Done | Rejected]:
        refused = [self._refuses(mutation) for mutation in batch]
        taken = [self._sent(each) for each, is_refused in zip(batch, refused, strict=True) if not is_refused]
        results = iter(await self._driver.mutate(org, fence if self._platform.fences else None, taken))
        refusal = Rejected(RejectionReason.CONTENT_REFUSED, "the platform does not like it")
        return [refusal if is_refused else next(results) for is_refused in refused]

    async def close(self) -> None:
        await self._driver.close()

    def _refuses(self, mutation: Mutation) -> bool:
        match mutation:
            case Create(kind, spec, key, _):
                name = f"{kind} {key} {spec.text}"
            case Update(id_, spec, _):
                name = f"{id_} {spec.text}"
            case _:
                return False
        digest = hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
        if digest not in self._decided:
            refused = self._draws.chance(f"refusal {digest}", self._platform.refusals)
            self._decided[digest] = refused and not self._is_calm()
        # What was refused in the storm may be tried again in the calm, by a decision of the operator.
        return self._decided[digest] and not self._is_calm()

    def _sent(self, mutation: Mutation) -> Mutation:
        """A platform that does not remember idempotency keys takes none."""
        if isinstance(mutation, Create) and Identity[self._platform.identity] is not Identity.NATIVE:
            return replace(mutation, idempotency_key="")
        return mutation
