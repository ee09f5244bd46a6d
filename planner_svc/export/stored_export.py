"""
The export of a stack as a package of a revision: a plan of it is made without parsing (planning.proto, StoreExport).
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from pkger.journal.v1 import planning_pb2

from planner_svc.export.create_export import GatheredResources, gather_resources
from planner_svc.export.inputs import ExportReader, own_names
from planner_svc.export.naming import names_of
from planner_svc.export.objects import WrittenObject, written_objects
from planner_svc.export.own_policies import lifecycles_of
from planner_svc.export.request import ExportSelection
from planner_svc.export.selection import Chosen
from planner_svc.package_stack.refusals import refuse_export
from planner_svc.store_plan import PlanStore
from services.core.model import LABEL, Key, Object, PlatformTraits, ResourceKey
from services.kinds.attachment import text_digest
from services.kinds.schema import API_VERSIONS
from services.packages.package_text import KeptPackage, package_text
from services.rpc.convert.objects import key_to_pb


@dataclass(frozen=True, slots=True)
class StackPackage:
    """
    A stack as a package.

    Attributes:
        package: The objects of the stack, and untouched those of other resources that they refer to.
        secret_keys: Keys of the secrets that the objects of the stack refer to.
        left_out: Why existing resources of the stack are not in it, by their keys.
    """

    package: KeptPackage
    secret_keys: frozenset[str]
    left_out: Mapping[Key, str]


async def store_export(
    request: planning_pb2.StoreExportRequest, reader: ExportReader, plans: PlanStore
) -> planning_pb2.StoreExportResponse:
    """
    Export a stack, and store its package as an attachment.

    Raises:
        PkgerError: There is no export; planning.proto lists the reasons.
    """
    header, stack = await reader.stack(request.stack)
    refuse_export(header)
    platform = await reader.traits(stack.target)
    gathered = await gather_resources(ExportSelection(None, ()), stack, stack.target, platform, reader)
    lifecycles, document = lifecycles_of(stack, has_packages=False), await reader.lifecycle(stack)
    exported = await asyncio.to_thread(stack_package, gathered, own_names(stack), platform, lifecycles, document)
    text = await asyncio.to_thread(package_text, exported.package)
    digest = text_digest(text)
    await plans.attach(digest, text)
    return planning_pb2.StoreExportResponse(
        stack=header,
        package_digest=digest,
        bytes=len(text.encode()),
        object_count=len(exported.package.applied),
        secret_keys=sorted(exported.secret_keys),
        left_out=[_left_out(key, exported.left_out[key]) for key in sorted(exported.left_out)],
    )


def stack_package(
    gathered: GatheredResources,
    own: Mapping[ResourceKey, str],
    platform: PlatformTraits,
    lifecycles: Mapping[ResourceKey, str] = MappingProxyType({}),
    document: str = "",
) -> StackPackage:
    """
    The package of a stack.

    A plan of it leaves the stack as it is. So each object has the name that the stack has for it, although a source may
    not have that name; what others attached is left out, and what they own is named only.

    Args:
        gathered: The resources of the stack, and those that they refer to.
        own: The names that the stack has for its resources.
        platform: The platform.
        lifecycles: The policies of the objects of those resources that have one.
        document: The Lifecycle document of the stack; empty: it has none.
    """
    names = {**names_of(gathered.nameable, own, gathered.recorded), **own}
    warnings = [*gathered.selection.warnings]
    chosen = gathered.selection.chosen
    members = [_with_own_labels(each, own) for key, each in chosen.items() if key in own or key[0] != LABEL]
    objects, untouched, secret_keys = list[Object](), set[Key](), set[str]()
    for each in written_objects(members, names, platform, warnings, lifecycles):
        objects.append(_object(each))
        if (each.resource.kind, each.resource.id) in own:
            secret_keys |= each.secret_keys
        else:
            untouched.add(each.key)
    left_out = {
        Key(each.kind, own[each.kind, each.id]): each.obstacle
        for each in warnings
        if each.obstacle and (each.kind, each.id) in own
    }
    package = KeptPackage(tuple(objects), frozenset(untouched), lifecycles={"": document} if document else {})
    return StackPackage(package, frozenset(secret_keys), left_out)


def _with_own_labels(chosen: Chosen, own: Mapping[ResourceKey, str]) -> Chosen:
    """A resource with the labels of its stack only; one of another owner has none."""
    is_own = (chosen.resource.kind, chosen.resource.id) in own
    return replace(chosen, label_ids={each for each in chosen.label_ids if is_own and (LABEL, each) in own})


def _object(written: WrittenObject) -> Object:
    labels = tuple(Key(LABEL, label) for label in written.labels)
    return Object(written.key, API_VERSIONS[0], written.spec, labels, lifecycle=written.lifecycle)


def _left_out(key: Key, obstacle: str) -> planning_pb2.LeftOutResource:
    return planning_pb2.LeftOutResource(key=key_to_pb(key), problem=obstacle)
