"""Every error that a service answers with: data first, text built from it."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from services.core.listing import fitting, listed

_SHOWN = 10
"""Most resources that the text of an error names."""

_SHOWN_LENGTH = 1400
"""So much text, as ASCII with escapes, tells of objects: trailers of 8 KiB hold the text of an error four times."""


class Reason(StrEnum):
    """Why a call failed; the same words as protos/pkger/errors/v1/reason.proto (a test holds them equal)."""

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


class PkgerError(Exception):
    """
    The base of all errors that leave a service.

    Attributes:
        reason: Why, for programs.
        metadata: Every value that the text names (AIP-193).
    """

    reason = Reason.INTERNAL

    def __init__(self, text: str, /, **metadata: str) -> None:
        super().__init__(text)
        self.metadata = metadata


class RequestInvalid(PkgerError):
    """The request itself is wrong: a faulty package is not (that is an answer)."""

    reason = Reason.REQUEST_INVALID

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}", field=field, problem=problem)


class SourceUndecodable(PkgerError):
    """A source is not the text it should be. ``line`` and ``column`` count from 1; 0 means unknown."""

    reason = Reason.SOURCE_UNDECODABLE

    def __init__(self, source: str, problem: str, line: int = 0, column: int = 0) -> None:
        place = f"{source}:{line}:{column}" if line else source
        super().__init__(f"{place}: {problem}", source=source, line=str(line), column=str(column), problem=problem)


class SourceTooLarge(PkgerError):
    """A package exceeds a bound, such as ``bound="nesting depth"``."""

    reason = Reason.SOURCE_TOO_LARGE

    def __init__(self, source: str, bound: str, limit: int) -> None:
        super().__init__(
            f"{source}: more than the allowed {bound} of {limit:,}", source=source, bound=bound, limit=str(limit)
        )


class SourceUnreadable(PkgerError):
    """A source at an address cannot be read."""

    reason = Reason.SOURCE_UNREADABLE

    def __init__(self, source: str, problem: str) -> None:
        super().__init__(f"{source}: {problem}", source=source, problem=problem)


class EncodingInvalid(PkgerError):
    """A source is in an encoding that is not read here."""

    reason = Reason.ENCODING_INVALID

    def __init__(self, source: str, encoding: str, way_out: str) -> None:
        super().__init__(f"{source}: invalid encoding: {encoding}; {way_out}", source=source, encoding=encoding)


class StackNotFound(PkgerError):
    """No stack of that id or name."""

    reason = Reason.STACK_NOT_FOUND

    def __init__(self, stack: str) -> None:
        super().__init__(f"there is no stack {stack!r}; ListStacks lists the stacks", stack=stack)


class StackExists(PkgerError):
    """A stack of that name exists in the organisation."""

    reason = Reason.STACK_EXISTS

    def __init__(self, stack: str, org: str) -> None:
        super().__init__(f"a stack {stack!r} exists already in organisation {org!r}", stack=stack, org=org)


class StackNotEmpty(PkgerError):
    """A stack that owns resources cannot be deleted."""

    reason = Reason.STACK_NOT_EMPTY

    def __init__(self, stack: str, count: int) -> None:
        super().__init__(
            f"stack {stack!r} still owns {count} resources; UninstallStack removes them", stack=stack, count=str(count)
        )


class StackLeased(PkgerError):
    """Another operation runs on the stack; ``expires`` is RFC 3339."""

    reason = Reason.STACK_LEASED

    def __init__(self, stack: str, holder: str, operation: str, expires: str) -> None:
        super().__init__(
            f"operation {operation} of applier {holder} holds the lease of stack {stack!r} until {expires}, unless it"
            " renews it. Try again when the operation is over; if the applier died, another one resumes it after that",
            stack=stack,
            holder=holder,
            operation=operation,
            expires=expires,
        )


class LeaseLost(PkgerError):
    """The lease is over or another holder has it; the write was refused."""

    reason = Reason.LEASE_LOST

    def __init__(self, stack: str, token: int) -> None:
        super().__init__(
            f"the lease with token {token} on stack {stack!r} is over; nothing was recorded",
            stack=stack,
            token=str(token),
        )


class StackMoved(PkgerError):
    """The stack moved on since the plan was made, or since the first page of what it owns was read."""

    reason = Reason.STACK_MOVED

    def __init__(self, stack: str, expected: int, actual: int) -> None:
        super().__init__(
            f"stack {stack!r} has moved from generation {expected} to {actual}; plan, or read it, again",
            stack=stack,
            expected=str(expected),
            actual=str(actual),
        )


class StackChanged(PkgerError):
    """The stack is not the one that the etag of an update is of."""

    reason = Reason.STACK_CHANGED

    def __init__(self, stack: str, expected: str, actual: str) -> None:
        super().__init__(
            f"stack {stack!r} has changed: its etag is {actual!r}, and not {expected!r}; read it again",
            stack=stack,
            expected=expected,
            actual=actual,
        )


class PlanStale(PkgerError):
    """What a plan was made from has changed; *plan* is its name, or its digest where it was not stored."""

    reason = Reason.PLAN_STALE

    def __init__(self, plan: str, problem: str) -> None:
        super().__init__(
            f"{plan} is stale; nothing was written, plan again. What changed: {problem}", plan=plan, problem=problem
        )


class PlanNotFound(PkgerError):
    """No stored plan of that name."""

    reason = Reason.PLAN_NOT_FOUND

    def __init__(self, plan: str) -> None:
        super().__init__(
            f"there is no plan {plan!r}; ListPlans lists the plans, and an unused plan is kept for a day", plan=plan
        )


class PlanUsed(PkgerError):
    """The plan was applied before."""

    reason = Reason.PLAN_USED

    def __init__(self, plan: str, operation: str) -> None:
        super().__init__(
            f"{operation} applied {plan} before, and a plan is applied once; plan again", plan=plan, operation=operation
        )


class PlanExpired(PkgerError):
    """The plan was not applied in time; *expired* is RFC 3339."""

    reason = Reason.PLAN_EXPIRED

    def __init__(self, plan: str, expired: str) -> None:
        super().__init__(f"{plan} could be applied until {expired}; plan again", plan=plan, expired=expired)


class DigestMismatch(PkgerError):
    """The plan of that name is another one than the caller agreed to."""

    reason = Reason.DIGEST_MISMATCH

    def __init__(self, plan: str, expected: str, actual: str) -> None:
        super().__init__(
            f"{plan} has digest {actual} and not {expected}: it is another plan than the one agreed to",
            plan=plan,
            expected=expected,
            actual=actual,
        )


class PlatformUnknown(PkgerError):
    """No platform of that name is configured; ``platforms`` are the names of those that are, separated by commas."""

    reason = Reason.PLATFORM_UNKNOWN

    def __init__(self, platform: str, platforms: Sequence[str]) -> None:
        names = sorted(platforms)
        super().__init__(
            f"no platform {platform!r} is configured; those that are: {listed(names, _SHOWN)}",
            platform=platform,
            platforms=",".join(names),
        )


class OrgUnknown(PkgerError):
    """The platform has no organisation of that name, or its driver may not read it: *problem* says which."""

    reason = Reason.ORG_UNKNOWN

    def __init__(self, platform: str, org: str, problem: str) -> None:
        super().__init__(
            f"organisation {org!r} of platform {platform!r}: {problem}", platform=platform, org=org, problem=problem
        )


class KindUnsupported(PkgerError):
    """The platform has no such kind."""

    reason = Reason.KIND_UNSUPPORTED

    def __init__(self, platform: str, kind: str) -> None:
        super().__init__(f"platform {platform!r} has no kind {kind!r}", platform=platform, kind=kind)


class Owned(NamedTuple):
    """
    Something that an object needs and that a stack has.

    Attributes:
        kind: Kind of the object.
        name: Name of the object.
        what: What it needs, for people: ``resource 1``.
        resource_id: That resource; empty when it is something else.
        owner: Id of the stack.
        owner_name: Its name; may be empty.
        operation: The operation of that stack that claims it until its end; empty when it stands in the record.
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
        has = f"{self.operation} of {stack} claims until its end" if self.operation else f"{stack} owns"
        return f"{self.kind} {self.name!r} needs {self.what}, which {has}"


class ResourceOwned(PkgerError):
    """What objects want belongs to another stack, recorded or claimed; the metadata are those of the first."""

    reason = Reason.RESOURCE_OWNED

    def __init__(self, owned: Sequence[Owned]) -> None:
        """*owned* is not empty."""
        super().__init__(listed(list(map(str, owned)), _SHOWN, "; "), **owned[0]._asdict(), count=str(len(owned)))


class NameTaken(PkgerError):
    """Two objects, or an object and live resources, claim one unique name; ``other`` says who has it."""

    reason = Reason.NAME_TAKEN

    def __init__(self, kind: str, name: str, display_name: str, other: str, way_out: str = "") -> None:
        """*way_out*: what to do, as one sentence; empty where *other* says all."""
        super().__init__(
            f"{kind} {name!r} wants the name {display_name!r}, which {other} has" + (f". {way_out}" if way_out else ""),
            kind=kind,
            name=name,
            display_name=display_name,
            other=other,
        )


class DependencyCycle(PkgerError):
    """Objects wait for the names of each other; ``cycle`` has them in order."""

    reason = Reason.DEPENDENCY_CYCLE

    def __init__(self, cycle: str) -> None:
        super().__init__(
            f"each of these wants the name that the next one has, so none can be renamed first: {cycle}. Give one of"
            " them a name that is free, apply, and give it the wanted one then",
            cycle=cycle,
        )


class ServiceUnavailable(PkgerError):
    """A service or driver that the call needs does not answer."""

    reason = Reason.SERVICE_UNAVAILABLE

    def __init__(self, service: str, address: str, problem: str, platform: str = "") -> None:
        """*platform*: the configured name of the platform, where *service* is a driver; else empty."""
        called = f"platform {platform!r}" if platform else f"{service} service"
        super().__init__(
            f"the {called} at {address} does not answer: {problem}",
            service=service,
            address=address,
            problem=problem,
            **({"platform": platform} if platform else {}),
        )


class OperationNotFound(PkgerError):
    """No operation of that name, or one that is finished."""

    reason = Reason.OPERATION_NOT_FOUND

    def __init__(self, operation: str) -> None:
        super().__init__(f"there is no operation {operation!r}, or it is finished", operation=operation)


class OperationUnfinished(PkgerError):
    """An operation on the stack that sent something waits to be recovered."""

    reason = Reason.OPERATION_UNFINISHED

    def __init__(self, stack: str, operation: str, state: str) -> None:
        next_act = "RecoverOperation resumes it" if state == "BLOCKED" else "an applier will resume it"
        text = f"{operation} on stack {stack!r} is unfinished ({state}); {next_act}"
        super().__init__(text, stack=stack, operation=operation, state=state)


class TokenStale(PkgerError):
    """The fencing token is older than one that the platform has seen."""

    reason = Reason.TOKEN_STALE

    def __init__(self, scope: str, token: int, newest: int) -> None:
        super().__init__(
            f"token {token} for {scope!r} is older than {newest}; nothing was written",
            scope=scope,
            token=str(token),
            newest=str(newest),
        )


class RequestIdReused(PkgerError):
    """The request id was used before with other content."""

    reason = Reason.REQUEST_ID_REUSED

    def __init__(self, request_id: str) -> None:
        super().__init__(f"request id {request_id!r} was used with other content", request_id=request_id)


class PackageEmpty(PkgerError):
    """A package without objects, for a stack that owns resources."""

    reason = Reason.PACKAGE_EMPTY

    def __init__(self, stack: str, count: int) -> None:
        super().__init__(
            f"the package has no objects, so all {count} resources of stack {stack!r} would go;"
            " set allow_empty to apply it all the same",
            stack=stack,
            count=str(count),
        )


class ValuesMissing(PkgerError):
    """
    The package refers to values that nobody gave; ``env_refs`` and ``secrets`` are keys, separated by commas.

    With *revision*, it is the package of that revision, which somebody goes back to.
    """

    reason = Reason.VALUES_MISSING

    def __init__(self, env_refs: str, secrets: str, revision: int = 0) -> None:
        if revision:
            # A revision has its environment values, and no secrets.
            super().__init__(
                f"the platform does not have these secrets, which revision {revision} refers to:"
                f" {listed(secrets.split(','), _SHOWN)}; write them with an apply of a package that refers to them, or"
                " set allow_missing",
                env_refs=env_refs,
                secrets=secrets,
            )
            return
        told = [
            f"{what}: {listed(keys.split(','), _SHOWN)}"
            for what, keys in (("environment values without a default", env_refs), ("secrets", secrets))
            if keys
        ]
        super().__init__(
            f"these are not given: {'; '.join(told)}; give them in env and secrets, or set allow_missing",
            env_refs=env_refs,
            secrets=secrets,
        )


class ReplacementRefused(PkgerError):
    """A plan would delete what no stack owns; *replaced* has kind, name and a sentence about each of them."""

    reason = Reason.REPLACEMENT_REFUSED

    def __init__(self, replaced: Sequence[tuple[str, str, str]]) -> None:
        sentences = [message for _, _, message in replaced]
        super().__init__(
            f"{listed(sentences, _SHOWN, '; ')}; set allow_replace to apply it all the same",
            objects=",".join(f"{kind}/{name}" for kind, name, _ in replaced[:_SHOWN]),
            count=str(len(replaced)),
        )


class InUse(PkgerError):
    """A plan would take away what other stacks have or use; *uses* has a sentence about each."""

    reason = Reason.IN_USE

    def __init__(self, uses: Sequence[str]) -> None:
        super().__init__(
            f"{listed(uses, _SHOWN, '; ')}. Take them away there first, or keep what is used",
            uses="; ".join(uses[:_SHOWN]),
            count=str(len(uses)),
        )


class PlanTooLarge(PkgerError):
    """A plan does not fit into the messages that its operation needs, up to its end."""

    reason = Reason.PLAN_TOO_LARGE

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"the plan takes {size:,} bytes in one message between the services, more than the allowed {limit:,}; split"
            " the package into several stacks, or apply a part of its changes first",
            bytes=str(size),
            limit=str(limit),
        )


class SharedDiffers(PkgerError):
    """Resources of other stacks are not as a package wants them; *differing* has a line about each of them."""

    reason = Reason.SHARED_DIFFERS

    def __init__(self, differing: Sequence[str]) -> None:
        shown = fitting(differing, _SHOWN_LENGTH)
        super().__init__(
            f"{listed(differing, len(shown), '; ')}. Nothing was written: only its owner changes a resource. Want what"
            " is there, give the object another metadata.name and display name, or have the owner change the resource"
            " first",
            objects="\n".join(shown),
            count=str(len(differing)),
        )


class ContentRefused(PkgerError):
    """The platform cannot hold the content of objects; *refused* has a line about each of them."""

    reason = Reason.CONTENT_REFUSED

    def __init__(self, platform: str, refused: Sequence[str]) -> None:
        shown = fitting(refused, _SHOWN_LENGTH)
        objects = "1 object" if len(refused) == 1 else f"{len(refused)} objects"
        super().__init__(
            f"platform {platform!r} refuses {objects}; nothing was written: {listed(refused, len(shown), '; ')}",
            platform=platform,
            objects="\n".join(shown),
            count=str(len(refused)),
        )


class RevisionNotFound(PkgerError):
    """A stack has no such revision; *kept* says which it has, such as "3 to 22", and is empty when it has none."""

    reason = Reason.REVISION_NOT_FOUND

    def __init__(self, stack: str, revision: int, kept: str) -> None:
        has = f"it keeps {kept}" if kept else "it has none yet: only an apply makes one"
        super().__init__(
            f"stack {stack!r} has no revision {revision}; {has}", stack=stack, revision=str(revision), kept=kept
        )


class ResourceNotFound(PkgerError):
    """Resources that a request names are not there; *missing* has a line about each of them, such as ``Bucket 'b'``."""

    reason = Reason.RESOURCE_NOT_FOUND

    def __init__(self, platform: str, org: str, missing: Sequence[str]) -> None:
        shown = fitting(missing, _SHOWN_LENGTH)
        super().__init__(
            f"{platform}/{org} does not have {listed(missing, len(shown), '; ')}. Leave out of the request what is"
            " not there, or correct it",
            platform=platform,
            org=org,
            resources="\n".join(shown),
            count=str(len(missing)),
        )


class Internal(PkgerError):
    """A defect of a service; its log has the details under the request id."""

    reason = Reason.INTERNAL

    def __init__(self, request_id: str) -> None:
        super().__init__(f"internal error; the log has it under request id {request_id}", request_id=request_id)


ERRORS: dict[Reason, type[PkgerError]] = {cls.reason: cls for cls in PkgerError.__subclasses__()}
"""The class of each reason."""
