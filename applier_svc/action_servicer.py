"""The servicer of ActionService: translates and delegates."""

from functools import partial

from google.protobuf.duration_pb2 import Duration
from pkger.applier.v1 import action_pb2 as applier_action_pb2
from pkger.applier.v1.action_pb2_grpc import ActionServiceServicer, add_ActionServiceServicer_to_server
from pkger.journal.v1 import action_set_pb2
from pkger.journal.v1.action_set_pb2_grpc import ActionSetServiceStub
from pkger.model.v1 import action_pb2

from applier_svc.actions.creating import ActionSetCreator
from applier_svc.actions.stored import read_action_set
from applier_svc.actions.views import stored_to_pb
from services.actions.signatures import Argument, Signature, SignatureTable
from services.kinds.format.canonical import canonical_text
from services.rpc.client import Peer
from services.rpc.dispatcher import Register

SERVICE = "pkger.applier.v1.ActionService"


class ActionServicer(ActionServiceServicer):
    """ActionService: action sets, and the functions that their phases call."""

    def __init__(self, creator: ActionSetCreator, store: Peer, signatures: SignatureTable) -> None:
        self._creator = creator
        self._store = store
        self._stub = ActionSetServiceStub(store.channel)
        self._signatures = signatures

    async def CreateActionSet(
        self, request: applier_action_pb2.CreateActionSetRequest, context: object
    ) -> applier_action_pb2.CreateActionSetResponse:
        """Resolve a request, and run it."""
        return await self._creator.create(request)

    async def GetActionSet(
        self, request: applier_action_pb2.GetActionSetRequest, context: object
    ) -> applier_action_pb2.GetActionSetResponse:
        """Read an action set with its phases."""
        stored = await read_action_set(self._store, request.name)
        return applier_action_pb2.GetActionSetResponse(action_set=stored_to_pb(stored, self._signatures))

    async def ListActionSets(
        self, request: applier_action_pb2.ListActionSetsRequest, context: object
    ) -> applier_action_pb2.ListActionSetsResponse:
        """Read one page of action sets."""
        answer = await self._store.call(
            self._stub.ListActionSets,
            action_set_pb2.ListActionSetsRequest(
                stack=request.stack if request.HasField("stack") else None,
                blueprint=request.blueprint,
                states=request.states,
                predecessor=request.predecessor,
                labels=request.labels,
                page_size=request.page_size,
                page_token=request.page_token,
            ),
        )
        return applier_action_pb2.ListActionSetsResponse(
            action_sets=answer.action_sets, next_page_token=answer.next_page_token
        )

    async def DeleteActionSet(
        self, request: applier_action_pb2.DeleteActionSetRequest, context: object
    ) -> applier_action_pb2.DeleteActionSetResponse:
        """Remove an action set that has ended."""
        delete = action_set_pb2.DeleteActionSetRequest(name=request.name, force=request.force)
        await self._store.call(self._stub.DeleteActionSet, delete)
        return applier_action_pb2.DeleteActionSetResponse()

    async def ListFunctions(
        self, request: applier_action_pb2.ListFunctionsRequest, context: object
    ) -> applier_action_pb2.ListFunctionsResponse:
        """List the functions that phases call."""
        return applier_action_pb2.ListFunctionsResponse(functions=map(signature_to_pb, self._signatures.all()))


def register(creator: ActionSetCreator, store: Peer, signatures: SignatureTable) -> Register:
    """Registers the service with a server."""
    return partial(add_ActionServiceServicer_to_server, ActionServicer(creator, store, signatures))


def signature_to_pb(signature: Signature) -> action_pb2.FunctionSignature:
    """The signature of a function."""
    timeout = Duration()
    timeout.FromMilliseconds(signature.timeout)
    return action_pb2.FunctionSignature(
        name=signature.name,
        version=signature.version,
        arguments=map(_argument, signature.arguments),
        outputs=signature.outputs,
        effect=signature.effect.value,
        recovery=signature.recovery.value,
        timeout=timeout,
    )


def _argument(argument: Argument) -> action_pb2.FunctionArgument:
    return action_pb2.FunctionArgument(
        name=argument.name,
        type=argument.type.value,
        required=argument.required,
        default_json="" if argument.default is None else canonical_text(argument.default),
        choices=argument.choices,
        takes_secrets=argument.takes_secrets,
    )
