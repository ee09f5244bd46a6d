"""Definitions as messages."""

from pkger.model.v1 import definition_pb2 as model_pb2
from pkger.stack.v1 import definition_pb2

from stack_svc.messages.fields import timestamp
from stack_svc.rules.definitions import DefinitionChange, check_count, check_named_once, checked_change
from stack_svc.store.definitions import StoredDefinition


def definition_to_pb(stored: StoredDefinition) -> definition_pb2.StoredDefinition:
    """Translate a stored definition."""
    return definition_pb2.StoredDefinition(
        definition=model_pb2.Definition(kind=stored.kind, name=stored.name, json=stored.body),
        description=stored.description,
        etag=stored.etag,
        create_time=timestamp(stored.create_time),
        update_time=timestamp(stored.update_time),
    )


def listed_to_pb(stored: StoredDefinition) -> definition_pb2.StoredDefinition:
    """Translate a stored definition without its text."""
    message = definition_to_pb(stored)
    message.definition.ClearField("json")
    return message


def changes_from_pb(request: definition_pb2.PutDefinitionsRequest) -> list[DefinitionChange]:
    """
    Translate the definitions of a request.

    Raises:
        RequestInvalid: One is not valid, they are too many, or one is named twice.
    """
    check_count(len(request.changes))
    changes = [
        checked_change(
            f"changes[{number}].definition",
            change.definition.kind,
            change.definition.name,
            change.definition.json,
            change.etag,
        )
        for number, change in enumerate(request.changes)
    ]
    check_named_once(changes)
    return changes
