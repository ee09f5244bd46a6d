"""Reads the facts of an export: the record of a stack, live resources, and the names that stacks have for them."""

from collections.abc import Collection, Mapping, Sequence

from pkger.model.v1 import object_pb2
from pkger.stack.v1 import stack_pb2

from planner_svc.export.naming import Recorded
from planner_svc.stored_package import read_revision
from services.core.check import PlatformCheck
from services.core.errors import ServiceUnavailable
from services.core.model import PlatformTraits, Resource, ResourceKey, StackRecord, Target
from services.rpc.client import Peer, Platforms
from services.rpc.convert.objects import stack_from_pb
from services.rpc.resources import check_platform, live_resources, platform_traits
from services.rpc.stack_records import find_holders, read_stack


class ExportReader:
    """Asks the stack service and the driver; every failure is an error, never "there is none"."""

    def __init__(self, stack: Peer, platforms: Platforms) -> None:
        self._stack = stack
        self._platforms = platforms

    async def stack(self, stack: object_pb2.StackRef) -> tuple[stack_pb2.Stack, StackRecord]:
        """
        A stack and its record.

        Raises:
            StackNotFound: There is no such stack.
            RequestInvalid: The reference names no stack, or is ambiguous.
        """
        header, entries = await read_stack(self._stack, stack)
        return header, stack_from_pb(header, entries)

    async def lifecycle(self, stack: StackRecord) -> str:
        """
        The Lifecycle document of the current revision of a stack without packages, as canonical JSON; empty: none.

        Raises:
            RevisionNotFound: The stack has changed, and does not retain this revision.
        """
        if not stack.package_digest:
            return ""
        revision = await read_revision(self._stack, object_pb2.StackRef(id=stack.id), stack.revision)
        return revision.lifecycles.get("", "")

    async def traits(self, target: Target) -> PlatformTraits:
        """
        The traits of the platform of *target*.

        Raises:
            PlatformUnknown: No such platform is configured.
        """
        return await platform_traits(self._platforms.driver(target.platform))

    async def live(
        self, target: Target, kinds: Sequence[str], resource_keys: Collection[ResourceKey], platform: PlatformTraits
    ) -> list[Resource]:
        """
        All resources of *kinds*, and the resources of *resource_keys* whose kind is another one with a costly listing.

        A resource whose spec cannot be read is included: the export leaves it out with a warning.
        """
        driver = self._platforms.driver(target.platform)
        return await live_resources(driver, target.org, kinds, resource_keys, platform, is_lenient=True)

    async def check(self, target: Target) -> PlatformCheck | None:
        """The check of the platform of *target* in its organization; None: its driver has no check."""
        return await check_platform(self._platforms.driver(target.platform), target.org)

    def unreadable(self, target: Target, problem: str) -> ServiceUnavailable:
        """The error for a platform that does not let its driver read *target*."""
        driver = self._platforms.driver(target.platform)
        return ServiceUnavailable(driver.name, driver.address, problem, driver.platform, answered=True)

    async def names(self, target: Target, resources: Collection[ResourceKey]) -> dict[ResourceKey, list[Recorded]]:
        """The names that stacks have recorded for *resources*; one call, and no call without resources."""
        owners, users = await find_holders(self._stack, target, resources)
        names: dict[ResourceKey, list[Recorded]] = {}
        for key, owner in owners.items():
            names.setdefault(key, []).extend(_recorded(owner, 0))
        for key, resource_users in users.items():
            names.setdefault(key, []).extend(each for user in resource_users for each in _recorded(user, 1))
        return names


def _recorded(holder: stack_pb2.ResourceHolder, precedence: int) -> list[Recorded]:
    """The name that a stack has for a resource; none while an operation only claims it."""
    if holder.operation_id or not holder.key.name:
        return []
    return [Recorded(precedence, holder.since.ToNanoseconds(), holder.stack_id, holder.key.name)]


def own_names(stack: StackRecord) -> Mapping[ResourceKey, str]:
    """The names that *stack* has for its resources."""
    entries = [entry for entry in stack.resources if not entry.is_pending_delete]
    return {(entry.key.kind, entry.resource_id): entry.key.name for entry in entries}
