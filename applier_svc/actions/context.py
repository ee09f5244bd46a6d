"""What one run of an action set works with."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from applier_svc.actions.call import FunctionTable, Operations, Services
from applier_svc.actions.holders import Holders
from applier_svc.actions.journal import ActionJournal
from applier_svc.actions.phase_names import phase_of
from applier_svc.actions.secrets import ActionSecrets
from applier_svc.operation.lease import Lease
from services.actions.folding import ActionSetProgress, PhaseKey
from services.actions.pinned import PinnedActionSet
from services.actions.signatures import Recovery
from services.system import Clock


@dataclass(frozen=True, slots=True)
class Told:
    """
    What running phases are told.

    Attributes:
        stops: Set when the action set stops: no attempt follows.
        ends: Set when running phases are to end, too: it was cancelled, or is late.
    """

    stops: asyncio.Event = field(default_factory=asyncio.Event)
    ends: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class RunContext:
    """
    What one run of an action set works with.

    Attributes:
        pinned: The action set.
        operation: Id of its operation.
        author: Its author.
        lease: The lease of its operation.
        journal: Its journal.
        secrets: Its secrets.
        functions: The functions of this applier.
        services: The services that functions call.
        operations: Begins operations.
        holders: The operations for which action sets of this applier wait.
        slots: Bounds the phases that run at the same time in this applier.
        clock: The time of day.
        jitter: Draws the factor, from 0 to 1, by which a wait between two attempts is multiplied.
    """

    pinned: PinnedActionSet
    operation: str
    author: str
    lease: Lease
    journal: ActionJournal
    secrets: ActionSecrets
    functions: FunctionTable
    services: Services
    operations: Operations
    holders: Holders
    slots: asyncio.Semaphore
    clock: Clock
    jitter: Callable[[], float]

    def recovery(self, key: PhaseKey) -> Recovery:
        """What happens to the call of a phase that is interrupted."""
        phase = phase_of(self.pinned, key)
        if phase.idempotent:
            return Recovery.RERUN
        function = self.functions.find(phase.function, phase.version)
        return function.signature.recovery if function else Recovery.RERUN

    @property
    def progress(self) -> ActionSetProgress:
        """The fold of its journal."""
        return self.journal.progress
