"""Action sets as messages of the journal."""

from google.protobuf.duration_pb2 import Duration
from pkger.journal.v1 import action_set_pb2
from pkger.model.v1 import object_pb2

from services.actions.pinned import (
    PinnedActionSet,
    blueprint_names,
    input_snapshots,
    objects_of,
    phase_count,
    pinned_text,
    reserved_stacks,
)
from services.actions.signatures import SignatureTable
from services.rpc.convert.phases import action_object_to_pb


def new_action_set(pinned: PinnedActionSet, table: SignatureTable) -> action_set_pb2.NewActionSet:
    """An action set as it is created; *table* says which stacks it reserves."""
    ttl = None
    if pinned.ttl is not None:
        ttl = Duration()
        ttl.FromMilliseconds(pinned.ttl)
    return action_set_pb2.NewActionSet(
        name=pinned.name,
        pinned_json=pinned_text(pinned),
        predecessor=pinned.predecessor,
        blueprints=blueprint_names(pinned),
        objects=map(action_object_to_pb, objects_of(pinned)),
        labels=pinned.labels,
        ttl=ttl,
        phase_count=phase_count(pinned),
        reserved=[
            object_pb2.StackRef(name=stack.name, target=object_pb2.Target(platform=stack.platform, org=stack.org))
            for stack in reserved_stacks(pinned, table)
        ],
        snapshots=input_snapshots(pinned),
    )
