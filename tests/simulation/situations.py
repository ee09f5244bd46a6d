"""Situations of several stacks, people and imperfect platforms, counted by name (docs/reference/engine.md, "Cases")."""

from collections.abc import Collection, Mapping
from typing import Any

from pkger.driver.v1 import driver_pb2
from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import operation_pb2, plan_pb2

from tests.simulation.bad_driver import BAD_ANSWERS, BAD_DESCRIBE, BAD_LISTS
from tests.simulation.faults import CODES
from tests.simulation.network import SimulatedAttempt
from tests.simulation.records import Operation, Seen
from tests.simulation.scenario import Jump
from tests.simulation.trace import Trace

_WHEN = {
    "PLANNED": "before its step is sent",
    "INTENT": "while its step is sent",
    "UNKNOWN": "while its step is in doubt",
    "DONE": "after its step is done",
    "UNDO_INTENT": "while its undo is sent",
}
"""The time of a person's edit of a resource that a step is about, by the state of the step."""

_RECOVERY = ("ListAbandonedOperations", "ClaimOperation")
"""The methods that the recovery loop calls."""

SITUATIONS: Mapping[int, tuple[str, ...]] = {
    1: ("case 1: a step is refused what another stack has",),
    2: ("case 2: an adoption is refused what another operation claims",),
    3: ("case 3: a step waits for what another operation claims",),
    4: (
        *(f"case 4: a person edits {when}" for state, when in _WHEN.items() if state != "UNKNOWN"),
        "case 4: a person edits while no applier lives",
    ),
    5: ("case 5: a label in use by another stack is deleted",),
    6: ("case 6: two stacks write one secret", "case 6: a person writes the secret of an operation left behind"),
    7: tuple(f"bad driver: {way}" for way in (*BAD_LISTS, *BAD_ANSWERS)),
    8: ("case 8: an object is skipped, and not skipped afterwards",),
    9: ("case 9: the store is restored", "case 9: the store is restored while an operation is unfinished"),
    10: tuple(f"case 10: a foreign code for {method}" for method in _RECOVERY),
    11: (*(f"bad driver: {way}" for way in BAD_DESCRIBE), "case 11: Describe is spoiled for a recovery"),
    12: tuple(f"case 12: the clock of {whose} is set {way}" for whose in ("the store", "an applier")
              for way in ("back", "forward")),
    13: (
        *(f"case 13: a cancel {when}" for when in ("past the seal", "of a BLOCKED one", "of a finished one")),
        "case 13: what is cancelled is carried on",
    ),
    16: (
        "case 16: a stack uses what another one has",
        "case 16: what is let go is handed over",
        "case 16: a step is refused what is in use",
        "case 16: a stack becomes the owner of what it lets go",
    ),
    17: ("case 17: a request arrives after the undo of its step",),
}  # fmt: skip
"""
Names that the trace counts, by case of docs/reference/engine.md, "Cases".

Cases 14 and 15 are about sizes.
"""


class Situations:
    """Watches one run, and counts the situations that it reaches."""

    def __init__(self, seen: Seen, nodes: Collection[str], trace: Trace) -> None:
        """*nodes* are the names of the nodes that are alive."""
        self._seen = seen
        self._nodes = nodes
        self._trace = trace
        self._planned: set[str] = set()
        self._refused: set[str] = set()
        self._used: set[tuple[str, str, str]] = set()

    def committed(self) -> None:
        """The store has committed something."""
        for event in self._seen.store.new_events:
            self._heard(event)
        if self._seen.store.handed_over:
            self._count("case 16: what is let go is handed over")
        recorded = {use for use in self._seen.store.uses if not use[2]}
        if recorded - self._used:
            self._count("case 16: a stack uses what another one has")
        self._used = recorded
        for operation in self._seen.store.operations.values():
            if operation.steps and operation.name not in self._planned:
                self._planned.add(operation.name)
                self._note_plan(operation)
            if (
                operation.name not in self._refused
                and operation.state == "FAILED"
                and "claims until" in operation.cause
            ):
                self._refused.add(operation.name)
                self._count("case 2: an adoption is refused what another operation claims")

    def sent(self, attempt: SimulatedAttempt, request: Any) -> None:
        """A node sends *request*."""
        if attempt.fault in CODES and attempt.call.name in _RECOVERY:
            self._count(f"case 10: a foreign code for {attempt.call.name}")
        operation = self._seen.store.operations.get(getattr(request, "operation_id", ""))
        if operation is None:
            return
        if isinstance(request, journal_pb2.RequestCancelRequest):
            if operation.is_sealed and not operation.is_finished:
                self._count("case 13: a cancel past the seal")
            if operation.state == "BLOCKED":
                self._count("case 13: a cancel of a BLOCKED one")
            if operation.is_finished:
                self._count("case 13: a cancel of a finished one")
        if isinstance(request, journal_pb2.ClaimOperationRequest) and operation.is_cancelled:
            self._count("case 13: what is cancelled is carried on")

    def spoiled(self, answer: Any) -> None:
        """A bad driver has spoiled *answer*."""
        is_description = isinstance(answer, driver_pb2.DescribeResponse)
        if is_description and any(self._seen.takeovers(each.name) > 1 for each in self._seen.unfinished()):
            self._count("case 11: Describe is spoiled for a recovery")

    def arrived(self, note: Any) -> None:
        """A write to the platform arrives; *note* has the step of each of its mutations."""
        for sent in note or ():
            if sent and not sent.is_undo and sent.operation.fact(sent.step).state in ("UNDO_INTENT", "UNDONE"):
                self._count("case 17: a request arrives after the undo of its step")

    def wrote(self, mutation: driver_pb2.Mutation, operation: Operation) -> None:
        """A mutation of *operation* is sent to the platform."""
        others = [each for each in self._seen.unfinished() if each.stack != operation.stack]
        if mutation.HasField("put_secret"):
            keys = {step.put_secret.key for other in others for step in other.steps.values()}
            if mutation.put_secret.key in keys:
                self._count("case 6: two stacks write one secret")

    def edited(self, changed: set[str]) -> None:
        """A person has changed the resources with the ids *changed*."""
        for operation in self._seen.unfinished():
            for number, step in operation.steps.items():
                if changed & {*_resources(step), operation.fact(number).resource_id} - {""}:
                    if when := _WHEN.get(operation.fact(number).state):
                        self._count(f"case 4: a person edits {when}")
                    if not self._lives(operation):
                        self._count("case 4: a person edits while no applier lives")

    def wrote_secrets(self, keys: set[str]) -> None:
        """A person has written or removed secrets."""
        for operation in self._seen.unfinished():
            if keys & {step.put_secret.key for step in operation.steps.values()} and not self._lives(operation):
                self._count("case 6: a person writes the secret of an operation left behind")

    def jumped(self, jump: Jump) -> None:
        """A clock is set."""
        if list(self._seen.unfinished()):
            whose = "the store" if jump.node == "stack" else "an applier"
            self._count(f"case 12: the clock of {whose} is set {'back' if jump.seconds < 0 else 'forward'}")

    def restored(self) -> None:
        """The store is about to be restored."""
        self._count("case 9: the store is restored")
        if list(self._seen.unfinished()):
            self._count("case 9: the store is restored while an operation is unfinished")

    def _note_plan(self, operation: Operation) -> None:
        owners = {entry.resource_id: entry.stack for entry in self._seen.store.entries}
        deleted = {step.delete.resource_id for step in operation.steps.values() if step.HasField("delete")}
        if any(
            deleted & resource.labels and owners.get(resource.id, operation.stack) != operation.stack
            for resource in self._seen.platform.resources.values()
        ):
            self._count("case 5: a label in use by another stack is deleted")

    def _heard(self, event: operation_pb2.OperationEvent) -> None:
        if event.HasField("steps_waiting"):
            self._count("case 3: a step waits for what another operation claims")
        reasons = {each.failed.reason for each in event.steps_ended.outcomes}
        if operation_pb2.REJECTION_REASON_RESOURCE_OWNED in reasons:
            self._count("case 1: a step is refused what another stack has")
        if operation_pb2.REJECTION_REASON_IN_USE in reasons:
            self._count("case 16: a step is refused what is in use")
        if "stays in the record" in event.finished.cause:
            self._count("case 16: a stack becomes the owner of what it lets go")

    def _lives(self, operation: Operation) -> bool:
        """Whether the applier that has the lease of *operation* runs."""
        lease = self._seen.store.leases.get(operation.stack)
        return lease is not None and lease.holder in self._nodes

    def _count(self, name: str) -> None:
        self._trace.count(name)


def _resources(step: plan_pb2.Step) -> set[str]:
    """Ids of the resources that a step is about, as planned."""
    change = getattr(step, str(step.WhichOneof("change")))
    return {getattr(change, "resource_id", ""), getattr(change, "label_id", "")} - {""}
