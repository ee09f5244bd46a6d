"""Reads stacks from the stack service: the record, its resources and its revisions."""

from collections.abc import Sequence

from pkger.model.v1 import object_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core.errors import RequestInvalid, RevisionNotFound, StackNotFound
from services.core.model import Target
from services.gateway.organizations import Organization, Organizations
from services.kinds.registry import KINDS
from services.rpc.client import Peer
from services.rpc.convert.objects import target_from_pb, target_to_pb
from services.rpc.paging import pages
from services.rpc.stack_records import read_stack

HISTORIES_AT_ONCE = 1000
"""Stacks whose revisions one call may list (stack.proto)."""


class StackReader:
    """Calls the stack service."""

    def __init__(self, stacks: Peer, orgs: Organizations) -> None:
        self._peer, self._orgs = stacks, orgs
        self._stub = StackServiceStub(stacks.channel)

    async def stack(self, stack_id: str) -> tuple[stack_pb2.Stack, Organization]:
        """
        A stack and its organization.

        Raises:
            StackNotFound: There is none, or its organization is not served.
            Problem: A platform does not answer, so the id of the organization is unknown.
        """
        request = stack_pb2.GetStackRequest(stack=object_pb2.StackRef(id=stack_id))
        stack = (await self._peer.call(self._stub.GetStack, request)).stack
        org = await self._orgs.of_target(target_from_pb(stack.target))
        if org is None:
            raise StackNotFound(stack_id)
        return stack, org

    async def listed(self, target: Target, ids: Sequence[str] = (), names: Sequence[str] = ()) -> list[stack_pb2.Stack]:
        """All stacks of a target, or the stacks with one of the ids or names."""
        request = stack_pb2.ListStacksRequest(target=target_to_pb(target), page_size=1000, stack_ids=ids, names=names)
        return [stack async for page in pages(self._peer, self._stub.ListStacks, request) for stack in page.stacks]

    async def record(self, stack: stack_pb2.Stack) -> tuple[stack_pb2.Stack, list[object_pb2.InventoryEntry]]:
        """
        A stack and its inventory, of one generation: a stack that changes while its inventory is read is read again.

        Args:
            stack: The stack, as it was read before.

        Raises:
            StackMoved: It changes faster than it can be read.
            StackNotFound: It was deleted.
        """
        return await read_stack(self._peer, object_pb2.StackRef(id=stack.id), stack)

    async def revisions(self, stack_ids: Sequence[str]) -> dict[str, list[stack_pb2.Revision]]:
        """The revisions of stacks by id of the stack, each the oldest first; one call lists those of many stacks."""
        histories: dict[str, list[stack_pb2.Revision]] = {stack_id: [] for stack_id in stack_ids}
        for start in range(0, len(stack_ids), HISTORIES_AT_ONCE):
            batch = stack_ids[start : start + HISTORIES_AT_ONCE]
            request = stack_pb2.ListRevisionsRequest(stack_ids=batch, page_size=500)
            async for page in pages(self._peer, self._stub.ListRevisions, request):
                for revision in page.revisions:
                    histories[revision.stack_id].append(revision)
        return {stack_id: history[::-1] for stack_id, history in histories.items()}

    async def referring(self, stack: stack_pb2.Stack) -> list[object_pb2.Object]:
        """The objects of the current package of a stack that refer to others by name; empty if it has no package."""
        request = stack_pb2.GetRevisionRequest(stack=object_pb2.StackRef(id=stack.id), number=stack.revision)
        try:
            return [
                item
                async for part in self._peer.stream(self._stub.GetRevision, request)
                for item in part.objects.objects
                if item.key.kind in KINDS and KINDS[item.key.kind].uses
            ]
        except (RevisionNotFound, RequestInvalid):
            return []
