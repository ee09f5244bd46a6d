"""The bounds of lists, maps and texts in requests of clients, by the descriptors of their messages."""

from functools import cache

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from pkger.applier.v1 import action_pb2, applier_pb2
from pkger.journal.v1 import planning_pb2
from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import package_pb2, planner_pb2
from pkger.stack.v1 import definition_pb2, repository_pb2, snapshot_pb2, stack_pb2

from services.core.errors import RequestInvalid
from services.core.limits import LONGEST_ADDRESS, LONGEST_DESCRIPTION, LONGEST_NAME, MOST_ENTRIES

BOUNDED_ELSEWHERE = {
    "pkger.model.v1.Package.objects": "as many as a package may have (PKGER_MAX_OBJECTS), which the parser checks",
}
"""The lists that may have more entries, by full name, and their own bounds."""

LONGEST_TEXTS = {
    "pkger.model.v1.ObjectKey.kind": LONGEST_NAME,
    "pkger.model.v1.ObjectKey.name": LONGEST_NAME,
    "pkger.planner.v1.SearchPackagesRequest.text": LONGEST_NAME,
    "pkger.planner.v1.Skip.kind": LONGEST_NAME,
    "pkger.planner.v1.Skip.name": LONGEST_NAME,
    "pkger.stack.v1.CreateRepositoryRequest.address": LONGEST_ADDRESS,
    "pkger.stack.v1.CreateStackRequest.description": LONGEST_DESCRIPTION,
    "pkger.stack.v1.ListPlansRequest.stack_name": LONGEST_NAME,
    "pkger.stack.v1.ListSnapshotsRequest.stack_name": LONGEST_NAME,
    "pkger.stack.v1.UpdateRepositoryRequest.address": LONGEST_ADDRESS,
    "pkger.stack.v1.UpdateStackRequest.description": LONGEST_DESCRIPTION,
}
"""The lengths of texts, in characters, by full name of their fields; rules of services bound other names."""

_SERVICES = [
    service
    for file in (
        parser_pb2,
        planner_pb2,
        package_pb2,
        applier_pb2,
        action_pb2,
        stack_pb2,
        repository_pb2,
        definition_pb2,
        snapshot_pb2,
        planning_pb2,
    )
    for service in file.DESCRIPTOR.services_by_name.values()
]

BOUNDED_REQUESTS = {method.input_type for service in _SERVICES for method in service.methods}
"""
The requests of clients, and the requests for plans that appliers and gateways make of them. Requests of services to
each other may be larger.
"""


def refuse_beyond_bounds(request: Message) -> None:
    """
    Refuse a request of a client with too many entries in a list or map, or with a long text.

    Raises:
        RequestInvalid: Names the field, the number and the bound; never quotes a value.
    """
    if request.DESCRIPTOR in BOUNDED_REQUESTS:
        _check(request, "")


def _check(message: Message, place: str) -> None:
    for field, value in message.ListFields():
        name = f"{place}{field.name}"
        if field.full_name in LONGEST_TEXTS and len(value) > LONGEST_TEXTS[field.full_name]:
            problem = f"has {len(value):,} characters; at most {LONGEST_TEXTS[field.full_name]:,} are accepted"
            raise RequestInvalid(name, problem)
        if field.is_repeated:
            if field.full_name in BOUNDED_ELSEWHERE:
                continue
            if len(value) > MOST_ENTRIES:
                raise RequestInvalid(name, f"has {len(value):,} entries; at most {MOST_ENTRIES:,} are accepted")
            if field.message_type is not None and _has_bounds(field.message_type):
                for position, entry in enumerate(value):
                    _check(entry, f"{name}[{position}].")
        elif field.message_type is not None and _has_bounds(field.message_type):
            _check(value, f"{name}.")


@cache
def _has_bounds(descriptor: Descriptor) -> bool:
    """Whether a field of the message, or of a message in it, has a bound; entries of maps have none."""
    return not descriptor.GetOptions().map_entry and any(
        field.is_repeated
        or field.full_name in LONGEST_TEXTS
        or (field.message_type is not None and _has_bounds(field.message_type))
        for field in descriptor.fields
    )
