"""From a request to the objects of an export, in few calls, whatever the number of resources."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from pkger.planner.v1 import planner_pb2

from planner_svc.export.doubts import Doubts, doubts_of
from planner_svc.export.inputs import ExportReader, own_names
from planner_svc.export.naming import Recorded, names_of
from planner_svc.export.objects import Exported, export_objects, in_order
from planner_svc.export.own_policies import lifecycles_of
from planner_svc.export.request import ExportSelection, wanted_from_pb
from planner_svc.export.selection import Selection, Warned, kinds_to_list, select
from services.core.errors import ResourceNotFound
from services.core.model import PlatformTraits, Resource, ResourceKey, StackRecord, Target
from services.kinds.registry import KINDS
from services.packages.lifecycle import document_of
from services.rpc.convert.objects import new_target_from_pb
from services.syntax.writer import Writer


@dataclass(frozen=True, slots=True)
class GatheredResources:
    """
    The resources of an export, and what their names follow from.

    Attributes:
        selection: The resources; none is missing.
        nameable: All live resources of their families.
        recorded: The names that stacks have for these.
        doubts: Warnings about resources that may exist unseen.
    """

    selection: Selection
    nameable: Sequence[Resource]
    recorded: Mapping[ResourceKey, Sequence[Recorded]]
    doubts: Sequence[Warned]


async def gather_export(request: planner_pb2.ExportPackageRequest, reader: ExportReader, writer: Writer) -> Exported:
    """
    Make the objects of the export of *request*, as *writer* writes them.

    Raises:
        PkgerError: There is no export; planner.proto lists the reasons.
    """
    header, stack = await reader.stack(request.stack) if request.HasField("stack") else (None, None)
    target = stack.target if stack else new_target_from_pb(request.target)
    platform = await reader.traits(target)
    gathered = await gather_resources(wanted_from_pb(request, platform), stack, target, platform, reader)
    own = own_names(stack) if stack else {}
    has_packages = bool(header and header.package_count)
    lifecycles = lifecycles_of(stack, has_packages=has_packages) if stack else {}
    exported = await asyncio.to_thread(export_selection, writer, gathered, own, platform, lifecycles)
    if stack and not has_packages and (document := await reader.lifecycle(stack)):
        exported.lifecycle = writer.document(document_of(document))
    exported.warnings = [*gathered.doubts, *exported.warnings]
    return exported


async def gather_resources(
    requested_selection: ExportSelection,
    stack: StackRecord | None,
    target: Target,
    platform: PlatformTraits,
    reader: ExportReader,
) -> GatheredResources:
    """
    Read and choose the resources of an export.

    Args:
        requested_selection: The resources that the request names.
        stack: The stack that it names; None: it names none.
        target: The target.
        platform: The platform.
        reader: Reads resources and names.

    Raises:
        ResourceNotFound: The request names resources that do not exist.
        PkgerError: They cannot be read.
    """
    own = own_names(stack) if stack else {}
    resource_keys = [*requested_selection.by_id, *(key for key in own if key[0] in platform.kinds)]
    listed = await reader.live(target, kinds_to_list(requested_selection, stack, platform), resource_keys, platform)
    doubts = await _doubts(reader, target, requested_selection, platform, listed)
    live = {(resource.kind, resource.id): resource for resource in listed}
    # In a thread, so that other calls are answered while a large export is made.
    selection = await asyncio.to_thread(select, requested_selection, stack, live, platform)
    if selection.missing:
        raise ResourceNotFound(target.platform, target.org, selection.missing)
    nameable = [resource for resource in listed if resource.kind in KINDS]
    nameable_keys = [(each.kind, each.id) for each in nameable] if selection.chosen else []
    return GatheredResources(selection, nameable, await reader.names(target, nameable_keys), doubts)


async def _doubts(
    reader: ExportReader,
    target: Target,
    requested_selection: ExportSelection,
    platform: PlatformTraits,
    listed: Iterable[Resource],
) -> list[Warned]:
    """
    Check whether the resources that *requested_selection* selects, of which none is *listed*, may exist unseen.

    A platform may leave out of its lists, without an error, what its credential may not read.

    Raises:
        ServiceUnavailable: Nothing is listed, and the credential lacks a right to read.
    """
    if requested_selection.everything is None:
        return []
    kinds = {resource.kind for resource in listed}
    selected = (
        platform.kinds.keys() if requested_selection.everything.kinds is None else requested_selection.everything.kinds
    )
    if kinds & selected:
        return []
    check = await reader.check(target)
    doubts = doubts_of(check.findings) if check else Doubts("", is_certain=False)
    if doubts.is_certain and not kinds:
        problem = f"nothing of organization {target.org!r} can be read: {doubts.text}"
        raise reader.unreadable(target, f"{problem}; give the credential of the platform the rights to read")
    if not doubts.text:
        return []
    text = f"nothing is selected in organization {target.org!r}: {doubts.text}"
    return [Warned("", "", "", text)]


def export_selection(
    writer: Writer,
    gathered: GatheredResources,
    own: Mapping[ResourceKey, str],
    platform: PlatformTraits,
    lifecycles: Mapping[ResourceKey, str] = MappingProxyType({}),
) -> Exported:
    """
    The objects of the *gathered* resources and all warnings about them, except doubts.

    Args:
        writer: Writes each object.
        gathered: The resources.
        own: The names that the exported stack has for its resources.
        platform: The platform.
        lifecycles: The policies of the objects of those resources that have one.

    Raises:
        RequestInvalid: A new display name is invalid or taken.
    """
    selection = gathered.selection
    names = names_of(gathered.nameable, own, gathered.recorded)
    exported = export_objects(selection.chosen.values(), names, platform, writer, lifecycles)
    renamed = [
        _renamed(selection.chosen[key].resource, own[key], names[key])
        for key in selection.chosen.keys() & own.keys()
        if own[key] != names[key]
    ]
    exported.warnings = in_order([*selection.warnings, *exported.warnings, *renamed])
    return exported


def _renamed(resource: Resource, own: str, name: str) -> Warned:
    text = (
        f"{resource.kind} {resource.spec.display_name!r}: its name in the stack, {own!r}, is not valid in a package"
        f" (it came from an environment value); it is exported as {name!r}"
    )
    return Warned(resource.kind, resource.spec.display_name, resource.id, text)
