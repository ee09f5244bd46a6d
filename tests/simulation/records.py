"""
The content of both databases, read by the oracle through connections of its own.

This module shares only the message classes with the engine and the stores, because a check of an invariant proves
nothing if the code under test computes it (docs/simulation.md, "Extend the simulation").
"""

import json
import sqlite3
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import operation_pb2, plan_pb2

UNFINISHED = ("PREPARING", "APPLYING", "ROLLING_BACK", "BLOCKED")

_UNDO = operation_pb2.DIRECTION_UNDO
_ENDS = {
    False: {"done": "DONE", "failed": "FAILED", "unknown": "UNKNOWN", "skipped": "SKIPPED"},
    True: {"done": "UNDONE", "failed": "UNDO_FAILED", "unknown": "UNDO_UNKNOWN", "skipped": "SKIPPED"},
}


@dataclass(slots=True)
class StepFacts:
    """
    The state of one step by the journal: with the resource that it made, and whether a person decided about it.

    *undo_token* is the token of the applier that began to undo it; 0: it is not being undone.
    """

    state: str = "PLANNED"
    resource_id: str = ""
    undone_id: str = ""
    is_decided: bool = False
    is_forced: bool = False
    undo_token: int = 0


PackageRow = tuple[Any, ...]
"""A row of the table of packages: all columns of ``_PACKAGE`` but the name."""

_PACKAGE = "name, version, repository, digest, content_digest, origin, requested, is_pinned, is_suspended, requires"


class RevisionContent(NamedTuple):
    """
    What the newest revision of a stack has.

    Attributes:
        operation: The operation that made it.
        leftovers: The number of leftovers of that operation.
        packages: The packages: name, version, origin and digest of each.
        objects: Kind and name of each object.
        packages_of_objects: The packages that declare the objects.
    """

    operation: str
    leftovers: int
    packages: frozenset[tuple[str, str, str, str]]
    objects: frozenset[tuple[str, str]]
    packages_of_objects: frozenset[str]


@dataclass(slots=True)
class Operation:
    """
    An operation in the store; *steps* and *facts* by number; *deletes*: whether it deletes the stack.

    *packages* are the rows of the packages that its plan changes, by name; None: the package is removed.
    """

    name: str
    stack: str
    is_transient: bool
    kind: str
    state: str
    is_rolling_back: bool
    is_sealed: bool
    is_cancelled: bool
    token: int
    plan: str
    cause: str = ""
    deletes: bool = False
    packages: dict[str, PackageRow | None] = field(default_factory=dict)
    steps: dict[int, plan_pb2.Step] = field(default_factory=dict)
    facts: dict[int, StepFacts] = field(default_factory=dict)

    @property
    def is_finished(self) -> bool:
        return self.state not in UNFINISHED

    def fact(self, step: int) -> StepFacts:
        return self.facts.setdefault(step, StepFacts())


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of an inventory."""

    stack: str
    kind: str
    name: str
    resource_id: str
    labels: frozenset[str]
    is_pending_delete: bool
    is_shared: bool


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource of the platform; *spec* as text."""

    id: str
    kind: str
    display_name: str
    spec: str
    labels: frozenset[str]


class Content(NamedTuple):
    """One resource of the platform without ids, which an undo may change: names of its labels and of its references."""

    kind: str
    display_name: str
    spec: str
    labels: list[str]
    references: list[str]


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """The lease of one stack; times in microseconds."""

    token: int
    expires: int
    ttl: int
    holder: str


class StoreReader:
    """
    The database of the stack service, after each of its commits.

    Attributes:
        operations: All operations, by name.
        leases: By id of the stack.
        entries: All rows of inventories.
        stacks: Names of active stacks, by id.
        stack_names: Names of all stacks that have existed, by id.
        packages: The rows of the packages of stacks, by id of the stack and name; stacks without packages are left out.
        requests: The result stored for each request id.
        new_writes: Operation and token of each row that the last commit added to the journal.
        new_events: The events in these rows.
        owners: The owning stack of each resource, name or secret key, and the operation that claims it, if one does.
        uses: Each shared use, with its stack, and the operation that claims it, if one does.
        handed_over: Ids of the resources whose ownership the last commit moved to a stack that used them.
        transitions: The state of each step that the last commit changed, before and after it.
    """

    def __init__(self, path: Path) -> None:
        self.operations: dict[str, Operation] = {}
        self.leases: dict[str, LeaseRow] = {}
        self.entries: list[Entry] = []
        self.stacks: dict[str, str] = {}
        self.stack_names: dict[str, str] = {}
        self.packages: dict[str, dict[str, PackageRow]] = {}
        self.requests: dict[str, str] = {}
        self.new_writes: list[tuple[str, int]] = []
        self.new_events: list[operation_pb2.OperationEvent] = []
        self.owners: dict[str, tuple[str, str]] = {}
        self.uses: set[tuple[str, str, str]] = set()
        self.handed_over: set[str] = set()
        self.transitions: list[tuple[str, str]] = []
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._version = -1
        self._read_rows = 0

    def refresh(self) -> bool:
        """Read what has changed; False when nothing has."""
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        if version == self._version:
            return False
        self._version = version
        self._read_operations()
        self.packages = {}
        for stack, name, *row in self._connection.execute(f"SELECT stack, {_PACKAGE} FROM packages"):
            self.packages.setdefault(stack, {})[name] = tuple(row)
        rows = self._connection.execute("SELECT stack, token, expires, ttl, holder FROM leases")
        self.leases = {stack: LeaseRow(*rest) for stack, *rest in rows}
        rows = self._connection.execute(
            "SELECT stack, kind, name, resource_id, associations, state, origin FROM inventory"
        )
        shared = {(entry.stack, entry.resource_id) for entry in self.entries if entry.is_shared}
        self.entries = [
            Entry(
                stack,
                kind,
                name,
                id_,
                frozenset(label for _, label in json.loads(labels)),
                state != "PRESENT",
                origin == "shared",
            )
            for stack, kind, name, id_, labels, state, origin in rows
        ]
        owned = {(entry.stack, entry.resource_id) for entry in self.entries if not entry.is_shared}
        self.handed_over = {id_ for _, id_ in shared & owned}
        rows = self._connection.execute("SELECT what, stack, operation FROM owners")
        self.owners = {what: (stack, operation) for what, stack, operation in rows}
        self.uses = set(self._connection.execute("SELECT what, stack, operation FROM uses"))
        stacks = self._connection.execute("SELECT id, name, state FROM stacks").fetchall()
        self.stacks = {id_: name for id_, name, state in stacks if state == "ACTIVE"}
        self.stack_names |= {id_: name for id_, name, _ in stacks}
        self.requests |= dict(self._connection.execute("SELECT request_id, result FROM requests"))
        self._read_journal()
        return True

    def _read_operations(self) -> None:
        rows = self._connection.execute(
            "SELECT operations.id, operations.stack, stackless, operations.kind, operations.state, rolling_back,"
            " sealed, cancel_requested, token, COALESCE(plans.id, ''), cause"
            " FROM operations LEFT JOIN plans ON plans.operation = operations.id"
        )
        for name, stack, stackless, kind, state, rolling_back, sealed, cancelled, token, plan, cause in rows:
            known = self.operations.get(name)
            if known is None:
                known = Operation(name, stack, bool(stackless), kind, state, False, False, False, token, plan)
                self.operations[name] = known
            known.state, known.token, known.plan, known.cause = state, token, plan, cause
            known.is_rolling_back, known.is_sealed = bool(rolling_back), bool(sealed)
            known.is_cancelled = bool(cancelled)
            # A planner that was asked twice replaces the plan until the operation starts.
            if plan and (state == "PREPARING" or not known.steps):
                header, steps = self._plan(plan)
                known.deletes = header.after_uninstall == plan_pb2.AFTER_UNINSTALL_DELETE
                known.steps = {step.number: step for step in steps}
                known.packages = self._planned_packages(plan)

    def _plan(self, name: str) -> tuple[plan_pb2.Plan, list[plan_pb2.Step]]:
        """The header of a plan, and its steps."""
        row = self._connection.execute("SELECT header FROM plan_headers WHERE plan = ?", [name]).fetchone()
        of_steps = [name, plan_pb2.PLAN_VIEW_STEPS]
        parts = self._connection.execute("SELECT part FROM plan_parts WHERE plan = ? AND view = ?", of_steps)
        steps = journal_pb2.PlanBody.FromString(b"".join(zlib.decompress(part) for (part,) in parts)).steps.steps
        return plan_pb2.Plan.FromString(row[0] if row else b""), list(steps)

    def _planned_packages(self, plan: str) -> dict[str, PackageRow | None]:
        rows = self._connection.execute(f"SELECT {_PACKAGE} FROM plan_packages WHERE plan = ?", [plan])
        return {name: None if row[0] is None else tuple(row) for name, *row in rows}

    def newest_revision(self, stack: str) -> RevisionContent | None:
        """The content of the newest revision of a stack; None: it has none."""
        row = self._connection.execute(
            "SELECT operation, leftover_count, package_digest FROM revisions WHERE stack = ?"
            " ORDER BY number DESC LIMIT 1",
            [stack],
        ).fetchone()
        if row is None:
            return None
        operation, leftovers, digest = row
        parts = self._connection.execute("SELECT body FROM attachment_parts WHERE digest = ? ORDER BY number", [digest])
        text = b"".join(zlib.decompress(body) for (body,) in parts).decode()
        lines = [json.loads(line) for line in text.split("\n") if line]
        objects = [line for line in lines if "kind" in line]
        declared = {name for line in objects for name, _ in line.get("declared", [[line["name"], []]])}
        return RevisionContent(
            operation,
            leftovers,
            frozenset(
                (line["package"], line["version"], line["origin"], line["digest"])
                for line in lines
                if "package" in line
            ),
            frozenset((line["kind"], line["name"]) for line in objects),
            frozenset(name.partition(".")[0] for name in declared),
        )

    def _read_journal(self) -> None:
        rows = self._connection.execute(
            "SELECT rowid, operation, token, records, events FROM journal WHERE rowid > ? ORDER BY rowid",
            [self._read_rows],
        ).fetchall()
        self.new_writes, self.new_events, self.transitions = [], [], []
        for row, name, token, records, events in rows:
            self._read_rows = row
            self.new_writes.append((name, token))
            operation, noted = self.operations[name], journal_pb2.StoredRecords.FromString(records).steps
            # A record is more precise than the event of the same write, in which a decision may look like a skip.
            recorded = {record.step for record in noted}
            for event in journal_pb2.StoredEvents.FromString(events).events:
                self.new_events.append(event)
                self._fold_event(operation, event, recorded, token)
            for record in noted:
                self._fold_record(operation, record)

    def _fold_event(
        self, operation: Operation, event: operation_pb2.OperationEvent, recorded: Collection[int], token: int
    ) -> None:
        match event.WhichOneof("event"):
            case "steps_sent":
                state = "UNDO_INTENT" if event.steps_sent.direction == _UNDO else "INTENT"
                for step in event.steps_sent.steps:
                    if state == "UNDO_INTENT":
                        operation.fact(step).undo_token = operation.fact(step).undo_token or token
                    if step not in recorded:
                        self._become(operation, step, state)
            case "steps_ended" | "steps_undone" as word:
                is_undo = word == "steps_undone"
                for ended in getattr(event, word).outcomes:
                    if ended.step in recorded:
                        continue
                    self._become(operation, ended.step, _ENDS[is_undo][str(ended.WhichOneof("outcome"))])
                    fact = operation.fact(ended.step)
                    if is_undo:
                        fact.undone_id = ended.done.resource_id
                    else:
                        fact.resource_id = ended.done.resource_id or fact.resource_id

    def _fold_record(self, operation: Operation, record: Any) -> None:
        state = journal_pb2.StepState.Name(record.state).removeprefix("STEP_STATE_")
        fact = operation.fact(record.step)
        self._become(operation, record.step, state)
        fact.is_forced |= record.forced
        fact.is_decided |= state in ("GIVEN_UP", "KEPT", "UNDO_GIVEN_UP")
        if state == "UNDONE":
            fact.undone_id = record.resource_id
        elif record.resource_id:
            fact.resource_id = record.resource_id

    def _become(self, operation: Operation, step: int, state: str) -> None:
        fact = operation.fact(step)
        self.transitions.append((fact.state, state))
        fact.state = state


class PlatformReader:
    """
    The database of the embedded platform, after each of its commits.

    Attributes:
        resources: By id.
        keys: Idempotency keys of resources that were created with one, by id of the resource.
        secrets: Hashes by key.
        references: Ids of the resources that a resource refers to, by its own id.
    """

    def __init__(self, path: Path) -> None:
        self.resources: dict[str, Resource] = {}
        self.keys: dict[str, str] = {}
        self.secrets: dict[str, str] = {}
        self.references: dict[str, set[str]] = {}
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._version = -1

    def content(self) -> list[Content]:
        """All resources, sorted."""
        return sorted(
            Content(
                each.kind,
                each.display_name,
                each.spec,
                self._names(each.labels),
                self._names(self.references.get(each.id)),
            )
            for each in self.resources.values()
        )

    def _names(self, ids: Collection[str] | None) -> list[str]:
        return sorted(self.resources[each].display_name for each in ids or () if each in self.resources)

    def refresh(self) -> bool:
        """Read what has changed; False when nothing has."""
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        if version == self._version:
            return False
        self._version = version
        labels: dict[str, set[str]] = {}
        for resource, label in self._connection.execute("SELECT resource_id, label_id FROM attachments"):
            labels.setdefault(resource, set()).add(label)
        rows = self._connection.execute("SELECT id, kind, display_name, spec FROM resources ORDER BY id")
        self.resources = {
            id_: Resource(id_, kind, name, spec, frozenset(labels.get(id_, ()))) for id_, kind, name, spec in rows
        }
        keys = self._connection.execute("SELECT resource_id, idempotency_key FROM creates WHERE idempotency_key <> ''")
        self.keys = dict(keys)
        self.references = {}
        for resource, referred in self._connection.execute("SELECT resource_id, referred_id FROM bindings"):
            self.references.setdefault(resource, set()).add(referred)
        self.secrets = dict(self._connection.execute("SELECT key, hash FROM secrets ORDER BY key"))
        return True


@dataclass(slots=True)
class Seen:
    """
    The state of both databases, and facts that the oracle collects about it.

    Attributes:
        store: What the store holds.
        platform: What the platform holds.
        made: The operation that created each resource that an operation created, by id.
        tokens: The tokens of all leases of each operation, by its name.
    """

    store: StoreReader
    platform: PlatformReader
    made: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, set[int]] = field(default_factory=dict)

    def unfinished(self) -> Iterator[Operation]:
        """Operations that have not ended."""
        return (each for each in self.store.operations.values() if not each.is_finished)

    def takeovers(self, operation: str, token: int = 0) -> int:
        """How often the lease of an operation was taken; with *token*: up to the lease with that token."""
        return sum(not token or each <= token for each in self.tokens.get(operation, ()))
