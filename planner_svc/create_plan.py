"""
From a request to a plan: gathers package, record and live resources, and has the plan made.

Checks run in between. The first one that refuses decides the error (docs/reference/engine.md, "Refusals").
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from pkger.model.v1 import object_pb2
from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import planner_pb2
from pkger.stack.v1 import stack_pb2

from planner_svc.changes.ignored_fields import used_as_they_are, with_ignored
from planner_svc.changes.prepare_specs import specs_to_prepare
from planner_svc.changes.protection import protected_replacements
from planner_svc.composition.key_moves import key_moves
from planner_svc.credentials import refuse_written_secrets, with_references, without_credentials
from planner_svc.inputs import BaseState, PlanInputs
from planner_svc.matching.desired import Desired
from planner_svc.matching.match import (
    Matching,
    ProtectedReplacement,
    kinds_to_list,
    match,
    refuse_adoptions,
    refuse_clashes,
    refuse_emptying,
    refuse_unsupported_kinds,
)
from planner_svc.matching.skip import idle_skips, refuse_unknown_kinds, skipped_keys
from planner_svc.package_stack.desired_packages import DesiredPackages, PackageStackInputs
from planner_svc.package_stack.model import PackagesAfter
from planner_svc.package_stack.records import removed_packages, restored_packages
from planner_svc.package_stack.refusals import refuse_earlier_revision, refuse_package_stack, refuse_pinned
from planner_svc.planning import Remarks, make_plan
from planner_svc.request_checks import (
    refuse_invalid_stack,
    refuse_missing_sources,
    refuse_nothing_desired,
    refuse_unkeepable,
)
from planner_svc.resolution.model import Conflict
from planner_svc.secrets import all_secrets_of, refuse_unusable_keys, secrets_of
from planner_svc.sharing.cross_stack_use import possible_users
from planner_svc.sharing.namesakes import kinds_to_search, namesakes_of
from planner_svc.sharing.ownership import ResourceHolders, refuse_owned, refuse_sharing, shareable, with_holders
from planner_svc.stored_package import NOT_STORED, StoredPackage
from planner_svc.unresolved import manifest_warning
from planner_svc.views import ViewInput
from services.core.errors import ServiceUnavailable
from services.core.model import (
    AfterUninstall,
    Key,
    Package,
    PlatformTraits,
    Resource,
    ResourceKey,
    Spec,
    UnreadableSpecError,
)
from services.engine.outcome import Failed
from services.kinds.diagnostics import Code
from services.packages.package_text import NOTHING_KEPT, KeptPackage
from services.rpc.convert.objects import credential_from_pb, object_from_pb, target_from_pb, violation_from_pb
from services.rpc.convert.plans import after_uninstall_from_pb
from services.rpc.parsed_package import ParsedPackage


async def create_plan(
    request: planner_pb2.CreatePlanRequest,
    reader: PlanInputs,
    packages: PackageStackInputs,
    stack: stack_pb2.Stack | None = None,
    *,
    is_standalone: bool = False,
    is_operation: bool = False,
) -> ViewInput | Conflict | Sequence[object_pb2.Violation]:
    """
    Make the plan of a request.

    Args:
        request: The desired state.
        reader: Reads package, record and resources.
        packages: Reads and composes the packages of a stack with packages.
        stack: The header of the stack, if it is known; None: it is read.
        is_standalone: Whether this is a request of ``PlanStandalonePackage``: each credential is planned as a secret,
            and a plan without a stack is for a stack without a name.
        is_operation: Whether an operation that has begun runs the plan: it may use a snapshot that was deleted since.

    Returns:
        The plan; all violations of a package that breaks rules; why no versions of packages go together.

    Raises:
        PkgerError: There is no plan; planner.proto lists the reasons.
    """
    refuse_nothing_desired(request)
    refuse_invalid_stack(request)
    header = stack or await reader.header(request)
    refuse_unkeepable(request, has_packages=header.package_count > 0)
    if request.HasField("packages"):
        return await _planned_packages(request, header, reader, packages)
    refuse_package_stack(request, header)
    refuse_missing_sources(request, header.urls, header.name)
    # Parsing takes most of the time of a plan: meanwhile, record and live resources are read.
    reading = asyncio.create_task(reader.base_state(header))
    try:
        parsed, stored = await _desired_package(request, header.urls, reader, is_operation=is_operation)
        if parsed.violations:
            return parsed.violations
        after = await _packages_after(request, header, stored, reader)
        base_state = await reading
        previous = await reader.current_package(base_state.stack) if after and after.installed else None
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    skips = [Key(skip.kind, skip.name) for skip in request.options.skip]
    if after and previous:
        objects, entries = map(object_from_pb, parsed.objects), base_state.stack.resources
        moves = key_moves(previous, objects, after.declarations, base_state.platform, entries)
        after = replace(after, key_moves=moves)
    desired = replace(_desired(request, parsed, stored, skipped_keys(skips)), packages=after)
    return await _planned(request, desired, parsed, base_state, reader, is_standalone, previous)


async def _planned_packages(
    request: planner_pb2.CreatePlanRequest, header: stack_pb2.Stack, reader: PlanInputs, packages: PackageStackInputs
) -> ViewInput | Conflict | Sequence[object_pb2.Violation]:
    """The plan of a change of packages: the platform is read once it is known what is compared."""
    answer = await packages.desired(request.packages, header)
    if not isinstance(answer, DesiredPackages):
        return answer
    desired = Desired(
        package=answer.package,
        skip=answer.left_out,
        secret_keys=frozenset(request.secret_keys),
        options=request.options,
        packages=answer.after,
    )
    base_state = await reader.compared(answer.stack, answer.left_out)
    return await _planned(
        request, desired, answer.parsed, base_state, reader, previous=answer.previous, warnings=answer.warnings
    )


async def _packages_after(
    request: planner_pb2.CreatePlanRequest, header: stack_pb2.Stack, revision: StoredPackage, reader: PlanInputs
) -> PackagesAfter | None:
    """
    The packages after an uninstall or a rollback of their stack; None for a stack without packages, and for sources.

    Raises:
        PackagePinned: A pinned package would be moved or removed.
        PackageStack: The revision is from before the stack had packages.
        RequestInvalid: Objects that the revision lacks are to be kept, and it has packages.
    """
    changes_packages = request.WhichOneof("desired") in ("destroy", "revision")
    installed, after = await reader.installed(header) if changes_packages else (), PackagesAfter()
    if request.HasField("destroy"):
        after = PackagesAfter(planned=removed_packages(reversed(installed)))
    elif request.HasField("revision"):
        refuse_unkeepable(request, has_packages=bool(revision.packages))
        if installed and revision.objects and not revision.packages:
            refuse_earlier_revision(header, request.revision)
        by_name = {each.name: each for each in installed}
        planned = restored_packages(by_name, {each.name: each for each in revision.packages})
        after = PackagesAfter(revision.packages, planned, revision.declarations)
    refuse_pinned(header, installed, after.planned)
    return after if after.installed or after.planned else None


async def written_secrets(request: planner_pb2.CreatePlanRequest, reader: PlanInputs) -> Mapping[str, str]:
    """
    The credentials of the package in *request*, by the keys of the secrets that are planned in their place.

    Empty for an invalid package.

    Raises:
        PkgerError: The package or the header of its stack cannot be read, or the platform does not answer.
    """
    header = await reader.header(request)
    parsed, stored = await _desired_package(request, header.urls, reader)
    skips = skipped_keys([Key(skip.kind, skip.name) for skip in request.options.skip])
    desired = _desired(request, parsed, stored, skips)
    platform = await reader.traits(target_from_pb(header.target))
    return with_references(desired, platform, request.stack.id)[1]


async def _desired_package(
    request: planner_pb2.CreatePlanRequest, urls: Sequence[str], reader: PlanInputs, *, is_operation: bool = False
) -> tuple[ParsedPackage, StoredPackage]:
    """The desired package, and the stored one that it is; ``NOT_STORED`` if it is none."""
    match request.WhichOneof("desired"):
        case "package":
            return await reader.package(request.package, urls), NOT_STORED
        case "revision":
            stored = await reader.revision(request)
        case "snapshot":
            stored = await reader.snapshot(request.snapshot, is_in_use=is_operation)
        case _:
            return ParsedPackage(), NOT_STORED
    return ParsedPackage(parser_pb2.PackageHeader(sources=stored.sources), objects=stored.objects), stored


async def _planned(
    request: planner_pb2.CreatePlanRequest,
    desired: Desired,
    parsed: ParsedPackage,
    base_state: BaseState,
    reader: PlanInputs,
    is_standalone: bool = False,
    previous: KeptPackage | None = None,
    warnings: Sequence[str] = (),
) -> ViewInput:
    """
    The plan for a desired state.

    Args:
        request: The request.
        desired: The desired state.
        parsed: What the parser says of the package.
        base_state: The record, and what was read of the platform.
        reader: Reads the rest.
        is_standalone: As for ``create_plan``.
        previous: The package of the current revision; None: it is read if the plan needs it.
        warnings: Further warnings.

    Raises:
        PkgerError: A check refuses.
    """
    traits = base_state.platform
    skips = [Key(skip.kind, skip.name) for skip in request.options.skip]
    desired = _without_credentials(desired, traits)
    secrets: Mapping[str, str] = {}
    if is_standalone:
        desired, secrets = with_references(desired, traits, request.stack.id)
        desired = replace(desired, is_for_nameless=not request.HasField("stack"))
    refuse_unknown_kinds(skips)
    refuse_written_secrets(desired, traits, map(credential_from_pb, parsed.credentials))
    refuse_unusable_keys(desired, traits)
    refuse_unsupported_kinds(desired, base_state.stack, traits)
    if desired.is_for_nameless:
        base_state = await reader.with_listed(base_state, kinds_to_list(desired, base_state.stack, traits))
        base_state = await reader.nameless(base_state, desired.package)
        # The record that was found may have kinds that the platform lacks.
        refuse_unsupported_kinds(desired, base_state.stack, traits)
    stack = base_state.stack
    remarks = Remarks()
    if not desired.is_end:
        unused = (
            f"the environment value {key!r} is given, and the package does not refer to it"
            for key in parsed.header.unused_env_keys
        )
        of_manifest = [manifest_warning(parsed.manifest.name)] if parsed.manifest else []
        texts = (*warnings, *of_manifest, *unused, *idle_skips(skips, desired.package, stack))
        named = all_secrets_of(desired, traits) if desired.is_stored else sorted({*parsed.missing_secrets, *secrets})
        referred = secrets_of(desired, traits, named)
        # Fixes are edits of sources, which a plan does not have.
        shown = (each for each in parsed.warnings if not (secrets and each.code == Code.CREDENTIAL_WRITTEN_OUT))
        of_package = (replace(violation_from_pb(warning), fixes=()) for warning in shown)
        remarks = Remarks(tuple(parsed.missing_env_refs), referred, texts, tuple(of_package))
    asks = traits.holds_secrets and (remarks.secret_refs or desired.secret_keys)
    held_secrets = await reader.secret_keys(stack.target) if asks else frozenset[str]()
    live = await reader.live(base_state, kinds_to_list(desired, stack, traits))
    try:
        fitted = await _fitted(desired, base_state, live, reader)
        if protected := protected_replacements(fitted.desired, fitted.matching, fitted.prepared, stack, traits):
            # Protected objects are treated as skipped ones: the plan has all others.
            skip = desired.skip | {key for each in protected for key in (each.key, each.recorded)}
            fitted = await _fitted(replace(desired, skip=skip), base_state, live, reader, protected)
        if previous is None:
            previous = await reader.current_package(stack) if fitted.matching.untouched else NOTHING_KEPT
        # In a thread, so that other calls are answered while a large plan is made.
        planned = await asyncio.to_thread(
            make_plan,
            fitted.desired,
            stack,
            fitted.matching,
            traits,
            replace(remarks, warnings=(*remarks.warnings, *fitted.remarks)),
            held_secrets,
            fitted.holders,
            fitted.prepared,
            previous,
        )
        return replace(planned, secrets=secrets)
    except UnreadableSpecError as error:
        driver = reader.driver(stack.target)
        raise ServiceUnavailable(driver.name, driver.address, str(error), driver.platform, answered=True) from error


@dataclass(frozen=True, slots=True)
class _Reconciled:
    """
    The desired state, matched with the live resources.

    Attributes:
        desired: The desired state.
        matching: The matches.
        holders: The stacks that own or use the resources that the plan may change, and the namesakes.
        prepared: The specs that differ, as the platform would hold them.
        remarks: Warnings.
    """

    desired: Desired
    matching: Matching
    holders: Mapping[ResourceKey, ResourceHolders]
    prepared: Mapping[Key, Spec | Failed]
    remarks: Sequence[str]


async def _fitted(
    desired: Desired,
    base_state: BaseState,
    live: Sequence[Resource],
    reader: PlanInputs,
    protected: Sequence[ProtectedReplacement] = (),
) -> _Reconciled:
    """
    Match *desired* with *live*.

    Args:
        desired: The desired state, without the *protected* objects.
        base_state: Record and platform.
        live: The live resources.
        reader: Reads holders and prepared specs.
        protected: The protected objects that would be replaced.

    Raises:
        PkgerError: A check refuses.
    """
    stack, traits = base_state.stack, base_state.platform
    matching = with_ignored(match(desired, stack, live, traits), stack)
    matching = replace(matching, protected_replacements=protected)
    matching = await _with_namesakes(matching, desired, base_state, reader)
    if matching.is_anything_protected:
        # A stack with a protected resource is not deleted.
        desired = replace(desired, after_uninstall=AfterUninstall.KEEP)
    specs = await asyncio.to_thread(specs_to_prepare, desired, matching, traits)
    namesakes = chain.from_iterable(namesakes_of(matching, stack, traits).values())
    resources = {*shareable(matching, specs.keys(), traits), *possible_users(matching, specs.keys(), traits)}
    resources |= {(each.kind, each.id) for each in namesakes}
    holders = await reader.holders(stack.target, sorted(resources))
    matching, used = used_as_they_are(with_holders(matching, holders, stack), stack, traits)
    specs = {key: spec for key, spec in specs.items() if key not in used}
    refuse_clashes(matching)
    refuse_emptying(desired, matching, stack)
    refuse_adoptions(matching, stack)
    refuse_sharing(desired, matching, stack)
    refuse_owned(matching, holders, stack)
    prepared = dict(zip(specs, await reader.prepared(base_state, [*specs.values()]), strict=True))
    return _Reconciled(desired, matching, holders, prepared, [remark for remark in used.values() if remark])


async def _with_namesakes(matching: Matching, desired: Desired, base_state: BaseState, reader: PlanInputs) -> Matching:
    """*matching* with all resources of the kinds that are created and have a costly listing; no call if none is."""
    stack, traits = base_state.stack, base_state.platform
    costly = {kind for kind in kinds_to_search(matching, traits) if traits.kinds[kind].costly_listing}
    unlisted = sorted(costly.difference(kinds_to_list(desired, stack, traits) if costly else ()))
    if not unlisted:
        return matching
    more = {(each.kind, each.id): each for each in await reader.live(base_state, unlisted)}
    return replace(matching, live={**matching.live, **more})


def _desired(
    request: planner_pb2.CreatePlanRequest, parsed: ParsedPackage, stored: StoredPackage, skip: frozenset[Key]
) -> Desired:
    objects, lifecycles = tuple(map(object_from_pb, parsed.objects)), stored.lifecycles or parsed.lifecycles
    return Desired(
        package=Package(objects, tuple(parsed.header.sources), lifecycles),
        skip=skip | stored.untouched,
        is_end=request.HasField("destroy"),
        secret_keys=frozenset(request.secret_keys),
        options=request.options,
        rollback_of=request.revision,
        is_stored=request.WhichOneof("desired") in ("revision", "snapshot"),
        after_uninstall=after_uninstall_from_pb(request.destroy.after_uninstall, "destroy.after_uninstall"),
    )


def _without_credentials(desired: Desired, traits: PlatformTraits) -> Desired:
    """*desired* without the credentials of skipped objects."""
    if not desired.skip:
        return desired
    package = desired.package
    items = (without_credentials(item, traits) if desired.skips(item.key) else item for item in package.objects)
    return replace(desired, package=replace(package, objects=tuple(items)))
