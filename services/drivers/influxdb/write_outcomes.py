"""Translates the answers of the server to writes: they took effect, certainly had no effect, or may have had one."""

from dataclasses import dataclass

from services.drivers.influxdb.client import Response
from services.drivers.mutation import Ambiguous, Rejected
from services.engine.outcome import RejectionReason

_UNAUTHORIZED = "unauthorized"
_TASK_GONE = "task not found"

_WITH_TASKS = frozenset(("checks", "notificationRules"))
"""Collections whose resources the server runs as tasks that it does not list."""

OUT_OF_REACH = (
    "it exists, but somebody deleted the task that the server runs for it: the server no longer lists it, refuses to"
    " read, change or delete it, and keeps the name of a check taken. Remove its entry from the stack (pkger stacks"
    " forget), and give its successor another name"
)
"""The problem of a resource that is out of reach, and its remedy."""

_SUCCESSES = frozenset((200, 201, 204))
_REFUSED_CONTENT = frozenset((400, 405, 413, 422))
_UNSURE = frozenset((502, 503, 504))


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """
    The properties of a write on which the meaning of its answer depends.

    Attributes:
        method: The HTTP method.
        collection: The collection that it writes to: ``tasks``, ``checks``, ``secrets`` ...
        deletes: Whether it deletes something that may already be gone.
        attaches: Whether it attaches a label.
    """

    method: str
    collection: str
    deletes: bool = False
    attaches: bool = False


def refusal(request: WriteRequest, answer: Response) -> Rejected | Ambiguous | None:
    """Why a write had no effect, or may have had none; None: it took effect."""
    status, what = answer.status, f"the server answered {answer.description}"
    if status in _SUCCESSES:
        return None if answer.is_whole else Ambiguous("the answer of the server cannot be read")
    if is_out_of_reach(request.collection, answer):
        return Rejected(RejectionReason.CONTENT_REFUSED, OUT_OF_REACH)
    if request.deletes and status == 404 and not _is_unauthorized(request.collection, answer):
        return None
    if request.attaches and status == 422 and answer.code == "conflict":
        return None
    if status == 429:
        return Rejected(None, what, retry_after=answer.retry_after or 1.0)
    if status in (401, 403) or _is_unauthorized(request.collection, answer):
        return Rejected(RejectionReason.NOT_PERMITTED, f"the token may not do this: {what}")
    if status == 422 and answer.code == "conflict":
        return Rejected(RejectionReason.NAME_TAKEN, f"the name is taken: {what}")
    if status == 404:
        return Rejected(RejectionReason.NOT_FOUND, f"the resource does not exist: {what}")
    if status in _REFUSED_CONTENT or (status == 500 and _is_harmless(request, answer)):
        return Rejected(RejectionReason.CONTENT_REFUSED, what)
    if status in _UNSURE:
        return Ambiguous(what, retry_after=answer.retry_after)
    return Ambiguous(what)


def is_unreadable(collection: str, answer: Response) -> bool:
    """Whether a read was refused, so that the state of the resource is unknown."""
    return answer.status in (401, 403) or _is_unauthorized(collection, answer)


def is_out_of_reach(collection: str, answer: Response) -> bool:
    """Whether a resource exists whose task was deleted, so that the server refuses every call for it."""
    return collection in _WITH_TASKS and answer.status == 404 and answer.message.endswith(_TASK_GONE)


def is_gone(collection: str, answer: Response) -> bool:
    """Whether a read by id shows that there is certainly no resource."""
    if collection == "tasks":
        # A task that the token may not read is answered with 404 too.
        return answer.status == 404 and answer.message.endswith(_TASK_GONE)
    return answer.status == 404 and not is_out_of_reach(collection, answer)


def _is_unauthorized(collection: str, answer: Response) -> bool:
    return collection == "tasks" and answer.status in (404, 500) and answer.message.endswith(_UNAUTHORIZED)


def _is_harmless(request: WriteRequest, answer: Response) -> bool:
    """Whether an internal error is known to be a refusal, by tests against a server."""
    if request.collection == "buckets":
        return "retention policy duration must be" in answer.message
    return request.collection == "tasks" and "failed to update task: " in answer.message
