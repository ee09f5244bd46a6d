"""What callers ask for: something to be planned and run, or a stored plan to be run."""

from dataclasses import dataclass, field

from pkger.model.v1 import object_pb2, operation_pb2
from pkger.planner.v1 import planner_pb2
from pkger.stack.v1 import journal_pb2, stack_pb2

from applier_svc.secrets import Secrets
from services.rpc.convert.objects import target_from_pb, target_to_pb


@dataclass(frozen=True, slots=True)
class Request:
    """A request by its id and the digest of its content; without an id it may begin any number of operations."""

    id: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Wish:
    """
    What a caller asks for, to be planned and run.

    Attributes:
        kind: Apply or uninstall.
        target: Where, as the caller says; a stack given by id brings its own target.
        stack: The stack to keep; None: nothing is recorded.
        desired: The request for the planner, without target and stack.
        plan_digest: Digest of the plan that the caller agreed to; empty: any.
        allow_missing: Whether to go on although values are missing.
        request: The request.
        secrets: Values of secrets to write.
    """

    kind: operation_pb2.OperationKind.ValueType
    target: object_pb2.Target
    stack: planner_pb2.StackRef | None
    desired: planner_pb2.CreatePlanRequest
    plan_digest: str
    allow_missing: bool = False
    request: Request = Request()
    secrets: Secrets = field(default_factory=Secrets)


@dataclass(frozen=True, slots=True)
class Agreed:
    """
    A stored plan that a caller wants to be run.

    Attributes:
        plan: Its name.
        digest: Digest of the plan that the caller agreed to; empty: any.
        allow_missing: Whether to go on although values are missing.
        request: The request.
        secrets: Values of the secrets that the plan writes.
    """

    plan: str
    digest: str
    allow_missing: bool = False
    request: Request = Request()
    secrets: Secrets = field(default_factory=Secrets)


def beginning(wish: Wish | Agreed, operation: str, holder: str) -> journal_pb2.BeginOperationRequest:
    """The request for the lease of the stack that *wish* is about, for *operation*, on which *holder* works."""
    request = journal_pb2.BeginOperationRequest(
        operation=operation,
        holder=holder,
        request_id=wish.request.id,
        request_digest=wish.request.digest,
    )
    if isinstance(wish, Agreed):
        request.plan = wish.plan
        return request
    request.kind = wish.kind
    if wish.stack is None:
        request.none.CopyFrom(target_to_pb(target_from_pb(wish.target)))
    elif wish.stack.WhichOneof("stack") == "id":
        request.id = wish.stack.id
    else:
        # An apply makes a stack that it names by a new name.
        request.named.CopyFrom(stack_pb2.NamedStack(target=wish.target, name=wish.stack.name))
        request.create_missing = wish.kind == operation_pb2.OPERATION_KIND_APPLY
    return request
