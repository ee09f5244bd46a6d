"""
Checks the invariants of docs/reference/engine.md, "Invariants", whenever a message is sent, a write takes effect, or a
transaction commits (docs/simulation.md).
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from pkger.applier.v1 import applier_pb2
from pkger.driver.v1 import driver_pb2
from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2

from tests.simulation.bad_driver import BadDriver
from tests.simulation.loop import Node
from tests.simulation.network import SimulatedAttempt, current
from tests.simulation.packages import secret_of
from tests.simulation.records import (
    Content,
    Entry,
    LeaseRow,
    Operation,
    PackageRow,
    PlatformReader,
    Resource,
    Seen,
    StepFacts,
    StoreReader,
)
from tests.simulation.scenario import Jump
from tests.simulation.situations import Situations
from tests.simulation.world import EPOCH, PLATFORM_FILE, STORE_FILE, World

_NOT_SENT = ("PLANNED", "SKIPPED")

_BACK = ("UNDO_INTENT", "UNDONE", "UNDO_FAILED", "UNDO_UNKNOWN", "UNDO_GIVEN_UP")

_VERBS = {
    False: {"create": "create", "update": "update", "delete": "delete", "attach": "attach", "detach": "detach",
            "put_secret": "put_secret"},
    True: {"create": "delete", "update": "update", "delete": "create", "attach": "detach", "detach": "attach",
           "put_secret": "delete_secret"},
}  # fmt: skip
"""The mutation as which each step is sent, by the verb of the step; under True the one that undoes it."""

_MAY_REPEAT = ("Task", "Dashboard", "NotificationRule", "Telegraf")
"""Kinds whose names need not be unique on the platform."""

_NAME_SCOPES = {"NotificationEndpointHTTP": "endpoint", "NotificationEndpointSlack": "endpoint"}
"""The scope of names, of kinds that share one."""

_FENCED = journal_pb2.AdvanceOperationRequest | journal_pb2.RenewLeaseRequest | journal_pb2.FinishOperationRequest
"""Requests that the store accepts only with the token of the current lease."""


Key = tuple[str, str, str]
"""A resource of a step: kind, name and, without a name, the id."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The step of an operation that a mutation applies or undoes."""

    operation: Operation
    step: int
    is_undo: bool


class Oracle:
    """
    Watches one run; a ``Watcher``.

    Attributes:
        made: The operation that created each resource that an operation created, by id.
        by_others: Ids of resources that a person created or changed.
        remade: Ids of resources with which an undo replaced a deleted resource of a person. They need no owner.
        last_look: The last time at which an applier asked for abandoned operations.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._trace = world.trace
        self._seen = Seen(StoreReader(world.data / STORE_FILE), PlatformReader(world.data / PLATFORM_FILE))
        self.made = self._seen.made
        self.by_others: set[str] = set()
        self.remade: set[str] = set()
        self._secret_writers: dict[str, str] = {}
        self._secret_times: dict[str, float] = {}
        # The number of takeovers of each unfinished operation at the time of the last write to a secret by others.
        self._takeovers_at_write: dict[str, dict[str, int]] = {}
        self._overwritten: set[tuple[str, str]] = set()
        # Pairs of an operation and the key of a secret that it wrote.
        self._written: set[tuple[str, str]] = set()
        # The content of the platform, and the number of changes by others, when each operation began.
        self._before: dict[str, tuple[list[Content], set[str], int]] = {}
        self._changes_by_others = 0
        # Resources that a listing showed wrongly: kinds and display names, the wrong ones and the right ones.
        self._listed_wrongly: set[tuple[str, str]] = set()
        # Operations about whose steps the operator decided otherwise than to retry.
        self._decided: set[str] = set()
        # Pairs of an operation and a token that it asked for by a raise.
        self._raised: set[tuple[str, int]] = set()
        self.last_look = 0.0
        self._plans: dict[str, str] = {}
        self._senders: set[str] = set()
        self._states: dict[str, str] = {}
        self._bad_driver = BadDriver(world.draws, world.scenario.features, world.trace, lambda: world.is_calm)
        self._situations = Situations(self._seen, world.nodes, world.trace)
        self._has_been_restored = False
        self._restored_at = 0.0
        # Operations from before a restore, which the store may lack since.
        self._earlier: set[str] = set()
        # Operations, with their tokens, to which the platform has named an operation that the store lacks.
        self._warnings: set[tuple[str, int]] = set()
        # Undos that had begun in the backup from which the store was restored, as operations and numbers of steps.
        self._undos_of_backup: set[tuple[str, int]] = set()
        # Operations that the operator has recovered since the store was restored.
        self._with_consent: set[str] = set()
        self._last_jump = -math.inf
        self._packages: dict[str, dict[str, PackageRow]] = {}
        self._is_shared = len({client.stack for client in world.scenario.clients}) > 1
        world.loop.after_work = self._after_work
        world.on_kill = self._count_kill
        world.on_jump = self._jumped
        world.on_restore = self._restored
        self.store.refresh()
        self.platform.refresh()

    @property
    def store(self) -> StoreReader:
        """The content of the store."""
        return self._seen.store

    @property
    def platform(self) -> PlatformReader:
        """The content of the platform."""
        return self._seen.platform

    def sent(self, attempt: SimulatedAttempt, request: Any) -> None:
        """See ``Watcher``: checks the writes of appliers to the platform."""
        if isinstance(request, journal_pb2.ListAbandonedOperationsRequest):
            self.last_look = self._world.loop.now
        self._situations.sent(attempt, request)
        if isinstance(request, applier_pb2.RecoverOperationRequest):
            self._with_consent.add(request.operation_id)
            if any(each.decision != operation_pb2.DECISION_RETRY for each in request.decisions):
                self._decided.add(request.operation_id)
        if isinstance(request, _FENCED):
            attempt.note = request
        if not isinstance(request, driver_pb2.MutateRequest) or not attempt.caller.name.startswith("applier"):
            return
        self._trace.count(f"sent Mutate by {'one' if self._world.scenario.appliers == 1 else 'one of several'}")
        operation = self._sender(request.fence)
        found = []
        for mutation in request.mutations:
            sent = self._intended(operation, mutation) if operation else None
            verb = str(mutation.WhichOneof("change"))
            if operation:
                self._situations.wrote(mutation, operation)
            if sent is None and not self._may_lack_intents():
                self._trace.violate("I1", f"{attempt.name}: {verb} was sent without an intent: {_shown(mutation)}")
            if sent:
                self._trace.count(f"effect {verb} {'undone' if sent.is_undo else 'done'}")
                self._count_traits(sent, verb)
                self._check_value(sent, mutation, attempt)
                self._check_order(sent, attempt)
            found.append(sent)
        attempt.note = found
        if operation and found:
            self._senders.add(operation.name)
        if operation and found and (operation.name, request.fence.token) in self._warnings:
            self._trace.violate("RESTORED", f"{attempt.name}: {operation.name} goes on, and the store lacks operations")
        if operation and found and self._plans.get(operation.plan, operation.name) != operation.name:
            self._trace.violate("I5", f"{operation.plan} is run by {self._plans[operation.plan]} and {operation.name}")

    def arrived(self, attempt: SimulatedAttempt) -> None:
        """See ``Watcher``."""
        if attempt.is_write_to_platform:
            self._situations.arrived(attempt.note)

    def answered(self, attempt: SimulatedAttempt, answer: Any) -> None:
        """See ``Watcher``: a bad driver may spoil the answer."""
        listed = _listed(answer)
        if attempt.call.address == "platform" and self._bad_driver.spoil(attempt.call.request, answer):
            self._situations.spoiled(answer)
            shown = _listed(answer)
            wrong = [id_ for id_ in listed.keys() & shown.keys() if listed[id_] != shown[id_]]
            self._listed_wrongly |= {
                (each[id_].kind, each[id_].display_name) for id_ in wrong for each in (listed, shown)
            }
        if isinstance(answer, driver_pb2.MutateResponse):
            for mutation, result in zip(attempt.call.request.mutations, answer.results, strict=False):
                if result.rejected.reason:
                    self._trace.count(f"platform refused {mutation.WhichOneof('change')}")
            fence = attempt.call.request.fence
            if self._is_of_removed(answer.seen) and fence.operation_id not in self._with_consent:
                self._warnings.add((fence.operation_id, fence.token))

    def _is_of_removed(self, seen: driver_pb2.Fence) -> bool:
        """Whether a restore removed an operation, whose token no other one has since, after a clock was set back."""
        there = self.store.operations.keys()
        tokens = {token for name in there for token in self._seen.tokens.get(name, ())}
        return seen.operation_id in self._earlier - there and seen.token not in tokens

    def is_forgotten(self, attempt: SimulatedAttempt) -> bool:
        """See ``Watcher``."""
        return attempt.sent < self._restored_at and attempt.call.request.fence.scope not in self.store.leases

    def _count_traits(self, sent: Sent, verb: str) -> None:
        platform = self._world.scenario.platform
        if verb == "create":
            self._trace.count(f"creation by {platform.identity}")
        if not platform.fences:
            self._trace.count("mutation without a fence")
        step, steps = sent.operation.steps[sent.step], sent.operation.steps.values()
        for each in steps if step.HasField("create") else ():
            # No two objects of a scenario have one name.
            if each.HasField("delete") and each.delete.key.name == step.create.key.name:
                order = "deletes" if each.number < step.number else "creates"
                ground = "can" if each.undo == plan_pb2.UNDO_RECREATE else "cannot"
                self._trace.count(f"replacement that {order} first and {ground} be undone")

    def unfinished(self) -> list[Operation]:
        """Operations that still have to run. PREPARING and BLOCKED ones count only while their lease lasts."""
        now = self._world.clock("stack")
        return [
            operation
            for operation in self.store.operations.values()
            if operation.state in ("APPLYING", "ROLLING_BACK")
            or (operation.state in ("PREPARING", "BLOCKED") and _lasts(self.store.leases.get(operation.stack), now))
        ]

    def takeovers(self, operation: str) -> int:
        """How often the lease of an operation was taken."""
        return self._seen.takeovers(operation)

    def _sender(self, fence: driver_pb2.Fence) -> Operation | None:
        """
        The unfinished operation that sends a request with *fence*; None: the store lacks it, or it is finished.

        It is not always the unfinished operation on its stack: an operation that a restored store lacks sends mutations
        until its next call of the store, and another one may have begun on the stack.
        """
        operation = self.store.operations.get(fence.operation_id)
        is_it = operation is not None and operation.stack == fence.scope and not operation.is_finished
        return operation if is_it else None

    def _intended(self, operation: Operation, mutation: driver_pb2.Mutation) -> Sent | None:
        """The step with an open intent that *mutation* applies or undoes; None: there is none."""
        verb = str(mutation.WhichOneof("change"))
        if verb == "create":
            name, step, direction = mutation.create.idempotency_key.rsplit("/", 2)
            if name != operation.name or not step.isdigit():
                return None
            sent = Sent(operation, int(step), direction == "undo")
            return sent if self._is_open(sent, verb) else None
        for number in operation.steps:
            for is_undo in (True, False):
                sent = Sent(operation, number, is_undo)
                if self._is_open(sent, verb) and self._is_about(sent, mutation):
                    return sent
        return None

    def _is_open(self, sent: Sent, verb: str) -> bool:
        step, state = sent.operation.steps.get(sent.step), sent.operation.fact(sent.step).state
        if step is None or _VERBS[sent.is_undo].get(str(step.WhichOneof("change"))) != verb:
            return False
        return state == "UNDO_INTENT" if sent.is_undo else state == "INTENT"

    def _is_about(self, sent: Sent, mutation: driver_pb2.Mutation) -> bool:
        step, change = sent.operation.steps[sent.step], getattr(mutation, str(mutation.WhichOneof("change")))
        if isinstance(change, driver_pb2.PutSecret | driver_pb2.DeleteSecret):
            return bool(step.put_secret.key == change.key)
        wanted = getattr(step, str(step.WhichOneof("change")))
        if not self._means(sent, wanted.key, wanted.resource_id if hasattr(wanted, "resource_id") else "", change.id):
            return False
        if isinstance(change, driver_pb2.UpdateResource):
            return bool(change.spec_json == (wanted.old_spec_json if sent.is_undo else wanted.spec_json))
        if isinstance(change, driver_pb2.AttachLabel | driver_pb2.DetachLabel):
            return self._means(sent, wanted.label, wanted.label_id, change.label_id)
        return True

    def _means(self, sent: Sent, key: Any, planned: str, id_: str) -> bool:
        """Whether *id_* is the resource of *key*: planned for it, or found, created or recreated by a step about it."""
        made = {
            each
            for number, step in sent.operation.steps.items()
            if (change := getattr(step, str(step.WhichOneof("change")))) and getattr(change, "key", None) == key
            for fact in [sent.operation.fact(number)]
            for each in (getattr(change, "resource_id", ""), fact.resource_id, fact.undone_id)
        } - {""}
        return id_ == planned or id_ in made

    def _check_order(self, sent: Sent, attempt: SimulatedAttempt) -> None:
        operation, step = sent.operation, sent.operation.steps[sent.step]
        if sent.is_undo:
            if operation.is_sealed:
                self._trace.violate("I6", f"{attempt.name}: step {sent.step} is undone past the seal")
            late = [
                each
                for each in self._others(sent)
                if each.stage > step.stage
                and self._state(sent, each) == "DONE"
                and not self._that_hold_back(sent, each, _keys(each))
            ]
            if late:
                self._trace.violate("ORDER", f"{attempt.name}: step {sent.step} is undone before step {late[0].number}")
            if failed := self._that_hold_back(sent, step, _keys(step) - _labels(step)):
                problem = f"step {sent.step} is undone, although the undo of step {failed[0].number} failed"
                self._trace.violate("ORDER", f"{attempt.name}: {problem}")
            return
        if step.undo == plan_pb2.UNDO_NONE and not operation.is_sealed and not step.HasField("put_secret"):
            self._trace.violate("I6", f"{attempt.name}: step {sent.step} cannot be undone, and there is no seal")
        early = [
            each
            for each in self._others(sent)
            if each.stage < step.stage and self._state(sent, each) in (*_NOT_SENT, "INTENT")
        ]
        # An operation that rolls back sends creations of any stage again, to learn their outcomes.
        if early and not operation.is_rolling_back and not self._has_trouble(operation):
            self._trace.violate("ORDER", f"{attempt.name}: step {sent.step} is sent before step {early[0].number}")

    def _check_value(self, sent: Sent, mutation: driver_pb2.Mutation, attempt: SimulatedAttempt) -> None:
        given = secret_of(self.store.stack_names.get(sent.operation.stack, ""))
        if mutation.HasField("put_secret") and mutation.put_secret.value != given:
            self._trace.violate(
                "SECRET", f"{attempt.name}: secret {mutation.put_secret.key} is written with no value given"
            )

    def _that_hold_back(self, sent: Sent, step: plan_pb2.Step, keys: set[Key]) -> list[plan_pb2.Step]:
        """
        The steps of later stages about one of *keys* whose undo failed: *step* cannot be undone before them.

        Two steps of one stage about one resource concern different labels of it, and are undone at the same time.
        """
        return [
            each
            for each in self._others(sent)
            if each.stage > step.stage
            and self._state(sent, each) in ("UNDO_FAILED", "UNDO_UNKNOWN")
            and _keys(each) & keys
        ]

    def _others(self, sent: Sent) -> Iterator[plan_pb2.Step]:
        return (step for number, step in sent.operation.steps.items() if number != sent.step)

    def _state(self, sent: Sent, step: plan_pb2.Step) -> str:
        return sent.operation.fact(step.number).state

    def _has_trouble(self, operation: Operation) -> bool:
        return any(fact.state in ("FAILED", "UNKNOWN", "SKIPPED", *_BACK) for fact in operation.facts.values())

    def _after_work(self, node: Node) -> None:
        if node.name == "stack":
            leases = self.store.leases
            if self.store.refresh():
                self._check_store(leases)
        elif node.name == "platform":
            before, secrets = self.platform.resources, self.platform.secrets
            if self.platform.refresh():
                self._check_effects(before, secrets)
        else:
            return
        self._check_owned()

    def _check_store(self, before: dict[str, LeaseRow]) -> None:
        now = self._world.clock("stack")
        self._check_token(before, now)
        raised = _raise(current.get(None))
        for name, token in self.store.new_writes:
            stack = self.store.operations[name].stack
            lease = before.get(stack)
            if lease is None or lease.token != token or lease.expires < now:
                held = lease and (lease.token, lease.expires - EPOCH)
                self._trace.violate("I2", f"{name} wrote with token {token}; the lease is {held} at {now - EPOCH}")
        if not self._world.network.fences:
            # No platform without fences can refuse a creation that arrives late; the operation has to report it.
            for id_ in [each.resource_id for event in self.store.new_events for each in event.late_effects.effects]:
                self.made.pop(id_, None)
                self.by_others.add(id_)
        for stack, lease in self.store.leases.items():
            last = before.get(stack)
            if last is None or lease.token == last.token:
                continue
            if raised and (self.store.operations[raised[0]].stack, raised[1]) == (stack, lease.token):
                # Its holder may raise the token even when the clock was set back so far that others may take the lease.
                self._raised.add(raised)
                self._trace.count("a token is raised")
            elif _lasts(last, now) and lease.expires:
                # A released lease, which does not expire, may continue with a higher token that the platform has seen.
                self._trace.violate("I2", f"the lease of {stack} was taken while it lasted")
        for before_state, state in self.store.transitions:
            self._trace.count(f"step {before_state} -> {state}")
        self._check_packages()
        stacks: dict[str, str] = {}
        for operation in self.store.operations.values():
            self._note_state(operation)
            if (operation.name, operation.token) not in self._raised:
                self._seen.tokens.setdefault(operation.name, set()).add(operation.token)
            if not operation.is_finished and stacks.setdefault(operation.stack, operation.name) != operation.name:
                self._trace.violate("I4", f"{operation.name} and {stacks[operation.stack]} are unfinished on one stack")
            first = self._plans.setdefault(operation.plan, operation.name) if operation.plan else operation.name
            if first != operation.name and not self._has_been_restored:
                self._trace.violate("I5", f"{operation.plan} is run by {first} and {operation.name}")
        if not self._has_been_restored:
            self._check_claims()
        self._situations.committed()

    def _check_packages(self) -> None:
        """The packages of a stack change when an operation has succeeded, as its plan says, and at no other time."""
        before, after = self._packages, self.store.packages
        self._packages = after
        ended = {
            each.stack: each
            for each in self.store.operations.values()
            if each.is_finished and self._states.get(each.name) != each.state
        }
        for stack in sorted(before.keys() | after.keys() | ended.keys()):
            operation, old, new = ended.get(stack), before.get(stack, {}), after.get(stack, {})
            wanted = old
            if operation and operation.state == "SUCCEEDED":
                planned = {**old, **operation.packages}
                wanted = {name: row for name, row in planned.items() if row}
                self._count_packages(operation, old)
            elif operation and operation.packages:
                self._trace.count(f"packages planned, {operation.state}")
            if new != wanted:
                by = f"{operation.name}, {operation.state}" if operation else "no operation"
                problem = f"{sorted(new)} instead of {sorted(wanted)}, or other rows of these, after {by}"
                self._trace.violate("PACKAGES", f"{stack} has the packages {problem}")

    def _count_packages(self, operation: Operation, before: Mapping[str, PackageRow]) -> None:
        for name, row in operation.packages.items():
            what = "removed" if row is None else "moved" if name in before else "installed"
            self._trace.count(f"package {what}")
        if operation.packages and operation.kind == "ROLLBACK":
            self._trace.count("packages of a revision restored")

    def _check_revision(self, operation: Operation) -> None:
        """The newest revision has the packages of the record, and all objects and entries belong to one of them."""
        packages, revision = self.store.packages.get(operation.stack, {}), self.store.newest_revision(operation.stack)
        if not packages and not (operation.packages and revision):
            return
        name = operation.name
        if revision is None:
            self._trace.violate("PACKAGES", f"{name} leaves packages, and no revision has them")
            return
        recorded = {(each, version, origin, digest) for each, (version, _, digest, _, origin, *_) in packages.items()}
        if revision.packages != recorded:
            difference = sorted(revision.packages ^ recorded)
            self._trace.violate("PACKAGES", f"{name}: the revision and the record differ in {difference}")
        if strangers := sorted(revision.packages_of_objects - packages.keys()):
            self._trace.violate("PACKAGES", f"{name}: the revision has objects of {strangers}, not installed")
        entries = {(each.kind, each.name): each for each in self.store.entries if each.stack == operation.stack}
        strange = [key for key, each in entries.items() if key not in revision.objects and not each.is_pending_delete]
        lacking = sorted(revision.objects - entries.keys())
        if strange or (lacking and not revision.leftovers):
            problem = f"the inventory lacks {lacking}, and has {sorted(strange)} that the revision lacks"
            self._trace.violate("PACKAGES", f"{name}: {problem}")

    def _check_claims(self) -> None:
        """I8: a stack owns what its record has, and an unfinished operation has the claims that its steps need."""
        for entry in self.store.entries:
            what = f"i:{entry.kind}:{entry.resource_id}"
            owner = self.store.owners.get(what)
            if entry.is_shared:
                self._check_use(entry, what, owner)
            elif owner != (entry.stack, ""):
                self._trace.violate("I8", f"{entry.stack} records {entry.kind} {entry.resource_id}, owned by {owner}")
        shared = {
            (f"i:{entry.kind}:{entry.resource_id}", entry.stack, "") for entry in self.store.entries if entry.is_shared
        }
        for what, stack, name in self.store.uses - shared:
            if not name or self.store.operations[name].is_finished:
                self._trace.violate("I8", f"{what} is used by {name or stack}, which records no use of it")
        for what, (stack, name) in self.store.owners.items():
            if name and self.store.operations[name].is_finished:
                self._trace.violate("I8", f"{name} of {stack} is over and claims {what}")
        for operation in self._seen.unfinished():
            for number, step in operation.steps.items():
                self._check_claim(operation, step, operation.fact(number))

    def _check_use(self, entry: Entry, what: str, owner: tuple[str, str] | None) -> None:
        """A resource that a stack shares is owned by another stack's record, unless the platform has lost it."""
        if (what, entry.stack, "") not in self.store.uses:
            self._trace.violate("I8", f"{entry.stack} shares {what}, and does not use it")
        is_owned = owner is not None and owner[0] != entry.stack and not owner[1]
        if not is_owned and entry.resource_id in self.platform.resources:
            self._trace.violate("I8", f"{entry.stack} shares {what}, owned by {owner}")

    def _check_claim(self, operation: Operation, step: plan_pb2.Step, fact: StepFacts) -> None:
        change = getattr(step, str(step.WhichOneof("change")))
        if fact.state in _NOT_SENT or fact.is_decided:
            return
        if step.HasField("create") and fact.state in ("INTENT", "UNKNOWN"):
            may_repeat = change.key.kind in _MAY_REPEAT
            if may_repeat and self._world.scenario.platform.identity != "SEARCH":
                return
            needed = f"n:{_NAME_SCOPES.get(change.key.kind, change.key.kind)}:{change.display_name}"
        elif step.HasField("create") and fact.state == "DONE":
            needed = f"i:{change.key.kind}:{fact.resource_id}"
        elif fact.state in ("INTENT", "UNKNOWN", "DONE") and _claims_its_resource(step):
            needed = f"i:{change.key.kind}:{change.resource_id}" if change.resource_id else ""
        else:
            return
        if needed and self.store.owners.get(needed, ("", ""))[0] != operation.stack:
            self._trace.violate("I8", f"{operation.name} is at work on step {step.number} and does not have {needed}")

    def _check_token(self, before: dict[str, LeaseRow], now: int) -> None:
        """I2: a request that wrote to the store had the token of a lease that had not expired."""
        attempt = current.get(None)
        request = attempt.note if attempt else None
        if attempt is None or not isinstance(request, _FENCED):
            return
        stack = self.store.operations[request.operation_id].stack
        lease = before.get(stack)
        has_written = bool(self.store.new_writes) or lease != self.store.leases.get(stack)
        # A retry of a raise has the token from before the raise.
        raised = _raise(attempt)
        token = raised[1] if raised in self._raised else request.token
        if has_written and (lease is None or lease.token != token or lease.expires < now):
            self._trace.violate("I2", f"{attempt.name} was taken with token {request.token}, and the lease is {lease}")

    def _note_state(self, operation: Operation) -> None:
        if self._states.get(operation.name) != operation.state:
            self._states[operation.name] = operation.state
            self._trace.count(f"operation {operation.state}")
            if len({each.stack for each in self.store.operations.values()}) > 1:
                self._trace.count("operations on several stacks")
            self._trace.say("store", f"{operation.name} of {operation.stack} is {operation.state}")
            if operation.state == "PREPARING":
                self._before[operation.name] = (
                    self.platform.content(),
                    {*self.platform.secrets},
                    self._changes_by_others,
                )
            elif operation.state == "SUCCEEDED" and not self._has_been_restored:
                self._check_record(operation)
                self._check_revision(operation)
                self._check_steps(operation)
            elif operation.state == "ROLLED_BACK" and not self._has_been_restored:
                self._check_undone(operation)
            elif operation.state == "BLOCKED":
                self._check_blocked(operation)

    def _check_blocked(self, operation: Operation) -> None:
        """No operation is blocked as that of a restored store, unless one was restored, or the platform says so."""
        is_misled = self._has_been_restored or not {"clock", "bad_answers"}.isdisjoint(self._world.scenario.features)
        if "the store was restored" in operation.cause and not is_misled:
            self._trace.violate("NOT_RESTORED", f"{operation.name} is blocked: {operation.cause}")

    def _check_record(self, operation: Operation) -> None:
        """What a stack records at the end of an operation is on the platform, unless a person changed it."""
        if any(fact.is_decided for fact in operation.facts.values()):
            return
        record = [entry for entry in self.store.entries if entry.stack == operation.stack]
        labels = {entry.name: entry.resource_id for entry in record if entry.kind == "Label"}
        # Past the seal an attachment may fail: the record has the label that the next apply attaches.
        left: defaultdict[str, set[str]] = defaultdict(set)
        for number, step in operation.steps.items():
            if step.HasField("attach") and operation.fact(number).state != "DONE":
                left[step.attach.key.name].add(labels.get(step.attach.label.name, ""))
        for entry in record:
            # What an undo creates in place of a resource that a person has changed is as the person left it.
            if entry.is_pending_delete or entry.resource_id in self.by_others | self.remade:
                continue
            resource = self.platform.resources.get(entry.resource_id)
            wanted = {labels[name] for name in entry.labels if name in labels} - self.by_others - left[entry.name]
            if resource is None or wanted - resource.labels:
                lost = sorted(wanted - resource.labels) if resource else "the resource"
                self._trace.violate("LACKS", f"{operation.name} records {entry.kind} {entry.name}, which lacks {lost}")

    def _check_steps(self, operation: Operation) -> None:
        """An operation that succeeds has done all steps before the seal, and has written its secrets."""
        for number, step in operation.steps.items():
            key, fact = step.put_secret.key, operation.fact(number)
            if not (operation.is_sealed or fact.is_decided or fact.state == "DONE"):
                self._trace.violate("CONTENT", f"{operation.name} succeeds without step {number}, and there is no seal")
            if key and fact.state == "DONE" and (operation.name, key) not in self._written:
                self._trace.violate("SECRET", f"{operation.name} records secret {key}, which it did not write")

    def _check_undone(self, operation: Operation) -> None:
        """
        After a rollback the platform is as before the operation, apart from ids.

        A secret that another writer may have written since stays, too. A resource that a listing showed wrongly is not
        compared: a step that finds its effect there already is done, and its undo leaves what the listing showed.
        """
        content, secrets, changes = self._before[operation.name]
        if self._is_shared or changes != self._changes_by_others or operation.name in self._decided:
            return
        if self._comparable(content) != self._comparable(self.platform.content()):
            self._trace.violate("UNDONE", f"{operation.name} is undone, and the platform is not as before")
        written = {step.put_secret.key for step in operation.steps.values()}
        if not secrets <= self.platform.secrets.keys() <= secrets | written:
            self._trace.violate("UNDONE", f"{operation.name} is undone, and other secrets are there than before")

    def _comparable(self, content: Iterable[Content]) -> list[Content]:
        """*content* of the platform without the resources that a listing showed wrongly, and references to them."""
        names = {name for _, name in self._listed_wrongly}
        return [
            each._replace(references=[name for name in each.references if name not in names])
            for each in content
            if (each.kind, each.display_name) not in self._listed_wrongly
        ]

    def _check_effects(self, before: dict[str, Resource], secrets: dict[str, str]) -> None:
        attempt = current.get(None)
        by = attempt.name if attempt else "nobody"
        after = self.platform.resources
        is_ours = attempt is not None and attempt.caller.name.startswith("applier")
        for id_ in sorted(after.keys() - before.keys()):
            self._trace.say("platform", f"{by} created {after[id_].kind} {id_} {after[id_].display_name!r}")
            if not is_ours:
                continue
            maker = self._maker(id_, attempt)
            if self._has_been_restored and not self._is_known(id_, attempt):
                # The creation was in flight when a restore removed its operation, or its intent, from the store.
                self.by_others.add(id_)
            else:
                self.made[id_] = maker
                self.remade |= self._remade(id_, attempt)
        for id_ in sorted(before.keys() - after.keys()):
            self._trace.say("platform", f"{by} deleted {before[id_].kind} {id_}")
            if is_ours:
                self._check_lack(by, id_, attempt)
        for id_ in sorted(after.keys() & before.keys()):
            if after[id_].spec != before[id_].spec:
                self._trace.say("platform", f"{by} updated {after[id_].kind} {id_}")
            if after[id_].labels != before[id_].labels:
                self._trace.say("platform", f"{by} labelled {id_}: {sorted(after[id_].labels)}")
                for label in sorted(before[id_].labels - after[id_].labels) if is_ours else ():
                    self._check_lack(by, id_, attempt, label)
        for key in sorted(_changed(secrets, self.platform.secrets)):
            verb = "wrote" if key in self.platform.secrets else "removed"
            self._trace.say("platform", f"{by} {verb} secret {key}")
        if attempt and is_ours:
            self._judge_effects(attempt, before, secrets)
        else:
            self._changes_by_others += 1
            self._situations.edited(_changed(before, after))
            self._situations.wrote_secrets(_changed(secrets, self.platform.secrets))
            self.by_others |= _changed(before, after)
            for key in _changed(secrets, self.platform.secrets):
                self._secret_writers[key] = by
                self._secret_times[key] = self._world.loop.now
                self._takeovers_at_write[key] = {
                    each.name: self.takeovers(each.name) for each in self._seen.unfinished()
                }

    def _check_lack(self, by: str, id_: str, attempt: SimulatedAttempt | None, label: str = "") -> None:
        """No operation removes a resource, or a label of it, that the record of another stack has."""
        sender = next((sent.operation.stack for sent in (attempt.note if attempt else None) or () if sent), "")
        for entry in self.store.entries:
            if entry.resource_id != id_ or entry.stack == sender or not sender:
                continue
            record = [each for each in self.store.entries if each.stack == entry.stack]
            names = {each.name for each in record if each.resource_id == label}
            if not label or names & entry.labels:
                self._trace.violate("LACKS", f"{by} takes {label or entry.kind} of {id_} from {entry.stack}")

    def _judge_effects(self, attempt: SimulatedAttempt, before: dict[str, Resource], secrets: dict[str, str]) -> None:
        """Check the effect of each mutation of a batch against the state of the platform before it."""
        for mutation, sent in zip(attempt.call.request.mutations, attempt.note or (), strict=False):
            verb = str(mutation.WhichOneof("change"))
            change = getattr(mutation, verb)
            if sent is None:
                continue
            if verb in ("put_secret", "delete_secret"):
                self._judge_secret(sent, verb, change.key, secrets)
                continue
            met = before.get(getattr(change, "id", ""))
            if met is None or met == self.platform.resources.get(met.id):
                continue
            self._check_others(attempt, sent, verb, met)
            is_forced = sent.operation.fact(sent.step).is_forced
            if verb in ("update", "delete") and not is_forced and not self._is_expected(sent, met):
                problem = f"{attempt.name}: {verb} of {met.kind} {met.id} met what step {sent.step} did not expect"
                self._trace.violate("OVERWRITE", problem)

    def _judge_secret(self, sent: Sent, verb: str, key: str, before: dict[str, str]) -> None:
        name = sent.operation.name
        writer = self._secret_writers.get(key)
        if verb == "put_secret":
            # Within one lease, the value may come from this operation's previous applier; a read cannot distinguish the
            # two.
            is_old = self._world.loop.now - self._secret_times.get(key, -math.inf) > self._world.scenario.lease
            if key in before and writer != name and is_old:
                self._overwritten.add((name, key))
            self._secret_writers[key] = name
            self._written.add((name, key))
        elif key in before and writer != name and self._is_certainly_anothers(key, sent):
            self._trace.violate("SECRET", f"{name} removes secret {key}, written by {writer}")
        elif key in before and (name, key) in self._overwritten:
            self._trace.violate("SECRET", f"{name} removes secret {key}, which was there before it")

    def _is_certainly_anothers(self, key: str, sent: Sent) -> bool:
        """
        Whether an operation that removes a secret had to know that the value is not its own.

        Secrets cannot be read. A value that a person writes while the applier that wrote the secret is alive looks like
        its own, and another applier may finish an undo that this one began. The same holds for an undo that had begun
        in a backup, if another writer wrote the secret after the operation had ended, and the store was restored then.
        The operation looks like one that a crash interrupted (docs/backup.md, "Without the command"), unless the
        platform has told it of an operation that the store lacks.
        """
        operation, before = sent.operation, self._takeovers_at_write.get(key, {})
        if operation.name in before:
            began = self._seen.takeovers(operation.name, operation.fact(sent.step).undo_token)
            return began > before[operation.name]
        is_told = any(name == operation.name for name, _ in self._warnings)
        return is_told or (operation.name, sent.step) not in self._undos_of_backup

    def _check_others(self, attempt: SimulatedAttempt, sent: Sent, verb: str, met: Resource) -> None:
        """
        No write changes a resource that another stack owns, claims, or has created without a record yet.

        A restored store does not know of the writes that are on their way, so it lets others adopt their resources.
        """
        if attempt.sent < self._restored_at:
            return
        stack = sent.operation.stack
        owner, _ = self.store.owners.get(f"i:{met.kind}:{met.id}", ("", ""))
        maker = self.store.operations.get(self.made.get(met.id, ""))
        if not owner and maker and not maker.is_finished:
            owner = maker.stack
        is_used = any((what, user) == (f"i:{met.kind}:{met.id}", stack) for what, user, _ in self.store.uses)
        if owner and owner != stack and not (is_used and verb in ("attach", "detach")):
            self._trace.violate("OTHERS", f"{attempt.name}: {verb} of {met.kind} {met.id} of stack {owner} by {stack}")

    def _is_expected(self, sent: Sent, met: Resource) -> bool:
        """Whether an update or delete met the content that its step expects, or the content that it writes."""
        change = getattr(sent.operation.steps[sent.step], str(sent.operation.steps[sent.step].WhichOneof("change")))
        texts = {getattr(change, "old_spec_json", ""), getattr(change, "spec_json", "")}
        return any(text and json.loads(text) == json.loads(met.spec) for text in texts)

    def _maker(self, id_: str, attempt: SimulatedAttempt | None) -> str:
        """The operation that created a resource, by its idempotency key, or else by the request that created it."""
        if key := self.platform.keys.get(id_):
            return key.rsplit("/", 2)[0]
        for sent in (attempt.note if attempt else None) or ():
            if sent:
                operation: str = sent.operation.name
                return operation
        return ""

    def _is_known(self, id_: str, attempt: SimulatedAttempt | None) -> bool:
        """Whether the store has an intent, or more, for the creation of a resource."""
        made = self.platform.resources[id_]
        for sent in filter(None, (attempt.note if attempt else None) or ()):
            create, operation = sent.operation.steps[sent.step].create, self.store.operations.get(sent.operation.name)
            is_it = sent.is_undo or (create.key.kind, create.display_name) == (made.kind, made.display_name)
            if is_it and operation and operation.fact(sent.step).state not in _NOT_SENT:
                return True
        return False

    def _remade(self, id_: str, attempt: SimulatedAttempt | None) -> set[str]:
        """A set of *id_*, if an undo created it in place of a person's resource that its operation had deleted."""
        key = self.platform.keys.get(id_, "")
        for sent in (attempt.note if attempt else None) or ():
            is_it = sent and sent.is_undo and key in ("", f"{sent.operation.name}/{sent.step}/undo")
            if is_it and sent.operation.steps[sent.step].delete.resource_id in self.by_others | self.remade:
                return {id_}
        return set()

    def _jumped(self, jump: Jump) -> None:
        self._situations.jumped(jump)
        if jump.node == "stack":
            self._last_jump = self._world.loop.now

    def _may_lack_intents(self) -> bool:
        """
        Whether a stored intent may be gone, or its operation may have been ended by another applier since.

        A restore removes newer intents. A jump of the store's clock lets another applier take the lease; the platform
        then fences.
        """
        return self._has_been_restored or self._world.loop.now <= self._last_jump + self._world.scenario.lease

    def _count_kill(self, name: str) -> None:
        """Count the states of the operations, and of their steps, of an applier that is killed."""
        for operation in self.store.operations.values():
            lease = self.store.leases.get(operation.stack)
            if operation.is_finished or lease is None or lease.holder != name:
                continue
            self._trace.count(f"killed in {operation.state}")
            for state in {fact.state for fact in operation.facts.values()}:
                self._trace.count(f"killed with a step {state}")

    def _restored(self) -> None:
        """
        Read the restored store from its beginning.

        Resources created before the restore are no longer checked for an owner.
        """
        self._situations.restored()
        self._has_been_restored = True
        self._restored_at = self._world.loop.now
        self.by_others |= self.made.keys()
        self.made.clear()
        # An operation that has sent nothing has not run its plan.
        self._plans = {plan: name for plan, name in self._plans.items() if name in self._senders}
        self._earlier |= self.store.operations.keys()
        self._with_consent.clear()
        self._seen.store = StoreReader(self._world.data / STORE_FILE)
        self.store.refresh()
        self._packages = self.store.packages
        self._undos_of_backup = {
            (operation.name, number)
            for operation in self.store.operations.values()
            for number, fact in operation.facts.items()
            if fact.undo_token
        }

    def _check_owned(self) -> None:
        owned = {(entry.kind, entry.resource_id) for entry in self.store.entries if not entry.is_shared}
        for entry in self.store.entries:
            maker = self.store.operations.get(self.made.get(entry.resource_id, ""))
            if maker and not maker.is_finished and maker.stack != entry.stack:
                self._trace.violate("I8", f"{entry.stack} owns {entry.resource_id}, which {maker.name} made")
        for id_, name in self.made.items():
            resource, operation = self.platform.resources.get(id_), self.store.operations.get(name)
            if resource is None or (resource.kind, id_) in owned or id_ in self.remade:
                continue
            if operation and (not operation.is_finished or operation.is_transient):
                continue
            if operation and any(fact.is_decided for fact in operation.facts.values()):
                continue
            state = operation.state if operation else "unknown"
            self._trace.violate("I3", f"{resource.kind} {id_}, made by {name} ({state}), has no owner")


def _claims_its_resource(step: plan_pb2.Step) -> bool:
    """Whether a step needs a claim on the resource that it changes; a label of an object's resource does not."""
    return step.HasField("update") or step.HasField("delete") or (step.HasField("detach") and not step.detach.key.name)


def _keys(step: plan_pb2.Step) -> set[Key]:
    """The resources of a step, with its label."""
    change = getattr(step, str(step.WhichOneof("change")))
    if isinstance(change, plan_pb2.PutSecretStep):
        return {("", change.key, "")}
    return {(change.key.kind, change.key.name, "" if change.key.name else change.resource_id), *_labels(step)}


def _labels(step: plan_pb2.Step) -> set[Key]:
    """The label that a step attaches or detaches."""
    change = getattr(step, str(step.WhichOneof("change")))
    if not isinstance(change, plan_pb2.LabelStep):
        return set()
    return {(change.label.kind, change.label.name, "" if change.label.name else change.label_id)}


def _listed(answer: Any) -> dict[str, object_pb2.Resource]:
    """Copies of the resources in *answer* by their ids, if that is a part of a listing."""
    is_listing = isinstance(answer, driver_pb2.ListResourcesResponse)
    return {each.id: deepcopy(each) for each in answer.resources} if is_listing else {}


def _changed(before: Mapping[str, object], after: Mapping[str, object]) -> set[str]:
    """The keys whose value differs or is missing on one side."""
    return {key for key in {**before, **after} if before.get(key) != after.get(key)}


def _raise(attempt: SimulatedAttempt | None) -> tuple[str, int] | None:
    """The operation that asks for a higher token, and that token; None: *attempt* is another request."""
    request = attempt.note if attempt else None
    if isinstance(request, journal_pb2.RenewLeaseRequest) and request.raise_to:
        return request.operation_id, request.raise_to
    return None


def _lasts(lease: LeaseRow | None, now: int) -> bool:
    return lease is not None and now <= lease.expires <= now + lease.ttl


def _shown(mutation: driver_pb2.Mutation) -> str:
    change = getattr(mutation, str(mutation.WhichOneof("change")))
    return getattr(change, "idempotency_key", "") or getattr(change, "id", "") or getattr(change, "key", "")
