"""The actors of a run: clients of stacks, a person who edits the platform, the operator (docs/simulation.md)."""

import asyncio
import json
import math
from collections.abc import AsyncIterator
from typing import Any

from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.driver.v1 import driver_pb2
from pkger.driver.v1.driver_pb2_grpc import DriverServiceStub
from pkger.model.v1 import object_pb2, operation_pb2, package_change_pb2, plan_pb2
from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import package_pb2, planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub
from pkger.stack.v1 import repository_pb2
from pkger.stack.v1.repository_pb2_grpc import RepositoryServiceStub

from services.core.errors import PkgerError, Reason
from services.rpc.client import Peer
from tests.simulation.package_pool import REPOSITORY
from tests.simulation.packages import display_name, secret_of, text_of
from tests.simulation.scenario import OBJECTS, Action, Client, Edit, PackageChange
from tests.simulation.world import World

TARGET = object_pb2.Target(platform="embedded", org="default")
RUN = applier_pb2.RunOptions(allow_missing=True)

TRIES = 5
"""How often a client sends one request at most."""

LONGEST_CALL = 900.0
"""Seconds that a client waits for an operation at most."""

_RETRIED = frozenset(
    {
        Reason.SERVICE_UNAVAILABLE,
        Reason.STACK_LEASED,
        Reason.OPERATION_UNFINISHED,
        Reason.LEASE_LOST,
        Reason.TOKEN_STALE,
    }
)

AFTER_UNINSTALL = {
    "uninstall": plan_pb2.AFTER_UNINSTALL_KEEP,
    "delete": plan_pb2.AFTER_UNINSTALL_DELETE,
}
"""Whether an uninstall keeps the stack or deletes it, by the verb of the action."""

_ERRORS = (PkgerError, TimeoutError)
"""Exceptions with which a call may fail."""


class StackClient:
    """
    Works on one stack, one action after another.

    Attributes:
        wanted: The action of each request, by request id.
    """

    def __init__(self, world: World, client: Client) -> None:
        self.wanted: dict[str, Action] = {}
        self._world = world
        self._client = client
        self._name = f"client {client.stack}{client.rival}"

    async def work(self) -> None:
        """Do all actions."""
        skipped: set[str] = set()
        for number, action in enumerate(self._client.actions):
            await asyncio.sleep(action.pause)
            request_id = f"{self._client.stack}{self._client.rival}/{number}"
            self._world.trace.count(f"client {action.do}")
            if action.skip:
                self._world.trace.count("client skips")
            if {name for item in action.items if (name := item.name) not in action.skip} & skipped:
                self._world.trace.count("case 8: an object is skipped, and not skipped afterwards")
            skipped |= set(action.skip)
            if action.do in ("plan", "change"):
                if action.do == "change":
                    await self._configure_repository()
                await self._plan_and_apply(action, request_id)
            else:
                self.wanted[request_id] = action
                await self._ask_with_backup(action, request_id, self._request(action, request_id))

    async def _plan_and_apply(self, action: Action, request_id: str) -> None:
        plan = await self._plan(action, request_id)
        if not plan:
            return
        for number in range(action.applies):
            await asyncio.sleep(action.lag)
            applied = f"{request_id}.{number}"
            self.wanted[applied] = action
            secrets = dict.fromkeys(action.secrets, secret_of(self._client.stack))
            request = applier_pb2.ApplyPlanRequest(plan_id=plan, request_id=applied, secrets=secrets, run_options=RUN)
            await (self._ask if number else self._ask_with_backup)(action, applied, request)

    async def _ask_with_backup(self, action: Action, request_id: str, request: Any) -> None:
        """Send the request; the action may add a backup of the store before it, and a restore after it."""
        if action.is_backed_up:
            self._world.back_up()
        restoring = None
        if action.restored_after >= 0:
            restoring = asyncio.get_running_loop().call_later(action.restored_after, self._world.restore)
        await self._ask(action, request_id, request)
        if restoring:
            await asyncio.sleep(restoring.when() - self._world.loop.now)

    async def _configure_repository(self) -> None:
        """Configure the repository of the packages; the store may have it, or have lost it in a restore."""
        request = repository_pb2.CreateRepositoryRequest(name=REPOSITORY, address=self._world.repository.as_uri())
        for _ in range(TRIES):
            peer = self._world.peer("stack", self._name)
            try:
                await peer.call(RepositoryServiceStub(peer.channel).CreateRepository, request)
            except _ERRORS as error:
                if not _is_worth_asking_again(error):
                    return
                await self._pause()
            else:
                return

    async def _plan(self, action: Action, request_id: str) -> str:
        """Store a plan; returns its name, or an empty text if planning failed."""
        request = planner_pb2.CreatePlanRequest(
            stack=object_pb2.StackRef(target=TARGET, name=self._client.stack),
            package=None if action.packages else self._package(action),
            packages=_changes(action) if action.packages else None,
            options=_options(action),
            request_id=f"{request_id} plan",
            secret_keys=action.secrets,
        )
        for _ in range(TRIES):
            peer, name = self._world.peer("planner", self._name), ""
            try:
                async for answer in peer.stream(PlannerServiceStub(peer.channel).CreatePlan, request):
                    name = answer.part.header.id or name
                    if answer.HasField("violations"):
                        self._world.trace.violate("DEFECT", f"a package of the pool breaks rules: {answer}")
                    if answer.HasField("conflict"):
                        code = package_change_pb2.ConflictCode.Name(answer.conflict.code)
                        self._world.trace.count(f"conflict {code}")
                        self._say(f"{request_id}: conflict {code} of {answer.conflict.package}")
                        return ""
            except _ERRORS as error:
                self._say(f"{request_id}: no plan: {_shown(error)}")
                if not _is_worth_asking_again(error):
                    return ""
                await self._pause()
            else:
                self._say(f"{request_id}: has plan {name}")
                return name
        return ""

    async def _ask(self, action: Action, request_id: str, request: Any) -> None:
        """Send the request to an applier; if it fails, retry with another draw of the applier."""
        for number in range(TRIES):
            name = self._world.draws.choice(f"applier of {self._name}", self._world.appliers)
            timeout = action.leave_after if action.leave_after and not number else LONGEST_CALL
            try:
                async with asyncio.timeout(timeout):
                    state, events = await self._follow(name, action, request)
            except _ERRORS as error:
                self._say(f"{request_id}: {_shown(error)}")
                if isinstance(error, TimeoutError):
                    self._world.trace.count("client leaves")
                if not _is_worth_asking_again(error):
                    return
            else:
                if state != operation_pb2.OPERATION_STATE_UNSPECIFIED:
                    self._say(f"{request_id}: {operation_pb2.OperationState.Name(state)} after {events} events")
                    return
                self._say(f"{request_id}: the stream ended early")
            await self._pause()

    async def _follow(
        self, applier: str, action: Action, request: Any
    ) -> "tuple[operation_pb2.OperationState.ValueType, int]":
        """The state in which the operation ended, and the number of its events."""
        peer = self._world.peer(applier, self._name)
        cancelling: asyncio.Task[None] | None = None
        state: operation_pb2.OperationState.ValueType = operation_pb2.OPERATION_STATE_UNSPECIFIED
        events = 0
        async for event in peer.stream(_method(peer, request), request, math.inf):
            events += bool(event.seq)
            if cancelling is None and action.cancel_after >= 0 and events == action.cancel_at:
                cancelling = asyncio.create_task(self._cancel(event.operation_id, action.cancel_after))
            if event.WhichOneof("event") == "finished":
                state = event.finished.state
            elif event.HasField("package_invalid"):
                self._world.trace.violate("DEFECT", f"a package of the pool breaks rules: {event}")
        if action.do == "delete" and not events:
            # Without events, the stack does not exist.
            return operation_pb2.OPERATION_STATE_SUCCEEDED, events
        return state, events

    async def _cancel(self, operation: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        peer = self._world.peer(
            self._world.draws.choice(f"canceller of {self._name}", self._world.appliers), self._name
        )
        request = applier_pb2.CancelOperationRequest(operation_id=operation)
        try:
            await peer.call(ApplierServiceStub(peer.channel).CancelOperation, request)
            self._say(f"cancels {operation}")
            self._world.trace.count("client cancels")
        except _ERRORS as error:
            self._say(f"cannot cancel {operation}: {_shown(error)}")

    def _request(self, action: Action, request_id: str) -> Any:
        stack = object_pb2.StackRef(target=TARGET, name=self._client.stack)
        if action.do in AFTER_UNINSTALL:
            after_uninstall = AFTER_UNINSTALL[action.do]
            return applier_pb2.UninstallStackRequest(
                stack=stack, request_id=request_id, after_uninstall=after_uninstall
            )
        if action.do == "rollback":
            return applier_pb2.RollbackStackRequest(
                stack=stack,
                revision=action.revision,
                options=_options(action),
                run_options=RUN,
                request_id=request_id,
            )
        return applier_pb2.ApplyRequest(
            stack=stack,
            package=self._package(action),
            options=_options(action),
            run_options=RUN,
            request_id=request_id,
            secrets=dict.fromkeys(action.secrets, secret_of(self._client.stack)),
        )

    def _package(self, action: Action) -> planner_pb2.PackageSources:
        text = text_of(action.items, self._client.prefix)
        source = parser_pb2.Source(name="package", text=text, encoding=parser_pb2.ENCODING_JSON)
        return planner_pb2.PackageSources(sources=[source])

    async def _pause(self) -> None:
        await asyncio.sleep(self._world.draws.spread(f"patience of {self._name}", 0.2, 10.0))

    def _say(self, what: str) -> None:
        self._world.trace.say(self._name, what)


class Person:
    """Edits the platform directly, without pkger."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def work(self) -> None:
        """Make all edits."""
        for edit in sorted(self._world.scenario.edits, key=lambda edit: edit.at):
            await asyncio.sleep(max(edit.at - self._world.loop.now, 0.0))
            peer = self._world.peer("platform", "person")
            stub = DriverServiceStub(peer.channel)
            try:
                if mutation := await self._mutation(edit, peer, stub):
                    self._world.trace.count(f"person {edit.do}")
                    self._world.trace.say("person", f"does {edit.do} {edit.prefix}{edit.name} {edit.label}".rstrip())
                    await peer.call(stub.Mutate, driver_pb2.MutateRequest(org=TARGET.org, mutations=[mutation]))
            except _ERRORS as error:
                self._world.trace.say("person", _shown(error))

    async def _mutation(self, edit: Edit, peer: Peer, stub: DriverServiceStub) -> driver_pb2.Mutation | None:
        """The mutation that makes *edit*; None: the platform lacks the resource, or the edit does not apply to it."""
        if edit.do == "put_secret":
            return driver_pb2.Mutation(put_secret=driver_pb2.PutSecret(key=edit.name, value="of a person"))
        if edit.do == "delete_secret":
            return driver_pb2.Mutation(delete_secret=driver_pb2.DeleteSecret(key=edit.name))
        kind, name = OBJECTS[edit.name], display_name(edit.name, edit.prefix)
        found = await self._find(kind, name, peer, stub)
        label_prefix = edit.prefix if edit.label_prefix is None else edit.label_prefix
        label = await self._find("Label", display_name(edit.label, label_prefix), peer, stub) if edit.label else None
        match edit.do:
            case "create" if kind in ("Label", "Dashboard") or (found is None and kind == "Bucket"):
                spec = json.dumps({"name": name}, separators=(",", ":"))
                return driver_pb2.Mutation(create=driver_pb2.CreateResource(kind=kind, spec_json=spec))
            case "edit" if found:
                changed = {**json.loads(found.spec_json), "description": "of a person"}
                written = driver_pb2.UpdateResource(
                    kind=kind,
                    id=found.id,
                    spec_json=json.dumps(changed, separators=(",", ":"), sort_keys=True),
                    references=found.references,
                )
                return driver_pb2.Mutation(update=written)
            case "delete" if found:
                return driver_pb2.Mutation(delete=driver_pb2.DeleteResource(kind=kind, id=found.id))
            case "attach" if found and label and kind != "Label":
                return driver_pb2.Mutation(attach=driver_pb2.AttachLabel(kind=kind, id=found.id, label_id=label.id))
            case "detach" if found and label and kind != "Label":
                return driver_pb2.Mutation(detach=driver_pb2.DetachLabel(kind=kind, id=found.id, label_id=label.id))
            case _:
                return None

    async def _find(self, kind: str, name: str, peer: Peer, stub: DriverServiceStub) -> object_pb2.Resource | None:
        request = driver_pb2.ListResourcesRequest(org=TARGET.org, kinds=[kind])
        async for part in peer.stream(stub.ListResources, request):
            for resource in part.resources:
                if resource.display_name == name:
                    return resource
        return None


class Operator:
    """Decides about BLOCKED operations and uninstalls all stacks; works after all faults have stopped."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def decide(self, operation: operation_pb2.Operation, decision: "operation_pb2.Decision.ValueType") -> str:
        """
        Recover a BLOCKED operation: *decision* for each step that offers it, a retry for all others.

        Returns:
            The state in which the operation ended, or the error.
        """
        self._world.trace.count(f"decision {operation_pb2.Decision.Name(decision)}")
        decisions = [
            applier_pb2.StepDecision(
                step=each.step.number,
                decision=decision,
                resource_id=each.found_resource_id if decision == operation_pb2.DECISION_ADOPT else "",
            )
            for each in operation.blocked_steps
            if decision in each.decisions and (each.found_resource_id or decision != operation_pb2.DECISION_ADOPT)
        ]
        request = applier_pb2.RecoverOperationRequest(operation_id=operation.id, decisions=decisions)
        peer = self._applier()
        return await self._followed(peer.stream(ApplierServiceStub(peer.channel).RecoverOperation, request, math.inf))

    async def operation(self, name: str) -> operation_pb2.Operation:
        """The current state of an operation."""
        peer = self._applier()
        request = applier_pb2.GetOperationRequest(operation_id=name)
        answer: applier_pb2.GetOperationResponse = await peer.call(
            ApplierServiceStub(peer.channel).GetOperation, request
        )
        return answer.operation

    async def uninstall(self, stack: str) -> str:
        """Uninstall a stack and delete it; returns the state in which the operation ended, or the error."""
        ref = object_pb2.StackRef(target=TARGET, name=stack)
        request = applier_pb2.UninstallStackRequest(stack=ref, after_uninstall=plan_pb2.AFTER_UNINSTALL_DELETE)
        peer = self._applier()
        return await self._followed(peer.stream(ApplierServiceStub(peer.channel).UninstallStack, request, math.inf))

    def _applier(self) -> Any:
        return self._world.peer(self._world.appliers[0], "operator")

    async def _followed(self, events: AsyncIterator[operation_pb2.OperationEvent]) -> str:
        end = "no end"
        try:
            async for event in events:
                if event.WhichOneof("event") == "finished":
                    end = operation_pb2.OperationState.Name(event.finished.state)
        except _ERRORS as error:
            end = _shown(error)
        self._world.trace.say("operator", end)
        return end


def _method(peer: Any, request: Any) -> Any:
    stub = ApplierServiceStub(peer.channel)
    match request:
        case applier_pb2.ApplyRequest():
            return stub.Apply
        case applier_pb2.ApplyPlanRequest():
            return stub.ApplyPlan
        case applier_pb2.RollbackStackRequest():
            return stub.RollbackStack
        case _:
            return stub.UninstallStack


def _options(action: Action) -> planner_pb2.PlanOptions:
    skip = [planner_pb2.Skip(kind=OBJECTS[name], name=name) for name in action.skip]
    return planner_pb2.PlanOptions(skip=skip, allow_empty=True, allow_replace=True)


def _changes(action: Action) -> package_pb2.PackageChanges:
    options = package_pb2.ResolutionOptions(
        update_dependencies=action.consents, allow_downgrade=action.consents, cascade=action.consents
    )
    return package_pb2.PackageChanges(changes=map(_change, action.packages), options=options)


def _change(change: PackageChange) -> package_pb2.PackageChange:
    match change.do:
        case "install":
            install = package_pb2.PackageInstall(name=change.name, version_range=change.version)
            return package_pb2.PackageChange(install=install)
        case "update":
            update = package_pb2.PackageUpdate(name=change.name, version_range=change.version)
            return package_pb2.PackageChange(update=update)
        case "uninstall":
            return package_pb2.PackageChange(uninstall=package_pb2.PackageUninstall(name=change.name))
        case _:
            return package_pb2.PackageChange(update_all=package_pb2.UpdateAll())


def _is_worth_asking_again(error: BaseException) -> bool:
    return not isinstance(error, PkgerError) or error.reason in _RETRIED


def _shown(error: BaseException) -> str:
    match error:
        case PkgerError():
            return f"{error.reason}: {error}"
        case _:
            return "left"
