"""Plans a package, applies the plan, watches the apply, shows what the stack owns, and deletes the stack."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from grpc_status import rpc_status
from pkger.applier.v1 import applier_pb2, applier_pb2_grpc
from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2
from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import planner_pb2, planner_pb2_grpc
from pkger.stack.v1 import stack_pb2, stack_pb2_grpc

STACK = object_pb2.StackRef(name="fleet")
TOKEN = [("authorization", f"Bearer {os.environ.get('PKGER_TOKEN', '')}")]
CALL_SECONDS = 30
RETRY_SECONDS = 60


def connect(variable: str, address: str) -> grpc.Channel:
    """A channel to the address in the environment variable, or to the default one; pings detect dead connections."""
    options = [("grpc.keepalive_time_ms", 30_000), ("grpc.keepalive_timeout_ms", 10_000)]
    return grpc.insecure_channel(os.environ.get(variable, address), options)


planner = planner_pb2_grpc.PlannerServiceStub(connect("PKGER_PLANNER_ADDRESS", "127.0.0.1:50052"))
applier = applier_pb2_grpc.ApplierServiceStub(connect("PKGER_APPLIER_ADDRESS", "127.0.0.1:50053"))
stacks = stack_pb2_grpc.StackServiceStub(connect("PKGER_STACK_ADDRESS", "127.0.0.1:50054"))


def create_plan(files: list[str]) -> str:
    """Store a plan for the package in the files, print how many steps of each kind it has, and return its id."""
    package = planner_pb2.PackageSources(
        sources=[parser_pb2.Source(name=file, text=Path(file).read_text("utf-8")) for file in files]
    )
    parts = planner.CreatePlan(
        planner_pb2.CreatePlanRequest(stack=STACK, package=package), timeout=CALL_SECONDS, metadata=TOKEN
    )
    # The header is the first part. The plan is stored by then, so the rest is not received.
    answer = next(parts)
    parts.cancel()
    if answer.HasField("violations"):
        raise SystemExit(f"the package is invalid: {[each.reason for each in answer.violations.violations]}")
    counts = answer.part.header.counts
    print(
        f"plan: {counts.creates} to create, {counts.updates} to update, {counts.deletes} to delete,"
        f" {counts.attaches} to attach, {counts.detaches} to detach"
    )
    return answer.part.header.id


def follow(events: Iterator[operation_pb2.OperationEvent]) -> str:
    """Print the events of an operation to its end, also when its applier dies, and return the operation's id."""
    operation_id, seq, state = "", 0, operation_pb2.OPERATION_STATE_UNSPECIFIED
    broken_since = None
    while True:
        try:
            for event in events:
                operation_id, seq, broken_since = event.operation_id, event.seq, None
                print(f"event {event.seq}: {event.WhichOneof('event')}")
                if event.HasField("finished"):
                    state = event.finished.state
            break
        except grpc.RpcError as error:
            delay = retry_delay(error)
            broken_since = broken_since or time.monotonic()
            if not operation_id or delay is None or time.monotonic() - broken_since > RETRY_SECONDS:
                raise
            # The operation continues without this client: another applier resumes it.
            time.sleep(delay)
        except KeyboardInterrupt:
            if not operation_id:
                raise
            # A disconnect would not stop it.
            request = applier_pb2.CancelOperationRequest(operation_id=operation_id)
            applier.CancelOperation(request, timeout=CALL_SECONDS, metadata=TOKEN)
        events = applier.WatchOperation(
            applier_pb2.WatchOperationRequest(operation_id=operation_id, after_seq=seq), metadata=TOKEN
        )
    print(f"operation: {operation_pb2.OperationState.Name(state).removeprefix('OPERATION_STATE_').lower()}")
    if state != operation_pb2.OPERATION_STATE_SUCCEEDED:
        raise SystemExit(f"operation {operation_id} did not succeed")
    return operation_id


def retry_delay(error: grpc.RpcError) -> float | None:
    """Seconds after which the same call may succeed; None: a retry does not help."""
    status = rpc_status.from_call(error)
    for detail in status.details if status else ():
        retry = RetryInfo()
        if detail.Unpack(retry):
            return retry.retry_delay.ToTimedelta().total_seconds()
    # The error of a broken connection has no details.
    return 1.0 if status is None and error.code() is grpc.StatusCode.UNAVAILABLE else None


def reason_of(error: grpc.RpcError) -> str:
    """The reason of an error, one of reason.proto; empty for an error that is not pkger's."""
    status = rpc_status.from_call(error)
    for detail in status.details if status else ():
        info = ErrorInfo()
        if detail.Unpack(info) and info.domain == "pkger":
            return info.reason
    return ""


def show_stack() -> None:
    """Print what the stack owns, page by page."""
    request = stack_pb2.ListResourcesRequest(stack=STACK)
    while True:
        page = stacks.ListResources(request, timeout=CALL_SECONDS, metadata=TOKEN)
        for entry in page.resources:
            print(f"resource: {entry.key.kind} {entry.key.name}")
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


def run(files: list[str]) -> None:
    """Run all steps of the example."""
    plan_id = create_plan(files)

    operation_id = follow(applier.ApplyPlan(applier_pb2.ApplyPlanRequest(plan_id=plan_id), metadata=TOKEN))

    # Any client can watch the operation by its id, also while it runs.
    follow(applier.WatchOperation(applier_pb2.WatchOperationRequest(operation_id=operation_id), metadata=TOKEN))

    show_stack()

    # Watch before the change: the stream then has every change of the stack.
    changes = stacks.WatchStack(stack_pb2.WatchStackRequest(stack=STACK), metadata=TOKEN)
    next(changes)

    follow(
        applier.UninstallStack(
            applier_pb2.UninstallStackRequest(stack=STACK, after_uninstall=plan_pb2.AFTER_UNINSTALL_DELETE),
            metadata=TOKEN,
        )
    )
    for message in changes:
        if message.HasField("operation_ended") or message.HasField("gone"):
            print(f"change: {message.WhichOneof('change').replace('_', ' ')}")


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit("usage: client.py FILE...")
    try:
        run(sys.argv[1:])
    except grpc.RpcError as problem:
        sys.exit(f"Error: {problem.details()} [{reason_of(problem) or problem.code().name}]")
