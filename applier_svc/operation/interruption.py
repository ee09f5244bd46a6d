"""What an applier does with an operation on which it cannot work on: another one resumes it."""

import logging
from collections.abc import Sequence
from typing import NamedTuple

from applier_svc.operation.events import Feed
from applier_svc.operation.lease import Lease
from services.core.errors import Internal, PkgerError
from services.engine.decisions import BlockedStep
from services.rpc.call import request_id

log = logging.getLogger("pkger.applier")


class Defect(NamedTuple):
    """A defect that ended an attempt to resume an operation: its text without secrets, and open or blocked steps."""

    problem: str
    steps: Sequence[BlockedStep] = ()


async def release(lease: Lease) -> None:
    """Shorten the lease of an interrupted operation, so that it can be resumed soon."""
    await lease.drop()
    await lease.expire_soon()


async def leave(lease: Lease, feed: Feed, error: BaseException, defect: Defect) -> None:
    """
    Leave an operation that could not be resumed because of *error*, the one that is being handled.

    A defect is reported to the store, which blocks the operation after several ones; then its last event is published.

    Args:
        lease: The lease of the operation.
        feed: Its events.
        error: Why it could not be resumed.
        defect: Describes it, in case that it is a defect.

    Raises:
        PkgerError: *error*, if it is one: the operation was interrupted again. ``Internal`` after a defect that did not
            block the operation.
    """
    if isinstance(error, PkgerError) or not isinstance(error, Exception):
        await release(lease)
        raise error
    log.exception("operation not resumed", extra={"operation_id": lease.operation})
    if finished := await lease.report_defect(defect.problem, defect.steps):
        await feed.publish(finished)
    else:
        raise Internal(request_id.get()) from error
