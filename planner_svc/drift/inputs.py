"""Reads the facts that a drift detection compares, in few calls, whatever the number of resources."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import replace

from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from pkger.model.v1 import object_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from planner_svc.drift.report import DriftInput, LiveState, missing_scopes, specs_to_compare
from planner_svc.inputs import PlanInputs
from services.core.drift import DriftCounts
from services.core.errors import PkgerError, StackMoved
from services.core.model import (
    Baseline,
    InventoryEntry,
    Key,
    PlatformTraits,
    Resource,
    ResourceKey,
    Spec,
    StackRecord,
)
from services.engine.outcome import Failed
from services.packages.package_text import KeptPackage
from services.rpc.client import Peer
from services.rpc.convert.drift import counts_fields
from services.rpc.convert.objects import baseline_from_pb
from services.rpc.paging import pages
from services.rpc.resources import live_resources, prepare_specs
from services.rpc.stack_records import read_record


class DriftReader:
    """Reads the facts of a drift detection from the stack service and the driver, and stores its result."""

    def __init__(self, reader: PlanInputs, stack: Peer) -> None:
        self._reader = reader
        self._stack = stack
        self._stub = StackServiceStub(stack.channel)
        self._journal = JournalServiceStub(stack.channel)

    async def record(self, stack: object_pb2.StackRef) -> StackRecord:
        """
        The record of a stack that exists.

        Raises:
            StackNotFound: There is none.
            RequestInvalid: The reference names no stack, or is ambiguous.
        """
        return await read_record(self._stack, stack)

    async def facts(self, stack: StackRecord, entries: Sequence[InventoryEntry]) -> DriftInput:
        """
        Read the facts that a detection of *entries* of *stack* compares.

        Raises:
            StackMoved: The stack has changed since its record was read.
            PlatformUnknown: No such platform is configured.
            PkgerError: The stack service or the driver failed; kinds that cannot be listed are in the facts instead.
        """
        platform = await self._reader.traits(stack.target)
        live, package, baselines = await asyncio.gather(
            self._live(stack, entries, platform), self._package(stack), self._baselines(stack)
        )
        facts = DriftInput(stack, entries, package, baselines, live, platform)
        if scopes := missing_scopes(facts):
            facts = replace(facts, live=await self._with_names(facts, scopes))
        current = await self._stack.call(
            self._stub.GetStack, stack_pb2.GetStackRequest(stack=object_pb2.StackRef(id=stack.id))
        )
        # An operation that ended meanwhile has changed resources that this record has in their earlier state.
        _refuse_moved(stack, current.stack.generation)
        return facts

    async def prepared(self, facts: DriftInput) -> dict[Key, Spec | Failed]:
        """The specs of ``specs_to_compare`` as the platform would hold them; one call for all of them."""
        specs = await asyncio.to_thread(specs_to_compare, facts)
        if not specs:
            return {}
        target = facts.stack.target
        driver = self._reader.driver(target)
        prepared_specs = await prepare_specs(driver, target.org, [*specs.values()], facts.platform)
        return dict(zip(specs, prepared_specs, strict=True))

    async def store(self, stack: StackRecord, counts: DriftCounts) -> bool:
        """
        Store the result of a detection of the whole *stack*.

        Returns:
            Whether the stack service stored it.
        """
        request = journal_pb2.RecordDriftCheckRequest(
            stack_id=stack.id, generation=stack.generation, counts=counts_fields(counts)
        )
        return (await self._stack.call(self._journal.RecordDriftCheck, request)).is_stored

    async def _package(self, stack: StackRecord) -> KeptPackage | None:
        return await self._reader.current_package(stack) if stack.package_digest else None

    async def _baselines(self, stack: StackRecord) -> dict[Key, Baseline]:
        """
        All baselines of *stack*.

        Raises:
            StackMoved: They are of another generation of the stack.
        """
        baselines: list[Baseline] = []
        request = journal_pb2.ListBaselinesRequest(stack_id=stack.id)
        async for page in pages(self._stack, self._journal.ListBaselines, request):
            _refuse_moved(stack, page.generation)
            baselines += map(baseline_from_pb, page.baselines)
        return {baseline.key: baseline for baseline in baselines}

    async def _live(self, stack: StackRecord, entries: Sequence[InventoryEntry], platform: PlatformTraits) -> LiveState:
        """The live resources of the kinds of *entries*: one call for each kind, so that each can fail by itself."""
        resource_keys: dict[str, list[ResourceKey]] = {}
        for entry in entries:
            resource_keys.setdefault(entry.key.kind, []).append((entry.key.kind, entry.resource_id))
        kinds = sorted(resource_keys.keys() & platform.kinds.keys())
        problems = {
            kind: f"platform {stack.target.platform!r} has no kind {kind}" for kind in resource_keys.keys() - {*kinds}
        }
        return await self._listed(stack, kinds, resource_keys, LiveState({}, problems), platform)

    async def _with_names(self, facts: DriftInput, scopes: Collection[str]) -> LiveState:
        """The live resources, with all whose names are unique in *scopes*; a kind that cannot be listed is left out."""
        kinds = [kind for kind, traits in facts.platform.kinds.items() if traits.scope in scopes]
        more = sorted({*kinds} - {entry.key.kind for entry in facts.entries})
        live = await self._listed(facts.stack, more, {}, facts.live, facts.platform)
        return live._replace(problems=facts.live.problems)

    async def _listed(
        self,
        stack: StackRecord,
        kinds: Sequence[str],
        resource_keys: dict[str, list[ResourceKey]],
        live: LiveState,
        platform: PlatformTraits,
    ) -> LiveState:
        """
        *live* with all resources of *kinds*; of kinds with a costly listing, only with the resources *resource_keys*.
        """
        driver, org = self._reader.driver(stack.target), stack.target.org

        async def read(kind: str) -> list[Resource] | str:
            whole = [] if platform.kinds[kind].costly_listing else [kind]
            try:
                return await live_resources(driver, org, whole, resource_keys.get(kind, ()), platform)
            except PkgerError as error:
                return str(error)

        answers = dict(zip(kinds, await asyncio.gather(*map(read, kinds)), strict=True))
        listed = [each for answer in answers.values() if not isinstance(answer, str) for each in answer]
        problems = {kind: answer for kind, answer in answers.items() if isinstance(answer, str)}
        resources = {(each.kind, each.id): each for each in listed}
        return LiveState({**live.resources, **resources}, {**live.problems, **problems})


def _refuse_moved(stack: StackRecord, generation: int) -> None:
    if generation != stack.generation:
        raise StackMoved(stack.name or stack.id, stack.generation, generation)
