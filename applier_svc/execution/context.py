"""Everything that the batches of one operation share."""

from dataclasses import dataclass, field

from applier_svc.execution.journal_protocol import JournalWriter
from applier_svc.execution.outcome_lookup import OutcomeLookup
from applier_svc.execution.secrets import Secrets
from applier_svc.execution.sender import Sender
from applier_svc.execution.throttle import Budget
from applier_svc.execution.timeouts import Timeouts
from services.core.model import PlatformTraits
from services.rpc.call import loop_time


@dataclass(frozen=True, slots=True)
class ExecutionContext:
    """
    The connection of one operation to its platform and its journal.

    Attributes:
        operation: Id of the operation.
        traits: The traits of the platform.
        sender: Sends batches.
        lookup: Looks up unknown outcomes.
        journal: The journal of the operation.
        secrets: The secrets of the operation.
        timeouts: The timeouts.
    """

    operation: str
    traits: PlatformTraits
    sender: Sender
    lookup: OutcomeLookup
    journal: JournalWriter
    secrets: Secrets
    timeouts: Timeouts
    _budgets: dict[bool, Budget] = field(default_factory=dict)

    def affords(self, seconds: float, until_resolved: bool) -> bool:
        """
        Whether the operation may wait another *seconds* because the platform throttles it.

        Effects that are sent *until_resolved*, such as undos, have a budget of their own.
        """
        whole = Budget(self.timeouts.resolution if until_resolved else self.timeouts.throttled)
        left = self._budgets.get(until_resolved, whole).after_wait(loop_time(), seconds)
        if left:
            self._budgets[until_resolved] = left
        return left is not None
