"""What does not change, and the tags by which a client asks only whether it has."""

from collections.abc import Callable, Mapping
from hashlib import sha256

from google.protobuf.message import Message
from pkger.model.v1 import operation_pb2, plan_pb2
from pkger.stack.v1 import stack_pb2


def _is_settled_plan(first: Message) -> bool:
    """Whether a plan stays as it is told: ids of what it creates come to it while it runs."""
    assert isinstance(first, stack_pb2.GetPlanResponse)  # noqa: S101 - as the table says
    return first.part.header.state not in (plan_pb2.PLAN_STATE_UNSPECIFIED, plan_pb2.PLAN_STATE_APPLYING)


def _is_revision(first: Message) -> bool:
    """Revisions never change."""
    assert isinstance(first, stack_pb2.GetRevisionResponse)  # noqa: S101 - as the table says
    return first.HasField("revision")


TOLD_BY_THE_FIRST: Mapping[str, Callable[[Message], bool]] = {
    "pkger.stack.v1.StackService.GetPlan": _is_settled_plan,
    "pkger.stack.v1.StackService.GetRevision": _is_revision,
}
"""Streams all of which follows from their request and first message, if that says so."""

EVENTS = "pkger.applier.v1.ApplierService.WatchOperation"
"""The stream that never changes once its operation has ended."""


def is_ended(operation: operation_pb2.Operation) -> bool:
    """Whether nothing happens to an operation any more."""
    return operation.HasField("end_time")


def tag_of(*parts: bytes) -> str:
    """A weak tag for what follows from *parts*: a compressed answer has the same one."""
    digest = sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8))
        digest.update(part)
    return f'W/"{digest.hexdigest()[:32]}"'


def content_of(message: Message) -> bytes:
    """The bytes of a message, the same for equal messages."""
    return message.SerializeToString(deterministic=True)


def is_known(tag: str, if_none_match: str | None) -> bool:
    """Whether a client that sends this ``If-None-Match`` has what *tag* stands for."""
    if if_none_match is None:
        return False
    known = [each.strip().removeprefix("W/") for each in if_none_match.split(",")]
    return "*" in known or tag.removeprefix("W/") in known


def headers_of(tag: str) -> dict[str, str]:
    """The headers of an answer with a tag: it may be kept, and has to be asked for each time."""
    return {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Accept, Accept-Encoding, Authorization"}
