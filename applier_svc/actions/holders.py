"""Who has the stacks of which action sets of this applier wait: of those that wait for the same, one asks the store."""

from collections.abc import Callable

Wake = Callable[[], None]
"""Lets an action set look again at what it may do."""


class Holders:
    """
    The operations that have stacks of which action sets of one applier wait.

    An operation has its stacks until it ends, so one answer of the store is enough for all that wait for it. They get
    the stacks in the order in which they came; those of other appliers may come between.
    """

    def __init__(self) -> None:
        self._queues: dict[str, list[Wake]] = {}

    def is_first(self, operation: str, wake: Wake) -> bool:
        """Whether an action set is the first of those that wait for *operation*: it asks the store for all of them."""
        return self._queues.get(operation, [wake])[0] == wake

    def join(self, operation: str, wake: Wake) -> None:
        """Wait for *operation*, behind those that do already; *wake* is called once this is the first of them."""
        self._queues.setdefault(operation, []).append(wake)

    def leave(self, operation: str, wake: Wake) -> None:
        """Wait for *operation* no more, if this did."""
        queue = self._queues.get(operation, [])
        if wake not in queue:
            return
        was_first = queue[0] == wake
        queue.remove(wake)
        if not queue:
            del self._queues[operation]
        elif was_first:
            queue[0]()
