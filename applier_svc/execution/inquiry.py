"""Finds out what became of what got no answer, once it can no longer take effect; the journal knows it then."""

import asyncio
from collections.abc import Collection, Sequence

from tenacity import AsyncRetrying, retry_if_exception_type

from applier_svc.execution.noting import Journal
from applier_svc.execution.prober import UNREADABLE, Prober
from applier_svc.execution.retrying import repeated, stop_after
from applier_svc.execution.sender import Sender
from applier_svc.execution.timeouts import Timeouts
from services.core.errors import ServiceUnavailable
from services.core.model import LABEL, PlatformTraits
from services.engine.effects import AnyEffect
from services.engine.operation import Direction
from services.engine.outcome import Done, Failed, NoEffect, Outcomes, Unknown
from services.engine.step_life import StepRecord, StepState
from services.rpc.call import loop_time

_TAKEN = "it was sent and not answered; the platform says that its name is taken, and lists nothing of that name"


class Inquiry:
    """What one operation asks its platform about what it sent."""

    def __init__(
        self,
        prober: Prober,
        sender: Sender,
        journal: Journal,
        traits: PlatformTraits,
        timeouts: Timeouts,
        claimed: float | None = None,
    ) -> None:
        """
        *claimed* is when the operation was taken over, by ``loop_time``; None: it began here.

        The token of the operation was shown already: a platform that fences refuses what another applier sent.
        """
        self._prober = prober
        self._sender = sender
        self._journal = journal
        self._progress = journal.progress
        self._traits = traits
        self._timeouts = timeouts
        self._claimed = claimed
        self._turn = asyncio.Lock()

    async def look_up(
        self, effects: Sequence[AnyEffect], direction: Direction, taken: Collection[int] = ()
    ) -> list[AnyEffect]:
        """
        Find out what became of *effects*, which were sent and not answered, by reading.

        Those that the platform remembers are left alone: to send them again shows it, and has its effect once.

        Args:
            effects: What was sent.
            direction: Whether these are steps or their inverses.
            taken: Numbers of creations whose name the platform says is taken: unless it lists what has the name, nobody
                knows what became of them.

        Returns:
            Those of them that certainly did not happen.

        Raises:
            PkgerError: Nothing more may be sent or noted.
        """
        asked = [effect for effect in effects if not effect.is_resolved_by_retry(self._traits)]
        if not asked:
            return []
        await self.settle(is_stubborn=True)
        ids = self._progress.ids
        sent = {each.number: each.sending(ids, self._progress.before_ids(each.number)) for each in asked}
        findings = await self._prober.find_out(asked, sent, ids.known())
        outcomes = {
            step: Unknown(_TAKEN) if isinstance(found, NoEffect) else found
            for step, found in findings.items()
            if step in taken or not isinstance(found, NoEffect)
        }
        failed = [effect for effect in asked if effect.number not in outcomes]
        if failed:
            await self._journal.retract([effect.number for effect in failed], direction)
        if outcomes:
            await self._journal.record(outcomes, direction)
        return failed

    async def with_what_is_there(self, records: Sequence[StepRecord]) -> list[StepRecord]:
        """
        *records* of steps that somebody decided, with what the platform holds of what is taken as it is.

        Raises:
            PkgerError: It cannot be read; ``UNREADABLE`` has all there is.
        """
        taken = {
            record.step: (self._progress.effects[record.step].step.key.kind, record.resource_id)
            for record in records
            # What a creation is said to have made is to be as it was sent, or its undo deletes what somebody changed.
            if record.state is StepState.KEPT
            and record.resource_id
            and self._progress.effects[record.step].step.new_spec
        }
        live = await self._prober.read(sorted({*taken.values()}))
        held = {step: found.spec.text for step, resource in taken.items() if (found := live.get(resource))}
        return [record._replace(observed=held.get(record.step, record.observed)) for record in records]

    async def undone_by_others(self, inverses: Sequence[AnyEffect]) -> Outcomes:
        """
        Those of *inverses* that have nothing left to take back, each as done, by step number.

        Args:
            inverses: Undos that the platform refused, as something that they need is not there.

        Returns:
            Those about a resource, or a label on one, that somebody has deleted: what the step did went with it. None
            where that cannot be read.
        """
        ids = self._progress.ids
        needed = {
            each.number: [
                (each.step.key.kind, each.target(ids)),
                *([(LABEL, each.label_id(ids))] if each.links else []),
            ]
            for each in inverses
            if not (each.makes or each.removes or each.is_of_secret) and each.is_possible(ids)
        }
        try:
            there = await self._prober.read(sorted({resource for needs in needed.values() for resource in needs}))
        except UNREADABLE:
            return {}
        return {step: Done(needs[0][1]) for step, needs in needed.items() if not there.keys() >= {*needs}}

    async def settle(self, is_stubborn: bool = False) -> None:
        """
        Make sure that what was sent before and got no answer can no longer take effect (docs/reference/engine.md,
        "Driver answers").

        A platform that fences is shown a raised token, and refuses what was sent under the one before, however late it
        arrives. On any other platform, and while that one gives no answer, only time helps: nothing arrives later than
        ``Timeouts.settle``.

        Args:
            is_stubborn: Whether a platform that does not answer is shown the token again for ``Timeouts.stubborn``, as
                something is to be looked up or undone; else for ``Timeouts.settle``. Both count from the last write.

        Raises:
            PkgerError: Nothing more may be sent or noted.
        """
        claimed = None if self._traits.fences else self._claimed
        times = [time for time in (self._sender.unanswered, claimed) if time is not None]
        if not times:
            return
        last = max(times)
        until = last + (self._timeouts.stubborn if is_stubborn else self._timeouts.settle)
        if self._traits.fences and await self._is_fenced(until):
            return
        await asyncio.sleep(last + self._timeouts.settle - loop_time())

    async def _is_fenced(self, until: float) -> bool:
        """Whether the platform refuses what got no answer so far; it is shown the token until then, at least once."""
        unanswered = self._sender.unanswered_token
        # Batches that get no answer at the same time raise the token once.
        async with self._turn:
            if self._sender.shown_token > unanswered:
                return True
            await self._sender.raise_token()
            retrying = AsyncRetrying(
                retry=retry_if_exception_type(ServiceUnavailable),
                wait=self._timeouts.between_attempts,
                stop=stop_after(until - loop_time()),
                reraise=True,
            )
            try:
                await repeated(retrying, self._sender.show_token)
            except ServiceUnavailable:
                return False
            return True

    async def secret_keys(self) -> frozenset[str] | Failed:
        """Keys of the secrets that the platform holds now, or why a step that depends on them was not sent."""
        return await self._prober.secret_keys_before()

    @property
    def may_be_late(self) -> bool:
        """Whether something that was sent may take effect after nobody waits for it any more."""
        has_doubted = self._claimed is not None or self._sender.unanswered is not None
        return has_doubted and not self._traits.fences
