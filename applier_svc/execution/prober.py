"""Finds the outcomes of requests without a response in the platform and in the records of stacks."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

from applier_svc.execution.retries import Answer, repeated, stop_after
from applier_svc.execution.timeouts import Timeouts
from services.core.errors import PkgerError
from services.core.model import PlatformTraits, Resource, ResourceKey, Target, UnreadableSpecError
from services.engine.effects import AnyEffect, Create
from services.engine.effects.effect import Sending
from services.engine.outcome import Done, Failed, Finding, NoEffect, Unknown
from services.rpc.client import Peer
from services.rpc.resources import list_resources, list_secret_keys, live_resources, read_resources
from services.rpc.stack_records import find_owners

UNREADABLE = (PkgerError, UnreadableSpecError)
"""Exceptions of a driver or store that does not answer, or answers with a spec that cannot be decoded."""

IdsByName = dict[tuple[str, str], tuple[str, ...]]
"""Ids of the resources of each kind and display name, in the form in which the platform compares it."""

Sent = Mapping[int, Sending]
"""The values that were sent, by step number."""


class Prober:
    """Reads from one organization of one platform."""

    def __init__(
        self,
        driver: Peer,
        stack: Peer,
        traits: PlatformTraits,
        target: Target,
        timeouts: Timeouts,
        masked: Callable[[str], str],
    ) -> None:
        """*masked* removes secret values from a message of a driver."""
        self._driver = driver
        self._stack = stack
        self._traits = traits
        self._target = target
        self._timeouts = timeouts
        self._masked = masked

    async def probe(
        self, effects: Sequence[AnyEffect], sent: Sent, expected: Collection[ResourceKey]
    ) -> dict[int, Finding]:
        """
        The finding for each effect, by its number; few calls, whatever the number of effects.

        Failed reads are retried for ``Timeouts.resolution``.

        Args:
            effects: Effects without a response that can no longer take effect late.
            sent: The values that were sent for them.
            expected: The resources that the operation already knows.
        """
        creations = [effect for effect in effects if isinstance(effect, Create)]
        changes = [effect for effect in effects if not isinstance(effect, Create)]

        async def look() -> dict[int, Finding]:
            return await self._changes(changes, sent) | await self._creations(creations, sent, expected)

        retrying = AsyncRetrying(
            retry=retry_if_exception_type(UNREADABLE),
            wait=self._timeouts.between_attempts,
            stop=stop_after(self._timeouts.resolution),
            reraise=True,
        )
        try:
            return await repeated(retrying, look)
        except UNREADABLE as error:
            problem = self._masked(str(error))
        return {effect.number: Unknown(f"its outcome could not be looked up: {problem}") for effect in effects}

    async def read(self, resources: Sequence[ResourceKey]) -> dict[ResourceKey, Resource]:
        """
        The *resources* that exist; no call if there are none to read.

        Raises:
            PkgerError: They cannot be read; ``UNREADABLE`` lists all exceptions.
        """
        results = await read_resources(self._driver, self._target.org, resources) if resources else []
        return {(each.kind, each.id): each for each in results if each}

    async def ids_by_name(self, kinds: Collection[str], expected: Collection[ResourceKey]) -> IdsByName:
        """
        Ids of all resources of *kinds*, by kind and compared display name; *expected* as for ``probe``.

        Raises:
            PkgerError: They cannot be listed; ``UNREADABLE`` lists all exceptions.
        """
        by_name: dict[tuple[str, str], list[str]] = {}
        for resource in await self._listed(kinds, expected):
            by_name.setdefault(self._traits.compared(resource.kind, resource.spec), []).append(resource.id)
        return {name: tuple(ids) for name, ids in by_name.items()}

    async def live_and_owned(
        self, kinds: Sequence[str], expected: Collection[ResourceKey]
    ) -> tuple[list[Resource], set[ResourceKey]]:
        """
        Return all resources of *kinds* and the *expected* resources of other kinds with a costly listing; and, of all
        these, the keys of the resources that a stack owns.

        *expected* as for ``probe``.

        Raises:
            PkgerError: They cannot be listed; ``UNREADABLE`` lists all exceptions.
        """
        live = await live_resources(self._driver, self._target.org, kinds, expected, self._traits)
        return live, await self._owned([(each.kind, each.id) for each in live])

    async def secret_keys(self) -> frozenset[str]:
        """
        Keys of the secrets that the platform holds.

        Raises:
            PkgerError: They cannot be listed; ``UNREADABLE`` lists all exceptions.
        """
        return await list_secret_keys(self._driver, self._target.org)

    async def secret_keys_before(self) -> frozenset[str] | Failed:
        """As ``secret_keys``, with retries; after the last, the failure of a step that depends on the keys."""
        keys = await self._attempted(self.secret_keys)
        return keys if isinstance(keys, frozenset) else Failed(f"it was not sent: the secrets of the platform {keys}")

    async def read_before(self, resources: Sequence[ResourceKey]) -> dict[ResourceKey, Resource] | str:
        """As ``read``, with retries; after the last, the problem as one sentence."""
        resources_read = await self._attempted(partial(self.read, resources))
        return f"what the plan relies on {resources_read}" if isinstance(resources_read, str) else resources_read

    async def _attempted(self, look: Callable[[], Awaitable[Answer]]) -> Answer | str:
        """The result of *look*, with retries; after the last, why it cannot be read, without its subject."""
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(UNREADABLE),
            wait=self._timeouts.between_attempts,
            stop=stop_after_attempt(self._timeouts.attempts),
            reraise=True,
        )
        try:
            return await repeated(retrying, look)
        except UNREADABLE as error:
            return f"cannot be read: {self._masked(str(error))}"

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
        self, effects: Sequence[Create], sent: Sent, expected: Collection[ResourceKey]
    ) -> dict[int, Finding]:
        if not effects:
            return {}
        kinds = {each.step.key.kind for each in effects}
        live = await self._listed(kinds, expected)
        findings = await self._findings_among(effects, sent, expected, live)
        if any(isinstance(finding, NoEffect) for finding in findings.values()):
            # One listing does not prove absence, and there is no id to read: a second listing has to agree.
            await asyncio.sleep(self._timeouts.longest_wait)
            live = await self._listed(kinds, {*expected, *((each.kind, each.id) for each in live)})
            findings = await self._findings_among(effects, sent, expected, live)
        return findings

    async def _findings_among(
        self, effects: Sequence[Create], sent: Sent, expected: Collection[ResourceKey], live: Sequence[Resource]
    ) -> dict[int, Finding]:
        compared = self._traits.compared
        names = {compared(each.step.key.kind, each.step.new_spec) for each in effects if each.step.new_spec}
        namesakes = [(each.kind, each.id) for each in live if compared(each.kind, each.spec) in names]
        # A listing may be stale and show deleted resources: only those that can be read count.
        there = await self.read(namesakes)
        owned = {*expected, *await self._owned(namesakes)}
        findings: dict[int, Finding] = {}
        for each in effects:
            kind = each.step.key.kind
            of_kind = [resource for resource in there.values() if resource.kind == kind]
            taken = {id_ for owned_kind, id_ in owned if owned_kind == kind}
            finding = each.finding_among(sent[each.number], of_kind, taken, self._traits.kinds[kind])
            if isinstance(finding, Done):
                # Each resource was made by at most one creation.
                owned.add((kind, finding.resource_id))
            findings[each.number] = finding
        return findings

    async def _owned(self, resources: Collection[ResourceKey]) -> set[ResourceKey]:
        """
        Those of *resources* that a stack owns, or an operation claims for an object.

        An operation that claims a resource for no object only removes a label or a reference from it, so the resource
        may be the result of a creation whose outcome is looked up.
        """
        owners = await find_owners(self._stack, self._target, resources)
        return {resource for resource, owner in owners.items() if owner.key.name}

    async def _listed(self, kinds: Collection[str], expected: Collection[ResourceKey]) -> list[Resource]:
        return await list_resources(self._driver, self._target.org, sorted(kinds), expected)
