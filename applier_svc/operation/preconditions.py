"""
Checks with the platform and the store whether a stored plan, or decisions, can be applied
(docs/reference/engine.md, "Plans").
"""

from collections.abc import Sequence

from pkger.model.v1 import operation_pb2

from services.core.errors import RequestInvalid, ServiceUnavailable
from services.core.model import Plan, PlatformTraits, StackRecord, UnreadableSpecError
from services.engine.decisions import StepDecision, check_decisions
from services.engine.effects import effect_of
from services.engine.stale_plan import adopted, kinds_to_read, owned_parts, resources_named, stale_parts, stale_secrets
from services.rpc.client import Peer, Platforms
from services.rpc.convert.objects import target_from_pb
from services.rpc.convert.operations import blocked_step_from_pb
from services.rpc.resources import list_secret_keys, live_resources, read_resources
from services.rpc.stack_records import find_owners


async def stale_now(plan: Plan, record: StackRecord, traits: PlatformTraits, driver: Peer, store: Peer) -> list[str]:
    """
    The resources that changed since *plan* was made, one sentence for each; one listing, however many steps.

    Args:
        plan: The plan, made from the generation that *record* has.
        record: The stack that it is for.
        traits: The traits of its platform.
        driver: The driver of that platform.
        store: The stack service.

    Raises:
        KindUnsupported: The platform no longer supports a kind that the plan needs.
        ServiceUnavailable: The driver returns an invalid spec.
        PkgerError: A service does not answer; this never means that nothing changed.
    """
    org = plan.target.org
    live = await live_resources(driver, org, kinds_to_read(plan, traits), resources_named(plan), traits)
    try:
        parts = stale_parts(plan, live, traits)
    except UnreadableSpecError as error:
        raise ServiceUnavailable(driver.name, driver.address, str(error), driver.platform, answered=True) from error
    taken = adopted(plan, record)
    owners = await find_owners(store, plan.target, taken)
    parts = [*owned_parts(taken, {key: owner.stack_name or owner.stack_id for key, owner in owners.items()}), *parts]
    if any(effect_of(step).is_of_secret for step in plan.steps):
        parts = [*stale_secrets(plan, await list_secret_keys(driver, org)), *parts]
    return parts


async def refuse_unfit(
    decisions: Sequence[StepDecision], operation: operation_pb2.Operation, platforms: Platforms, store: Peer
) -> None:
    """
    Check that *decisions* fit *operation*, and that the resources to adopt exist and are unowned.

    Raises:
        RequestInvalid: Names the first decision that does not fit.
    """
    blocked = [blocked_step_from_pb(each) for each in operation.blocked_steps]
    check_decisions(decisions, blocked)
    kinds = {each.step.number: each.step.key.kind for each in blocked}
    adopted_ids = {
        f"decisions[{position}].resource_id": (kinds[decision.step], decision.resource_id)
        for position, decision in enumerate(decisions)
        if decision.resource_id
    }
    if not adopted_ids:
        return
    target, ids = target_from_pb(operation.target), list(adopted_ids.values())
    live = await read_resources(platforms.driver(target.platform), target.org, ids)
    owners = await find_owners(store, target, ids)
    for (field, (kind, resource_id)), resource in zip(adopted_ids.items(), live, strict=True):
        if resource is None:
            raise RequestInvalid(field, f"there is no {kind} {resource_id} in {target.platform}/{target.org}")
        if owner := owners.get((kind, resource_id)):
            called = owner.stack_name or owner.stack_id
            raise RequestInvalid(field, f"{kind} {resource_id} belongs to stack {called} as {owner.key.name!r}")
