"""Shared resources of a stack: the owners of resources that it uses, and the users of resources that it owns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pkger.model.v1 import object_pb2
from pkger.stack.v1 import stack_pb2

from services.core.model import ResourceKey
from services.rpc.client import Peer
from services.rpc.convert.objects import target_from_pb
from services.rpc.stack_records import find_holders


@dataclass(frozen=True, slots=True)
class ResourceHolders:
    """
    Other stacks that own or use the resources of one stack.

    Attributes:
        owners: The owner of each resource that the stack uses.
        users: The other users of each resource of the stack, the oldest first.
    """

    owners: Mapping[ResourceKey, stack_pb2.ResourceHolder]
    users: Mapping[ResourceKey, Sequence[stack_pb2.ResourceHolder]]

    def text(self, entry: object_pb2.InventoryEntry) -> str:
        """Owner and other users of the resource of *entry*, as text; empty for a resource that is not shared."""
        resource = entry.key.kind, entry.resource_id
        owner = [f"owned by {_called(self.owners[resource])}"] if resource in self.owners else []
        users = ", ".join(dict.fromkeys(map(_called, self.users.get(resource, ()))))
        return "; ".join([*owner, *([f"used by {users}"] if users else [])])


NO_HOLDERS = ResourceHolders({}, {})
"""The value of a stack that shares nothing."""


async def holders_of(
    peer: Peer, stack: stack_pb2.Stack, resources: Sequence[object_pb2.InventoryEntry]
) -> ResourceHolders:
    """
    Ask the stack service which stacks own or use the *resources* of *stack*.

    Raises:
        PkgerError: The call fails.
    """
    keys = [(entry.key.kind, entry.resource_id) for entry in resources]
    owners, users = await find_holders(peer, target_from_pb(stack.target), keys)
    others = {key: [each for each in holders if each.stack_id != stack.id] for key, holders in users.items()}
    return ResourceHolders({key: owner for key, owner in owners.items() if owner.stack_id != stack.id}, others)


def _called(holder: stack_pb2.ResourceHolder) -> str:
    return holder.stack_name or holder.stack_id
