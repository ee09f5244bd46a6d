"""Fields that several messages have: targets, references, keys, times."""

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import object_pb2

from services.core.errors import RequestInvalid
from services.core.model import InventoryEntry, Key, Target
from services.rpc.convert.objects import check_stack_ref, new_target_from_pb, target_from_pb
from stack_svc.rules import sanitize, stacks
from stack_svc.rules.requests import RequestId
from stack_svc.store.stacks import Choice, StackName

LATEST = 2**63 - 1
"""After every time that the store can hold."""


def target_of(message: object_pb2.Target, field: str = "target") -> Target:
    """
    Translate a target; *field* is its field in the request.

    Raises:
        RequestInvalid: A store cannot hold its names.
    """
    target = target_from_pb(message)
    sanitize.checked_name(target.platform, f"{field}.platform")
    sanitize.checked_name(target.org, f"{field}.org")
    return target


def new_target_of(message: object_pb2.Target) -> Target:
    """
    Translate the target of a new stack.

    Raises:
        RequestInvalid: A name in it is not valid, or a store cannot hold it.
    """
    new_target_from_pb(message)
    return target_of(message)


def choice_from_pb(stack: object_pb2.StackRef) -> Choice:
    """
    Translate the way in which a request names a stack.

    Raises:
        RequestInvalid: It names none, or its name is not valid for a stack.
    """
    check_stack_ref(stack)
    if stack.id:
        return stack.id
    stacks.check_name(stack.name, "stack.name")
    return StackName(target_of(stack.target, "stack.target"), stack.name)


def request_from_pb(key: journal_pb2.RequestKey) -> RequestId:
    """Translate the key of a request; without a key, it is a request without an id."""
    return RequestId(key.id, [key.digest])


def microseconds(duration: Duration) -> int:
    """Translate a span of time."""
    return duration.ToMicroseconds()


def timestamp(microseconds: int) -> Timestamp:
    """Translate a time in microseconds since 1970."""
    time = Timestamp()
    time.FromMicroseconds(microseconds)
    return time


def microseconds_of(moment: Timestamp, field: str) -> int:
    """
    The first microsecond that is not before *moment*.

    Raises:
        RequestInvalid: It is not a valid timestamp; the error names *field*.
    """
    try:
        return -(-moment.ToNanoseconds() // 1000)
    except ValueError as error:
        raise RequestInvalid(field, str(error)) from None


def checked_key(message: object_pb2.ObjectKey) -> Key:
    """
    Translate the key of an object.

    Raises:
        RequestInvalid: A store cannot hold it.
    """
    return Key(sanitize.checked_name(message.kind, "key.kind"), sanitize.checked_name(message.name, "key.name"))


def storable_entry(entry: InventoryEntry) -> InventoryEntry:
    """*entry* with texts that every store can hold."""
    key, labels = storable_key(entry.key), tuple(map(storable_key, entry.associations))
    return entry._replace(key=key, resource_id=sanitize.clean(entry.resource_id), associations=labels)


def storable_key(key: Key) -> Key:
    """*key* with texts that every store can hold."""
    return Key(sanitize.clean(key.kind), sanitize.clean(key.name))
