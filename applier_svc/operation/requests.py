"""Requests of callers: to plan and run, or to run a stored plan."""

from dataclasses import dataclass, field

from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import object_pb2, plan_pb2
from pkger.planner.v1 import planner_pb2

from applier_svc.execution.secrets import Secrets


@dataclass(frozen=True, slots=True)
class RequestId:
    """Id of a request and digest of its content; a request without an id has an effect each time it is sent."""

    id: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class NewRequest:
    """
    A request to plan and run.

    Attributes:
        kind: Apply, uninstall or rollback.
        target: The target in the request; a stack that is named by id has its own.
        stack: The stack to change; None: nothing is recorded.
        desired: The request for the planner, without target and stack.
        digest: Digest of the plan that the caller approved; empty: any plan.
        allow_missing: Whether to run the plan although values are missing.
        request: Id and digest of the request.
        secrets: Values of secrets to write.
        author: The author of the request.
        max_deletes: The most deletions and updates that lose data; None: any number.
    """

    kind: plan_pb2.OperationKind.ValueType
    target: object_pb2.Target
    stack: object_pb2.StackRef | None
    desired: planner_pb2.CreatePlanRequest
    digest: str
    allow_missing: bool = False
    request: RequestId = RequestId()
    secrets: Secrets = field(default_factory=Secrets)
    author: str = ""
    max_deletes: int | None = None


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """
    A request to run a stored plan.

    Attributes:
        plan: Its name.
        digest: Digest of the plan that the caller approved; empty: any plan.
        allow_missing: Whether to run the plan although values are missing.
        request: Id and digest of the request.
        secrets: Values of the secrets that the plan writes.
        author: The author of the request.
        max_deletes: The most deletions and updates that lose data; None: any number.
    """

    plan: str
    digest: str
    allow_missing: bool = False
    request: RequestId = RequestId()
    secrets: Secrets = field(default_factory=Secrets)
    author: str = ""
    max_deletes: int | None = None


def beginning(asked: NewRequest | PlanRequest, operation: str, holder: str) -> journal_pb2.BeginOperationRequest:
    """The request for the lease of the stack of *asked*, for *operation*, which *holder* runs."""
    request = journal_pb2.BeginOperationRequest(operation=operation, holder=holder, author=asked.author)
    if asked.request.id:
        request.request.CopyFrom(journal_pb2.RequestKey(id=asked.request.id, digest=asked.request.digest))
    if isinstance(asked, PlanRequest):
        request.plan = asked.plan
        return request
    request.kind = asked.kind
    request.target.CopyFrom(asked.target)
    if asked.stack is None:
        request.no_stack.SetInParent()
        return request
    request.stack.CopyFrom(asked.stack)
    # An apply creates a stack if there is none of that name.
    is_apply = asked.kind == plan_pb2.OPERATION_KIND_APPLY
    request.create_missing = is_apply and asked.stack.WhichOneof("stack") == "name"
    return request
