"""Calls the functions of phases: with rendered arguments, within their timeout, and told when they are to stop."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from pkger.model.v1 import operation_pb2

from applier_svc.actions.call import Call, Emit, Function, FunctionError, NextTryError, error_of_service
from applier_svc.actions.context import RunContext, Told
from applier_svc.actions.phase_inputs import UNTIL_STORE_ANSWERS, deadline_of, read_parameters, seconds_left
from applier_svc.actions.phase_names import phase_of, ref_of
from applier_svc.actions.secrets import SecretMissingError
from applier_svc.failpoints import reach
from services.actions.argument_values import RenderingError, render_arguments
from services.actions.durations import duration_text
from services.actions.folding import DEFER, PhaseKey, PhaseRecord, Records
from services.actions.life import PhaseState, StopReason
from services.actions.next_move import LATE
from services.actions.phase_reason import PhaseReason
from services.actions.signatures import Recovery
from services.core.errors import LeaseLost, PkgerError, ServiceUnavailable
from services.kinds.format.canonical import canonical_text
from services.rpc.log import log_mask

log = logging.getLogger("pkger.applier")

LARGEST_OUTPUTS = 256 * 1024
"""Bytes of the outputs of one phase."""

MOST_OUTPUTS = 16 * 1024 * 1024
"""Bytes of the outputs of all phases of an action set."""

BETWEEN_REPORTS = 5.0
"""Seconds between two stored reports of the progress of a phase."""


class PhaseCalls:
    """Calls the functions of the phases of one action set."""

    def __init__(self, context: RunContext, told: Told) -> None:
        self._context = context
        self._told = told
        statuses = context.progress.statuses()
        self._sizes = {key: len(canonical_text(dict(each.outputs))) for key, each in statuses if each.outputs}

    async def outputs(self, key: PhaseKey) -> Mapping[str, Any]:
        """
        Call the function of a phase that runs; once more with the next key if an interruption may be why it failed.

        Returns:
            The outputs that are not stored yet, without values of secrets.

        Raises:
            FunctionError: It failed, was stopped, or is late.
            LeaseLost: Another applier works on the action set.
        """
        context, phase = self._context, phase_of(self._context.pinned, key)
        # What functions log has no secrets either.
        log_mask.set(context.secrets.masked_line)
        while True:
            try:
                return await self._called(key)
            except NextTryError:
                status = context.progress.status(key)
                record = PhaseRecord(key, PhaseState.RUNNING, status.attempt, status.try_number + 1)
                await context.journal.write(Records((record,)))
            except (FunctionError, LeaseLost):
                # A lost lease is no failure of the phase: another applier runs it again.
                raise
            except PkgerError as error:
                context.lease.check()
                if not (_is_of_store(error) and context.recovery(key) is not Recovery.ONCE):
                    raise self.error_of(error) from error
                await asyncio.sleep(UNTIL_STORE_ANSWERS)
            except Exception as error:
                log.exception("function failed", extra={"operation_id": context.operation})
                problem = f"a defect of {phase.function}; the log of the applier has the details"
                raise FunctionError(problem) from error

    def checked(self, key: PhaseKey, outputs: Mapping[str, Any]) -> dict[str, Any]:
        """
        *outputs* of a phase without values of secrets.

        Raises:
            FunctionError: With those that were stored before they are too large.
        """
        new: dict[str, Any] = self._context.secrets.masked_value(dict(outputs))
        if not new:
            return new
        size = len(canonical_text({**self._context.progress.status(key).outputs, **new}))
        total = sum(self._sizes.values()) - self._sizes.get(key, 0) + size
        for what, bytes_, most in (("its outputs", size, LARGEST_OUTPUTS), ("all outputs", total, MOST_OUTPUTS)):
            if bytes_ > most:
                problem = f"{what} have {bytes_:,} bytes; at most {most:,} are kept; keep less, or make it a snapshot"
                raise FunctionError(problem, PhaseReason.OUTPUT_TOO_LARGE)
        self._sizes[key] = size
        return new

    def error_of(self, error: PkgerError) -> FunctionError:
        """The failure of a phase that a service refused a call, without values of secrets."""
        failure = error_of_service(error, self._context.clock() / 1_000_000)
        return failure.saying(self._context.secrets.masked(str(failure)))

    def key_text(self, key: PhaseKey) -> str:
        """OPERATION/ACTION/INDEX/TRY of the current try of a phase."""
        return f"{self._context.operation}/{key.action}/{key.place}/{self._context.progress.status(key).try_number}"

    async def _called(self, key: PhaseKey) -> Mapping[str, Any]:
        context, phase = self._context, phase_of(self._context.pinned, key)
        function = context.functions.find(phase.function, phase.version)
        if function is None:
            problem = f"this applier does not have version v{phase.version} of {phase.function}"
            raise FunctionError(problem, PhaseReason.FUNCTION_UNAVAILABLE)
        attaches = function.signature.recovery is Recovery.ATTACH
        if seconds_left(context, key) <= 0 and not attaches:
            raise self._late(key)
        try:
            try:
                parameters, lost_secret = await read_parameters(context, key, phase), ""
            except SecretMissingError as error:
                if not (attaches and error.reason is PhaseReason.INTERRUPTED):
                    raise
                # An operation that it began with the secret goes on without this applier.
                parameters, lost_secret = await read_parameters(context, key, phase, may_be_lost=True), str(error)
            call = self._call(key, render_arguments(phase, function.signature, parameters), lost_secret)
            return self.checked(key, await self._within_its_time(key, function, call))
        except (RenderingError, SecretMissingError) as error:
            raise FunctionError(str(error), error.reason) from None

    async def _within_its_time(self, key: PhaseKey, function: Function, call: Call) -> Mapping[str, Any]:
        """Run a call until it ends, is late, or is told to end; one that began an operation waits for its end."""
        running = asyncio.ensure_future(self._run(function, call))
        ends = asyncio.create_task(self._ends(key))
        try:
            left = seconds_left(self._context, key)
            await asyncio.wait({running, ends}, timeout=max(left, 0), return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                return running.result()
            why = self._why_told() if ends.done() else self._late(key)
            if function.signature.recovery is not Recovery.ATTACH:
                raise why
            call.stopping.set()
            return await _after_its_operation(running, why)
        finally:
            ends.cancel()
            if not running.done():
                running.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await running

    async def _run(self, function: Function, call: Call) -> Mapping[str, Any]:
        """Run a call; what it says of its failure has no values of secrets."""
        try:
            return await function.run(call)
        except FunctionError as error:
            raise error.saying(self._context.secrets.masked(str(error))) from error

    async def _ends(self, key: PhaseKey) -> None:
        """Wait until running phases are to end; a deferPhase only ends by itself or when it is late."""
        if key.place == DEFER:
            await asyncio.Event().wait()
        await self._told.ends.wait()

    def _why_told(self) -> FunctionError:
        stop = self._context.progress.stop
        if stop and stop.reason is StopReason.TIMEOUT:
            return FunctionError(LATE, PhaseReason.TIMEOUT)
        return FunctionError("it was cancelled", PhaseReason.CANCELLED)

    def _late(self, key: PhaseKey) -> FunctionError:
        _, what, timeout = deadline_of(self._context, key)
        return FunctionError(f"{what} took longer than its timeout of {duration_text(timeout)}", PhaseReason.TIMEOUT)

    def _call(self, key: PhaseKey, arguments: Mapping[str, Any], lost_secret: str) -> Call:
        context, status = self._context, self._context.progress.status(key)
        action = context.pinned.actions[key.action]
        return Call(
            arguments=arguments,
            key=self.key_text(key),
            emitted=status.outputs,
            emit=self._emitting(key),
            report=self._reporting(key),
            stopping=asyncio.Event(),
            was_cut_off=status.was_cut_off,
            lost_secret=lost_secret,
            object=action.object,
            operation=context.operation,
            action_set=context.pinned.name,
            action=action.name,
            index=key.action,
            phase=phase_of(context.pinned, key).name,
            author=context.author,
            time=context.pinned.time,
            services=context.services,
            operations=context.operations,
            parent_token=lambda: context.lease.token,
            wait=self._waiting(key),
            store_time=lambda: context.lease.store_time,
        )

    def _emitting(self, key: PhaseKey) -> Emit:
        """A function that stores outputs of a phase while it runs."""

        async def emit(outputs: Mapping[str, Any], snapshots: Sequence[str] = ()) -> None:
            status, new = self._context.progress.status(key), self.checked(key, outputs)
            record = PhaseRecord(
                key, PhaseState.RUNNING, status.attempt, status.try_number, outputs=new, percent=status.percent
            )
            await self._context.journal.write(Records((record,)), snapshots=snapshots)
            reach("after_emit")

        return emit

    def _reporting(self, key: PhaseKey) -> Callable[[int], Awaitable[None]]:
        """A function that stores the percentage of a phase, at most once in ``BETWEEN_REPORTS``."""
        loop = asyncio.get_running_loop()
        next_report = loop.time() + BETWEEN_REPORTS

        async def report(percent: int) -> None:
            nonlocal next_report
            if loop.time() < next_report:
                return
            next_report = loop.time() + BETWEEN_REPORTS
            status, percent = self._context.progress.status(key), min(max(percent, 0), 99)
            record = PhaseRecord(key, PhaseState.RUNNING, status.attempt, status.try_number, percent=percent)
            event = operation_pb2.PhaseProgress(phase=ref_of(self._context.pinned, key), percent=percent)
            await self._context.journal.write(Records((record,)), event)

        return report

    def _waiting(self, key: PhaseKey) -> Callable[[PkgerError], Awaitable[None]]:
        """A function that tells whom the operation of a phase waits for."""

        async def wait(error: PkgerError) -> None:
            until = Timestamp()
            left = seconds_left(self._context, key)
            until.FromMicroseconds(self._context.lease.store_time + round(left * 1_000_000))
            event = operation_pb2.Waiting(
                stack_name=error.metadata["stack"],
                operation_id=error.metadata["operation"],
                action_set=error.metadata.get("action_set", ""),
                phase=ref_of(self._context.pinned, key),
                until=until,
            )
            await self._context.journal.write(Records(), event)

        return wait


def _is_of_store(error: PkgerError) -> bool:
    """Whether the store does not answer. A function that may run again then waits for it, as all that writes does."""
    return isinstance(error, ServiceUnavailable) and error.metadata["service"] == "stack"


async def _after_its_operation(running: "asyncio.Future[Mapping[str, Any]]", why: FunctionError) -> Mapping[str, Any]:
    """
    The outputs of a call that was told to stop, if its operation succeeds all the same.

    Raises:
        FunctionError: It did not: *why* it was told, or that its operation is BLOCKED and it is late.
    """
    try:
        return await running
    except (FunctionError, SecretMissingError) as error:
        is_blocked = error.reason is PhaseReason.CHILD_BLOCKED
        raise (error if is_blocked and why.reason is PhaseReason.TIMEOUT else why) from error
    except LeaseLost:
        raise
    except PkgerError as error:
        if _is_of_store(error):
            # Whether its operation has ended is not known.
            raise
        raise why from error
