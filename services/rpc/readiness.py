"""Whether a plan can be run as it is (issue 4)."""

from pkger.model.v1 import plan_pb2

from services.core.errors import ValuesMissing


def refuse_missing_values(remarks: plan_pb2.PlanRemarks, rollback_of: int = 0) -> None:
    """
    Refuse a plan that would write places for values instead of the values; *rollback_of* as the plan has it.

    An environment value with a default is there; ``missing_env_refs`` names it all the same
    (docs/reference/package-format.md, "Reporting of references").

    Raises:
        ValuesMissing: Names all of them.
    """
    if remarks.unresolved_env_refs or remarks.missing_secrets:
        raise ValuesMissing(",".join(remarks.unresolved_env_refs), ",".join(remarks.missing_secrets), rollback_of)
