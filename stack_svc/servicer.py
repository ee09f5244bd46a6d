"""All services of the stack service over one store."""

from functools import partial

from pkger.journal.v1 import action_set_pb2_grpc, journal_pb2_grpc
from pkger.stack.v1 import definition_pb2_grpc, repository_pb2_grpc, snapshot_pb2_grpc, stack_pb2_grpc

from services.rpc.call import MESSAGE_LIMIT
from services.rpc.server import Register
from services.system import Ids
from stack_svc.action_set_servicer import ActionSetServicer
from stack_svc.definition_servicer import DefinitionServicer
from stack_svc.journal_servicer import JournalServicer
from stack_svc.notify import NotifyingStore, Watchers
from stack_svc.repository_servicer import RepositoryServicer
from stack_svc.snapshot_servicer import SnapshotServicer
from stack_svc.stack_servicer import StackServicer
from stack_svc.store.store import Store

SERVICES = (
    "pkger.stack.v1.StackService",
    "pkger.stack.v1.RepositoryService",
    "pkger.stack.v1.DefinitionService",
    "pkger.stack.v1.SnapshotService",
    "pkger.journal.v1.JournalService",
    "pkger.journal.v1.ActionSetService",
)
"""Full names, for health and reflection."""


def registrations(
    store: Store,
    ids: Ids,
    limit: int = MESSAGE_LIMIT,
    allow_jsonnet: bool = False,
    watchers: Watchers | None = None,
) -> list[Register]:
    """
    All services over one store, for ``serving``.

    Args:
        store: The store.
        ids: Draws ids of stacks.
        limit: Largest message, in bytes, between the services.
        allow_jsonnet: Whether URLs of Jsonnet programs are accepted, as the parser evaluates them.
        watchers: The watchers of stacks; None: a new, empty set.
    """
    watchers = watchers or Watchers()
    notifying_store = NotifyingStore(store, watchers)
    return [
        partial(
            stack_pb2_grpc.add_StackServiceServicer_to_server,
            StackServicer(notifying_store, ids, allow_jsonnet, watchers),
        ),
        partial(repository_pb2_grpc.add_RepositoryServiceServicer_to_server, RepositoryServicer(store)),
        partial(definition_pb2_grpc.add_DefinitionServiceServicer_to_server, DefinitionServicer(store)),
        partial(snapshot_pb2_grpc.add_SnapshotServiceServicer_to_server, SnapshotServicer(store)),
        partial(journal_pb2_grpc.add_JournalServiceServicer_to_server, JournalServicer(notifying_store, ids, limit)),
        partial(action_set_pb2_grpc.add_ActionSetServiceServicer_to_server, ActionSetServicer(notifying_store)),
    ]
