"""
The errors that services return: each holds data, from which its text is built.

The class of a reason has its codes, exit status, hints and retry, so nothing else needs a table of reasons. They are
plain words, which the services, the command line and the gateway translate.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import ClassVar, Literal, NamedTuple

from services.core.text_lists import deletes_text, fitting, listed

_SHOWN = 10
"""The largest number of resources that the text of an error names."""

_SHOWN_LENGTH = 1400
"""Longest list of objects in an error text, as escaped ASCII: trailers of 8 KiB contain the text four times."""

RETRY_SECONDS = 1.0
"""Shortest delay before a retry, and the delay after SERVICE_UNAVAILABLE."""

LONGEST_RETRY_SECONDS = 60.0
"""Longest delay before a retry, as a lease may be released long before it expires."""

RECOVERY_SECONDS = 5.0
"""Delay before a retry while an applier resumes an operation."""

GrpcCode = Literal[
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "FAILED_PRECONDITION",
    "ABORTED",
    "UNAVAILABLE",
    "INTERNAL",
    "UNAUTHENTICATED",
    "RESOURCE_EXHAUSTED",
]
"""The names of the gRPC codes of errors."""

HttpCode = Literal["UNPROCESSABLE_ENTITY", "REQUEST_TOO_LARGE", "UNAVAILABLE"]
"""The names of codes over HTTP that do not follow from a gRPC code (``services/gateway/answers.py`` has all codes)."""

ExitStatus = Literal["ERROR", "STALE", "LOCKED", "BLOCKED", "UNAUTHENTICATED"]
"""The names of the exit statuses of the command line after an error (``services/cli/exit_codes.py``)."""


class Reason(StrEnum):
    """Why a call failed; equal to protos/pkger/errors/v1/reason.proto, as a test checks."""

    REQUEST_INVALID = "REQUEST_INVALID"
    SOURCE_UNDECODABLE = "SOURCE_UNDECODABLE"
    SOURCE_TOO_LARGE = "SOURCE_TOO_LARGE"
    STACK_NOT_FOUND = "STACK_NOT_FOUND"
    STACK_EXISTS = "STACK_EXISTS"
    STACK_NOT_EMPTY = "STACK_NOT_EMPTY"
    STACK_LEASED = "STACK_LEASED"
    LEASE_LOST = "LEASE_LOST"
    STACK_MOVED = "STACK_MOVED"
    PLAN_STALE = "PLAN_STALE"
    PLATFORM_UNKNOWN = "PLATFORM_UNKNOWN"
    KIND_UNSUPPORTED = "KIND_UNSUPPORTED"
    RESOURCE_OWNED = "RESOURCE_OWNED"
    NAME_TAKEN = "NAME_TAKEN"
    DEPENDENCY_CYCLE = "DEPENDENCY_CYCLE"
    SERVICE_UNAVAILABLE = "SERVICE_UNAVAILABLE"
    OPERATION_NOT_FOUND = "OPERATION_NOT_FOUND"
    TOKEN_STALE = "TOKEN_STALE"  # noqa: S105
    REQUEST_ID_REUSED = "REQUEST_ID_REUSED"
    INTERNAL = "INTERNAL"
    SOURCE_UNREADABLE = "SOURCE_UNREADABLE"
    ENCODING_INVALID = "ENCODING_INVALID"
    OPERATION_UNFINISHED = "OPERATION_UNFINISHED"
    PLAN_NOT_FOUND = "PLAN_NOT_FOUND"
    PLAN_USED = "PLAN_USED"
    PLAN_EXPIRED = "PLAN_EXPIRED"
    DIGEST_MISMATCH = "DIGEST_MISMATCH"
    PACKAGE_EMPTY = "PACKAGE_EMPTY"
    VALUES_MISSING = "VALUES_MISSING"
    REPLACEMENT_REFUSED = "REPLACEMENT_REFUSED"
    IN_USE = "IN_USE"
    SHARED_DIFFERS = "SHARED_DIFFERS"
    REVISION_NOT_FOUND = "REVISION_NOT_FOUND"
    PLAN_TOO_LARGE = "PLAN_TOO_LARGE"
    CONTENT_REFUSED = "CONTENT_REFUSED"
    STACK_CHANGED = "STACK_CHANGED"
    RESOURCE_NOT_FOUND = "RESOURCE_NOT_FOUND"
    ORG_UNKNOWN = "ORG_UNKNOWN"
    DELETES_EXCEEDED = "DELETES_EXCEEDED"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    TOO_MANY_CALLS = "TOO_MANY_CALLS"
    REPOSITORY_NOT_FOUND = "REPOSITORY_NOT_FOUND"
    REPOSITORY_EXISTS = "REPOSITORY_EXISTS"
    REPOSITORY_INVALID = "REPOSITORY_INVALID"
    REPOSITORY_UNAVAILABLE = "REPOSITORY_UNAVAILABLE"
    PACKAGE_NOT_FOUND = "PACKAGE_NOT_FOUND"
    RANGE_INVALID = "RANGE_INVALID"
    PACKAGE_STACK = "PACKAGE_STACK"
    PACKAGE_PINNED = "PACKAGE_PINNED"
    REPOSITORY_IN_USE = "REPOSITORY_IN_USE"
    DEFINITION_NOT_FOUND = "DEFINITION_NOT_FOUND"
    DEFINITION_CHANGED = "DEFINITION_CHANGED"
    ACTION_SET_NOT_FOUND = "ACTION_SET_NOT_FOUND"
    ACTION_SET_EXISTS = "ACTION_SET_EXISTS"
    ACTION_SET_UNFINISHED = "ACTION_SET_UNFINISHED"
    ACTION_SET_NOT_COMPLETE = "ACTION_SET_NOT_COMPLETE"
    ACTION_SET_HAS_SNAPSHOTS = "ACTION_SET_HAS_SNAPSHOTS"
    ARTIFACT_GONE = "ARTIFACT_GONE"
    SNAPSHOT_NOT_FOUND = "SNAPSHOT_NOT_FOUND"
    SNAPSHOT_CORRUPT = "SNAPSHOT_CORRUPT"
    LIMIT_REACHED = "LIMIT_REACHED"


class PkgerError(Exception):
    """
    The base of all errors that leave a service.

    Attributes:
        reason: The cause, for programs.
        code: The gRPC code.
        http_code: The code over HTTP; None: the gateway derives it from the gRPC code.
        resource: The type of the resource that the error names, and the key of its name in the metadata.
        exit_status: The exit status of the command line.
        cli_hint: The options, or a command in backquotes, that do what the text advises; empty: none does. The text
            itself names fields and methods of the contract.
        influx_hint: What the text advises, in terms of InfluxDB's API, whose clients do not have the contract.
        metadata: Every value in the text (AIP-193).
    """

    reason: ClassVar[Reason]
    code: ClassVar[GrpcCode]
    http_code: ClassVar[HttpCode | None] = None
    resource: ClassVar[tuple[str, str] | None] = None
    exit_status: ExitStatus = "ERROR"
    cli_hint: str = ""
    influx_hint: ClassVar[str] = ""

    def __init__(self, text: str, /, **metadata: str) -> None:
        super().__init__(text)
        self.metadata = metadata
        self._distinguish()

    def _distinguish(self) -> None:
        """
        Set ``exit_status`` and ``cli_hint`` if they depend on the metadata, the only data of an error that a client
        gets.
        """

    def retry_seconds(self, now: float) -> float | None:
        """
        The delay after which the same request may succeed; None: it fails again.

        Args:
            now: The current time, in seconds since 1970.
        """
        return None


class RequestInvalid(PkgerError):
    """The request is invalid. Violations of a package are no such error: they are returned in the response."""

    reason = Reason.REQUEST_INVALID
    code = "INVALID_ARGUMENT"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}", field=field, problem=problem)


class SourceUndecodable(PkgerError):
    """A source cannot be decoded. ``line`` and ``column`` start at 1; 0 means unknown."""

    reason = Reason.SOURCE_UNDECODABLE
    code = "INVALID_ARGUMENT"
    http_code = "UNPROCESSABLE_ENTITY"

    def __init__(self, source: str, problem: str, line: int = 0, column: int = 0) -> None:
        place = f"{source}:{line}:{column}" if line else source
        super().__init__(f"{place}: {problem}", source=source, line=str(line), column=str(column), problem=problem)


class SourceTooLarge(PkgerError):
    """A package exceeds a limit, such as ``bound="nesting depth"``."""

    reason = Reason.SOURCE_TOO_LARGE
    code = "INVALID_ARGUMENT"
    http_code = "REQUEST_TOO_LARGE"

    def __init__(self, source: str, bound: str, limit: int) -> None:
        super().__init__(
            f"{source}: exceeds the limit for {bound} of {limit:,}", source=source, bound=bound, limit=str(limit)
        )


class SourceUnreadable(PkgerError):
    """A source at a URL cannot be read."""

    reason = Reason.SOURCE_UNREADABLE
    code = "FAILED_PRECONDITION"
    http_code = "UNPROCESSABLE_ENTITY"

    def __init__(self, source: str, problem: str) -> None:
        super().__init__(f"{source}: {problem}", source=source, problem=problem)


class EncodingInvalid(PkgerError):
    """A source has an encoding that is not accepted here."""

    reason = Reason.ENCODING_INVALID
    code = "INVALID_ARGUMENT"
    http_code = "UNPROCESSABLE_ENTITY"

    def __init__(self, source: str, encoding: str, remedy: str) -> None:
        super().__init__(f"{source}: invalid encoding: {encoding}; {remedy}", source=source, encoding=encoding)


class StackNotFound(PkgerError):
    """No stack has the id or name."""

    reason = Reason.STACK_NOT_FOUND
    code = "NOT_FOUND"
    resource = ("pkger.stack.v1.Stack", "stack")
    cli_hint = "`pkger stacks list`"

    def __init__(self, stack: str) -> None:
        super().__init__(f"there is no stack {stack!r}; ListStacks lists the stacks", stack=stack)


class StackExists(PkgerError):
    """The organization already has a stack of the name."""

    reason = Reason.STACK_EXISTS
    code = "ALREADY_EXISTS"
    resource = ("pkger.stack.v1.Stack", "stack")

    def __init__(self, stack: str, org: str) -> None:
        super().__init__(f"a stack {stack!r} already exists in organization {org!r}", stack=stack, org=org)


class StackNotEmpty(PkgerError):
    """The stack owns resources, so it cannot be deleted."""

    reason = Reason.STACK_NOT_EMPTY
    code = "FAILED_PRECONDITION"
    cli_hint = "`pkger stacks uninstall`"

    def __init__(self, stack: str, count: int) -> None:
        super().__init__(
            f"stack {stack!r} still owns {count} resources; remove them with UninstallStack first",
            stack=stack,
            count=str(count),
        )


class StackLeased(PkgerError):
    """Another operation runs on the stack; ``expires`` is RFC 3339."""

    reason = Reason.STACK_LEASED
    code = "ABORTED"
    exit_status = "LOCKED"
    cli_hint = "--wait"

    def __init__(self, stack: str, holder: str, operation: str, expires: str, action_set: str = "") -> None:
        """With an *action_set*, which has the stack reserved: *holder* and *expires* are empty."""
        reserved = f"stack {stack!r} is reserved by action set {action_set} (operation {operation})"
        leased = (
            f"operation {operation} of applier {holder} holds the lease of stack {stack!r} until {expires}, and may"
        )
        text = (
            f"{reserved}. Retry after the action set has ended; recover a BLOCKED one, or delete it with force"
            if action_set
            else f"{leased} renew it. Retry after the operation has ended; if the applier died, another one resumes the"
            " operation"
        )
        super().__init__(
            text,
            stack=stack,
            holder=holder,
            operation=operation,
            expires=expires,
            **({"action_set": action_set} if action_set else {}),
        )

    def retry_seconds(self, now: float) -> float:
        """The time until the lease expires, within bounds."""
        try:
            expires = datetime.fromisoformat(self.metadata.get("expires", ""))
        except ValueError:
            return RETRY_SECONDS
        if expires.tzinfo is None:
            expires = expires.replace(tzinfo=UTC)
        return min(max(expires.timestamp() - now, RETRY_SECONDS), LONGEST_RETRY_SECONDS)


class LeaseLost(PkgerError):
    """The lease has expired or has another holder; the write was refused."""

    reason = Reason.LEASE_LOST
    code = "ABORTED"
    http_code = "UNAVAILABLE"
    exit_status = "LOCKED"

    def __init__(self, stack: str, token: int) -> None:
        super().__init__(
            f"the lease with token {token} on stack {stack!r} has ended; nothing was recorded",
            stack=stack,
            token=str(token),
        )


class StackMoved(PkgerError):
    """The generation of the stack changed after the plan was made, or between two pages of its resources."""

    reason = Reason.STACK_MOVED
    code = "ABORTED"
    exit_status = "STALE"

    def __init__(self, stack: str, expected: int, actual: int) -> None:
        super().__init__(
            f"stack {stack!r} has moved from generation {expected} to {actual}; repeat the plan or the read",
            stack=stack,
            expected=str(expected),
            actual=str(actual),
        )


class StackChanged(PkgerError):
    """The stack changed after the etag of the update was read."""

    reason = Reason.STACK_CHANGED
    code = "ABORTED"

    def __init__(self, stack: str, expected: str, actual: str) -> None:
        super().__init__(
            f"stack {stack!r} has changed: its etag is {actual!r}, not {expected!r}; read it again",
            stack=stack,
            expected=expected,
            actual=actual,
        )


class DefinitionNotFound(PkgerError):
    """The store has no such definition."""

    reason = Reason.DEFINITION_NOT_FOUND
    code = "NOT_FOUND"
    resource = ("pkger.stack.v1.StoredDefinition", "name")
    cli_hint = "`pkger blueprints list` and `pkger configmaps list`"

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"there is no {kind} {name!r}; ListDefinitions lists the definitions", kind=kind, name=name)


class DefinitionChanged(PkgerError):
    """A definition changed after its etag was read."""

    reason = Reason.DEFINITION_CHANGED
    code = "ABORTED"

    def __init__(self, kind: str, name: str, expected: str, actual: str) -> None:
        problem = f"its etag is {actual!r}, not {expected!r}" if actual else "there is none any more"
        super().__init__(
            f"{kind} {name!r} has changed: {problem}; read it again",
            kind=kind,
            name=name,
            expected=expected,
            actual=actual,
        )


class ActionSetNotFound(PkgerError):
    """The store has no such action set."""

    reason = Reason.ACTION_SET_NOT_FOUND
    code = "NOT_FOUND"
    resource = ("pkger.model.v1.ActionSet", "action_set")
    cli_hint = "`pkger actionsets list`"

    def __init__(self, action_set: str) -> None:
        super().__init__(
            f"there is no action set {action_set!r}; ListActionSets lists the action sets", action_set=action_set
        )


class ActionSetExists(PkgerError):
    """Another action set has the name."""

    reason = Reason.ACTION_SET_EXISTS
    code = "ALREADY_EXISTS"
    resource = ("pkger.model.v1.ActionSet", "action_set")

    def __init__(self, action_set: str) -> None:
        super().__init__(
            f"there is an action set {action_set!r} already; choose another name, or delete it first",
            action_set=action_set,
        )


class ActionSetUnfinished(PkgerError):
    """The action set is to be deleted and has not ended; *state* is that of its *operation*."""

    reason = Reason.ACTION_SET_UNFINISHED
    code = "FAILED_PRECONDITION"
    cli_hint = "`pkger operations recover`, `pkger actionsets cancel`, --force"

    def __init__(self, action_set: str, operation: str, state: str) -> None:
        way = "recover it, or delete it with force" if state == "BLOCKED" else "wait for its end, or cancel it"
        super().__init__(
            f"action set {action_set!r} has not ended (operation {operation} is {state}); {way}",
            action_set=action_set,
            operation=operation,
            state=state,
        )


class ActionSetNotComplete(PkgerError):
    """The predecessor is in *state*, so that nothing can be made from it."""

    reason = Reason.ACTION_SET_NOT_COMPLETE
    code = "FAILED_PRECONDITION"
    cli_hint = "`pkger actionsets show`"

    def __init__(self, action_set: str, state: str) -> None:
        super().__init__(
            f"{action_set} is not complete ({state}); nothing can be made from it", action_set=action_set, state=state
        )


class ActionSetHasSnapshots(PkgerError):
    """The action set made *snapshots*, at least one, that are not deleted."""

    reason = Reason.ACTION_SET_HAS_SNAPSHOTS
    code = "FAILED_PRECONDITION"
    cli_hint = "--force"

    def __init__(self, action_set: str, snapshots: Sequence[str]) -> None:
        shown = fitting(snapshots, _SHOWN_LENGTH, ", ")
        super().__init__(
            f"action set {action_set!r} made snapshots that are not deleted: {listed(snapshots, len(shown))}; delete"
            " them first, or delete the action set with force, which deletes them, too",
            action_set=action_set,
            snapshots=",".join(shown),
            count=str(len(snapshots)),
        )


class ArtifactGone(PkgerError):
    """A snapshot was deleted; *artifact* names it (empty: no artifact does), *deleted_by* says who did it, if known."""

    reason = Reason.ARTIFACT_GONE
    code = "FAILED_PRECONDITION"
    cli_hint = "`pkger snapshots list`"

    def __init__(self, artifact: str, snapshot: str, deleted_by: str) -> None:
        what = f"the snapshot of artifact {artifact!r}" if artifact else f"snapshot {snapshot}"
        by = f" by {deleted_by}" if deleted_by else ""
        super().__init__(
            f"{what} was deleted{by}; choose another backup",
            artifact=artifact,
            snapshot=snapshot,
            deleted_by=deleted_by,
        )


class SnapshotNotFound(PkgerError):
    """The store has no such snapshot."""

    reason = Reason.SNAPSHOT_NOT_FOUND
    code = "NOT_FOUND"
    resource = ("pkger.stack.v1.Snapshot", "snapshot")
    cli_hint = "`pkger snapshots list`"

    def __init__(self, snapshot: str) -> None:
        super().__init__(f"there is no snapshot {snapshot!r}; ListSnapshots lists the snapshots", snapshot=snapshot)


class SnapshotCorrupt(PkgerError):
    """A content of the snapshot does not have its digest, or the format of the snapshot is unknown."""

    reason = Reason.SNAPSHOT_CORRUPT
    code = "FAILED_PRECONDITION"

    def __init__(self, snapshot: str, problem: str) -> None:
        super().__init__(
            f"snapshot {snapshot} cannot be used: {problem}; use another one", snapshot=snapshot, problem=problem
        )


class LimitReached(PkgerError):
    """*where*, the applier or the store, has *limit* unfinished action sets, which is the most that it may have."""

    reason = Reason.LIMIT_REACHED
    code = "RESOURCE_EXHAUSTED"
    http_code = "UNAVAILABLE"

    def __init__(self, where: Literal["applier", "store"], limit: int) -> None:
        super().__init__(
            f"the {where} has {limit:,} unfinished action sets, which is the limit; retry when one of them has ended",
            limit=str(limit),
            where=where,
        )

    def retry_seconds(self, now: float) -> float | None:
        """As soon as an action set may have ended."""
        return RETRY_SECONDS


class PlanStale(PkgerError):
    """The state that a plan was made from has changed; *plan* is its name, or the digest that was approved."""

    reason = Reason.PLAN_STALE
    code = "ABORTED"
    exit_status = "STALE"

    def __init__(self, plan: str, problem: str) -> None:
        super().__init__(
            f"plan {plan} is stale; nothing was written, plan again. What changed: {problem}",
            plan=plan,
            problem=problem,
        )


class PlanNotFound(PkgerError):
    """No stored plan has the name."""

    reason = Reason.PLAN_NOT_FOUND
    code = "NOT_FOUND"
    resource = ("pkger.model.v1.Plan", "plan")
    cli_hint = "`pkger plans list`"

    def __init__(self, plan: str) -> None:
        super().__init__(
            f"there is no plan {plan!r}; ListPlans lists the plans. An unused plan is kept for a day", plan=plan
        )


class PlanUsed(PkgerError):
    """The plan has been applied already."""

    reason = Reason.PLAN_USED
    code = "FAILED_PRECONDITION"
    exit_status = "STALE"

    def __init__(self, plan: str, operation: str) -> None:
        super().__init__(
            f"operation {operation} has already applied plan {plan}; a plan is applied once, so plan again",
            plan=plan,
            operation=operation,
        )


class PlanExpired(PkgerError):
    """The plan has expired; *expired* is RFC 3339."""

    reason = Reason.PLAN_EXPIRED
    code = "FAILED_PRECONDITION"
    exit_status = "STALE"

    def __init__(self, plan: str, expired: str) -> None:
        super().__init__(f"plan {plan} expired at {expired}; plan again", plan=plan, expired=expired)


class DigestMismatch(PkgerError):
    """The stored plan has another digest than the one in the request."""

    reason = Reason.DIGEST_MISMATCH
    code = "FAILED_PRECONDITION"
    exit_status = "STALE"

    def __init__(self, plan: str, expected: str, actual: str) -> None:
        super().__init__(
            f"plan {plan} has digest {actual}, not {expected}: it is not the plan that was approved",
            plan=plan,
            expected=expected,
            actual=actual,
        )


class PlatformUnknown(PkgerError):
    """No platform of the name is configured; ``platforms`` are the configured names, separated by commas."""

    reason = Reason.PLATFORM_UNKNOWN
    code = "NOT_FOUND"
    resource = ("pkger.model.v1.Platform", "platform")
    cli_hint = "--platform"

    def __init__(self, platform: str, platforms: Sequence[str]) -> None:
        names = sorted(platforms)
        super().__init__(
            f"no platform {platform!r} is configured; configured are: {listed(names, _SHOWN)}",
            platform=platform,
            platforms=",".join(names),
        )


class OrgUnknown(PkgerError):
    """The platform has no organization of the name, or its driver may not read it; *problem* says which."""

    reason = Reason.ORG_UNKNOWN
    code = "NOT_FOUND"
    cli_hint = "`pkger platforms check`"

    def __init__(self, platform: str, org: str, problem: str) -> None:
        super().__init__(
            f"organization {org!r} of platform {platform!r}: {problem}", platform=platform, org=org, problem=problem
        )


class KindUnsupported(PkgerError):
    """The platform does not support the kind."""

    reason = Reason.KIND_UNSUPPORTED
    code = "FAILED_PRECONDITION"
    http_code = "UNPROCESSABLE_ENTITY"

    def __init__(self, platform: str, kind: str) -> None:
        super().__init__(f"platform {platform!r} does not support kind {kind!r}", platform=platform, kind=kind)


class Owned(NamedTuple):
    """
    Something that an object needs and that another stack owns or claims.

    Attributes:
        kind: Kind of the object.
        name: Name of the object.
        what: What it needs, in words: ``resource 1``.
        resource_id: Id of that resource; empty if it is something else.
        owner: Id of the other stack.
        owner_name: Name of that stack; may be empty.
        operation: The operation of that stack that claims it until the operation ends; empty if the stack owns it.
    """

    kind: str
    name: str
    what: str
    resource_id: str
    owner: str
    owner_name: str
    operation: str = ""

    def __str__(self) -> str:
        stack = f"stack {self.owner_name!r} ({self.owner})" if self.owner_name else f"stack {self.owner}"
        has = f"operation {self.operation} of {stack} claims until its end" if self.operation else f"{stack} owns"
        return f"{self.kind} {self.name!r} needs {self.what}, which {has}"


class ResourceOwned(PkgerError):
    """Another stack owns or claims what objects need; the metadata describe the first of these objects."""

    reason = Reason.RESOURCE_OWNED
    code = "FAILED_PRECONDITION"

    def __init__(self, owned: Sequence[Owned]) -> None:
        """*owned* is not empty."""
        super().__init__(listed(list(map(str, owned)), _SHOWN, "; "), **owned[0]._asdict(), count=str(len(owned)))


class NameTaken(PkgerError):
    """Two objects, or an object and live resources, claim one unique name; ``other`` is the holder of the name."""

    reason = Reason.NAME_TAKEN
    code = "FAILED_PRECONDITION"

    def __init__(self, kind: str, name: str, display_name: str, other: str, remedy: str = "") -> None:
        """*remedy*: what to do, as one sentence; empty if *other* makes it clear."""
        super().__init__(
            f"{kind} {name!r} cannot have the name {display_name!r}: {other} has it"
            + (f". {remedy}" if remedy else ""),
            kind=kind,
            name=name,
            display_name=display_name,
            other=other,
        )


class DependencyCycle(PkgerError):
    """Objects wait for the names of each other in a cycle; ``cycle`` lists them in order."""

    reason = Reason.DEPENDENCY_CYCLE
    code = "FAILED_PRECONDITION"
    http_code = "UNPROCESSABLE_ENTITY"

    def __init__(self, cycle: str) -> None:
        super().__init__(
            f"each of these objects takes the name of the next one, so none can be renamed first: {cycle}. Give one of"
            " them a free name, apply, and rename it in a second apply",
            cycle=cycle,
        )


class ServiceUnavailable(PkgerError):
    """A service or driver that the call needs does not answer, or answers that it cannot serve the request."""

    reason = Reason.SERVICE_UNAVAILABLE
    code = "UNAVAILABLE"

    def __init__(
        self, service: str, address: str, problem: str, platform: str = "", *, answered: bool = False, status: str = ""
    ) -> None:
        """
        Args:
            service: Name of the service.
            address: Its address; empty for callers that are not to learn it.
            problem: Why there is no answer, or what is wrong with it.
            platform: The configured name of the platform if *service* is a driver; else empty.
            answered: Whether it answered.
            status: The gRPC status of an answer without a reason; empty: no answer, or one of another form.
        """
        called = f"platform {platform!r}" if platform else f"{service} service"
        has_answered = answered or bool(status)
        place = f" at {address}" if address else ""
        super().__init__(
            f"the {called}{place} {'cannot serve the request' if has_answered else 'does not answer'}: {problem}",
            service=service,
            **({"address": address} if address else {}),
            problem=problem,
            **({"platform": platform} if platform else {}),
            **({"answered": "true"} if has_answered else {}),
            **({"status": status} if status else {}),
        )

    def without_address(self) -> "ServiceUnavailable":
        """The same error for a caller at a port, who learns no addresses and paths of the machine."""
        data = {key: value for key, value in self.metadata.items() if key not in ("address", "answered")}
        return ServiceUnavailable(address="", answered=self.answered, **data)

    def retry_seconds(self, now: float) -> float:
        """Always the same delay."""
        return RETRY_SECONDS

    @property
    def answered(self) -> bool:
        """Whether it answered."""
        return "answered" in self.metadata

    @property
    def status(self) -> str:
        """The gRPC status of its answer, if that has no reason; else empty."""
        return self.metadata.get("status", "")


class OperationNotFound(PkgerError):
    """No operation has the name, or it has ended."""

    reason = Reason.OPERATION_NOT_FOUND
    code = "NOT_FOUND"
    resource = ("pkger.model.v1.Operation", "operation")
    cli_hint = "`pkger operations list`"

    def __init__(self, operation: str) -> None:
        super().__init__(f"there is no operation {operation!r}, or it has ended", operation=operation)


class OperationUnfinished(PkgerError):
    """An operation on the stack has sent mutations and waits to be resumed or recovered."""

    reason = Reason.OPERATION_UNFINISHED
    code = "ABORTED"
    exit_status: ExitStatus = "LOCKED"
    cli_hint = "`pkger operations recover`"

    def __init__(self, stack: str, operation: str, state: str) -> None:
        next_act = "RecoverOperation resumes it" if state == "BLOCKED" else "an applier will resume it"
        text = f"operation {operation} on stack {stack!r} is unfinished ({state}); {next_act}"
        super().__init__(text, stack=stack, operation=operation, state=state)

    def _distinguish(self) -> None:
        if self._is_blocked:
            self.exit_status = "BLOCKED"
        else:
            # An applier resumes the operation without a decision.
            self.cli_hint = "`pkger operations list`"

    def retry_seconds(self, now: float) -> float | None:
        """None for a blocked operation, which waits for a decision."""
        return None if self._is_blocked else RECOVERY_SECONDS

    @property
    def _is_blocked(self) -> bool:
        return self.metadata.get("state") == "BLOCKED"


class TokenStale(PkgerError):
    """The fencing token is lower than the highest that the platform has seen."""

    reason = Reason.TOKEN_STALE
    code = "ABORTED"
    exit_status = "LOCKED"

    def __init__(self, scope: str, token: int, newest: int) -> None:
        super().__init__(
            f"token {token} for {scope!r} is lower than {newest}; nothing was written",
            scope=scope,
            token=str(token),
            newest=str(newest),
        )


class RequestIdReused(PkgerError):
    """An earlier request with the same id had other content."""

    reason = Reason.REQUEST_ID_REUSED
    code = "ALREADY_EXISTS"
    influx_hint = "the request id comes from the Idempotency-Key; send a new key with other content"

    def __init__(self, request_id: str) -> None:
        super().__init__(
            f"request id {request_id!r} was used for a request with other content; use a new id", request_id=request_id
        )


class PackageEmpty(PkgerError):
    """The package has no objects, and the stack owns resources."""

    reason = Reason.PACKAGE_EMPTY
    code = "FAILED_PRECONDITION"
    http_code = "UNPROCESSABLE_ENTITY"
    cli_hint = "--allow-empty"
    influx_hint = '"allowEmpty": true'

    def __init__(self, stack: str, count: int) -> None:
        super().__init__(
            f"the package has no objects, so all {count} resources of stack {stack!r} would be removed;"
            " set allow_empty to apply it anyway",
            stack=stack,
            count=str(count),
        )


class ValuesMissing(PkgerError):
    """
    The package refers to values that are not supplied; ``env_refs`` and ``secrets`` are keys, separated by commas.

    With *revision*, the package comes from the revision that a rollback applies.
    """

    reason = Reason.VALUES_MISSING
    code = "FAILED_PRECONDITION"
    http_code = "UNPROCESSABLE_ENTITY"
    cli_hint = "--env-ref, --secret, --allow-missing"

    def __init__(self, env_refs: str, secrets: str, revision: int = 0) -> None:
        if revision:
            # A revision contains its environment values, but no secrets.
            super().__init__(
                f"revision {revision} refers to secrets that the platform does not have:"
                f" {listed(secrets.split(','), _SHOWN)}; write them with an apply of a package that refers to them, or"
                " set allow_missing",
                env_refs=env_refs,
                secrets=secrets,
            )
            return
        missing = [
            f"{what}: {listed(keys.split(','), _SHOWN)}"
            for what, keys in (("environment values without a default", env_refs), ("secrets", secrets))
            if keys
        ]
        super().__init__(
            f"values are missing: {'; '.join(missing)}; supply them in env and secrets, or set allow_missing",
            env_refs=env_refs,
            secrets=secrets,
        )


class ReplacementRefused(PkgerError):
    """A plan would replace unowned resources; *replaced* has kind, name and a sentence about each of them."""

    reason = Reason.REPLACEMENT_REFUSED
    code = "FAILED_PRECONDITION"
    cli_hint = "--allow-replace"

    def __init__(self, replaced: Sequence[tuple[str, str, str]]) -> None:
        sentences = [message for _, _, message in replaced]
        super().__init__(
            f"{listed(sentences, _SHOWN, '; ')}; set allow_replace to apply it anyway",
            objects=",".join(f"{kind}/{name}" for kind, name, _ in replaced[:_SHOWN]),
            count=str(len(replaced)),
        )


class DeletesExceeded(PkgerError):
    """A plan deletes more resources, or loses data of more, than the request or the policy of its stack allows."""

    reason = Reason.DELETES_EXCEEDED
    code = "FAILED_PRECONDITION"
    cli_hint = "--max-deletes"

    def __init__(self, deletes: int, losses: int, limit: int, stack: str = "") -> None:
        """*stack*: the stack whose policy has the limit; empty: the request has it."""
        owner = f"the policy of stack {stack!r}" if stack else "the request"
        both = " of both together" if deletes and losses else ""
        super().__init__(
            f"the plan {deletes_text(deletes, losses)}, and {owner} allows at most {limit:,}{both}; nothing was"
            f" written. Raise max_deletes of {owner}, or apply a part of the changes first",
            deletes=str(deletes),
            losses=str(losses),
            limit=str(limit),
            stack=stack,
        )

    def _distinguish(self) -> None:
        if self.metadata.get("stack"):
            self.cli_hint = "`pkger stacks policy`"


class InUse(PkgerError):
    """A plan would delete what other stacks own or use; *uses* has a sentence about each use."""

    reason = Reason.IN_USE
    code = "FAILED_PRECONDITION"

    def __init__(self, uses: Sequence[str]) -> None:
        super().__init__(
            f"{listed(uses, _SHOWN, '; ')}. Remove the uses there first, or keep the used resources",
            uses="; ".join(uses[:_SHOWN]),
            count=str(len(uses)),
        )


class PlanTooLarge(PkgerError):
    """A plan is too large for the messages between the services."""

    reason = Reason.PLAN_TOO_LARGE
    code = "FAILED_PRECONDITION"

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"the plan needs {size:,} bytes in one message between the services, and the limit is {limit:,}; split"
            " the package into several stacks, or apply a part of its changes first",
            bytes=str(size),
            limit=str(limit),
        )


class SharedDiffers(PkgerError):
    """
    Objects differ from what they share; *differing* has a line about each of them.

    They share resources of other stacks, or, with *is_in_packages*, objects of other packages of their stack.
    """

    reason = Reason.SHARED_DIFFERS
    code = "FAILED_PRECONDITION"

    def __init__(self, differing: Sequence[str], *, is_in_packages: bool = False) -> None:
        shown = fitting(differing, _SHOWN_LENGTH)
        remedy = (
            "packages of one stack share equal objects only. Choose versions whose objects are equal, or change one of"
            " the packages"
            if is_in_packages
            else "only its owner changes a resource. Declare the object as the resource is, give it another"
            " metadata.name and display name, or change the resource in the stack that owns it first"
        )
        super().__init__(
            f"{listed(differing, len(shown), '; ')}. Nothing was written: {remedy}",
            objects="\n".join(shown),
            count=str(len(differing)),
        )


class ContentRefused(PkgerError):
    """The platform cannot store the content of objects; *refused* has a line about each of them."""

    reason = Reason.CONTENT_REFUSED
    code = "FAILED_PRECONDITION"
    http_code = "UNPROCESSABLE_ENTITY"

    def __init__(self, platform: str, refused: Sequence[str]) -> None:
        shown = fitting(refused, _SHOWN_LENGTH)
        objects = "1 object" if len(refused) == 1 else f"{len(refused)} objects"
        super().__init__(
            f"platform {platform!r} rejects {objects}; nothing was written: {listed(refused, len(shown), '; ')}",
            platform=platform,
            objects="\n".join(shown),
            count=str(len(refused)),
        )


class RevisionNotFound(PkgerError):
    """The stack does not keep the revision; *kept* is the range it keeps, such as "3 to 22"; empty: none."""

    reason = Reason.REVISION_NOT_FOUND
    code = "NOT_FOUND"

    def __init__(self, stack: str, revision: int, kept: str) -> None:
        has = f"it keeps {kept}" if kept else "it has none yet: an apply makes the first one"
        super().__init__(
            f"stack {stack!r} has no revision {revision}; {has}", stack=stack, revision=str(revision), kept=kept
        )


class ResourceNotFound(PkgerError):
    """The platform does not have resources of the request; *missing* has a line about each, such as ``Bucket 'b'``."""

    reason = Reason.RESOURCE_NOT_FOUND
    code = "NOT_FOUND"

    def __init__(self, platform: str, org: str, missing: Sequence[str]) -> None:
        shown = fitting(missing, _SHOWN_LENGTH)
        super().__init__(
            f"{platform}/{org} does not have {listed(missing, len(shown), '; ')}. Correct these entries of the request,"
            " or remove them",
            platform=platform,
            org=org,
            resources="\n".join(shown),
            count=str(len(missing)),
        )


class RepositoryNotFound(PkgerError):
    """No repository has the name."""

    reason = Reason.REPOSITORY_NOT_FOUND
    code = "NOT_FOUND"
    resource = ("pkger.stack.v1.Repository", "repository")
    cli_hint = "`pkger repo list`"

    def __init__(self, repository: str) -> None:
        super().__init__(
            f"there is no repository {repository!r}; ListRepositories lists the repositories", repository=repository
        )


class RepositoryExists(PkgerError):
    """Another repository has the name."""

    reason = Reason.REPOSITORY_EXISTS
    code = "ALREADY_EXISTS"
    resource = ("pkger.stack.v1.Repository", "repository")
    cli_hint = "`pkger repo update`"

    def __init__(self, repository: str) -> None:
        super().__init__(
            f"a repository {repository!r} already exists; choose another name, or change it with UpdateRepository",
            repository=repository,
        )


class RepositoryInUse(PkgerError):
    """
    Packages are installed from the repository; *packages* has at least one of them, with its stack, such as "base of
    fleet".
    """

    reason = Reason.REPOSITORY_IN_USE
    code = "FAILED_PRECONDITION"
    cli_hint = "`pkger repo disable`"

    def __init__(self, repository: str, packages: Sequence[str]) -> None:
        shown = "; ".join(fitting(packages[:_SHOWN], _SHOWN_LENGTH))
        super().__init__(
            f"packages are installed from repository {repository!r}, for example {shown}. Disable it with"
            " UpdateRepository, or uninstall the packages first; with force, its address changes all the same",
            repository=repository,
            packages=shown,
        )


class RepositoryInvalid(PkgerError):
    """A file of a repository breaks a rule, or is not there; *fault* is the kind of rule."""

    reason = Reason.REPOSITORY_INVALID
    code = "FAILED_PRECONDITION"

    def __init__(self, repository: str, file: str, fault: str, problem: str) -> None:
        super().__init__(
            f"repository {repository!r}: {file}: {problem}",
            repository=repository,
            file=file,
            fault=fault,
            problem=problem,
        )


class RepositoryUnavailable(PkgerError):
    """A repository does not answer, or must not be asked."""

    reason = Reason.REPOSITORY_UNAVAILABLE
    code = "FAILED_PRECONDITION"
    cli_hint = "`pkger repo update` or `pkger repo disable`"

    def __init__(self, repository: str, problem: str) -> None:
        super().__init__(f"repository {repository!r} cannot be read: {problem}", repository=repository, problem=problem)


class PackageNotFound(PkgerError):
    """
    No repository has the package, or no version of it will do, or *stack* does not have it; *problem* says which of
    them.
    """

    reason = Reason.PACKAGE_NOT_FOUND
    code = "NOT_FOUND"
    cli_hint = "`pkger packages search`"

    def __init__(self, package: str, problem: str, stack: str = "") -> None:
        super().__init__(problem, package=package, problem=problem, **({"stack": stack} if stack else {}))

    def _distinguish(self) -> None:
        if self.metadata.get("stack"):
            self.cli_hint = "`pkger packages list`"


class PackageStack(PkgerError):
    """The stack has installed packages, or cannot have any; *problem* says which, and what to do."""

    reason = Reason.PACKAGE_STACK
    code = "FAILED_PRECONDITION"
    cli_hint = "`pkger install`"

    def __init__(self, stack: str, problem: str) -> None:
        super().__init__(f"stack {stack!r} {problem}", stack=stack, problem=problem)


class PackagePinned(PkgerError):
    """Pinned *packages* of the stack, at least one, would move or leave."""

    reason = Reason.PACKAGE_PINNED
    code = "FAILED_PRECONDITION"
    cli_hint = "`pkger packages unpin`"

    def __init__(self, stack: str, packages: Sequence[str]) -> None:
        shown = fitting(packages, _SHOWN_LENGTH, ", ")
        super().__init__(
            f"pinned packages of stack {stack!r} would move or leave: {listed(packages, len(shown))}; unpin them first",
            stack=stack,
            packages=",".join(shown),
            count=str(len(packages)),
        )


class RangeInvalid(PkgerError):
    """The *field* of a request has no range of versions; *position* is that of the wrong character, from 0."""

    reason = Reason.RANGE_INVALID
    code = "INVALID_ARGUMENT"

    def __init__(self, field: str, text: str, position: int, problem: str) -> None:
        super().__init__(f"{field}: {problem}", field=field, range=text, position=str(position), problem=problem)


class Unauthenticated(PkgerError):
    """The call has no token that its server accepts; the text is the same for all causes."""

    reason = Reason.UNAUTHENTICATED
    code = "UNAUTHENTICATED"
    exit_status = "UNAUTHENTICATED"
    cli_hint = "`export PKGER_TOKEN=$(pkger token local)` on the machine of the services"

    def __init__(self) -> None:
        super().__init__("no valid token; send the token of the server in the metadata, as authorization: Bearer TOKEN")


class TooManyCalls(PkgerError):
    """The *principal* has as many calls in flight as one may have; *limit* is their number."""

    reason = Reason.TOO_MANY_CALLS
    code = "RESOURCE_EXHAUSTED"
    http_code = "UNAVAILABLE"

    def __init__(self, principal: str, limit: int) -> None:
        super().__init__(
            f"{principal} has {limit} calls in flight, which is the limit; retry when one of them has ended",
            principal=principal,
            limit=str(limit),
        )

    def retry_seconds(self, now: float) -> float | None:
        """As soon as one of the calls has ended."""
        return RETRY_SECONDS


class Internal(PkgerError):
    """A defect of a service; its log has the details, with the request id."""

    reason = Reason.INTERNAL
    code = "INTERNAL"

    def __init__(self, request_id: str) -> None:
        super().__init__(
            f"internal error; the log of the service has the details of request {request_id}", request_id=request_id
        )


ERRORS: dict[Reason, type[PkgerError]] = {cls.reason: cls for cls in PkgerError.__subclasses__()}
"""The class of each reason."""
