"""Asks the platform and the store for all that tells whether a stored plan still fits (engine.md 7)."""

from applier_svc.staleness import adopted, kinds_to_read, owned_parts, stale_parts, stale_secrets
from services.core.model import Plan, PlatformTraits, StackRecord
from services.rpc.client import Peer
from services.rpc.resources import find_owners, list_resources, list_secret_keys


async def stale_now(plan: Plan, record: StackRecord, traits: PlatformTraits, driver: Peer, store: Peer) -> list[str]:
    """
    What *plan* was made from that is no longer so, one sentence for each resource; one listing, however many steps.

    Args:
        plan: The plan, made from the generation that *record* has.
        record: The stack that it is for.
        traits: What its platform can do.
        driver: The driver of that platform.
        store: The stack service.

    Raises:
        KindUnsupported: The platform has lost a kind that the plan needs.
        PkgerError: Somebody cannot be asked; that never means that all is as it was.
    """
    org = plan.target.org
    kinds = kinds_to_read(plan, traits)
    live = await list_resources(driver, org, kinds) if kinds else []
    parts = stale_parts(plan, live, traits)
    taken = adopted(plan, record)
    owners = await find_owners(store, plan.target, taken)
    parts = [*owned_parts(taken, {key: owner.stack_name or owner.stack_id for key, owner in owners.items()}), *parts]
    if any(step.is_secret for step in plan.steps):
        parts = [*stale_secrets(plan, await list_secret_keys(driver, org)), *parts]
    return parts
