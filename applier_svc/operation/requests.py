"""Requests of callers to run a plan: one that is made for the operation, or a stored one."""

from dataclasses import dataclass, field

from pkger.applier.v1 import applier_pb2
from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import plan_pb2
from pkger.planner.v1 import planner_pb2

from applier_svc.execution.secrets import Secrets


@dataclass(frozen=True, slots=True)
class RequestId:
    """Id of a request and digest of its content; a request without an id has an effect each time it is sent."""

    id: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class OperationRequest:
    """
    A request to run a plan.

    Attributes:
        kind: Apply, uninstall or rollback; UNSPECIFIED for a stored plan, which determines it.
        plan: The request for the plan, with the stack, if there is one; or the id of a stored plan.
        options: The conditions under which the plan may run, and the author.
        request: Id and digest of the request.
        secrets: Values of secrets to write; of a stored plan, exactly those that it writes.
        parent: The action set whose phase requests it; None: a client does.
        new_stack: What a stack gets that is created; None: nothing but its name.
    """

    kind: plan_pb2.OperationKind.ValueType
    plan: planner_pb2.CreatePlanRequest | str
    options: applier_pb2.RunOptions = field(default_factory=applier_pb2.RunOptions)
    request: RequestId = RequestId()
    secrets: Secrets = field(default_factory=Secrets)
    parent: journal_pb2.Parent | None = None
    new_stack: journal_pb2.NewStack | None = None

    @property
    def stored_plan(self) -> str:
        """Id of the stored plan; empty if a plan is to be made."""
        return self.plan if isinstance(self.plan, str) else ""

    def begin_request(self, operation: str, holder: str) -> journal_pb2.BeginOperationRequest:
        """The request for the lease of the stack, for *operation*, which *holder* runs."""
        request = journal_pb2.BeginOperationRequest(
            operation_id=operation,
            holder=holder,
            author=self.options.author,
            kind=self.kind,
            parent=self.parent,
            new_stack=self.new_stack,
        )
        if self.request.id:
            request.request.CopyFrom(journal_pb2.RequestKey(id=self.request.id, digest=self.request.digest))
        if isinstance(self.plan, str):
            request.plan_id = self.plan
            return request
        if not self.plan.HasField("stack"):
            request.target.CopyFrom(self.plan.target)
            return request
        request.stack.CopyFrom(self.plan.stack)
        # An apply creates a stack if there is none of that name.
        request.create_missing = self.kind == plan_pb2.OPERATION_KIND_APPLY and bool(self.plan.stack.name)
        return request
