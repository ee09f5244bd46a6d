"""The servicer of ApplierService: translates requests to operations, whose events it streams."""

from collections.abc import AsyncIterator
from contextlib import nullcontext, suppress
from functools import partial

from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceServicer, add_ApplierServiceServicer_to_server
from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import operation_pb2, plan_pb2
from pkger.planner.v1 import planner_pb2

from applier_svc.execution.secrets import Secrets
from applier_svc.importing import import_resources
from applier_svc.operation.lifecycle import Peers
from applier_svc.operation.requests import OperationRequest, RequestId
from applier_svc.registry import Registry
from services.core.errors import RequestInvalid, StackNotFound
from services.core.model import AfterUninstall
from services.rpc.client import Peer, Platforms
from services.rpc.convert.operations import decision_from_pb
from services.rpc.convert.plans import after_uninstall_from_pb
from services.rpc.dispatcher import Register
from services.rpc.missing_values import refuse_negative_limit
from services.rpc.parts import parts
from services.rpc.request_digest import content_digest

SERVICE = "pkger.applier.v1.ApplierService"

SHOWN_BLOCKED = 1000
"""Most blocked steps that ``GetOperation`` returns, if they fit into a message (operation.proto)."""


_Request = (
    applier_pb2.ApplyRequest
    | applier_pb2.ApplyPlanRequest
    | applier_pb2.UninstallStackRequest
    | applier_pb2.RollbackStackRequest
)
"""A request that starts an operation."""


class ApplierServicer(ApplierServiceServicer):
    """Translates and delegates; the rules are in the registry and the engine."""

    def __init__(self, operations: Registry, store: Peer, platforms: Platforms) -> None:
        self._operations = operations
        self._store = store
        self._platforms = platforms

    async def Apply(
        self, request: applier_pb2.ApplyRequest, context: object
    ) -> AsyncIterator[operation_pb2.OperationEvent]:
        secrets = Secrets(request.secrets)
        plan = planner_pb2.CreatePlanRequest(
            target=request.target if request.HasField("target") else None,
            stack=request.stack if request.HasField("stack") else None,
            package=request.package,
            options=request.options,
            secret_keys=secrets.keys(),
        )
        operation = _operation(plan_pb2.OPERATION_KIND_APPLY, plan, request, secrets)
        async for event in self._operations.answers(operation):
            yield event

    async def ApplyPlan(
        self, request: applier_pb2.ApplyPlanRequest, context: object
    ) -> AsyncIterator[operation_pb2.OperationEvent]:
        if not request.plan_id:
            raise RequestInvalid("plan_id", "name a stored plan")
        operation = _operation(plan_pb2.OPERATION_KIND_UNSPECIFIED, request.plan_id, request, Secrets(request.secrets))
        async for event in self._operations.answers(operation):
            yield event

    async def UninstallStack(
        self, request: applier_pb2.UninstallStackRequest, context: object
    ) -> AsyncIterator[operation_pb2.OperationEvent]:
        after_uninstall = after_uninstall_from_pb(request.after_uninstall, "after_uninstall")
        destroy = planner_pb2.Destroy(after_uninstall=request.after_uninstall)
        plan = planner_pb2.CreatePlanRequest(stack=request.stack, destroy=destroy)
        operation = _operation(plan_pb2.OPERATION_KIND_UNINSTALL, plan, request)
        # A stack that does not exist counts as deleted.
        with suppress(StackNotFound) if after_uninstall is AfterUninstall.DELETE else nullcontext():
            async for event in self._operations.answers(operation):
                yield event

    async def RollbackStack(
        self, request: applier_pb2.RollbackStackRequest, context: object
    ) -> AsyncIterator[operation_pb2.OperationEvent]:
        plan = planner_pb2.CreatePlanRequest(stack=request.stack, revision=request.revision, options=request.options)
        operation = _operation(plan_pb2.OPERATION_KIND_ROLLBACK, plan, request)
        async for event in self._operations.answers(operation):
            yield event

    async def ImportResources(
        self, request: applier_pb2.ImportResourcesRequest, context: object
    ) -> AsyncIterator[applier_pb2.ImportResourcesResponse]:
        async for part in import_resources(request, self._store, self._platforms):
            yield part

    async def CancelOperation(
        self, request: applier_pb2.CancelOperationRequest, context: object
    ) -> applier_pb2.CancelOperationResponse:
        return applier_pb2.CancelOperationResponse(effect=await self._operations.cancel(request.operation_id))

    async def WatchOperation(
        self, request: applier_pb2.WatchOperationRequest, context: object
    ) -> AsyncIterator[operation_pb2.OperationEvent]:
        async for event in self._operations.watch(request.operation_id, request.after_seq):
            yield event

    async def GetOperation(
        self, request: applier_pb2.GetOperationRequest, context: object
    ) -> applier_pb2.GetOperationResponse:
        operation = await self._operations.get(request.operation_id)
        shown = next(parts(operation.blocked_steps[:SHOWN_BLOCKED], operation_pb2.BlockedStep.ByteSize), [])
        del operation.blocked_steps[len(shown) :]
        return applier_pb2.GetOperationResponse(operation=operation)

    async def ListOperations(
        self, request: applier_pb2.ListOperationsRequest, context: object
    ) -> applier_pb2.ListOperationsResponse:
        answer = await self._operations.page(
            journal_pb2.ListOperationsRequest(
                stack_id=request.stack_id,
                target=request.target if request.HasField("target") else None,
                states=request.states,
                kinds=request.kinds,
                since=request.since if request.HasField("since") else None,
                until=request.until if request.HasField("until") else None,
                page_size=request.page_size,
                page_token=request.page_token,
            )
        )
        return applier_pb2.ListOperationsResponse(operations=answer.operations, next_page_token=answer.next_page_token)

    async def RecoverOperation(
        self, request: applier_pb2.RecoverOperationRequest, context: object
    ) -> AsyncIterator[operation_pb2.OperationEvent]:
        decisions = [decision_from_pb(each) for each in request.decisions]
        feed = await self._operations.resume(request.operation_id, decisions, by_request=True)
        async for event in feed.follow():
            yield event


def register(operations: Registry, peers: Peers) -> Register:
    """Registers the applier with a server."""
    return partial(add_ApplierServiceServicer_to_server, ApplierServicer(operations, peers.stack, peers.platforms))


def _operation(
    kind: plan_pb2.OperationKind.ValueType,
    plan: planner_pb2.CreatePlanRequest | str,
    request: _Request,
    secrets: Secrets | None = None,
) -> OperationRequest:
    refuse_negative_limit(request.run_options)
    key = RequestId(request.request_id, content_digest(request)) if request.request_id else RequestId()
    return OperationRequest(kind, plan, request.run_options, key, secrets or Secrets())
