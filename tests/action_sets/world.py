"""Action sets on services of a test, with its own functions."""

import json
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from google.protobuf.json_format import MessageToDict
from pkger.applier.v1 import action_pb2 as applier_action_pb2
from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.action_pb2_grpc import ActionServiceStub
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import action_pb2, definition_pb2, object_pb2, operation_pb2

import applier_svc.__main__ as applier
import stack_svc.__main__ as stack
from services.rpc.client import Peer
from services.rpc.process import Opened, Service
from services.settings import MAX_ACTION_SETS, Settings
from services.system import Clock
from tests.action_sets.functions import Script
from tests.applier.faulty import FaultyDriver, faulty_platform
from tests.applier.world import QUICK
from tests.cluster import Cluster, cluster
from tests.transport import through, transport_of_loop

COMPLETE = action_pb2.ACTION_SET_STATE_COMPLETE
FAILED = action_pb2.ACTION_SET_STATE_FAILED
CANCELLED = action_pb2.ACTION_SET_STATE_CANCELLED


class Invalid(Exception):
    """A request has violations."""

    def __init__(self, violations: Sequence[object_pb2.Violation]) -> None:
        super().__init__("\n".join(f"{each.path}: {each.reason}" for each in violations))


def do(step: str, **more: Any) -> dict[str, Any]:
    """A phase that calls ``Do``, with *more* fields; those of its arguments are ``value`` and ``secret``."""
    arguments = {key: more.pop(key) for key in ("value", "secret") if key in more}
    return {"name": step, "func": more.pop("func", "Do"), "args": {"step": step, **arguments}, **more}


def blueprint(name: str = "b", **actions: Mapping[str, Any]) -> dict[str, Any]:
    """A blueprint; its actions have no object unless they say it."""
    kinds = {action: {"kind": "None", **fields} for action, fields in actions.items()}
    return {
        "apiVersion": "pkger/v1",
        "kind": "Blueprint",
        "metadata": {"name": name},
        "spec": {"actions": kinds},
    }


def action_set(*actions: str | Mapping[str, Any], name: str = "", **spec: Any) -> dict[str, Any]:
    """An action set that runs *actions* of the blueprint ``b``."""
    runs = [
        {"name": each, "blueprint": "b"} if isinstance(each, str) else {"blueprint": "b", **each} for each in actions
    ]
    return {
        "apiVersion": "pkger/v1",
        "kind": "ActionSet",
        "metadata": {"name": name} if name else {},
        "spec": {**({"actions": runs} if runs else {}), **spec},
    }


@dataclass
class World:
    """
    Services with an applier that has the functions of *script*.

    Attributes:
        services: The services.
        driver: The driver of the platform, with scripted faults.
        script: What the functions of tests do.
    """

    services: Cluster
    driver: FaultyDriver
    script: Script = field(default_factory=Script)

    @property
    def applier(self) -> Peer:
        """The applier."""
        return self.services.peers["applier"]

    async def create(self, *documents: Mapping[str, Any], **more: Any) -> action_pb2.ActionSet:
        """
        Create an action set from definitions, with *more* fields of the request.

        Raises:
            Invalid: There are violations.
        """
        request = applier_action_pb2.CreateActionSetRequest(definitions=map(definition, documents), **more)
        answer = await self.applier.call(ActionServiceStub(self.applier.channel).CreateActionSet, request)
        if answer.HasField("violations"):
            raise Invalid(answer.violations.violations)
        return answer.action_set

    async def get(self, name: str) -> action_pb2.ActionSet:
        """An action set."""
        request = applier_action_pb2.GetActionSetRequest(name=name)
        answer = await self.applier.call(ActionServiceStub(self.applier.channel).GetActionSet, request)
        return answer.action_set

    async def events(self, operation: str, after_seq: int = 0) -> list[operation_pb2.OperationEvent]:
        """The events of an operation up to its end."""
        request = applier_pb2.WatchOperationRequest(operation_id=operation, after_seq=after_seq)
        stream = self.applier.stream(ApplierServiceStub(self.applier.channel).WatchOperation, request, math.inf)
        return [event async for event in stream]

    async def until_event(self, operation: str, kind: str) -> operation_pb2.OperationEvent:
        """The first event of a kind of an operation."""
        request = applier_pb2.WatchOperationRequest(operation_id=operation)
        stream = self.applier.stream(ApplierServiceStub(self.applier.channel).WatchOperation, request, math.inf)
        async for event in stream:
            if event.HasField(kind):  # type: ignore[arg-type]
                return event
        raise AssertionError(f"{operation} ended without {kind}")

    async def run(self, *documents: Mapping[str, Any], **more: Any) -> action_pb2.ActionSet:
        """An action set that has ended."""
        created = await self.create(*documents, **more)
        await self.events(created.operation_id)
        return await self.get(created.name)

    async def cancel(self, operation: str) -> operation_pb2.CancelEffect.ValueType:
        """Cancel an operation."""
        request = applier_pb2.CancelOperationRequest(operation_id=operation)
        stub = ApplierServiceStub(self.applier.channel)
        return (await self.applier.call(stub.CancelOperation, request)).effect


def definition(document: Mapping[str, Any]) -> definition_pb2.Definition:
    """A definition as a message."""
    return definition_pb2.Definition(
        kind=document["kind"], name=document["metadata"].get("name", ""), json=json.dumps(document)
    )


def states(action_set: action_pb2.ActionSet) -> dict[str, str]:
    """The state of each phase, by the names of action and phase."""
    return {
        f"{action.name}/{phase.name}": action_pb2.PhaseState.Name(phase.state).removeprefix("PHASE_STATE_")
        for action in action_set.actions
        for phase in (*action.phases, *([action.defer_phase] if action.HasField("defer_phase") else []))
    }


def outputs(action_set: action_pb2.ActionSet) -> dict[str, Any]:
    """The outputs of each phase that has any, by its name."""
    return {
        phase.name: json.loads(phase.outputs_json)
        for action in action_set.actions
        for phase in (*action.phases, action.defer_phase)
        if phase.outputs_json
    }


def plain_events(events: Sequence[operation_pb2.OperationEvent]) -> str:
    """Events as text: without times, and with names instead of ids."""
    lines = []
    for event in events:
        fields = MessageToDict(event, preserving_proto_field_name=True)
        kind = event.WhichOneof("event")
        lines.append({str(kind): fields[str(kind)]})
    return yaml.safe_dump(lines, sort_keys=True, width=120, allow_unicode=True)


@asynccontextmanager
async def world(
    folder: Path,
    script: Script | None = None,
    clock: Clock | None = None,
    max_action_sets: int = MAX_ACTION_SETS,
) -> AsyncIterator[World]:
    """
    Run services whose applier has the functions of a script.

    Args:
        folder: The folder of their databases.
        script: What its functions do; None: a new one.
        clock: The clock of the store; None: the time of day.
        max_action_sets: Most unfinished action sets of the applier.
    """
    script = script or Script()
    transport = transport_of_loop()

    @asynccontextmanager
    async def opened(settings: Settings) -> AsyncIterator[Service]:
        inner = through(transport, partial(applier.opened, timeouts=QUICK, functions=script.table()))
        async with inner(replace(settings, max_action_sets=max_action_sets)) as service:
            yield service

    replaced: dict[str, Opened] = {"applier": opened}
    if clock:
        replaced["stack"] = partial(stack.opened, clock=clock)
    async with (
        faulty_platform(folder) as (driver, address),
        cluster(folder, replaced, {"platform": address}) as services,
    ):
        yield World(services, driver, script)
