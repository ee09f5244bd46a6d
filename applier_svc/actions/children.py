"""The operations that phases begin to change stacks: found again by the keys of their phases."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import operation_pb2

from applier_svc.actions.call import Call, FunctionError, NextTryError
from applier_svc.actions.phase_names import child_id
from applier_svc.actions.secrets import SecretMissingError
from applier_svc.failpoints import reach
from applier_svc.operation.events import Feed
from applier_svc.operation.requests import OperationRequest
from services.actions.phase_reason import PhaseReason
from services.core.errors import OperationNotFound, OperationUnfinished, PkgerError, StackLeased

BETWEEN_ATTEMPTS = 1.0
"""Seconds between two attempts to begin on a stack that is in use, and between two reads of a BLOCKED operation."""


async def child_outcome(call: Call, request: OperationRequest) -> operation_pb2.Operation:
    """
    The operation of this call, once it has succeeded. It is begun with *request* if no applier has begun it.

    Raises:
        FunctionError: It ended otherwise, or the call is to stop.
        NextTryError: It ended otherwise, and an applier ended during this try, or before it sent anything, which may be
            why.
        SecretMissingError: It has not begun, and a secret was lost.
        PkgerError: It could not begin.
    """
    operation_id = child_id(call.key)
    if await _find(call, operation_id) is None:
        if call.lost_secret:
            raise SecretMissingError(call.lost_secret, PhaseReason.INTERRUPTED)
        await _begin(call, operation_id, request)
    await _following(call, operation_id, _follow(call, operation_id))
    reach("after_child_end")
    operation = await call.operations.get(operation_id)
    if operation.state == operation_pb2.OPERATION_STATE_SUCCEEDED:
        return operation
    was_cut_off = call.was_cut_off or operation.state == operation_pb2.OPERATION_STATE_FAILED
    if was_cut_off and not call.stopping.is_set():
        raise NextTryError
    raise FunctionError(
        f"operation {operation_id} did not succeed: {operation.cause or 'nothing was changed'}",
        PhaseReason.CHILD_ROLLED_BACK,
        is_worth_retry=True,
    )


async def _find(call: Call, operation_id: str) -> operation_pb2.Operation | None:
    try:
        return await call.operations.get(operation_id)
    except OperationNotFound:
        return None


async def _begin(call: Call, operation_id: str, request: OperationRequest) -> None:
    """
    Begin the operation as soon as its stack is free, and follow it until it ends or is interrupted.

    Raises:
        FunctionError: The call is to stop before that.
        PkgerError: It could not begin, or ended before it started.
    """
    holder = ""
    while not call.stopping.is_set():
        parent = journal_pb2.Parent(operation_id=call.operation, token=call.parent_token())
        feed = call.operations.start(replace(request, parent=parent), operation_id)
        try:
            await _following(call, operation_id, _first_event(feed))
        except (StackLeased, OperationUnfinished) as error:
            if error.metadata["operation"] != holder:
                holder = error.metadata["operation"]
                await call.wait(error)
            await _pause(call)
        else:
            reach("after_child_begin")
            await _to_its_end(call, operation_id, feed)
            return
    raise FunctionError("it was told to stop while its stack was in use", PhaseReason.CANCELLED)


async def _first_event(feed: Feed) -> None:
    """Wait until an operation has begun; raises the error because of which it did not."""
    async for _ in feed.follow():
        return


async def _to_its_end(call: Call, operation_id: str, feed: Feed) -> None:
    """
    Follow the operation, which has begun here, until it ends or is interrupted.

    Raises:
        PkgerError: It ended before it started.
    """
    try:
        await _following(call, operation_id, feed.result())
    except PkgerError:
        operation = await _find(call, operation_id)
        if operation is None or operation.state == operation_pb2.OPERATION_STATE_FAILED:
            raise


async def _follow(call: Call, operation_id: str) -> None:
    """
    Wait until the operation has ended, whoever runs it. A BLOCKED one is left to its operator.

    Raises:
        FunctionError: It is BLOCKED, and the call is to stop.
    """
    while True:
        async for _ in call.operations.watch(operation_id, 0):
            pass
        if (await call.operations.get(operation_id)).state != operation_pb2.OPERATION_STATE_BLOCKED:
            return
        if call.stopping.is_set():
            problem = f"operation {operation_id} is BLOCKED; recover it with `pkger operations recover {operation_id}`"
            raise FunctionError(problem, PhaseReason.CHILD_BLOCKED)
        await _pause(call)


async def _following(call: Call, operation_id: str, ends: Coroutine[Any, Any, None]) -> None:
    """Wait until the operation *ends*; when the call is to stop, cancel it and wait on."""
    ending, told = asyncio.create_task(ends), asyncio.create_task(call.stopping.wait())
    try:
        await asyncio.wait({ending, told}, return_when=asyncio.FIRST_COMPLETED)
        if not ending.done():
            with suppress(OperationNotFound):
                await call.operations.cancel(operation_id)
        await ending
    finally:
        ending.cancel()
        told.cancel()


async def _pause(call: Call) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(call.stopping.wait(), BETWEEN_ATTEMPTS)
