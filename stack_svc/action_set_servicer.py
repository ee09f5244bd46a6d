"""ActionSetService on the wire: it translates and delegates, each call one transaction."""

from collections.abc import AsyncIterator

from pkger.journal.v1 import action_set_pb2, action_set_pb2_grpc

from services.rpc import page_tokens
from stack_svc.messages import action_sets as messages
from stack_svc.rules import action_sets
from stack_svc.store.operations import START
from stack_svc.store.store import Store


class ActionSetServicer(action_set_pb2_grpc.ActionSetServiceServicer):
    """ActionSetService: action sets for appliers, which read and delete them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def GetActionSet(
        self, request: action_set_pb2.GetActionSetRequest, context: object
    ) -> AsyncIterator[action_set_pb2.GetActionSetResponse]:
        """Read an action set with its journal, in parts."""
        whole = await self._store.read(lambda tx: action_sets.whole(tx, request.name))
        for part in messages.whole_to_pb(whole):
            yield part

    async def ListActionSets(
        self, request: action_set_pb2.ListActionSetsRequest, context: object
    ) -> action_set_pb2.ListActionSetsResponse:
        """Read one page of action sets."""
        after, size = page_tokens.place_of(request.page_token, START), page_tokens.size_of(request.page_size, 50, 500)
        criteria = messages.filter_from_pb(request)
        listed = await self._store.read(lambda tx: tx.action_sets.page(criteria, after, size + 1))
        page, token = page_tokens.page_of(
            listed, size, messages.listed_to_pb, lambda each: (each[1].create_time, each[1].id)
        )
        return action_set_pb2.ListActionSetsResponse(action_sets=page, next_page_token=token)

    async def DeleteActionSet(
        self, request: action_set_pb2.DeleteActionSetRequest, context: object
    ) -> action_set_pb2.DeleteActionSetResponse:
        """Remove an action set with its operation."""
        await self._store.write(lambda tx: action_sets.delete(tx, request.name, request.force))
        return action_set_pb2.DeleteActionSetResponse()
