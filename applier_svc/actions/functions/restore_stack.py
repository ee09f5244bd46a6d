"""RestoreStack: makes a stack as a snapshot has it, by an operation of its own."""

from collections.abc import Mapping
from typing import Any

from pkger.applier.v1 import applier_pb2
from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import plan_pb2
from pkger.planner.v1 import planner_pb2

from applier_svc.actions.call import Call, FunctionError
from applier_svc.actions.children import child_outcome
from applier_svc.actions.stack_refs import stack_argument
from applier_svc.execution.secrets import Secrets
from applier_svc.operation.requests import OperationRequest
from services.actions.snapshots import SnapshotStack
from services.core.errors import ValuesMissing
from services.rpc.convert.policies import policy_to_pb
from services.rpc.snapshot_reading import read_snapshot


async def restore_stack(call: Call) -> Mapping[str, Any]:
    """
    Check the snapshot, and apply its package to the stack, which is made if it does not exist.

    Raises:
        FunctionError: The snapshot is not of a stack, or the operation did not succeed.
        PkgerError: The snapshot cannot be used, or the operation could not begin.
    """
    arguments = call.arguments
    snapshot_id = call.arguments["snapshot"]
    snapshot = await read_snapshot(call.services.stack, snapshot_id)
    if snapshot.manifest.stack is None:
        raise FunctionError(f"snapshot {snapshot_id} is not of a stack")
    secrets = Secrets(arguments.get("secrets", {}))
    prune = bool(arguments.get("prune"))
    plan = planner_pb2.CreatePlanRequest(
        stack=stack_argument(call),
        snapshot=snapshot_id,
        options=planner_pb2.PlanOptions(keep_others=not prune, allow_empty=prune),
        secret_keys=secrets.keys(),
    )
    run = applier_pb2.RunOptions(allow_missing=bool(arguments.get("allowMissing")), author=call.author)
    request = OperationRequest(
        plan_pb2.OPERATION_KIND_APPLY, plan, run, secrets=secrets, new_stack=_new_stack(snapshot.manifest.stack)
    )
    try:
        operation = await child_outcome(call, request)
    except ValuesMissing as error:
        keys = error.metadata["secrets"]
        problem = f"the platform lacks secrets of the backup: {keys}; pass them in secrets, or say allowMissing: true"
        raise FunctionError(problem, error_reason=str(error.reason)) from None
    counts = operation.result.counts
    return {
        "operation": operation.id,
        "created": counts.creates,
        "updated": counts.updates,
        "deleted": counts.deletes,
        "noChange": operation.result.no_change,
    }


def _new_stack(stack: SnapshotStack) -> journal_pb2.NewStack:
    """What the stack gets if it is made."""
    policy = policy_to_pb(stack.policy) if stack.policy else None
    return journal_pb2.NewStack(description=stack.description, urls=stack.urls, policy=policy)
