"""Lists live resources, alone and as the plan of an import: reads them in few calls, and makes the messages."""

import asyncio
from collections.abc import Iterator, Sequence

from pkger.model.v1 import object_pb2
from pkger.planner.v1 import planner_pb2

from planner_svc.imports.live_resources import LiveResource, Owner, in_order, kinds_named, with_owners
from planner_svc.imports.planned_import import (
    ImportStatus,
    ObjectImport,
    kinds_to_list,
    plan_import,
    refuse_missing_names,
)
from planner_svc.inputs import PlanInputs
from services.core.errors import RequestInvalid
from services.core.masking import masked
from services.core.model import Package, Target
from services.rpc.convert.enums import Numbers
from services.rpc.convert.objects import key_fields, new_target_from_pb, object_from_pb
from services.rpc.parts import cut

_STATUS = Numbers(ImportStatus, planner_pb2.ImportStatus, "IMPORT_STATUS")


async def list_live(
    request: planner_pb2.ListLiveResourcesRequest, reader: PlanInputs
) -> Iterator[planner_pb2.ListLiveResourcesResponse]:
    """
    List the resources of a target.

    Raises:
        PkgerError: They cannot be listed; planner.proto lists the reasons.
    """
    target = new_target_from_pb(request.target)
    kinds = kinds_named(request.kinds, await reader.traits(target))
    live = await _live(target, kinds, reader)
    # In a thread, so that other calls are answered while a long list is made.
    return await asyncio.to_thread(
        lambda: cut(planner_pb2.ListLiveResourcesResponse(resources=map(_resource_to_pb, in_order(live))))
    )


async def find_imports(
    request: planner_pb2.PlanImportRequest, reader: PlanInputs
) -> Iterator[planner_pb2.PlanImportResponse]:
    """
    Find the resources that an import of a package adds.

    Raises:
        PkgerError: There is no such plan; planner.proto lists the reasons.
    """
    stack = await reader.existing(request.stack)
    if not (request.package.sources or stack.urls):
        called = stack.name or stack.id
        raise RequestInvalid("package.sources", f"stack {called!r} has no URLs, so name at least one source")
    parsed = await reader.package(request.package, stack.urls)
    if parsed.violations:
        violations = object_pb2.Violations(violations=parsed.violations)
        return (planner_pb2.PlanImportResponse(violations=part) for part in cut(violations))
    objects = [*map(object_from_pb, parsed.objects)]
    package = Package(tuple(objects), lifecycles=parsed.lifecycles)
    refuse_missing_names(objects, parsed.missing_env_refs)
    platform = await reader.traits(stack.target)
    live = await _live(stack.target, kinds_to_list(objects, platform), reader)
    imports = await asyncio.to_thread(plan_import, package, stack, live, platform)
    object_imports = planner_pb2.ObjectImports(objects=map(_import_to_pb, imports))
    return (planner_pb2.PlanImportResponse(imports=part) for part in cut(object_imports))


async def _live(target: Target, kinds: Sequence[str], reader: PlanInputs) -> list[LiveResource]:
    listed = await reader.listed(target, kinds)
    holders = await reader.owners(target, [(each.kind, each.id) for each in listed])
    owners = {key: Owner(owner.stack_id, owner.stack_name, owner.key.name) for key, owner in holders.items()}
    return with_owners(listed, owners)


def _resource_to_pb(live: LiveResource) -> planner_pb2.LiveResource:
    return planner_pb2.LiveResource(
        resource=object_pb2.ResourceId(kind=live.kind, id=live.id),
        display_name=masked(live.display_name),
        owner=_owner_to_pb(live.owner) if live.owner else None,
    )


def _owner_to_pb(owner: Owner) -> planner_pb2.ResourceOwner:
    return planner_pb2.ResourceOwner(
        stack_id=owner.stack_id, stack_name=owner.stack_name, object_name=owner.object_name
    )


def _import_to_pb(object_import: ObjectImport) -> planner_pb2.ObjectImport:
    return planner_pb2.ObjectImport(
        key=key_fields(object_import.key),
        display_name=masked(object_import.display_name),
        status=_STATUS.number(object_import.status),
        resources=map(_resource_to_pb, object_import.resources),
        own_policy_json=object_import.own_policy,
    )
