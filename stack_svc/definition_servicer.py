"""DefinitionService on the wire: it translates and delegates, each call one transaction."""

import asyncio

from pkger.stack.v1 import definition_pb2, definition_pb2_grpc

from services.rpc import page_tokens
from services.rpc.request_digest import content_digest
from stack_svc.messages import definitions as messages
from stack_svc.rules import definitions
from stack_svc.rules.requests import RequestId
from stack_svc.store.definitions import START
from stack_svc.store.store import Store


class DefinitionServicer(definition_pb2_grpc.DefinitionServiceServicer):
    """DefinitionService: the definitions that action sets are made from."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def PutDefinitions(
        self, request: definition_pb2.PutDefinitionsRequest, context: object
    ) -> definition_pb2.PutDefinitionsResponse:
        """Store definitions."""
        # In a thread, so that leases are renewed while large definitions are validated.
        changes = await asyncio.to_thread(messages.changes_from_pb, request)
        key = RequestId(request.request_id, [content_digest(request)])
        stored = await self._store.write(lambda tx: definitions.put(tx, changes, key))
        return definition_pb2.PutDefinitionsResponse(definitions=map(messages.listed_to_pb, stored))

    async def GetDefinition(
        self, request: definition_pb2.GetDefinitionRequest, context: object
    ) -> definition_pb2.GetDefinitionResponse:
        """Read a definition."""
        stored = await self._store.read(lambda tx: definitions.existing(tx, request.kind, request.name))
        return definition_pb2.GetDefinitionResponse(definition=messages.definition_to_pb(stored))

    async def ListDefinitions(
        self, request: definition_pb2.ListDefinitionsRequest, context: object
    ) -> definition_pb2.ListDefinitionsResponse:
        """Read one page of definitions."""
        after, size = page_tokens.place_of(request.page_token, START), page_tokens.size_of(request.page_size, 100, 1000)
        listed = await self._store.read(lambda tx: tx.definitions.page(request.kind, after, size + 1))
        page, token = page_tokens.page_of(listed, size, messages.definition_to_pb, lambda each: (each.kind, each.name))
        return definition_pb2.ListDefinitionsResponse(definitions=page, next_page_token=token)

    async def DeleteDefinition(
        self, request: definition_pb2.DeleteDefinitionRequest, context: object
    ) -> definition_pb2.DeleteDefinitionResponse:
        """Remove a definition."""
        await self._store.write(lambda tx: definitions.delete(tx, request.kind, request.name, request.etag))
        return definition_pb2.DeleteDefinitionResponse()
