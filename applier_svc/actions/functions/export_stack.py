"""ExportStack: keeps the package of a stack as a snapshot."""

from collections.abc import Mapping
from typing import Any

from pkger.journal.v1 import journal_pb2, planning_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from pkger.journal.v1.planning_pb2_grpc import PlanningServiceStub
from pkger.model.v1 import operation_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from applier_svc.actions.call import Call, FunctionError
from applier_svc.actions.stack_refs import stack_argument
from services.actions.snapshots import (
    PACKAGE,
    LeftOutObject,
    Manifest,
    SnapshotContent,
    SnapshotStack,
    manifest_text,
    snapshot_id,
)
from services.core.model import Target
from services.core.text_lists import and_more
from services.rpc.convert.policies import policy_from_pb

_SHOWN = 10

_UNFINISHED = (
    operation_pb2.OPERATION_STATE_PREPARING,
    operation_pb2.OPERATION_STATE_APPLYING,
    operation_pb2.OPERATION_STATE_ROLLING_BACK,
    operation_pb2.OPERATION_STATE_BLOCKED,
)


async def export_stack(call: Call) -> Mapping[str, Any]:
    """
    Export a stack, and store it with the output that names it. What an earlier call of the phase stored is the result.

    Raises:
        FunctionError: A resource cannot be exported, unless ``partial`` is true; or the stack changed meanwhile.
    """
    if "snapshot" in call.emitted:
        return {}
    planner, store = call.services.planner, call.services.stack
    request = planning_pb2.StoreExportRequest(stack=stack_argument(call))
    export = await planner.call(PlanningServiceStub(planner.channel).StoreExport, request)
    if export.left_out and not call.arguments.get("partial"):
        raise FunctionError(_cannot_be_exported(export))
    again = stack_pb2.GetStackRequest(stack=stack_argument(call))
    stack = (await store.call(StackServiceStub(store.channel).GetStack, again)).stack
    if (stack.id, stack.generation) != (export.stack.id, export.stack.generation):
        raise FunctionError(f"stack {stack.name} changed while it was exported", is_worth_retry=True)
    await _refuse_unfinished(call, stack)
    manifest = _manifest(call, export)
    text = manifest_text(manifest)
    outputs = {
        "snapshot": snapshot_id(text),
        "digest": export.package_digest,
        "objects": manifest.objects,
        "bytes": export.bytes,
        "leftOut": len(manifest.left_out),
    }
    await call.emit(outputs, [text])
    return {}


async def _refuse_unfinished(call: Call, stack: stack_pb2.Stack) -> None:
    """
    Refuse a stack whose resources an operation changes.

    Raises:
        FunctionError: There is an unfinished operation on it, and this action set did not begin it.
    """
    request = journal_pb2.ListOperationsRequest(stack_id=stack.id, states=_UNFINISHED)
    store = call.services.stack
    answer = await store.call(JournalServiceStub(store.channel).ListOperations, request)
    others = [each for each in answer.operations if each.parent != call.operation]
    if others:
        problem = f"operation {others[0].id} on stack {stack.name} has not ended"
        raise FunctionError(problem, is_worth_retry=True)


def _manifest(call: Call, export: planning_pb2.StoreExportResponse) -> Manifest:
    stack = export.stack
    return Manifest(
        operation=call.operation,
        action=call.action,
        index=call.index,
        phase=call.phase,
        time=call.time,
        media_type=PACKAGE,
        contents=(SnapshotContent(export.package_digest, export.bytes),),
        stack=SnapshotStack(
            name=stack.name,
            target=Target(stack.target.platform, stack.target.org),
            generation=stack.generation,
            description=stack.description,
            urls=tuple(stack.urls),
            policy=policy_from_pb(stack.policy) if stack.HasField("policy") else {},
        ),
        objects=export.object_count,
        secrets=tuple(sorted(export.secret_keys)),
        left_out=tuple(LeftOutObject(each.key.kind, each.key.name, each.problem) for each in export.left_out),
    )


def _cannot_be_exported(export: planning_pb2.StoreExportResponse) -> str:
    shown = [f'{each.key.kind} "{each.key.name}": {each.problem}' for each in export.left_out[:_SHOWN]]
    more = and_more(len(export.left_out) - len(shown), "; ", "resource")
    return f"cannot be exported: {'; '.join(shown)}{more}; say partial: true to leave them out of the backup"
