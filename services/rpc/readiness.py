"""Whether a plan has all values that it needs to run (issue 4)."""

from pkger.model.v1 import plan_pb2

from services.core.errors import ValuesMissing


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
