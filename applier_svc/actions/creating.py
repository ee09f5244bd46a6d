"""Creates action sets: resolves a request against what is stored, and starts its run."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from pkger.applier.v1 import action_pb2 as applier_action_pb2
from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from pkger.model.v1 import action_pb2, operation_pb2
from pkger.model.v1.definition_pb2 import Definition
from pkger.stack.v1 import definition_pb2, snapshot_pb2
from pkger.stack.v1.definition_pb2_grpc import DefinitionServiceStub
from pkger.stack.v1.snapshot_pb2_grpc import SnapshotServiceStub

from applier_svc.actions.call import Operations
from applier_svc.actions.run import ActionPeers, ActionSetRequest
from applier_svc.actions.stored import read_action_set
from applier_svc.actions.views import action_set_to_pb, earlier_action_set, shape_of, stored_to_pb
from applier_svc.operation.events import Feed
from applier_svc.operation.lease import AlreadyBegunError
from applier_svc.operation.requests import RequestId
from services.actions.definitions import DefinitionKind
from services.actions.folding import ActionSetProgress
from services.actions.pinned import PinnedActionSet, input_snapshots
from services.actions.resolving import (
    EarlierActionSet,
    RunRequest,
    StoredDefinitions,
    artifact_of,
    check_secrets,
    needed_definitions,
    read_request,
    resolve,
)
from services.core.errors import ArtifactGone, DefinitionNotFound, RequestInvalid
from services.core.model import Violation
from services.kinds.format.canonical import plain
from services.rpc.convert.objects import violation_to_pb
from services.rpc.request_digest import content_digest
from services.syntax.json_reader import read_value
from services.system import Ids

_SUFFIX_BYTES = 5
"""Random bytes of which the end of a name is made; each gives one character."""

_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Starting(Operations, Protocol):
    """Starts action sets, and begins operations."""

    def start_action_set(self, request: ActionSetRequest) -> Feed:
        """Start an action set, and return its feed."""


class ActionSetCreator:
    """Creates action sets."""

    def __init__(self, operations: Starting, peers: ActionPeers, ids: Ids) -> None:
        """*ids* draws the ends of names that the service makes."""
        self._operations = operations
        self._peers = peers
        self._signatures = peers.functions.signatures
        self._store = peers.services.stack
        self._ids = ids

    async def create(
        self, request: applier_action_pb2.CreateActionSetRequest
    ) -> applier_action_pb2.CreateActionSetResponse:
        """
        Resolve a request, and run it.

        Raises:
            PkgerError: It cannot be resolved, or not be started; nothing is stored.
        """
        key = RequestId(request.request_id, content_digest(request)) if request.request_id else RequestId()
        if earlier := await self._earlier_answer(key) if key.id and not request.validate_only else None:
            return applier_action_pb2.CreateActionSetResponse(action_set=earlier)
        pinned = await self._resolved(request)
        if not isinstance(pinned, PinnedActionSet):
            answer = applier_action_pb2.CreateActionSetResponse()
            answer.violations.violations.extend(map(violation_to_pb, pinned))
            return answer
        if request.validate_only:
            action_set = action_set_to_pb(
                pinned, ActionSetProgress(shape_of(pinned)), operation_pb2.Operation(), self._signatures, {}
            )
            return applier_action_pb2.CreateActionSetResponse(action_set=action_set)
        started = ActionSetRequest(pinned, key, request.author, dict(request.secrets))
        return applier_action_pb2.CreateActionSetResponse(action_set=await self._started(started))

    async def _earlier_answer(self, key: RequestId) -> action_pb2.ActionSet | None:
        """
        The action set that the same request created before: what it needs may be gone by now. None: there is none.

        Raises:
            RequestIdReused: The id was used with other content.
        """
        request = journal_pb2.FindOperationRequest(request=journal_pb2.RequestKey(id=key.id, digest=key.digest))
        stub = JournalServiceStub(self._store.channel)
        operation_id = (await self._store.call(stub.FindOperation, request)).operation_id
        return await self._action_set_of(operation_id) if operation_id else None

    async def _action_set_of(self, operation_id: str) -> action_pb2.ActionSet | None:
        """The action set of an operation, once it is stored; None: the operation ended before that."""
        async for _ in self._operations.watch(operation_id, 0):
            break
        name = (await self._operations.get(operation_id)).action_set
        return stored_to_pb(await read_action_set(self._store, name), self._signatures) if name else None

    async def _started(self, request: ActionSetRequest) -> action_pb2.ActionSet:
        """Start an action set; if the same request started one before, returns that one."""
        while True:
            feed = self._operations.start_action_set(request)
            try:
                await _accepted(feed)
            except AlreadyBegunError as earlier:
                if action_set := await self._action_set_of(earlier.operation):
                    return action_set
                # It ended before it started, so the request is served again.
                continue
            return stored_to_pb(await read_action_set(self._store, request.pinned.name), self._signatures)

    async def _resolved(
        self, request: applier_action_pb2.CreateActionSetRequest
    ) -> PinnedActionSet | tuple[Violation, ...]:
        """The action set with all that it uses, or what is wrong with the request."""
        read = read_request(_documents(request), self._signatures, request.pinned)
        if not isinstance(read, RunRequest):
            return read
        predecessor = read.action_set.predecessor
        earlier = await self._earlier(predecessor.action_set) if predecessor else None
        stored = await self._stored(read, earlier)
        suffix = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in bytes.fromhex(self._ids.token(_SUFFIX_BYTES)))
        pinned = resolve(read, stored, earlier, self._signatures, self._time(), suffix)
        if isinstance(pinned, PinnedActionSet):
            check_secrets(pinned, request.secrets)
            await self._refuse_gone(pinned)
        return pinned

    async def _earlier(self, name: str) -> EarlierActionSet:
        """
        Read a predecessor.

        Raises:
            ActionSetNotFound: There is none of that name.
        """
        return earlier_action_set(await read_action_set(self._store, name))

    async def _stored(self, request: RunRequest, earlier: EarlierActionSet | None) -> StoredDefinitions:
        """The stored definitions that a request needs; if one is not there, with the names of the others."""
        needed = needed_definitions(request, earlier.pinned if earlier else None)
        return StoredDefinitions(
            await self._read(DefinitionKind.BLUEPRINT, needed.blueprints),
            await self._read(DefinitionKind.CONFIG_MAP, needed.config_maps),
        )

    async def _read(self, kind: DefinitionKind, names: Sequence[str]) -> dict[str, Any]:
        stub, documents = DefinitionServiceStub(self._store.channel), dict[str, Any]()
        is_complete = True
        for name in names:
            get = definition_pb2.GetDefinitionRequest(kind=kind, name=name)
            try:
                answer = await self._store.call(stub.GetDefinition, get)
            except DefinitionNotFound:
                is_complete = False
            else:
                documents[name] = plain(read_value(answer.definition.definition.json))
        if not is_complete:
            listing = definition_pb2.ListDefinitionsRequest(kind=kind)
            listed = (await self._store.call(stub.ListDefinitions, listing)).definitions
            documents = {**dict.fromkeys(each.definition.name for each in listed), **documents}
        return documents

    async def _refuse_gone(self, pinned: PinnedActionSet) -> None:
        """
        Refuse artifacts whose snapshot was deleted.

        Raises:
            ArtifactGone: One was.
            SnapshotNotFound: There is no such snapshot.
        """
        stub = SnapshotServiceStub(self._store.channel)
        for snapshot in input_snapshots(pinned):
            get = snapshot_pb2.GetSnapshotRequest(id=snapshot, without_contents=True)
            [message] = [each async for each in self._store.stream(stub.GetSnapshot, get)]
            stored = message.snapshot
            if stored.HasField("delete_time"):
                raise ArtifactGone(artifact_of(pinned, snapshot), snapshot, stored.deleted_by)

    def _time(self) -> str:
        """Now, as RFC 3339 text in UTC."""
        return (_EPOCH + timedelta(microseconds=self._peers.clock())).isoformat().replace("+00:00", "Z")


async def _accepted(feed: Feed) -> None:
    """
    Wait until an action set is stored.

    Raises:
        AlreadyBegunError: The same request began one before.
        PkgerError: It was not stored.
    """
    async for event in feed.follow():
        if event.HasField("accepted"):
            return


def _documents(request: applier_action_pb2.CreateActionSetRequest) -> list[Any]:
    """
    The definitions of a request as JSON values.

    Raises:
        RequestInvalid: One is no JSON.
    """
    documents = []
    for position, each in enumerate(request.definitions):
        try:
            document = plain(read_value(each.json))
        except ValueError as error:
            raise RequestInvalid(f"definitions[{position}].json", str(error)) from None
        _check_header(f"definitions[{position}]", each, document)
        documents.append(document)
    return documents


def _check_header(field: str, definition: Definition, document: Any) -> None:
    """
    Compare kind and name of a definition with its text; empty ones are not compared.

    Raises:
        RequestInvalid: They differ.
    """
    fields = document if isinstance(document, dict) else {}
    metadata = fields.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    for key, said, written in (("kind", definition.kind, fields.get("kind")), ("name", definition.name, name)):
        if said and said != written:
            raise RequestInvalid(f"{field}.{key}", f"is {said!r}, and the text has {written!r}; make them equal")
