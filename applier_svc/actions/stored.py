"""Reads action sets from the store."""

from pkger.journal.v1 import action_set_pb2
from pkger.journal.v1.action_set_pb2_grpc import ActionSetServiceStub

from services.rpc.client import Peer


async def read_action_set(store: Peer, name: str) -> action_set_pb2.GetActionSetResponse:
    """
    Read an action set with its journal.

    Raises:
        ActionSetNotFound: There is none of that name.
    """
    whole = action_set_pb2.GetActionSetResponse()
    request = action_set_pb2.GetActionSetRequest(name=name)
    async for part in store.stream(ActionSetServiceStub(store.channel).GetActionSet, request):
        whole.MergeFrom(part)
    return whole
