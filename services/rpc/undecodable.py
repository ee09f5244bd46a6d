"""Requests that no servicer should see: bytes that are no message of their method, and too many entries."""

from collections.abc import Callable
from enum import Enum
from typing import Any, Final

from google.protobuf.message import DecodeError, Message

from services.core.errors import RequestInvalid
from services.rpc.request_bounds import refuse_beyond_bounds


class _Mark(Enum):
    UNDECODABLE = "the bytes of the request are no message of its method"


UNDECODABLE: Final = _Mark.UNDECODABLE
"""In place of a request that cannot be decoded."""

Deserialize = Callable[[bytes], Any]


def marking(deserialize: Deserialize | None) -> Deserialize | None:
    """
    Make a deserializer return ``UNDECODABLE`` for bytes that are no message. None: requests stay bytes, as in gRPC.

    gRPC ends a call whose deserializer fails with UNKNOWN, and logs the exception with its traceback: anybody who can
    connect would fill the log.
    """

    if deserialize is None:
        return None

    def read(message: bytes) -> Any:
        try:
            return deserialize(message)
        except DecodeError:
            return UNDECODABLE

    return read


def refuse_undecodable(request: Any, method: str) -> None:
    """
    Check a request, as a ``marking`` deserializer returns it.

    Raises:
        RequestInvalid: It could not be decoded, with the name of *method*; or it is beyond the bounds of requests.
    """
    if request is UNDECODABLE:
        raise RequestInvalid("request", f"its bytes are no message of {method}; encode it by the protos of the service")
    if isinstance(request, Message):
        refuse_beyond_bounds(request)
