"""Looks up the outcomes of effects without a response, once these can no longer take effect late."""

import asyncio
from collections.abc import Collection, Sequence

from tenacity import AsyncRetrying, retry_if_exception_type

from applier_svc.execution.journal_protocol import JournalWriter
from applier_svc.execution.prober import UNREADABLE, Prober
from applier_svc.execution.retries import repeated, stop_after
from applier_svc.execution.sender import Sender
from applier_svc.execution.timeouts import Timeouts
from services.core.errors import ServiceUnavailable
from services.core.model import LABEL, PlatformTraits
from services.engine.effects import AnyEffect
from services.engine.operation import Direction
from services.engine.outcome import Done, Failed, NoEffect, Outcomes, Unknown
from services.engine.step_state import StepRecord, StepState
from services.rpc.call import loop_time

_TAKEN = "it was sent without a response; the platform reports its name as taken, but lists no resource of that name"


class OutcomeLookup:
    """Looks up the outcomes of one operation on its platform, and writes them into the journal."""

    def __init__(
        self,
        prober: Prober,
        sender: Sender,
        journal: JournalWriter,
        traits: PlatformTraits,
        timeouts: Timeouts,
        claimed: float | None = None,
    ) -> None:
        """
        *claimed* is when this applier claimed the operation, by ``loop_time``; None: it began here.

        The platform has been shown the token already: if it fences, it refuses requests of other appliers.
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
        Look up the outcomes of *effects*, which were sent without a response, by reading from the platform.

        Effects with an idempotency key are skipped: resending them is safe and returns their outcome.

        Args:
            effects: The effects.
            direction: Whether these are steps or their inverses.
            taken: Numbers of creations whose name the platform reports as taken. Their outcome stays unknown unless the
                platform lists a resource of that name.

        Returns:
            The effects that certainly had no effect.

        Raises:
            PkgerError: Nothing more may be sent, or the journal cannot be written.
        """
        open_effects = [effect for effect in effects if not effect.is_resolved_by_retry(self._traits)]
        if not open_effects:
            return []
        await self.settle(until_resolved=True)
        ids = self._progress.ids
        sent = {each.number: each.sending(ids, self._progress.before_ids(each.number)) for each in open_effects}
        findings = await self._prober.probe(open_effects, sent, ids.all_resources())
        outcomes = {
            step: Unknown(_TAKEN) if isinstance(finding, NoEffect) else finding
            for step, finding in findings.items()
            if step in taken or not isinstance(finding, NoEffect)
        }
        failed = [effect for effect in open_effects if effect.number not in outcomes]
        if failed:
            await self._journal.retract([effect.number for effect in failed], direction)
        if outcomes:
            await self._journal.record(outcomes, direction)
        return failed

    async def with_live_specs(self, records: Sequence[StepRecord]) -> list[StepRecord]:
        """
        *records* of decided steps, with the live spec of each resource that the decision keeps.

        Raises:
            PkgerError: The resources cannot be read; ``UNREADABLE`` lists all exceptions.
        """
        taken = {
            record.step: (self._progress.effects[record.step].step.key.kind, record.resource_id)
            for record in records
            # Only for KEPT. The undo of a creation (DONE) expects the spec that was sent, so it does not delete a
            # resource that was edited since.
            if record.state is StepState.KEPT
            and record.resource_id
            and self._progress.effects[record.step].step.new_spec
        }
        live = await self._prober.read(sorted({*taken.values()}))
        specs = {step: current.spec.text for step, resource in taken.items() if (current := live.get(resource))}
        return [record._replace(observed=specs.get(record.step, record.observed)) for record in records]

    async def already_undone(self, inverses: Sequence[AnyEffect]) -> Outcomes:
        """
        The *inverses* that have nothing left to undo, each as done, by step number.

        Args:
            inverses: Undos that the platform rejected because a resource that they need does not exist.

        Returns:
            Inverses that are about a deleted resource, or a label on one: the effect of the step is gone with it. Empty
            if the resources cannot be read.
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

    async def settle(self, until_resolved: bool = False) -> None:
        """
        Make sure that requests without a response can no longer take effect (docs/reference/engine.md, "Driver
        answers").

        A platform that fences is shown a raised token, and refuses requests with the previous one, however late they
        arrive. On any other platform, or if it does not answer, this waits: no request takes effect later than
        ``Timeouts.settle``.

        Args:
            until_resolved: Whether a platform that does not answer is shown the token for ``Timeouts.resolution``, as
                before lookups and undos; else for ``Timeouts.settle``. Both count from the last write.

        Raises:
            PkgerError: Nothing more may be sent, or the journal cannot be written.
        """
        claimed = None if self._sender.fences else self._claimed
        times = [time for time in (self._sender.unanswered, claimed) if time is not None]
        if not times:
            return
        await self._journal.flush()
        last = max(times)
        until = last + (self._timeouts.resolution if until_resolved else self._timeouts.settle)
        if self._sender.fences and await self._is_fenced(until):
            return
        await asyncio.sleep(last + self._timeouts.settle - loop_time())

    async def _is_fenced(self, until: float) -> bool:
        """Whether the platform refuses the unanswered requests; show it the token until *until*, at least once."""
        unanswered = self._sender.unanswered_token
        # Batches that lose their responses at the same time raise the token once.
        async with self._turn:
            if self._sender.shown_token > unanswered:
                return self._sender.fences
            retrying = AsyncRetrying(
                retry=retry_if_exception_type(ServiceUnavailable),
                wait=self._timeouts.between_attempts,
                stop=stop_after(until - loop_time()),
                reraise=True,
            )
            try:
                if not self._sender.shown_token:
                    # Only the response to a second token shows whether the platform remembers tokens.
                    await repeated(retrying, self._sender.show_token)
                await self._sender.raise_token()
                await repeated(retrying, self._sender.show_token)
            except ServiceUnavailable:
                return False
            return self._sender.fences

    async def secret_keys(self) -> frozenset[str] | Failed:
        """Keys of the secrets that the platform holds, or the failure of a step that depends on them."""
        return await self._prober.secret_keys_before()

    @property
    def may_be_late(self) -> bool:
        """Whether a request may take effect late, that is after the operation stopped waiting for it."""
        had_unanswered = self._claimed is not None or self._sender.unanswered is not None
        return had_unanswered and not self._sender.fences
