"""Measures action sets: how soon one starts, what a phase costs, backups and restores, and runs that wait."""

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from pkger.applier.v1 import action_pb2 as applier_action_pb2
from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.action_pb2_grpc import ActionServiceStub
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import action_pb2, definition_pb2, operation_pb2

from bench.cluster import STACK, Cluster, Unexpected, cluster, cpu_of
from bench.figures import Figure, Seconds, median_of_async, megabytes, seconds
from bench.idle_applier import IDLE
from bench.package import Mix, package_text

RUNS = 5

PHASES = 64
"""Phases of the action set that shows what a phase costs: as many as an action may have."""

PARALLEL = (100, 5)
"""Actions that run at the same time, and the phases of each."""

WAITING = 64
"""Action sets that wait for one stack: as many as an applier has by default."""

WATCHED: Seconds = 10
"""How long the CPU time of waiting action sets is taken."""

_BACKUP = Path(__file__).parents[1] / "examples" / "backup.yml"

_HAS_CPU_TIMES = Path("/proc/self/schedstat").exists()


async def performing(count: int) -> list[Figure]:
    """
    Run action sets; backups and restores are of *count* objects.

    Raises:
        Unexpected: An action set ended otherwise than it was to.
    """
    steps = min(PHASES, count)
    actions, phases = (min(most, count) for most in PARALLEL)
    async with cluster(modules={"applier": "bench.idle_applier"}) as services:
        start = await median_of_async(RUNS, partial(_first_phase, services))
        one = await median_of_async(RUNS, partial(_perform, services, *_idle(1, steps)))
        many = await median_of_async(RUNS, partial(_perform, services, *_idle(actions, phases)))
    return [
        Figure("action set: from its request to its first phase", "", seconds(start), "< 150 ms"),
        Figure("  phases without work, in order", f"{steps} phases", f"{steps / one:,.0f} a second", ">= 100"),
        Figure("  the same, in actions at the same time", f"{actions} x {phases} phases", seconds(many), "< 5 s"),
        *await _backing_up(count),
        *await _waiting(min(WAITING, count)),
    ]


async def _backing_up(count: int) -> list[Figure]:
    """Back a stack up, and restore it: nothing to do, and all of it."""
    text, size = package_text(count, Mix.MIXED), f"{count:,} mixed"
    [blueprint] = yaml.safe_load_all(_BACKUP.read_text())
    async with cluster() as services:
        apply = await median_of_async(1, partial(services.apply, text))
        backup = _action_set({"name": "backup", "blueprint": "stack-backup", "object": _stack()})
        backed_up = await median_of_async(RUNS, partial(_perform, services, blueprint, backup))
        last = await _perform(services, blueprint, backup)
        restore = _action_set(**{"from": {"actionSet": last.name, "action": "restore"}})
        nothing = await median_of_async(RUNS, partial(_perform, services, blueprint, restore))
        await services.uninstall()
        everything = await median_of_async(1, partial(_perform, services, blueprint, restore))
    return [
        Figure("action set: backup of a stack", size, seconds(backed_up), "< 1 s"),
        Figure("  restore, nothing to do", "", seconds(nothing), "< 1 s"),
        Figure("  restore, everything created", "", seconds(everything)),
        Figure("  time of it / apply, everything created", "", f"{everything / apply:.2f}", "<= 1.1"),
    ]


async def _waiting(count: int) -> list[Figure]:
    """The CPU time of services while *count* action sets wait for a stack that another one has."""
    if not _HAS_CPU_TIMES:
        return []
    settings = {"PKGER_MAX_ACTION_SETS": str(count + 1)}
    sleeps = {"name": "sleep", "func": "Sleep", "args": {"duration": "10m"}}
    blueprint = _blueprint({"wait": {"lock": True, "phases": [sleeps]}})
    run = _action_set({"name": "wait", "blueprint": "bench", "object": _stack()}, wait="1h")
    async with cluster(settings) as services:
        created = [await _create(services, blueprint, run) for _ in range(count + 1)]
        await _until(services, created[0].operation_id, "phase_started")
        await asyncio.gather(*(_until(services, each.operation_id, "waiting") for each in created[1:]))
        services.forget_peaks()
        before = {name: cpu_of(services.pids[name]) for name in ("applier", "stack")}
        await asyncio.sleep(WATCHED)
        shares = {name: (cpu_of(services.pids[name]) - taken) / WATCHED for name, taken in before.items()}
        peaks = services.peak_memory()
        await asyncio.gather(*(_cancel(services, each.operation_id) for each in reversed(created)))
    return [
        Figure(
            "action sets that wait: CPU time of the applier", f"{count} for one", _share(shares["applier"]), "< 1 %"
        ),
        Figure("  of the stack service", "", _share(shares["stack"])),
        *([Figure("  peak memory", "", megabytes({"applier": peaks["applier"]}), "< 200 MB")] if peaks else []),
    ]


def _share(share: float) -> str:
    return f"{share * 100:.2f} % of a core"


def _stack() -> dict[str, str]:
    return {"kind": "Stack", "name": STACK}


def _idle(actions: int, phases: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A blueprint with an action of so many phases without work, and an action set that runs it so many times."""
    steps = [{"name": f"p{number}", "func": IDLE} for number in range(phases)]
    run = {"name": "idle", "blueprint": "bench"}
    return _blueprint({"idle": {"kind": "None", "phases": steps}}), _action_set(*[run] * actions)


def _blueprint(actions: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "pkger/v1",
        "kind": "Blueprint",
        "metadata": {"name": "bench"},
        "spec": {"actions": actions},
    }


def _action_set(*actions: Mapping[str, Any], **spec: Any) -> dict[str, Any]:
    listed = {"actions": [*actions]} if actions else {}
    return {"apiVersion": "pkger/v1", "kind": "ActionSet", "metadata": {}, "spec": {**listed, **spec}}


async def _create(services: Cluster, *documents: Mapping[str, Any]) -> action_pb2.ActionSet:
    definitions = [
        definition_pb2.Definition(kind=each["kind"], name=each["metadata"].get("name", ""), json=json.dumps(each))
        for each in documents
    ]
    stub = ActionServiceStub(services.applier.channel)
    request = applier_action_pb2.CreateActionSetRequest(definitions=definitions)
    answer = await services.applier.call(stub.CreateActionSet, request)
    if answer.HasField("violations"):
        raise Unexpected(f"there are violations: {answer.violations}")
    return answer.action_set


async def _perform(services: Cluster, *documents: Mapping[str, Any]) -> action_pb2.ActionSet:
    """
    Create an action set, and follow it to its end.

    Raises:
        Unexpected: It did not succeed.
    """
    created = await _create(services, *documents)
    last = (await _watched(services, created.operation_id))[-1].finished
    if last.state != operation_pb2.OPERATION_STATE_SUCCEEDED:
        raise Unexpected(f"the action set ended otherwise: {last.cause}")
    return created


async def _first_phase(services: Cluster) -> None:
    created = await _create(services, *_idle(1, 1))
    await _until(services, created.operation_id, "phase_started")


async def _until(services: Cluster, operation: str, kind: str) -> None:
    """
    Follow an operation to its first event of a kind.

    Raises:
        Unexpected: It ended before that.
    """
    if (await _watched(services, operation, kind))[-1].WhichOneof("event") != kind:
        raise Unexpected(f"{operation} ended without {kind}")


async def _watched(services: Cluster, operation: str, last: str = "") -> Sequence[operation_pb2.OperationEvent]:
    """The events of an operation, to its end or to the first one of the kind *last*."""
    stub, events = ApplierServiceStub(services.applier.channel), list[operation_pb2.OperationEvent]()
    request = applier_pb2.WatchOperationRequest(operation_id=operation)
    async for event in services.applier.stream(stub.WatchOperation, request, math.inf):
        events.append(event)
        if event.WhichOneof("event") == last:
            break
    return events


async def _cancel(services: Cluster, operation: str) -> None:
    stub = ApplierServiceStub(services.applier.channel)
    await services.applier.call(stub.CancelOperation, applier_pb2.CancelOperationRequest(operation_id=operation))
    await _watched(services, operation)
