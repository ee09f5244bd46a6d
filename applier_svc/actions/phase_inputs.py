"""What the templates of a phase can use, and how long the phase may take."""

import asyncio
from typing import NamedTuple

from applier_svc.actions.context import RunContext
from applier_svc.actions.outcomes import outputs_of
from applier_svc.actions.phase_names import phase_of
from applier_svc.actions.secrets import SecretMissingError
from applier_svc.actions.stack_refs import read_facts
from services.actions.definitions import ActionObject, Phase
from services.actions.durations import MINUTE, Milliseconds
from services.actions.folding import DEFER, Microseconds, PhaseKey
from services.actions.parameters import (
    Failure,
    StackFacts,
    artifact_uses_stack,
    in_defer_phase,
    parameters_of,
    unpassed_secrets,
    used_secrets,
    uses_stack,
)
from services.actions.phase_reason import PhaseReason
from services.actions.templates.values import Value
from services.core.errors import ServiceUnavailable

DEFER_TIMEOUT: Milliseconds = 5 * MINUTE
"""How long a deferPhase may take unless it says it."""

UNTIL_STORE_ANSWERS = 1.0
"""Seconds between two attempts of what needs the store, while the store does not answer and the lease lasts."""

UNKNOWN_TIMEOUT: Milliseconds = 10 * MINUTE
"""How long a phase may take whose function this applier does not have."""


async def read_parameters(
    context: RunContext, key: PhaseKey, phase: Phase, is_condition: bool = False, may_be_lost: bool = False
) -> dict[str, Value]:
    """
    Read the parameters of the templates of a phase.

    Args:
        context: What the action set works with.
        key: The phase.
        phase: The phase.
        is_condition: Whether they are for its condition, which has no secrets.
        may_be_lost: Whether secrets that were lost with their applier are no error.

    Raises:
        SecretMissingError: A secret that it uses is not there.
        PkgerError: Its stack cannot be read.
    """
    action = context.pinned.actions[key.action]
    outputs = outputs_of(context.pinned, context.progress, key.action)
    if key.place != DEFER:
        before = {each.name for each in action.action.phases[: key.place]}
        outputs = {name: of_phase for name, of_phase in outputs.items() if name in before}
    facts = await _stack_facts(context, action.object) if uses_stack(phase) else None
    if not is_condition and (unpassed := unpassed_secrets(phase, action)):
        raise SecretMissingError(f"secret {unpassed[0]} was not passed to the action")
    sources = {} if is_condition else used_secrets(phase, action)
    secrets = context.secrets.values(sources, may_be_lost) if sources else None
    parameters = parameters_of(context.pinned, key.action, context.operation, outputs, stack=facts, secrets=secrets)
    return in_defer_phase(parameters, _first_failure(context)) if key.place == DEFER else parameters


async def stack_of_artifacts(context: RunContext, key: PhaseKey) -> StackFacts | None:
    """The stack of the action of a phase, if a template of its output artifacts uses it, and it is there."""
    action = context.pinned.actions[key.action]
    is_used = any(map(artifact_uses_stack, action.action.output_artifacts.values()))
    return await _stack_facts(context, action.object) if is_used else None


async def _stack_facts(context: RunContext, target: ActionObject | None) -> StackFacts | None:
    """The stack of *target*, once the store answers; None: it is gone, or there is no object."""
    while True:
        try:
            return await read_facts(context.services.stack, target)
        except ServiceUnavailable:
            context.lease.check()
            await asyncio.sleep(UNTIL_STORE_ANSWERS)


def timeout_of(context: RunContext, key: PhaseKey) -> Milliseconds:
    """How long a phase may take, by itself, its place, or its function."""
    phase = phase_of(context.pinned, key)
    if phase.timeout is not None:
        return phase.timeout
    if key.place == DEFER:
        return DEFER_TIMEOUT
    function = context.functions.find(phase.function, phase.version)
    return function.signature.timeout if function else UNKNOWN_TIMEOUT


class Deadline(NamedTuple):
    """
    When a phase has to end.

    Attributes:
        seconds: How long it may go on; below 0: it is late.
        what: What has the timeout: "it", or its action.
        timeout: The timeout.
    """

    seconds: float
    what: str
    timeout: Milliseconds


def deadline_of(context: RunContext, key: PhaseKey) -> Deadline:
    """When a phase has to end: by its own timeout, from its first attempt, or by that of its action."""
    now = context.lease.store_time

    def deadline(begin: Microseconds | None, what: str, timeout: Milliseconds) -> Deadline:
        end = (now if begin is None else begin) + timeout * 1000
        return Deadline((end - now) / 1_000_000, what, timeout)

    own = deadline(context.progress.status(key).start_time, "it", timeout_of(context, key))
    of_action = context.pinned.actions[key.action].action.timeout
    if of_action is None or key.place == DEFER:
        return own
    return min(own, deadline(context.progress.start_time(key.action), "its action", of_action))


def seconds_left(context: RunContext, key: PhaseKey) -> float:
    """How long a phase may go on; below 0: it is late."""
    return deadline_of(context, key).seconds


def _first_failure(context: RunContext) -> Failure | None:
    if not context.progress.failures:
        return None
    key = context.progress.failures[0]
    status = context.progress.status(key)
    return Failure(phase_of(context.pinned, key).name, status.reason or PhaseReason.FAILED, status.message)
