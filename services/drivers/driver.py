"""What a driver is: one platform behind values of Python, without messages and without gRPC."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from services.core.check import PlatformCheck
from services.core.model import Organization, PlatformTraits, Spec
from services.drivers.mutation import Create, Fence, Mutation, Rejected, ResourceId, Result, StoredResource, Update
from services.machine import Clock, Ids
from services.platforms import Platform


class Driver(Protocol):
    """
    Reads and changes the resources of one platform, whole kinds and whole batches at a time.

    A driver never guesses: a write that it cannot vouch for is ``Ambiguous``, and a resource that it cannot read is an
    error, never absent. ``docs/drivers.md`` says what it promises. Errors are those of ``services.core.errors``, such
    as ``ServiceUnavailable`` for a platform that does not answer; any other exception is a defect of the driver.

    ``services.drivers.servicer`` serves it, and refuses what no state of the platform could make right. So a driver
    gets only kinds of its traits, specs that can be read and hold no credentials, labels for what takes labels, and
    secrets if it holds secrets.
    """

    async def describe(self) -> PlatformTraits:
        """
        Say what the platform can do; its ``platform`` is the sort of platform, such as "embedded".

        Called with every request, so a driver that has to ask the platform remembers the answer.
        """

    async def list_resources(self, org: str, kinds: Sequence[str]) -> Iterable[StoredResource]:
        """List all resources of *kinds*, in any order; the number of calls must not grow with that of resources."""

    async def read_resources(self, org: str, ids: Sequence[ResourceId]) -> Sequence[StoredResource | None]:
        """Read the resource of each id, in order; None where there certainly is none of that kind and id."""

    async def prepare_specs(self, org: str, wanted: Sequence[Create | Update]) -> Sequence[Spec | Rejected]:
        """
        Say of each write, in order, how the platform would hold its spec, or why it never would; nothing is written.

        Only content is looked at, by the rule that ``mutate`` refuses content by. A reference without id is to a
        resource that is still to be created. A driver that holds what it is sent gives each spec back.
        """

    async def secret_keys(self, org: str) -> Iterable[str]:
        """List the keys of all secrets, in any order; not called on a platform that holds none."""

    async def orgs(self) -> Sequence[Organization]:
        """The organisations of the platform; where anybody may name one, those that hold something."""

    async def check(self, org: str) -> PlatformCheck:
        """
        Look at the platform without writing: does it answer, know the credential of the driver, and let it work.

        Whatever is wrong is a finding, not an error. *org*: where rights are looked at, as far as they can be told;
        empty: nowhere.
        """

    async def mutate(self, org: str, fence: Fence | None, batch: Sequence[Mutation]) -> Sequence[Result]:
        """
        Carry out a batch, whose items are independent of each other.

        Args:
            org: Organisation on the platform.
            fence: The right to write; None for writes on behalf of no stack. A platform that does not fence ignores it.
            batch: At most ``max_batch_size`` mutations.

        Returns:
            One result for each item, in order; ``Done`` of a create and of an update has the resource.

        Raises:
            TokenStale: A newer token was seen in the scope of the fence; nothing was written.
        """

    async def show_token(self, fence: Fence) -> Fence | None:
        """
        Refuse everything older than *fence* in its scope from now on; not called on a platform that does not fence.

        Returns:
            The highest token lower than that of *fence* that the platform has seen in the scope, with its operation;
            the same when it is shown again. None: there is none.

        Raises:
            TokenStale: A newer token was seen in the scope.
        """

    async def close(self) -> None:
        """Close files and connections."""


class OpenDriver(Protocol):
    """The function ``open_driver`` that each module in ``registry.DRIVERS`` has."""

    async def __call__(self, platform: Platform, data: Path, ids: Ids, clock: Clock) -> Driver:
        """
        Open the driver of *platform*.

        *data* is the folder for files of its own, *ids* draws what is random, *clock* tells the time of day.

        The platform need not answer yet: ``pkger up`` starts the driver whether it does or not.

        Raises:
            OptionsInvalid: The driver cannot take the options of the platform.
            OSError: A file cannot be opened.
        """


class PlaceOf(Protocol):
    """
    The function ``place_of`` that such a module may have.

    With it, two rows of the driver that mean one place are refused. Without it, any two rows of the driver are served.
    """

    def __call__(self, platform: Platform, data: Path) -> str:
        """
        The place at which *platform* keeps its data, the same text for the same place; arguments as of ``OpenDriver``.

        Raises:
            OptionsInvalid: The driver cannot take the options of the platform.
        """
