"""The checks at the end of a run, after all faults have stopped (docs/simulation.md)."""

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from pkger.model.v1 import operation_pb2

from tests.simulation.actors import Operator, StackClient
from tests.simulation.faults import VERY_LATE_SECONDS
from tests.simulation.oracle import Oracle
from tests.simulation.package_pool import items_of
from tests.simulation.packages import description
from tests.simulation.records import Entry, Operation
from tests.simulation.scenario import PACKAGE_STACK, Action, Client, Item
from tests.simulation.world import World

LONGEST_CALM = 2400.0
"""Virtual seconds in which all operations have to end."""

LONGEST_SILENCE = 600.0
"""Virtual seconds within which an applier should have asked for abandoned operations."""

MOST_TAKEOVERS = 50

_DECISIONS = (
    operation_pb2.DECISION_RETRY,
    operation_pb2.DECISION_SKIP,
    operation_pb2.DECISION_KEEP,
    operation_pb2.DECISION_FORCE,
    operation_pb2.DECISION_ADOPT,
)
"""The decisions that the operator tries in turn; the first one is drawn."""

_HARMLESS = ("create", "put_secret")
"""Edits before an operation that leave the content of its stack alone, if the person does nothing else."""

_MEDDLING = frozenset({"backup", "person", "same_names", "share", "bad_lists", "bad_answers", "bad_describe"})
"""With these, the content of a stack also depends on others, so only the rules at each effect are checked."""


class Ends:
    """Judges the end of a run."""

    def __init__(self, world: World, oracle: Oracle, clients: Mapping[Client, StackClient]) -> None:
        self._world = world
        self._oracle = oracle
        self._clients = clients
        self._stacks = list(dict.fromkeys(client.stack for client in clients))
        self._trace = world.trace
        self._operator = Operator(world)
        self._decided: set[str] = set()

    async def judge(self) -> None:
        """Wait until all operations have ended, then check the stacks and what is left on the platform."""
        await self._wait_for_quiet()
        if "very_late" in self._world.scenario.features:
            # What a killed applier sent may still be on its way.
            await asyncio.sleep(VERY_LATE_SECONDS)
        await self._end_blocked()
        if self._oracle.unfinished():
            return
        for stack in () if self._is_meddled_with() else self._stacks:
            self._check_existence(stack)
            if stack == PACKAGE_STACK:
                self._check_packages()
            else:
                self._check_content(stack)
            self._check_repetitions(stack)
        await self._probe()

    def _is_meddled_with(self) -> bool:
        scenario = self._world.scenario
        return bool(_MEDDLING & set(scenario.features)) or any(edit.do not in _HARMLESS for edit in scenario.edits)

    async def _wait_for_quiet(self) -> None:
        end = self._world.loop.now + LONGEST_CALM
        while working := self._oracle.unfinished():
            if self._world.loop.now >= end:
                self._trace.violate(self._why_stuck(working[0]), f"{working[0].name} is {working[0].state} for ever")
                return
            await asyncio.sleep(1.0)

    def _why_stuck(self, operation: Operation) -> str:
        lease = self._oracle.store.leases.get(operation.stack)
        if lease and lease.expires > self._world.clock("stack") + lease.ttl:
            return "LOCKED"
        if self._oracle.takeovers(operation.name) > MOST_TAKEOVERS:
            return "DEFECT_LOOP"
        if self._world.loop.now - self._oracle.last_look > LONGEST_SILENCE:
            return "LOOP_DEAD"
        return "STUCK"

    async def _end_blocked(self) -> None:
        for operation in [each for each in self._oracle.store.operations.values() if each.state == "BLOCKED"]:
            shown = await self._operator.operation(operation.name)
            reason = operation_pb2.BlockedReason.Name(shown.blocked_reason)
            self._trace.count(f"blocked {reason}")
            if not shown.blocked_reason or not (shown.blocked_steps or shown.cause):
                self._trace.violate("BLOCKED_EMPTY", f"{operation.name} says nothing of what blocks it")
            first = self._world.draws.below("first decision", len(_DECISIONS))
            order = (*_DECISIONS[first:], *_DECISIONS[:first])
            # The first round may only consent to go on after a restore of the store, which is about no step. Then each
            # round has to lead to other blocked steps.
            shown = await self._decided_once(operation, shown, order)
            before: Sequence[operation_pb2.BlockedStep] = ()
            while operation.state == "BLOCKED" and shown.blocked_steps != before:
                before = shown.blocked_steps
                shown = await self._decided_once(operation, shown, order)
            if operation.state == "BLOCKED":
                self._trace.violate("DEAD_END", f"no decision ends {operation.name}: {reason}, {shown.cause}")

    async def _decided_once(
        self, operation: Operation, shown: operation_pb2.Operation, order: Sequence["operation_pb2.Decision.ValueType"]
    ) -> operation_pb2.Operation:
        """Try each decision of *order* until *operation* ends; returns its last state."""
        for decision in order:
            if operation.state != "BLOCKED":
                break
            if decision != operation_pb2.DECISION_RETRY:
                self._decided.add(operation.name)
            await self._operator.decide(shown, decision)
            await self._wait_for_quiet()
            shown = await self._operator.operation(operation.name)
        return shown

    def _check_existence(self, stack: str) -> None:
        """Check that the last operation that succeeded decides whether a stack exists; leftovers keep a record."""
        store = self._oracle.store
        ids = {id_ for id_, name in store.stacks.items() if name == stack}
        mine = [each for each in store.operations.values() if store.stack_names.get(each.stack) == stack]
        last = next((each for each in reversed(mine) if each.state == "SUCCEEDED"), None)
        if last and last.deletes and ids and not any(entry.stack in ids for entry in store.entries):
            self._trace.violate("STACK", f"{stack} is still there, which {last.name} deleted")
        if last and not last.deletes and not ids:
            self._trace.violate("STACK", f"{stack} is gone, which {last.name} kept")

    def _check_content(self, stack: str) -> None:
        """Check a stack against the packages of its operations that succeeded."""
        ids = [id_ for id_, name in self._oracle.store.stacks.items() if name == stack]
        wanted = self._wanted(stack)
        if wanted is None:
            return
        entries = {entry.name: entry for entry in self._oracle.store.entries if entry.stack in ids}
        for name, entry in entries.items():
            if name not in wanted and not entry.is_pending_delete:
                self._trace.violate("CONTENT", f"{stack} still owns {name}")
        for name, item in wanted.items():
            if name in entries:
                self._check_item(stack, item, entries, wanted)
            else:
                self._trace.violate("CONTENT", f"{stack} does not own {name}")

    def _check_packages(self) -> None:
        """Check the package stack: its resources are exactly those of its packages."""
        store, platform = self._oracle.store, self._oracle.platform
        mine = [each for each in store.operations.values() if store.stack_names.get(each.stack) == PACKAGE_STACK]
        decided = self._decided & {operation.name for operation in mine}
        # What is left past the seal differs from the packages until they are compared again.
        left = [each for each in mine if each.state == "SUCCEEDED" and _is_incomplete(each)]
        if decided or left:
            return
        ids = [id_ for id_, name in store.stacks.items() if name == PACKAGE_STACK]
        versions = {name: row[0] for id_ in ids for name, row in store.packages.get(id_, {}).items()}
        self._trace.count("content of packages compared")
        labels: dict[str, set[str]] = {}
        wanted: dict[str, tuple[str, str]] = {}
        for item in items_of(versions):
            labels.setdefault(item.name, set()).update(item.labels)
            wanted[item.name] = (item.kind, description(item.version))
        found: dict[str, tuple[str, str]] = {}
        for entry in store.entries:
            if entry.stack not in ids:
                continue
            resource = platform.resources.get(entry.resource_id)
            if resource is None:
                self._trace.violate("GHOST", f"{PACKAGE_STACK} owns {entry.name}, which is nowhere")
                continue
            name = resource.display_name
            attached = {platform.resources[each].display_name for each in resource.labels}
            if name in found:
                self._trace.violate("CONTENT", f"{PACKAGE_STACK} owns {resource.kind} {name} twice")
            if attached != labels.get(name, set()):
                expected = sorted(labels.get(name, ()))
                self._trace.violate("CONTENT", f"{entry.name} has the labels {sorted(attached)}, and not {expected}")
            found[name] = (resource.kind, json.loads(resource.spec).get("description"))
        if found != wanted:
            self._trace.violate("CONTENT", f"{PACKAGE_STACK} owns {found}, and its packages have {wanted}")

    def _check_repetitions(self, stack: str) -> None:
        """Check that the second of two equal applies has nothing to do but to write secrets."""
        store, actions = self._oracle.store, self._actions(stack)
        mine = [each for each in store.operations.values() if store.stack_names.get(each.stack) == stack]
        for first, second in pairwise(mine):
            packages = [
                (each.do, each.items, each.skip, each.packages, each.revision)
                for name in (first.name, second.name)
                if (each := actions.get(name))
            ]
            is_repetition = len(packages) == len({*packages}) + 1
            is_done = all(first.fact(number).state == "DONE" for number in first.steps)
            steps = [step.number for step in second.steps.values() if not step.HasField("put_secret")]
            if is_repetition and first.state == "SUCCEEDED" and is_done and steps:
                self._trace.violate("AGAIN", f"{second.name} has steps {steps}, although {first.name} applied the same")

    def _actions(self, stack: str) -> dict[str, Action]:
        """The action of each operation of the clients of *stack*, by name of the operation."""
        actions = {
            request: action
            for client, asked in self._clients.items()
            if client.stack == stack
            for request, action in asked.wanted.items()
        }
        requests = {operation: request for request, operation in self._oracle.store.requests.items()}
        return {operation: actions[request] for operation, request in requests.items() if request in actions}

    def _wanted(self, stack: str) -> dict[str, Item] | None:
        """The objects that a stack has to own; None: a decision of the operator, or a lost request, leaves it open."""
        store, actions = self._oracle.store, self._actions(stack)
        wanted: dict[str, Item] = {}
        mine = [each for each in store.operations.values() if store.stack_names.get(each.stack) == stack]
        if self._decided & {operation.name for operation in mine}:
            return None
        # In the order in which the operations began, not by their times: a clock may have been set back.
        for operation in mine:
            if operation.state != "SUCCEEDED":
                continue
            if operation.kind == "UNINSTALL":
                wanted = {}
                continue
            action = actions.get(operation.name)
            if action is None:
                return None
            kept = {name: item for name, item in wanted.items() if name in action.skip}
            given = {item.name: item for item in action.items if item.name not in action.skip}
            after = kept | {name: _with_skipped_labels(item, wanted, action.skip) for name, item in given.items()}
            # A label that is deleted is detached from skipped objects, too.
            held, wanted = wanted, {name: _with_labels_of(item, after) for name, item in after.items()}
            left = _left(operation)
            if None in left.values():
                return None
            for name, is_there in left.items():
                labels = wanted.pop(name).labels
                if is_there and name in held:
                    # The old resource gets the labels of its failed replacement.
                    wanted[name] = replace(held[name], labels=labels)
        return wanted

    def _check_item(self, stack: str, item: Item, entries: Mapping[str, Entry], wanted: Mapping[str, Item]) -> None:
        entry = entries[item.name]
        resource = self._oracle.platform.resources.get(entry.resource_id)
        if resource is None:
            self._trace.violate("GHOST", f"{stack} owns {item.name}, which is nowhere")
            return
        if resource.kind != item.kind:
            self._trace.violate("WRONG_KIND", f"{stack} owns {item.name}, which is a {resource.kind}")
            return
        spec = json.loads(resource.spec)
        if spec.get("description") != description(item.version):
            problem = f"{item.name} of {stack} is {spec.get('description')}, and not {description(item.version)}"
            self._trace.violate("CONTENT", problem)
        if resource.display_name.endswith("anew") != item.renamed or ("explicit" in resource.spec) != item.explicit:
            self._trace.violate("CONTENT", f"{item.name} of {stack} was not replaced: {resource.spec}")
        if bool(spec.get("retentionRules")) != item.brief:
            self._trace.violate("CONTENT", f"{item.name} of {stack} has another retention: {resource.spec}")
        # A skipped rule loses a deleted endpoint, and does not get the new one.
        if item.name == "alarm" and {"hook"} <= wanted.keys() & entries.keys() and not self._is_skipped(stack, "alarm"):
            referred = self._oracle.platform.references.get(resource.id, set())
            if referred != {entries["hook"].resource_id}:
                self._trace.violate("CONTENT", f"alarm of {stack} refers to {sorted(referred)}, and not to its hook")
        labels = {label for label in item.labels if label in wanted}
        attached = {name for name, label in entries.items() if label.resource_id in resource.labels}
        if attached != labels or len(attached) != len(resource.labels):
            self._trace.violate("CONTENT", f"{item.name} of {stack} has {sorted(attached)}, and not {sorted(labels)}")
        if entry.labels != labels:
            self._trace.violate(
                "FORGOTTEN", f"the record of {item.name} has {sorted(entry.labels)}, and not {sorted(labels)}"
            )

    def _is_skipped(self, stack: str, name: str) -> bool:
        """Whether an action of a client skips *name*."""
        clients = [client for client in self._clients if client.stack == stack]
        return any(name in action.skip for client in clients for action in client.actions)

    async def _probe(self) -> None:
        """Uninstall all stacks, then check that no resource is left that an operation created."""
        left = [name for name in self._stacks if name in self._oracle.store.stacks.values()]
        used: list[str] = []
        while left != used:
            # A resource that the person attached to others can be deleted after these.
            used, left = left, []
            for name in used:
                end = await self._uninstall(name)
                end = await self._agreed(name) or end
                if name in self._oracle.store.stacks.values():
                    # A second uninstall removes resources that other stacks handed over meanwhile.
                    end = await self._operator.uninstall(name)
                if end.startswith("IN_USE"):
                    left.append(name)
                elif end != "OPERATION_STATE_SUCCEEDED":
                    self._trace.violate("PROBE", f"{name} cannot be uninstalled: {end}")
        owned = {entry.resource_id for entry in self._oracle.store.entries}
        for id_, name in self._oracle.made.items():
            resource = self._oracle.platform.resources.get(id_)
            is_excused = id_ in self._oracle.by_others | self._oracle.remade | owned or name in self._decided
            if resource and not is_excused:
                self._trace.violate("LEFT_OVER", f"{resource.kind} {id_}, made by {name}, is left")

    async def _uninstall(self, stack: str) -> str:
        """The end of an uninstall, which comes after an operation that a late request has begun meanwhile."""
        end = await self._operator.uninstall(stack)
        if end.startswith("STACK_LEASED"):
            await self._wait_for_quiet()
            end = await self._operator.uninstall(stack)
        return end

    async def _agreed(self, stack: str) -> str:
        """The end of the operation of a stack that the restore of the store blocked, retried; empty: there is none."""
        for operation in self._oracle.store.operations.values():
            if operation.state == "BLOCKED" and self._oracle.store.stack_names.get(operation.stack) == stack:
                shown = await self._operator.operation(operation.name)
                if shown.blocked_reason == operation_pb2.BLOCKED_REASON_STORE_RESTORED:
                    return await self._operator.decide(shown, operation_pb2.DECISION_RETRY)
        return ""


def _is_incomplete(operation: Operation) -> bool:
    return any(operation.fact(number).state != "DONE" for number in operation.steps)


def _left(operation: Operation) -> dict[str, bool | None]:
    """Objects whose replacement failed, and whether the old resource still exists; None: that is unknown."""
    deletions = {step.delete.key.name: step.number for step in operation.steps.values() if step.HasField("delete")}
    found: dict[str, bool | None] = {}
    for step in operation.steps.values():
        name, state = step.create.key.name, operation.fact(step.number).state
        if step.HasField("create") and state not in ("DONE", "KEPT"):
            is_deleted = operation.fact(deletions[name]).state if name in deletions else "DONE"
            found[name] = None if is_deleted == "UNKNOWN" else is_deleted != "DONE"
    return found


def _with_labels_of(item: Item, package: Collection[str]) -> Item:
    return replace(item, labels=tuple(label for label in item.labels if label in package))


def _with_skipped_labels(item: Item, before: Mapping[str, Item], skipped: Collection[str]) -> Item:
    """*item* with the labels that it has after an apply: a skipped label is neither attached nor detached."""
    held = before[item.name].labels if item.name in before else ()
    labels = [label for label in item.labels if label not in skipped] + [label for label in held if label in skipped]
    return replace(item, labels=tuple(labels))
