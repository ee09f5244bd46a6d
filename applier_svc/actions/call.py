"""One call of one function: what it gets, and how it says that it failed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from pkger.model.v1 import operation_pb2

from applier_svc.operation.events import Feed
from applier_svc.operation.requests import OperationRequest
from services.actions.definitions import ActionObject
from services.actions.phase_reason import PhaseReason
from services.actions.signatures import Signature, SignatureTable
from services.core.errors import PkgerError
from services.rpc.client import Peer


class FunctionError(Exception):
    """
    A function failed.

    Attributes:
        reason: Why.
        error_reason: The reason of the service that refused a call; empty: none did.
        is_worth_retry: Whether another attempt may succeed.
    """

    def __init__(
        self,
        message: str,
        reason: PhaseReason = PhaseReason.FAILED,
        error_reason: str = "",
        is_worth_retry: bool = False,
    ) -> None:
        """*message*: one sentence for people, without a rendered argument."""
        super().__init__(message)
        self.reason = reason
        self.error_reason = error_reason
        self.is_worth_retry = is_worth_retry

    def saying(self, message: str) -> "FunctionError":
        """The same failure with another message."""
        return FunctionError(message, self.reason, self.error_reason, self.is_worth_retry)


class NextTryError(Exception):
    """The operation of this try ended otherwise than by success, perhaps because an applier ended: try once more."""


def error_of_service(error: PkgerError, now: float) -> FunctionError:
    """The failure of a function that a service refused a call; *now* in seconds since 1970."""
    return FunctionError(str(error), PhaseReason.FAILED, str(error.reason), error.retry_seconds(now) is not None)


class Operations(Protocol):
    """The operations that phases begin."""

    def start(self, request: OperationRequest, operation_id: str = "") -> Feed:
        """Start an operation with an id, and return its feed."""

    async def get(self, operation_id: str) -> operation_pb2.Operation:
        """Read an operation; raises ``OperationNotFound``."""

    def watch(self, operation_id: str, after_seq: int) -> AsyncIterator[operation_pb2.OperationEvent]:
        """Follow the events of an operation until it ends or is BLOCKED."""

    async def cancel(self, operation_id: str) -> operation_pb2.CancelEffect.ValueType:
        """Ask an operation to roll back; raises ``OperationNotFound`` if it is finished."""


class Emit(Protocol):
    """Stores outputs of a function before it goes on."""

    async def __call__(self, outputs: Mapping[str, Any], snapshots: Sequence[str] = ()) -> None:
        """Store *outputs*, with the manifests of *snapshots* that they name, in one write."""


@dataclass(frozen=True, slots=True)
class Services:
    """The services that functions call."""

    planner: Peer
    stack: Peer


@dataclass(frozen=True, slots=True)
class Call:
    """
    What a function gets; a new one for each call.

    Attributes:
        arguments: Its rendered arguments, with the defaults of its signature.
        key: OPERATION/ACTION/INDEX/TRY: the same when an interrupted call runs again.
        emitted: The outputs that it stored before, in this or an earlier call of the phase.
        emit: Stores outputs.
        report: Reports the percentage that is done.
        stopping: Set when it is to stop; only functions that attach are told, others are cancelled.
        was_cut_off: Whether an applier ended, or was told to stop, during this try.
        lost_secret: Why a value of its arguments is not the one that it had in this try; empty: all are. It may
            continue what it began in this try, but must begin nothing.
        object: The object of the action; None: it has none.
        operation: Id of the operation of the action set.
        action_set: Name of the action set.
        action: Name of the action.
        index: Index of the action in the action set.
        phase: Name of the phase.
        author: Author of the action set.
        time: When the action set was created, as RFC 3339 text.
        services: The services that it may call.
        operations: Begins operations.
        parent_token: The fencing token of the action set now.
        wait: Reports that the operation of the phase waits for a stack; gets the error that names who has it.
        store_time: The time by the clock of the store, in microseconds since 1970.
    """

    arguments: Mapping[str, Any]
    key: str
    emitted: Mapping[str, Any]
    emit: Emit
    report: Callable[[int], Awaitable[None]]
    stopping: asyncio.Event
    was_cut_off: bool
    lost_secret: str
    object: ActionObject | None
    operation: str
    action_set: str
    action: str
    index: int
    phase: str
    author: str
    time: str
    services: Services
    operations: Operations
    parent_token: Callable[[], int]
    wait: Callable[[PkgerError], Awaitable[None]]
    store_time: Callable[[], int]


class Verdict(StrEnum):
    """What a function can tell of a call that was interrupted."""

    DONE = "done"
    NOT_DONE = "not done"
    UNKNOWN = "unknown"


Run = Callable[[Call], Awaitable[Mapping[str, Any]]]
"""
Runs one call; returns its outputs.

Raises:
    FunctionError: It failed.
    PkgerError: A service refused a call.
"""

Check = Callable[[str], Awaitable[tuple[Verdict, Mapping[str, Any]]]]
"""Tells of the interrupted call with a key whether it had its effect, and its outputs if so."""


class Function(NamedTuple):
    """
    One version of one function.

    Attributes:
        signature: Its signature.
        run: Runs a call.
        check: Looks up an interrupted call; None: it cannot tell.
    """

    signature: Signature
    run: Run
    check: Check | None = None


class FunctionTable:
    """The functions that an applier has, by name and version."""

    def __init__(self, functions: Sequence[Function]) -> None:
        self._functions = {(each.signature.name, each.signature.version): each for each in functions}
        self.signatures = SignatureTable([each.signature for each in functions])

    def find(self, name: str, version: int | None) -> Function | None:
        """The version of a function; None: this applier does not have it."""
        signature = self.signatures.find(name, version)
        return self._functions[signature.name, signature.version] if signature else None
