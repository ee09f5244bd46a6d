"""Whether a plan may run: it has all values that it needs, and deletes no more than is allowed."""

from pkger.applier.v1 import applier_pb2
from pkger.model.v1 import plan_pb2

from services.core.errors import DeletesExceeded, RequestInvalid, ValuesMissing


def refuse_negative_limit(options: applier_pb2.RunOptions) -> None:
    """
    Refuse options with a limit below 0.

    Raises:
        RequestInvalid: The limit is negative.
    """
    if options.max_deletes < 0:
        raise RequestInvalid("run_options.max_deletes", f"{options.max_deletes} is negative")


def refuse_missing_values(plan: plan_pb2.Plan, remarks: plan_pb2.PlanRemarks, options: applier_pb2.RunOptions) -> None:
    """
    Refuse a plan that would write references in place of missing values, unless *options* allow it.

    An environment value with a default is not missing, although ``missing_env_refs`` lists it
    (docs/reference/package-format.md, "Reporting of references").

    Raises:
        ValuesMissing: With all missing keys.
    """
    env, secrets = ",".join(remarks.unresolved_env_refs), ",".join(remarks.missing_secrets)
    if (env or secrets) and not options.allow_missing:
        raise ValuesMissing(env, secrets, plan.rollback_of)


def refuse_deletes(plan: plan_pb2.Plan, options: applier_pb2.RunOptions) -> None:
    """
    Refuse a plan with too many deletions and updates that lose data.

    Args:
        plan: The plan, which has the limit of the policy of its stack.
        options: The options of the run, which may have another limit.

    Raises:
        DeletesExceeded: The plan exceeds one of the limits.
    """
    deletes, losses = plan.counts.deletes, plan.counts.losses
    if options.HasField("max_deletes") and deletes + losses > options.max_deletes:
        raise DeletesExceeded(deletes, losses, options.max_deletes)
    if plan.HasField("max_deletes") and deletes + losses > plan.max_deletes:
        raise DeletesExceeded(deletes, losses, plan.max_deletes, plan.stack_name or plan.stack_id)
