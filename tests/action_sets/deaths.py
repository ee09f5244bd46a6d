"""Appliers that die, as far as one operation is concerned."""

from services.core.errors import LeaseLost


def died() -> LeaseLost:
    """What ends the work on an action set as a death does: its journal stays as it is, and its lease ends soon."""
    return LeaseLost("the applier died", 0)


class Deaths:
    """Lets an applier die at failpoints, as far as one action set is concerned."""

    def __init__(self) -> None:
        self._left: dict[str, int] = {}
        self.count = 0

    def at(self, name: str, count: int = 1) -> None:
        """Die at the failpoint *name*, as often as *count* says."""
        self._left[name] = count

    def __call__(self, name: str) -> None:
        if self._left.get(name, 0) > 0:
            self._left[name] -= 1
            self.count += 1
            raise died()
