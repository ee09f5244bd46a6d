"""Stacks, as the store keeps them."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from services.core.model import StackRecord, Target


class State(StrEnum):
    """
    Whether a stack exists for everybody.

    PENDING is the stack of a first apply that is not over: only who knows its id sees it, and when its operation died
    before it sent anything, it belongs to the next who wants the name. STACKLESS is one that carries the lease of an
    operation on behalf of no stack and owns nothing; it goes away with the operation.
    """

    PENDING = "PENDING"
    ACTIVE = "ACTIVE"
    STACKLESS = "STACKLESS"


@dataclass(frozen=True, slots=True)
class Named:
    """A stack by target and name."""

    target: Target
    name: str


Choice = str | Named
"""How a caller names a stack: by id or by target and name."""

Place = tuple[str, str]
"""Name and id of the last stack of a page."""

START: Place = ("", "")
"""Before every stack: ids are never empty."""


class Filter(NamedTuple):
    """
    Which stacks are listed: of those of a target, the ones that ids, names or a pattern choose; without these, all.

    Attributes:
        target: Only those of this target; None for all.
        ids: Those with one of these ids.
        names: Those with one of these names; the empty one is that of all stacks without a name.
        glob: Those with a name like this: ``*`` stands for any characters, ``?`` for any single one.
    """

    target: Target | None = None
    ids: Collection[str] = ()
    names: Collection[str] = ()
    glob: str = ""


@dataclass(frozen=True, slots=True)
class Stack:
    """
    A stack as the store has it.

    Attributes:
        record: What plans are made from, without resources.
        description: Free text.
        state: Whether it exists for everybody.
        create_time: In microseconds since 1970, as is ``update_time``.
        update_time: When the record last changed; never before ``create_time``.
        resource_count: Number of resources that it owns.
        version: Counts the changes of name, description and URLs.
    """

    record: StackRecord
    description: str
    state: State
    create_time: int
    update_time: int
    resource_count: int = 0
    version: int = 1

    @property
    def called(self) -> str:
        """What people call it: its name, or its id when it has none."""
        return self.record.name or self.record.id

    @property
    def is_pending(self) -> bool:
        """Whether it goes away unless its operation succeeds."""
        return self.state is State.PENDING


class StacksReading(Protocol):
    """Stacks, read."""

    def find(self, choice: Choice) -> Stack | None:
        """Read a stack in any state."""

    def page(self, wanted: Filter, after: Place, most: int) -> list[Stack]:
        """Read at most so many of the active stacks that are *wanted* and behind *after*, sorted by name and id."""


class Stacks(StacksReading, Protocol):
    """Stacks, read and written."""

    def insert(self, stack: Stack) -> bool:
        """Add an empty stack, with a lease that is over, and lock it; False: the name or the id is taken."""

    def edit(self, stack: Stack) -> bool:
        """Write name, description, URLs, version and update time of a stack that exists; False: the name is taken."""

    def update(self, stack: Stack) -> None:
        """Write state, generation, sources, times and number of resources of a stack that exists."""

    def delete(self, stack: str) -> None:
        """Remove a stack with its lease and its inventory."""
