"""Stacks, as stored."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from services.core.model import StackRecord, Target


class State(StrEnum):
    """
    Whether a stack is visible to all clients.

    PENDING is the stack of a first apply that has not ended. It is found by its id only. When its applier died before
    it sent anything, another operation or stack may take its name. STACKLESS is a row that only carries the lease of an
    operation without a stack; it is removed with the operation.
    """

    PENDING = "PENDING"
    ACTIVE = "ACTIVE"
    STACKLESS = "STACKLESS"


@dataclass(frozen=True, slots=True)
class StackName:
    """A stack by target and name."""

    target: Target
    name: str


Choice = str | StackName
"""How a caller names a stack: by id, or by target and name."""

StackPlace = tuple[str, str]
"""Name and id of the last stack of a page."""

START: StackPlace = ("", "")
"""Before every stack: ids are never empty."""


class StackFilter(NamedTuple):
    """
    A filter on the stacks that a list returns: the stacks of *target* that *ids*, *names* or *glob* choose.

    Without ids, names and a pattern, all stacks of the target are listed.

    Attributes:
        target: Their target; None for all.
        ids: Chooses stacks by id.
        names: Chooses stacks by name; the empty name chooses all stacks without a name.
        glob: Chooses stacks whose name matches: ``*`` stands for any characters, ``?`` for any single one.
    """

    target: Target | None = None
    ids: Collection[str] = ()
    names: Collection[str] = ()
    glob: str = ""


@dataclass(frozen=True, slots=True)
class Stack:
    """
    A stack as it is stored.

    Attributes:
        record: The header of its record, from which plans are made; without the inventory.
        description: Free text.
        state: Whether it is visible to all clients.
        create_time: In microseconds since 1970, as is ``update_time``.
        update_time: Time of the last change of its record; never before ``create_time``.
        resource_count: Number of resources that it owns.
        package_count: Number of its installed packages.
        version: Counts the changes of name, description and URLs.
    """

    record: StackRecord
    description: str
    state: State
    create_time: int
    update_time: int
    resource_count: int = 0
    package_count: int = 0
    version: int = 1

    @property
    def called(self) -> str:
        """Its name for messages; its id when it has none."""
        return self.record.name or self.record.id

    @property
    def is_pending(self) -> bool:
        """Whether it is removed unless its operation succeeds."""
        return self.state is State.PENDING


class StacksReading(Protocol):
    """Read access to stacks."""

    def find(self, choice: Choice) -> Stack | None:
        """Read a stack in any state."""

    def page(self, criteria: StackFilter, after: StackPlace, most: int) -> list[Stack]:
        """Read at most *most* of the active stacks that match *criteria* and follow *after*, sorted by name and id."""


class Stacks(StacksReading, Protocol):
    """Read and write access to stacks."""

    def insert(self, stack: Stack) -> bool:
        """Add an empty stack with an expired lease, and lock it; False: the name or the id is taken."""

    def edit(self, stack: Stack) -> bool:
        """Write name, description, URLs, version and update time of an existing stack; False: the name is taken."""

    def update(self, stack: Stack) -> None:
        """Write the other changing fields of an existing stack, such as state, generation, sources and times."""

    def delete(self, stack: str) -> None:
        """Remove a stack with its lease and its inventory."""
