"""Which sources have definitions instead of objects of a package."""

import re

from pkger.parser.v1 import parser_pb2

from services.actions.definitions import DefinitionKind
from services.core.errors import SourceTooLarge, SourceUndecodable
from services.syntax.yaml_reader import read_stream

_KINDS = frozenset(DefinitionKind)
_ANY_KIND = re.compile(rf"\b(?:{'|'.join(DefinitionKind)})\b")
"""Matches each text that has a definition, so that other texts need not be read."""


def has_definitions(source: parser_pb2.Source) -> bool:
    """
    Whether a document of *source* is a definition; False for one that cannot be read, and for an address.

    The parser reads each source as what this says, and refuses those that have both.
    """
    if not _ANY_KIND.search(source.text):
        return False
    try:
        # JSON is YAML as far as this question goes.
        roots = read_stream(source.name, source.text).documents
    except (SourceUndecodable, SourceTooLarge):
        return False
    documents = [item for root in roots for item in (root if isinstance(root, list) else [root])]
    return any(isinstance(item, dict) and item.get("kind") in _KINDS for item in documents)
