"""Reads stacks, their records, and the owners of resources from the stack service."""

from collections.abc import Collection

from pkger.model.v1 import object_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

from services.core.errors import StackMoved
from services.core.limits import MOST_ENTRIES
from services.core.model import StackRecord, Target
from services.packages.installed import InstalledPackage
from services.rpc.client import Peer
from services.rpc.convert.objects import stack_from_pb, target_to_pb
from services.rpc.convert.packages import installed_from_pb
from services.rpc.paging import pages

LISTED_AT_ONCE = 5000
"""Entries per page of a record: the maximum (stack.proto)."""

PACKAGES_AT_ONCE = 1000
"""Installed packages per page: the maximum (stack.proto)."""

RECORD_ATTEMPTS = 5
"""How often a record is read again because it changes while it is read."""


async def find_owners(
    stack: Peer, target: Target, resources: Collection[tuple[str, str]]
) -> dict[tuple[str, str], stack_pb2.ResourceHolder]:
    """
    The owners of *resources*, both identified by kind and id; one call for each ``MOST_ENTRIES`` of them.

    Raises:
        PkgerError: The call failed.
    """
    owners, _ = await find_holders(stack, target, resources)
    return owners


async def find_holders(
    stack: Peer, target: Target, resources: Collection[tuple[str, str]]
) -> tuple[dict[tuple[str, str], stack_pb2.ResourceHolder], dict[tuple[str, str], list[stack_pb2.ResourceHolder]]]:
    """
    The owners and the users of *resources*, the oldest user first; otherwise as ``find_owners``.

    Raises:
        PkgerError: The call failed.
    """
    owners: dict[tuple[str, str], stack_pb2.ResourceHolder] = {}
    users: dict[tuple[str, str], list[stack_pb2.ResourceHolder]] = {}
    refs = [object_pb2.ResourceId(kind=kind, id=id_) for kind, id_ in resources]
    for start in range(0, len(refs), MOST_ENTRIES):
        some = refs[start : start + MOST_ENTRIES]
        request = stack_pb2.FindOwnersRequest(target=target_to_pb(target), resources=some)
        answer = await stack.call(StackServiceStub(stack.channel).FindOwners, request)
        owners |= {(owner.resource.kind, owner.resource.id): owner for owner in answer.owners}
        for user in answer.users:
            users.setdefault((user.resource.kind, user.resource.id), []).append(user)
    return owners, users


async def read_header(stack: Peer, ref: object_pb2.StackRef) -> stack_pb2.Stack:
    """
    Read a stack without its inventory.

    Args:
        stack: The stack service.
        ref: The stack.

    Raises:
        StackNotFound: There is none.
        PkgerError: The call failed.
    """
    request = stack_pb2.GetStackRequest(stack=ref)
    return (await stack.call(StackServiceStub(stack.channel).GetStack, request)).stack


async def read_stack(
    stack: Peer, ref: object_pb2.StackRef, latest: stack_pb2.Stack | None = None
) -> tuple[stack_pb2.Stack, list[object_pb2.InventoryEntry]]:
    """
    Read a stack and its inventory, of one generation.

    Args:
        stack: The stack service.
        ref: The stack.
        latest: The stack as it was just read; None: it was not.

    Raises:
        StackNotFound: There is none.
        StackMoved: It changed during each attempt.
        PkgerError: The call failed.
    """
    headers = [latest] if latest else []

    async def read() -> tuple[stack_pb2.Stack, list[object_pb2.InventoryEntry]]:
        header = headers.pop() if headers else await read_header(stack, ref)
        listing = stack_pb2.ListResourcesRequest(stack=object_pb2.StackRef(id=header.id), page_size=LISTED_AT_ONCE)
        entries: list[object_pb2.InventoryEntry] = []
        if not header.resource_count:
            return header, entries
        async for page in pages(stack, StackServiceStub(stack.channel).ListResources, listing):
            if page.generation != header.generation:
                raise StackMoved(header.name or header.id, header.generation, page.generation)
            entries += page.resources
        return header, entries

    retrying = AsyncRetrying(
        retry=retry_if_exception_type(StackMoved), stop=stop_after_attempt(RECORD_ATTEMPTS), reraise=True
    )
    return await retrying(read)


async def read_packages(stack: Peer, header: stack_pb2.Stack) -> list[InstalledPackage]:
    """
    Read the installed packages of a stack, by name; no call for a stack without packages.

    Args:
        stack: The stack service.
        header: The stack as it was read.

    Raises:
        StackMoved: It has changed since.
        PkgerError: The call failed.
    """
    packages: list[InstalledPackage] = []
    if not header.package_count:
        return packages
    request = stack_pb2.ListPackagesRequest(stack=object_pb2.StackRef(id=header.id), page_size=PACKAGES_AT_ONCE)
    async for page in pages(stack, StackServiceStub(stack.channel).ListPackages, request):
        if page.generation != header.generation:
            raise StackMoved(header.name or header.id, header.generation, page.generation)
        packages += map(installed_from_pb, page.packages)
    return packages


async def read_record(stack: Peer, ref: object_pb2.StackRef) -> StackRecord:
    """Read a stack as planners need it; arguments and errors as for ``read_stack``."""
    return stack_from_pb(*await read_stack(stack, ref))
