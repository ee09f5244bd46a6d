"""Reads on the platform, and in the records of stacks, what became of what was sent and not answered."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence

import grpc
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

from applier_svc.execution.retrying import repeated, stop_after
from applier_svc.execution.timeouts import Timeouts
from services.core.errors import PkgerError
from services.core.model import PlatformTraits, Resource, ResourceKey, Target, UnreadableSpecError
from services.engine.effects import AnyEffect, Create
from services.engine.effects.effect import Sending
from services.engine.outcome import Done, Failed, Finding, NoEffect, Unknown
from services.rpc.client import Peer
from services.rpc.resources import find_owners, list_resources, list_secret_keys, live_resources, read_resources

UNREADABLE = (PkgerError, UnreadableSpecError, grpc.aio.AioRpcError)
"""What comes of a driver, or a store, that does not tell what is there, or tells what nobody can read."""

IdsByName = dict[tuple[str, str], tuple[str, ...]]
"""Ids of the resources of each kind and display name, in the form in which the platform compares it."""

Sent = Mapping[int, Sending]
"""What was sent, by step number."""


class Prober:
    """Looks at one organisation of one platform."""

    def __init__(
        self,
        driver: Peer,
        stack: Peer,
        traits: PlatformTraits,
        target: Target,
        timeouts: Timeouts,
        masked: Callable[[str], str],
    ) -> None:
        """*masked* makes of what a driver says what may be repeated of it."""
        self._driver = driver
        self._stack = stack
        self._traits = traits
        self._target = target
        self._timeouts = timeouts
        self._masked = masked

    async def find_out(
        self, effects: Sequence[AnyEffect], sent: Sent, known: Collection[ResourceKey]
    ) -> dict[int, Finding]:
        """
        What became of each effect, by its number; few calls, whatever the number of effects.

        What cannot be read is asked for again for as long as the timeouts allow.

        Args:
            effects: Enough time has passed for them to have taken place, if they ever do.
            sent: What was sent for them.
            known: The resources of which the operation knows what they are.
        """
        creations = [effect for effect in effects if isinstance(effect, Create)]
        changes = [effect for effect in effects if not isinstance(effect, Create)]

        async def look() -> dict[int, Finding]:
            return await self._changes(changes, sent) | await self._creations(creations, sent, known)

        retrying = AsyncRetrying(
            retry=retry_if_exception_type(UNREADABLE),
            wait=self._timeouts.between_attempts,
            stop=stop_after(self._timeouts.stubborn),
            reraise=True,
        )
        try:
            return await repeated(retrying, look)
        except (PkgerError, UnreadableSpecError) as error:
            problem = self._masked(str(error))
        except grpc.aio.AioRpcError as error:
            problem = f"the driver failed: {self._masked(str(error.details()))}"
        return {effect.number: Unknown(f"nobody could look what became of it: {problem}") for effect in effects}

    async def read(self, resources: Sequence[ResourceKey]) -> dict[ResourceKey, Resource]:
        """
        Those of *resources* that are there; no call for none.

        Raises:
            PkgerError: They cannot be read; ``UNREADABLE`` has all there is.
        """
        found = await read_resources(self._driver, self._target.org, resources) if resources else []
        return {(each.kind, each.id): each for each in found if each}

    async def ids_by_name(self, kinds: Collection[str], known: Collection[ResourceKey]) -> IdsByName:
        """
        Ids of all resources of *kinds*, by kind and display name as compared; *known* as of ``find_out``.

        Raises:
            PkgerError: They cannot be listed; ``UNREADABLE`` has all there is.
        """
        found: dict[tuple[str, str], list[str]] = {}
        for resource in await self._listed(kinds, known):
            found.setdefault(self._traits.compared(resource.kind, resource.spec), []).append(resource.id)
        return {name: tuple(ids) for name, ids in found.items()}

    async def live_and_owned(
        self, kinds: Sequence[str], known: Collection[ResourceKey]
    ) -> tuple[list[Resource], set[ResourceKey]]:
        """
        All resources of *kinds*, and *known* ones of others with a costly listing; and those of them that a stack owns.

        *known* as of ``find_out``.

        Raises:
            PkgerError: They cannot be listed; ``UNREADABLE`` has all there is.
        """
        live = await live_resources(self._driver, self._target.org, kinds, known, self._traits)
        owners = await find_owners(self._stack, self._target, [(each.kind, each.id) for each in live])
        return live, set(owners)

    async def secret_keys(self) -> frozenset[str]:
        """
        Keys of the secrets that the platform holds.

        Raises:
            PkgerError: They cannot be listed; ``UNREADABLE`` has all there is.
        """
        return await list_secret_keys(self._driver, self._target.org)

    async def secret_keys_before(self) -> frozenset[str] | Failed:
        """As ``secret_keys``, asked for until the attempts are used up; then why what depends on it was not sent."""
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(UNREADABLE),
            wait=self._timeouts.between_attempts,
            stop=stop_after_attempt(self._timeouts.attempts),
            reraise=True,
        )
        try:
            return await repeated(retrying, self.secret_keys)
        except UNREADABLE as error:
            return Failed(f"it was not sent, as nobody tells which secrets there are: {self._masked(str(error))}")

    async def _changes(self, effects: Sequence[AnyEffect], sent: Sent) -> dict[int, Finding]:
        keys = {effect.number: (effect.step.key.kind, sent[effect.number].resource_id) for effect in effects}
        ids = sorted(set(keys.values()))
        live = dict(zip(ids, await read_resources(self._driver, self._target.org, ids), strict=True))
        return {
            each.number: each.finding(
                sent[each.number], live[keys[each.number]], self._traits.kinds[each.step.key.kind]
            )
            for each in effects
        }

    async def _creations(
        self, effects: Sequence[Create], sent: Sent, known: Collection[ResourceKey]
    ) -> dict[int, Finding]:
        if not effects:
            return {}
        kinds = {each.step.key.kind for each in effects}
        live = await self._listed(kinds, known)
        found = await self._found_among(effects, sent, known, live)
        if any(isinstance(finding, NoEffect) for finding in found.values()):
            # Absent from a listing is a question, and there is no id to read: a second listing has to agree.
            await asyncio.sleep(self._timeouts.longest_wait)
            live = await self._listed(kinds, {*known, *((each.kind, each.id) for each in live)})
            found = await self._found_among(effects, sent, known, live)
        return found

    async def _found_among(
        self, effects: Sequence[Create], sent: Sent, known: Collection[ResourceKey], live: Sequence[Resource]
    ) -> dict[int, Finding]:
        compared = self._traits.compared
        names = {compared(each.step.key.kind, each.step.new_spec) for each in effects if each.step.new_spec}
        asked = [(each.kind, each.id) for each in live if compared(each.kind, each.spec) in names]
        # A listing may be old, and show what was deleted since: only what is there when it is read counts.
        there = await self.read(asked)
        owned = {*known, *await find_owners(self._stack, self._target, asked)}
        found: dict[int, Finding] = {}
        for each in effects:
            kind = each.step.key.kind
            of_kind = [resource for resource in there.values() if resource.kind == kind]
            taken = {id_ for owned_kind, id_ in owned if owned_kind == kind}
            finding = each.finding_among(sent[each.number], of_kind, taken, self._traits.kinds[kind])
            if isinstance(finding, Done):
                # One resource is what came of one creation.
                owned.add((kind, finding.resource_id))
            found[each.number] = finding
        return found

    async def _listed(self, kinds: Collection[str], known: Collection[ResourceKey]) -> list[Resource]:
        return await list_resources(self._driver, self._target.org, sorted(kinds), known)
