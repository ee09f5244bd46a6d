"""The driver contract: one platform in terms of Python values, without proto messages and without gRPC."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from services.core.check import PlatformCheck
from services.core.model import Organization, PlatformTraits, Spec
from services.drivers.mutation import Create, Fence, Mutation, Rejected, ResourceId, Result, StoredResource, Update
from services.platforms import Platform
from services.system import Clock, Ids


class Driver(Protocol):
    """
    Reads and changes the resources of one platform, whole kinds and whole batches at a time.

    A driver never guesses. A write whose effect it cannot confirm is ``Ambiguous``; a resource that it cannot read is
    an error, never absent. ``docs/drivers.md`` states the whole contract. A driver raises the errors of
    ``services.core.errors``, such as ``ServiceUnavailable`` for a platform that does not answer. Any other exception
    is a defect of the driver.

    ``services.drivers.servicer`` serves the driver, and refuses requests that are invalid in every state of the
    platform. So a driver receives only kinds of its traits, readable specs without credentials, labels on kinds that
    can have labels, and secrets only if it holds secrets.
    """

    async def describe(self) -> PlatformTraits:
        """
        Return what the platform can do; ``platform`` in it is the type of platform, such as "embedded".

        Called with every request, so a driver that has to ask the platform caches the answer.
        """

    async def list_resources(self, org: str, kinds: Sequence[str]) -> Iterable[StoredResource]:
        """List all resources of *kinds*, in any order; the number of calls must not grow with their number."""

    async def read_resources(self, org: str, ids: Sequence[ResourceId]) -> Sequence[StoredResource | None]:
        """Read the resource of each id, in order; None only if there is certainly no resource of that kind and id."""

    async def prepare_specs(self, org: str, writes: Sequence[Create | Update]) -> Sequence[Spec | Rejected]:
        """
        Return for each write, in order, how the platform would hold its spec, or why it would never accept it.

        Nothing is written. Only content is checked, by the same rule by which ``mutate`` refuses content. A reference
        without id is to a resource that is not yet created. A driver that stores specs unchanged returns each spec. If
        an update also changes what specs do not have, its spec is a ``ResettingSpec``.
        """

    async def secret_keys(self, org: str) -> Iterable[str]:
        """List the keys of all secrets, in any order; not called on a platform that holds none."""

    async def orgs(self) -> Sequence[Organization]:
        """List the organizations of the platform; if it accepts any name as one, those that hold data."""

    async def check(self, org: str) -> PlatformCheck:
        """
        Check the platform without writing: does it answer, accept the credential of the driver, and grant it rights.

        Every problem is a finding, not an error. *org* is the organization whose rights are checked, as far as that is
        possible; empty: no rights are checked.
        """

    async def mutate(self, org: str, fence: Fence | None, batch: Sequence[Mutation]) -> Sequence[Result]:
        """
        Perform a batch, whose items are independent of each other.

        Args:
            org: Organization on the platform.
            fence: The right to write; None for writes on behalf of no stack. A platform without fencing ignores it.
            batch: At most ``max_batch_size`` mutations.

        Returns:
            One result for each item, in order; the ``Done`` of a create or an update has the resource.

        Raises:
            TokenStale: A newer token was seen in the scope of the fence; nothing was written.
        """

    async def show_token(self, fence: Fence) -> Fence | None:
        """
        Refuse every token older than *fence* in its scope from now on; not called on a platform without fencing.

        Returns:
            The highest token that the platform has seen in the scope and that is lower than the token of *fence*, with
            its operation. A repeated call returns the same. None: there is none.

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

        *data* is the folder for its own files, *ids* draws random values, *clock* is the time of day.

        The platform need not answer yet: ``pkger up`` starts the driver in either case.

        Raises:
            OptionsInvalid: The driver does not accept the options of the platform.
            OSError: A file cannot be opened.
        """


class PlaceOf(Protocol):
    """
    The optional function ``place_of`` of a module in ``registry.DRIVERS``.

    If a module has it, two rows with the same place are refused. Otherwise any two rows of the driver are served.
    """

    def __call__(self, platform: Platform, data: Path) -> str:
        """
        The place where *platform* keeps its data: equal text for the same place. Arguments as for ``OpenDriver``.

        Raises:
            OptionsInvalid: The driver does not accept the options of the platform.
        """
