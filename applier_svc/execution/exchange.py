"""All that the batches of one operation share on their way to the platform."""

from dataclasses import dataclass, field

from applier_svc.execution.journal_protocol import Journal
from applier_svc.execution.outcome_lookup import OutcomeLookup
from applier_svc.execution.secrets import Secrets
from applier_svc.execution.sender import Sender
from applier_svc.execution.throttle import Budget
from applier_svc.execution.timeouts import Timeouts
from services.core.model import PlatformTraits
from services.rpc.call import loop_time


@dataclass(frozen=True, slots=True)
class Exchange:
    """
    The way of one operation to its platform, and back.

    Attributes:
        operation: Its name.
        traits: What the platform can do.
        sender: Sends.
        lookup: Finds out what became of what got no answer.
        journal: Where all of it is noted.
        secrets: What the operation was given.
        timeouts: How long it waits for what.
    """

    operation: str
    traits: PlatformTraits
    sender: Sender
    lookup: OutcomeLookup
    journal: Journal
    secrets: Secrets
    timeouts: Timeouts
    _budgets: dict[bool, Budget] = field(default_factory=dict)

    def affords(self, seconds: float, until_resolved: bool) -> bool:
        """
        Whether the operation may wait another *seconds* because the platform asks for patience.

        What is waited on the way forward leaves an undo, which *until_resolved*, all the time it may take.
        """
        whole = Budget(self.timeouts.resolution if until_resolved else self.timeouts.throttled)
        left = self._budgets.get(until_resolved, whole).after_wait(loop_time(), seconds)
        if left:
            self._budgets[until_resolved] = left
        return left is not None
