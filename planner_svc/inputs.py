"""Reads the facts of a plan in as few calls as possible: the package, the stack record and the live resources."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from pkger.model.v1 import object_pb2
from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import planner_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from planner_svc.matching.match import ResourceHolder, kinds_of_record
from planner_svc.nameless_stack import Candidate, chosen
from planner_svc.platform_check import check
from planner_svc.sharing.ownership import ResourceHolders
from planner_svc.snapshots import snapshot_package
from planner_svc.stored_package import StoredPackage, read_revision
from planner_svc.unresolved import unresolved
from services.core.check import PlatformCheck
from services.core.errors import PkgerError, RequestInvalid, StackNotFound
from services.core.model import (
    DesiredSpec,
    Key,
    Organization,
    Package,
    PlatformTraits,
    Resource,
    ResourceKey,
    Spec,
    StackRecord,
    Target,
)
from services.engine.outcome import Failed
from services.packages.installed import InstalledPackage, PackageMove, revisions_with
from services.packages.package_text import NOTHING_KEPT, KeptPackage
from services.packages.versions import Version
from services.rpc.client import Peer, Platforms
from services.rpc.convert.manifests import package_reference_from_pb
from services.rpc.convert.objects import (
    key_from_pb,
    key_to_pb,
    new_target_from_pb,
    stack_from_pb,
    target_to_pb,
    violation_to_pb,
)
from services.rpc.paging import pages
from services.rpc.parsed_package import ParsedPackage, parse_package
from services.rpc.resources import (
    list_orgs,
    list_resources,
    list_secret_keys,
    live_resources,
    platform_traits,
    prepare_specs,
    read_resources,
)
from services.rpc.stack_records import find_holders, find_owners, read_header, read_packages, read_record, read_stack

REVISIONS_AT_ONCE = 500
"""Revisions per page: the maximum (stack.proto)."""


@dataclass(frozen=True, slots=True)
class BaseState:
    """
    The facts that are read before the package is known.

    Attributes:
        stack: The record that the plan is based on.
        platform: The traits of the platform.
        listed: The kinds that have been listed.
        live: All their resources, and the recorded ones of kinds with a costly listing.
        left_out: Keys whose recorded resources are not needed.
    """

    stack: StackRecord
    platform: PlatformTraits
    listed: Sequence[str] = ()
    live: Sequence[Resource] = ()
    left_out: frozenset[Key] = frozenset()


class PlanInputs:
    """Asks the parser, the stack service and the driver; every failure is an error, never "there is none"."""

    def __init__(self, parser: Peer, stack: Peer, platforms: Platforms) -> None:
        self._parser = parser
        self._stack = stack
        self._platforms = platforms

    async def header(self, request: planner_pb2.CreatePlanRequest) -> stack_pb2.Stack:
        """
        The stack of *request*, without its inventory.

        It has only target and name if no stack has that name yet, and only the target for a plan without a stack.

        Raises:
            StackNotFound: No stack has that id, or there is no stack to destroy.
            RequestInvalid: The target is invalid.
        """
        stack = request.stack
        if stack.id:
            return await read_header(self._stack, stack)
        if not request.HasField("stack"):
            return stack_pb2.Stack(target=target_to_pb(new_target_from_pb(request.target)))
        target = new_target_from_pb(stack.target, "stack.target")
        if stack.name:
            try:
                return await read_header(self._stack, stack)
            except StackNotFound:
                if request.HasField("destroy"):
                    raise
        return stack_pb2.Stack(target=target_to_pb(target), name=stack.name)

    async def package(self, sources: planner_pb2.PackageSources, urls: Sequence[str] = ()) -> ParsedPackage:
        """
        Have *sources* and, after them, the sources at *urls* parsed as one package.

        The parser makes no summary, as the summary of a plan has ids.

        A package may be empty: a check of the plan decides whether that is allowed. One that names objects of other
        packages is invalid here.

        Raises:
            PkgerError: The sources cannot be decoded.
        """
        view = (parser_pb2.PACKAGE_VIEW_OBJECTS, parser_pb2.PACKAGE_VIEW_WARNINGS)
        fetched = (parser_pb2.Source(url=url) for url in urls)
        request = parser_pb2.ParsePackageRequest(
            sources=[*sources.sources, *fetched], env_json=sources.env_json, view=view, allow_empty=True
        )
        parsed = await parse_package(self._parser, request)
        if references := [*map(package_reference_from_pb, parsed.package_references)]:
            parsed.violations += map(violation_to_pb, unresolved(references))
            parsed.objects.clear()
        return parsed

    async def revision(self, request: planner_pb2.CreatePlanRequest) -> StoredPackage:
        """
        The revision that *request* rolls back to.

        Raises:
            RequestInvalid: It names a revision that has no package.
            RevisionNotFound: The stack has no such revision.
            StackNotFound: There is no such stack.
        """
        revision = await self._revision(request.stack, request.revision)
        if not revision.has_package:
            raise RequestInvalid("revision", f"revision {request.revision} has no package, as an uninstall made it")
        return revision

    async def snapshot(self, snapshot_id: str, *, is_in_use: bool) -> StoredPackage:
        """The package of a snapshot; arguments and errors as for ``snapshot_package``."""
        return await snapshot_package(self._stack, snapshot_id, is_in_use=is_in_use)

    async def installed(self, header: stack_pb2.Stack) -> list[InstalledPackage]:
        """
        The packages of a stack, by name.

        Raises:
            StackMoved: It has changed since *header* was read.
        """
        return await read_packages(self._stack, header)

    async def current_package(self, stack: StackRecord) -> KeptPackage:
        """The package of the current revision of *stack*."""
        if not stack.package_digest:
            return NOTHING_KEPT
        ref = object_pb2.StackRef(id=stack.id)
        return (await self._revision(ref, stack.revision)).kept()

    async def packages_before(self, stack: StackRecord, versions: Mapping[str, Version]) -> dict[str, InstalledPackage]:
        """
        What a stack had under *versions*, as far as its retained revisions say; by package.

        Args:
            stack: The stack.
            versions: A version of each of some packages.
        """
        if not stack.revision or not versions:
            return {}
        ref = object_pb2.StackRef(id=stack.id)
        request = stack_pb2.ListRevisionsRequest(stack=ref, page_size=REVISIONS_AT_ONCE)
        listed = pages(self._stack, StackServiceStub(self._stack.channel).ListRevisions, request)
        history = [
            (
                revision.number,
                tuple(PackageMove(each.name, each.old_version, each.new_version) for each in revision.packages),
            )
            async for page in listed
            for revision in page.revisions
        ]
        numbers = revisions_with(versions, history)
        revisions = {number: await self._revision(ref, number) for number in sorted(set(numbers.values()))}
        return {
            name: each for name, number in numbers.items() for each in revisions[number].packages if each.name == name
        }

    async def _revision(self, stack: object_pb2.StackRef, number: int) -> StoredPackage:
        return await read_revision(self._stack, stack, number)

    async def base_state(self, header: stack_pb2.Stack) -> BaseState:
        """
        Read the facts that do not depend on the package: with a stack, most plans need only the recorded kinds.

        Args:
            header: What ``header`` returned.

        Raises:
            StackNotFound: The stack was removed since.
            PlatformUnknown: No such platform is configured.
        """
        stack = await self.record(header)
        platform = await self.traits(stack.target)
        kinds = kinds_of_record(stack, platform)
        driver = self.driver(stack.target)
        live = await live_resources(driver, stack.target.org, kinds, _recorded(stack), platform)
        return BaseState(stack, platform, kinds, live)

    async def compared(self, stack: StackRecord, left_out: frozenset[Key]) -> BaseState:
        """
        The facts for a plan that leaves some recorded objects out: of kinds with a costly listing, the others are read.

        Args:
            stack: The record.
            left_out: The keys of these objects.
        """
        platform = await self.traits(stack.target)
        driver, recorded = self.driver(stack.target), _recorded(stack, left_out)
        live = await live_resources(driver, stack.target.org, (), recorded, platform)
        return BaseState(stack, platform, (), live, left_out)

    async def live(self, base_state: BaseState, kinds: Sequence[str]) -> list[Resource]:
        """
        All resources of *kinds*; one call lists all kinds that are not listed yet.

        Recorded resources of kinds with a costly listing are always included.
        """
        live = (await self.with_listed(base_state, kinds)).live
        return [each for each in live if each.kind in kinds or base_state.platform.kinds[each.kind].costly_listing]

    async def with_listed(self, base_state: BaseState, kinds: Sequence[str]) -> BaseState:
        """*base_state* with all resources of *kinds*; one call lists all kinds that are not listed yet."""
        unlisted = [kind for kind in kinds if kind not in base_state.listed]
        if not unlisted:
            return base_state
        driver, org = self.driver(base_state.stack.target), base_state.stack.target.org
        more = await list_resources(driver, org, unlisted, _recorded(base_state.stack, base_state.left_out))
        live = {(resource.kind, resource.id): resource for resource in (*base_state.live, *more)}
        return replace(base_state, listed=[*base_state.listed, *unlisted], live=list(live.values()))

    async def nameless(self, base_state: BaseState, package: Package) -> BaseState:
        """
        Find the stack without a name that holds the same template as *package*, or else a new one, and read its record.

        Args:
            base_state: What was read for a plan without a stack, with all resources of the kinds of these objects,
                except of kinds with a costly listing.
            package: All objects of the request.

        Raises:
            StackNotFound: The stack was removed meanwhile.
        """
        stacks = await self._nameless_stacks(base_state, package)
        candidates = await self._candidates(base_state, package, stacks)
        if stack_id := chosen([item.key for item in package.objects], package.sources, candidates):
            [stack] = [each for each in stacks if each.stack.id == stack_id]
            header, entries = stack.stack, list(stack.entries)
            if len(entries) < header.resource_count:
                header, entries = await read_stack(self._stack, object_pb2.StackRef(id=stack_id), header)
            record = stack_from_pb(header, entries)
            if {(resource.kind, resource.id) for resource in base_state.live}.issuperset(_recorded(record)):
                return replace(base_state, stack=record)
            # Listed again, with its record: recorded resources that a listing lacks are looked up by id.
            return await self.base_state(header)
        return replace(base_state, stack=replace(base_state.stack, is_new_nameless=True))

    async def _nameless_stacks(self, base_state: BaseState, package: Package) -> Sequence[journal_pb2.NamelessStack]:
        """The stacks without a name that have keys of *package*, the newest first."""
        request = journal_pb2.FindNamelessStacksRequest(
            target=target_to_pb(base_state.stack.target), keys=[key_to_pb(item.key) for item in package.objects]
        )
        return (await self._stack.call(JournalServiceStub(self._stack.channel).FindNamelessStacks, request)).stacks

    async def _candidates(
        self, base_state: BaseState, package: Package, stacks: Sequence[journal_pb2.NamelessStack]
    ) -> list[Candidate]:
        """What *stacks* have in common with *package*, in their order."""
        target, objects = base_state.stack.target, {item.key: item for item in package.objects}
        recorded = {(each.key.kind, each.resource_id) for stack in stacks for each in stack.entries}
        kinds = base_state.platform.kinds
        # The platform may lack the kinds of skipped objects.
        costly = [each for each in recorded if each[0] in kinds and kinds[each[0]].costly_listing]
        read = await read_resources(self.driver(target), target.org, sorted(costly))
        live = {(resource.kind, resource.id): resource for resource in (*base_state.live, *read) if resource}

        def keeps_name(key: Key, resource_id: str) -> bool:
            """Whether a recorded resource has the display name of the object with its key, or is gone."""
            resource = live.get((key.kind, resource_id))
            return resource is None or resource.spec.display_name == objects[key].spec.display_name

        return [
            Candidate(
                stack.stack.id,
                tuple(stack.stack.sources),
                stack.entry_count,
                {key: keeps_name(key, each.resource_id) for each in stack.entries if (key := key_from_pb(each.key))},
            )
            for stack in stacks
        ]

    async def prepared(self, base_state: BaseState, specs: Sequence[DesiredSpec]) -> list[Spec | Failed]:
        """*specs* as the platform would hold them; no call when there are none."""
        target = base_state.stack.target
        return await prepare_specs(self._platforms.driver(target.platform), target.org, specs, base_state.platform)

    async def record(self, header: stack_pb2.Stack) -> StackRecord:
        """The record that the plan is based on; an empty one if the stack does not exist yet, or there is none."""
        if not header.id:
            return stack_from_pb(header)
        return stack_from_pb(*await read_stack(self._stack, object_pb2.StackRef(id=header.id), header))

    async def holders(self, target: Target, resources: Collection[ResourceKey]) -> dict[ResourceKey, ResourceHolders]:
        """The stacks that own or use *resources*, or claim to; one call, and no call without resources."""
        owners, users = await find_holders(self._stack, target, resources)
        return {
            key: ResourceHolders(
                _holder(owners[key]) if key in owners else None, tuple(map(_holder, users.get(key, ())))
            )
            for key in owners.keys() | users.keys()
        }

    async def existing(self, stack: object_pb2.StackRef) -> StackRecord:
        """
        The record of a stack that exists.

        Raises:
            StackNotFound: There is none.
            RequestInvalid: The reference names no stack, or is ambiguous.
        """
        return await read_record(self._stack, stack)

    async def listed(self, target: Target, kinds: Sequence[str]) -> list[Resource]:
        """All resources of *kinds*, also those whose spec cannot be read; one call, and no call without kinds."""
        driver = self.driver(target)
        return await list_resources(driver, target.org, kinds, is_lenient=True) if kinds else []

    async def owners(
        self, target: Target, resources: Collection[ResourceKey]
    ) -> dict[ResourceKey, stack_pb2.ResourceHolder]:
        """The owners of *resources*; one call, and no call without resources."""
        return await find_owners(self._stack, target, resources)

    def driver(self, target: Target) -> Peer:
        """The driver of the platform of *target*."""
        return self._platforms.driver(target.platform)

    async def traits(self, target: Target) -> PlatformTraits:
        """
        The traits of the platform of *target*.

        Raises:
            PlatformUnknown: No such platform is configured.
        """
        return await platform_traits(self._platforms.driver(target.platform))

    async def platforms(self, name: str) -> list[tuple[str, list[Organization], str]]:
        """
        The platform of that *name*, or all: name, organizations, and the reason if these cannot be listed.

        Raises:
            PlatformUnknown: No platform has that name.
        """
        if name:
            self._platforms.driver(name)
        return list(await asyncio.gather(*map(self._platform, [name] if name else self._platforms.names)))

    async def _platform(self, name: str) -> tuple[str, list[Organization], str]:
        try:
            orgs = await list_orgs(self._platforms.driver(name))
        except PkgerError as error:
            return name, [], str(error)
        return name, orgs or [], "" if orgs is not None else "its driver does not list organizations"

    async def check(self, name: str, org: str) -> PlatformCheck:
        """
        Check the platform of that *name*, and the rights of its credential in *org*.

        Raises:
            PlatformUnknown: No platform has that name.
        """
        return await check(self._platforms.driver(name), org)

    async def secret_keys(self, target: Target) -> frozenset[str]:
        """Keys of the secrets that the platform holds."""
        return await list_secret_keys(self._platforms.driver(target.platform), target.org)


def _holder(holder: stack_pb2.ResourceHolder) -> ResourceHolder:
    return ResourceHolder(holder.stack_id, holder.stack_name, holder.operation_id, frozenset(holder.label_ids))


def _recorded(stack: StackRecord, left_out: frozenset[Key] = frozenset()) -> list[ResourceKey]:
    """The recorded resources of *stack*, without some; the driver looks up those that a listing lacks."""
    return [
        (entry.key.kind, entry.resource_id) for entry in stack.resources if not left_out or entry.key not in left_out
    ]
