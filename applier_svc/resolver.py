"""Reads on the platform, and in the records of stacks, what became of steps that were sent and not answered."""

from collections.abc import Callable, Collection, Sequence

import grpc
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay

from applier_svc.outcomes import Done, Unknown
from applier_svc.patience import Patience
from applier_svc.resolving import Doubt, Finding, finding, finding_of_create
from services.core.errors import PkgerError
from services.core.model import PlatformTraits, Resource, Target, Verb
from services.rpc.client import Peer
from services.rpc.resources import find_owners, list_resources, list_secret_keys, read_resources

UNREADABLE = (PkgerError, grpc.aio.AioRpcError)
"""What a driver, or a store, that does not tell what is there answers with."""

IdsByName = dict[tuple[str, str], tuple[str, ...]]
"""Ids of the resources of each kind and display name, in the form in which the platform compares it."""


class Resolver:
    """Looks at one organisation of one platform."""

    def __init__(
        self,
        driver: Peer,
        stack: Peer,
        traits: PlatformTraits,
        target: Target,
        patience: Patience,
        repeatable: Callable[[str], str],
    ) -> None:
        """*repeatable* makes of what a driver says what may be told of it."""
        self._driver = driver
        self._stack = stack
        self._traits = traits
        self._target = target
        self._patience = patience
        self._repeatable = repeatable

    async def find_out(self, doubts: Sequence[Doubt], known: Collection[tuple[str, str]]) -> dict[int, Finding]:
        """
        What became of each step, by its number; few calls, whatever the number of steps.

        What cannot be read is asked for again for as long as patience lasts.

        Args:
            doubts: The steps. Enough time has passed for them to have taken effect, if they ever do.
            known: Kind and id of the resources of which the operation knows what they are.
        """
        changes = [each for each in doubts if each.step.verb is not Verb.CREATE]
        creates = [each for each in doubts if each.step.verb is Verb.CREATE]

        async def look() -> dict[int, Finding]:
            return await self._changes(changes) | await self._creates(creates, known)

        try:
            return await AsyncRetrying(
                retry=retry_if_exception_type(UNREADABLE),
                wait=self._patience.between_attempts(),
                stop=stop_after_delay(self._patience.stubborn),
                reraise=True,
            )(look)
        except PkgerError as error:
            problem = self._repeatable(str(error))
        except grpc.aio.AioRpcError as error:
            problem = f"the driver failed: {self._repeatable(str(error.details()))}"
        return {each.step.number: Unknown(f"nobody could look what became of it: {problem}") for each in doubts}

    async def ids_by_name(self, kinds: Collection[str]) -> IdsByName:
        """
        Ids of all resources of *kinds*, by kind and display name as compared.

        Raises:
            PkgerError: They cannot be listed; ``UNREADABLE`` has all there is.
        """
        found: dict[tuple[str, str], list[str]] = {}
        for resource in await self._listed(kinds):
            found.setdefault(self._traits.compared(resource.kind, resource.spec), []).append(resource.id)
        return {name: tuple(ids) for name, ids in found.items()}

    async def live_and_owned(self, kinds: Sequence[str]) -> tuple[list[Resource], set[tuple[str, str]]]:
        """
        All resources of *kinds*, and those of them that a stack owns.

        Raises:
            PkgerError: They cannot be listed; ``UNREADABLE`` has all there is.
        """
        live = await self._listed(kinds)
        owners = await find_owners(self._stack, self._target, [(each.kind, each.id) for each in live])
        return live, set(owners)

    async def secret_keys(self) -> frozenset[str]:
        """
        Keys of the secrets that the platform holds.

        Raises:
            PkgerError: They cannot be listed; ``UNREADABLE`` has all there is.
        """
        return await list_secret_keys(self._driver, self._target.org)

    async def _changes(self, doubts: Sequence[Doubt]) -> dict[int, Finding]:
        ids = sorted({(each.step.key.kind, each.remote_id) for each in doubts})
        live = dict(zip(ids, await read_resources(self._driver, self._target.org, ids), strict=True))
        return {
            each.step.number: finding(
                each, live[each.step.key.kind, each.remote_id], self._traits.kinds[each.step.key.kind]
            )
            for each in doubts
        }

    async def _creates(self, doubts: Sequence[Doubt], known: Collection[tuple[str, str]]) -> dict[int, Finding]:
        if not doubts:
            return {}
        live = await self._listed({each.step.key.kind for each in doubts})
        names = {self._traits.compared(each.step.key.kind, each.step.new_spec) for each in doubts if each.step.new_spec}
        asked = [(each.kind, each.id) for each in live if self._traits.compared(each.kind, each.spec) in names]
        owned = {*known, *await find_owners(self._stack, self._target, asked)}
        found: dict[int, Finding] = {}
        for each in doubts:
            kind = each.step.key.kind
            outcome = finding_of_create(
                each,
                [resource for resource in live if resource.kind == kind],
                {id_ for owned_kind, id_ in owned if owned_kind == kind},
                self._traits.kinds[kind],
            )
            if isinstance(outcome, Done):
                # One resource is what came of one creation.
                owned.add((kind, outcome.remote_id))
            found[each.step.number] = outcome
        return found

    async def _listed(self, kinds: Collection[str]) -> list[Resource]:
        return await list_resources(self._driver, self._target.org, sorted(kinds))
