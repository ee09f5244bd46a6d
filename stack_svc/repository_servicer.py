"""RepositoryService on the wire: it translates and delegates, each call one transaction."""

from pkger.stack.v1 import repository_pb2, repository_pb2_grpc

from services.rpc import page_tokens
from services.rpc.request_digest import content_digest
from stack_svc.messages import repositories as messages
from stack_svc.rules import repositories
from stack_svc.rules.repository_addresses import address_warnings
from stack_svc.rules.requests import RequestId
from stack_svc.store.repositories import START
from stack_svc.store.store import Store


class RepositoryServicer(repository_pb2_grpc.RepositoryServiceServicer):
    """RepositoryService: the list of repositories."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def CreateRepository(
        self, request: repository_pb2.CreateRepositoryRequest, context: object
    ) -> repository_pb2.CreateRepositoryResponse:
        """Add a repository."""
        name, fields = repositories.checked_name(request.name), messages.fields_from_pb(request)
        key = RequestId(request.request_id, [content_digest(request)])
        repository = await self._store.write(lambda tx: repositories.create(tx, name, fields, key))
        return repository_pb2.CreateRepositoryResponse(
            repository=messages.repository_to_pb(repository), warnings=address_warnings(request.address)
        )

    async def ListRepositories(
        self, request: repository_pb2.ListRepositoriesRequest, context: object
    ) -> repository_pb2.ListRepositoriesResponse:
        """Read one page of repositories."""
        after, size = page_tokens.place_of(request.page_token, START), page_tokens.size_of(request.page_size, 100, 1000)
        listed = await self._store.read(lambda tx: tx.repositories.page(after, size + 1))
        page, token = page_tokens.page_of(listed, size, messages.repository_to_pb, lambda each: (each.name,))
        return repository_pb2.ListRepositoriesResponse(repositories=page, next_page_token=token)

    async def UpdateRepository(
        self, request: repository_pb2.UpdateRepositoryRequest, context: object
    ) -> repository_pb2.UpdateRepositoryResponse:
        """Change a repository."""
        name, changes = repositories.checked_name(request.name), messages.changes_from_pb(request)
        key = RequestId(request.request_id, [content_digest(request)])
        repository = await self._store.write(lambda tx: repositories.update(tx, name, changes, key, request.force))
        return repository_pb2.UpdateRepositoryResponse(
            repository=messages.repository_to_pb(repository), warnings=address_warnings(request.address)
        )

    async def DeleteRepository(
        self, request: repository_pb2.DeleteRepositoryRequest, context: object
    ) -> repository_pb2.DeleteRepositoryResponse:
        """Remove a repository."""
        name = repositories.checked_name(request.name)
        await self._store.write(lambda tx: repositories.delete(tx, name))
        return repository_pb2.DeleteRepositoryResponse()
