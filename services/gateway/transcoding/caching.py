"""ETags, and the streams that get one before they end."""

from hashlib import sha256

from google.protobuf.message import Message
from pkger.model.v1 import operation_pb2

FIXED_BY_FIRST = frozenset(("pkger.stack.v1.StackService.GetPlan", "pkger.stack.v1.StackService.GetRevision"))
"""Streams that are the same whenever their first message is: of a plan, only the header changes; revisions never do."""

EVENTS = "pkger.applier.v1.ApplierService.WatchOperation"
"""The stream that is immutable after the end of its operation."""


def is_ended(operation: operation_pb2.Operation) -> bool:
    """Whether an operation has ended."""
    return operation.HasField("end_time")


def tag_of(*parts: bytes) -> str:
    """A weak ETag for an answer that depends only on *parts*; it is the same if the answer is compressed."""
    digest = sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8))
        digest.update(part)
    return f'W/"{digest.hexdigest()[:32]}"'


def content_of(message: Message) -> bytes:
    """The bytes of a message, the same for equal messages."""
    return message.SerializeToString(deterministic=True)


def is_known(tag: str, if_none_match: str | None) -> bool:
    """Whether a client that sends this ``If-None-Match`` has the answer with *tag*."""
    if if_none_match is None:
        return False
    tags = [each.strip().removeprefix("W/") for each in if_none_match.split(",")]
    return "*" in tags or tag.removeprefix("W/") in tags


def headers_of(tag: str) -> dict[str, str]:
    """The headers of an answer with a tag: a client may store it, and must validate it before each use."""
    return {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Accept, Accept-Encoding, Authorization"}
