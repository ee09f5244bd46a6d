"""What callers ask for: something to be planned and run, or a stored plan to be run."""

from dataclasses import dataclass, field

from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import object_pb2, plan_pb2
from pkger.planner.v1 import planner_pb2

from applier_svc.execution.secrets import Secrets


@dataclass(frozen=True, slots=True)
class RequestId:
    """A request by its id and the digest of its content; without an id it may begin any number of operations."""

    id: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class NewRequest:
    """
    What a caller asks for, to be planned and run.

    Attributes:
        kind: Apply, uninstall or rollback.
        target: Where, as the caller says; a stack given by id brings its own target.
        stack: The stack to keep; None: nothing is recorded.
        desired: The request for the planner, without target and stack.
        digest: Digest of the plan that the caller agreed to; empty: any.
        allow_missing: Whether to go on although values are missing.
        request: The request.
        secrets: Values of secrets to write.
        author: Who asks for it.
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


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """
    A stored plan that a caller wants to be run.

    Attributes:
        plan: Its name.
        digest: Digest of the plan that the caller agreed to; empty: any.
        allow_missing: Whether to go on although values are missing.
        request: The request.
        secrets: Values of the secrets that the plan writes.
        author: Who asks for it.
    """

    plan: str
    digest: str
    allow_missing: bool = False
    request: RequestId = RequestId()
    secrets: Secrets = field(default_factory=Secrets)
    author: str = ""


def beginning(asked: NewRequest | PlanRequest, operation: str, holder: str) -> journal_pb2.BeginOperationRequest:
    """The request for the lease of the stack that *asked* is about, for *operation*, on which *holder* works."""
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
    # An apply makes a stack that it names by a new name.
    is_apply = asked.kind == plan_pb2.OPERATION_KIND_APPLY
    request.create_missing = is_apply and asked.stack.WhichOneof("stack") == "name"
    return request
