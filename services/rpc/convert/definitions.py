"""Definitions as messages."""

from pkger.model.v1 import definition_pb2

from services.actions.canonical import definition_text, kind_of
from services.actions.definitions import Definition


def definition_to_pb(definition: Definition) -> definition_pb2.Definition:
    """Translate a definition."""
    return definition_pb2.Definition(kind=kind_of(definition), name=definition.name, json=definition_text(definition))
