"""Whether a plan may run: it has all values that it needs, and deletes no more than is allowed."""

from pkger.model.v1 import plan_pb2

from services.core.errors import DeletesExceeded, ValuesMissing


def refuse_missing_values(remarks: plan_pb2.PlanRemarks, rollback_of: int = 0) -> None:
    """
    Refuse a plan that would write references in place of missing values; *rollback_of* as of the plan.

    An environment value with a default is not missing, although ``missing_env_refs`` lists it
    (docs/reference/package-format.md, "Reporting of references").

    Raises:
        ValuesMissing: With all missing keys.
    """
    if remarks.unresolved_env_refs or remarks.missing_secrets:
        raise ValuesMissing(",".join(remarks.unresolved_env_refs), ",".join(remarks.missing_secrets), rollback_of)


def refuse_deletes(plan: plan_pb2.Plan, limit: int | None) -> None:
    """
    Refuse a plan with too many deletions and updates that lose data.

    Args:
        plan: The plan, which has the limit of the policy of its stack.
        limit: The limit of the request; None: it has none.

    Raises:
        DeletesExceeded: The plan exceeds one of the limits.
    """
    deletes, losses = plan.counts.deletes, plan.counts.losses
    if limit is not None and deletes + losses > limit:
        raise DeletesExceeded(deletes, losses, limit)
    if plan.HasField("max_deletes") and deletes + losses > plan.max_deletes:
        raise DeletesExceeded(deletes, losses, plan.max_deletes, plan.stack_name or plan.stack_id)
