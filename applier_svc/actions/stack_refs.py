"""The stack that a phase works on: by reference, and as its templates see it."""

from pkger.model.v1 import object_pb2

from applier_svc.actions.call import Call, FunctionError
from services.actions.definitions import ActionObject
from services.actions.parameters import StackFacts, StackResource
from services.actions.pinned import stack_of
from services.core.errors import StackNotFound
from services.rpc.client import Peer
from services.rpc.stack_records import read_record


def stack_ref(target: ActionObject, name: str = "") -> object_pb2.StackRef:
    """The stack that is the object of an action, or has it; with a *name*, another stack of the same target."""
    place = stack_of(target)
    return object_pb2.StackRef(
        name=name or place.name, target=object_pb2.Target(platform=place.platform, org=place.org)
    )


def stack_argument(call: Call) -> object_pb2.StackRef:
    """
    The stack that a call names: by its argument ``stack``, in the target of the object, or the stack of the object.

    Raises:
        FunctionError: There is neither.
    """
    name: str | None = call.arguments.get("stack")
    if call.object:
        return stack_ref(call.object, name or "")
    if name is None:
        raise FunctionError("its action has no object; pass stack, or use an action of kind Stack")
    return object_pb2.StackRef(name=name)


async def read_facts(store: Peer, target: ActionObject | None) -> StackFacts | None:
    """The stack of *target*; None: it is gone, or there is no object."""
    if target is None:
        return None
    try:
        record = await read_record(store, stack_ref(target))
    except StackNotFound:
        return None
    resources = [StackResource(each.key.kind, each.key.name, each.resource_id) for each in record.resources]
    return StackFacts(record.id, record.name, record.generation, tuple(resources))
