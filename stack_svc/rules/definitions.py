"""Definitions in the store: blueprints and config maps (docs/blueprints.md)."""

from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from services.actions.canonical import definition_text, kind_of
from services.actions.definitions import ActionSet, Blueprint
from services.actions.signatures import FUNCTIONS
from services.actions.validation import LARGEST_DEFINITION, validate
from services.core.errors import DefinitionChanged, DefinitionNotFound, RequestInvalid
from services.core.text_lists import and_more
from services.kinds.format.canonical import plain
from services.syntax.json_reader import read_value
from stack_svc.rules import requests
from stack_svc.rules.requests import RequestId
from stack_svc.store.definitions import StoredDefinition
from stack_svc.store.store import ReadTransaction, Transaction

MOST_CHANGES = 100
"""Largest number of definitions in one call (definition.proto)."""

_ANSWER = "definitions"
"""The answer to a request; what it stored is what it names."""


class DefinitionChange(NamedTuple):
    """
    A definition to store.

    Attributes:
        kind: Its kind.
        name: Its name.
        description: What it is for.
        body: The definition as canonical JSON.
        expected_etag: The etag that the stored one must have; empty: any.
    """

    kind: str
    name: str
    description: str
    body: str
    expected_etag: str

    @property
    def etag(self) -> str:
        """The digest of the body."""
        return f"sha256:{sha256(self.body.encode()).hexdigest()}"


def checked_change(field: str, kind: str, name: str, json: str, expected_etag: str) -> DefinitionChange:
    """
    Accept a definition that is to be stored.

    Args:
        field: Name of the field of the request with the definition, for errors.
        kind: Its kind.
        name: Its name.
        json: Its text.
        expected_etag: The etag that the stored one must have; empty: any.

    Raises:
        RequestInvalid: It is not valid, has another kind or name, or is an action set.
    """
    if (size := len(json.encode())) > LARGEST_DEFINITION:
        raise RequestInvalid(f"{field}.json", f"has {size:,} bytes; at most {LARGEST_DEFINITION:,} are accepted")
    try:
        document = plain(read_value(json))
    except ValueError as error:
        raise RequestInvalid(f"{field}.json", str(error)) from None
    outcome = validate([document], FUNCTIONS, stored=None)
    if faults := outcome.faults.get(0):
        more = and_more(len(faults) - 1, "; ", "violation")
        raise RequestInvalid(f"{field}.json", f"is not valid: {faults[0].path}: {faults[0].reason}{more}")
    [definition] = outcome.definitions
    if definition is None or isinstance(definition, ActionSet):
        raise RequestInvalid(f"{field}.json", "is an action set, which is a request; store blueprints and config maps")
    if (kind, name) != (kind_of(definition), definition.name):
        problem = (
            f"is {kind_of(definition)} {definition.name!r}, and kind and name say {kind} {name!r}; make them equal"
        )
        raise RequestInvalid(f"{field}.json", problem)
    description = definition.description if isinstance(definition, Blueprint) else ""
    return DefinitionChange(kind, name, description, definition_text(definition), expected_etag)


def check_count(count: int) -> None:
    """
    Refuse no definitions, and too many, before they are read.

    Raises:
        RequestInvalid: *count* is out of bounds.
    """
    if not 1 <= count <= MOST_CHANGES:
        raise RequestInvalid("changes", f"has {count} entries; give 1 to {MOST_CHANGES}")


def check_named_once(changes: Sequence[DefinitionChange]) -> None:
    """
    Refuse changes that name a definition twice.

    Raises:
        RequestInvalid: They do.
    """
    first: dict[tuple[str, str], int] = {}
    for number, change in enumerate(changes):
        position = first.setdefault((change.kind, change.name), number)
        if position < number:
            problem = f"names {change.kind} {change.name!r}, as changes[{position}] does; remove one of them"
            raise RequestInvalid(f"changes[{number}].definition", problem)


def put(tx: Transaction, changes: Sequence[DefinitionChange], request: RequestId) -> list[StoredDefinition]:
    """
    Store definitions, once for each request; what is stored as it is, is not written.

    Returns:
        What is stored afterwards, in the order of *changes*.

    Raises:
        DefinitionChanged: One has another etag than expected.
        RequestIdReused: The request id was used with other content.
        DefinitionNotFound: This request stored a definition before, which was deleted.
    """
    now = tx.now()
    if requests.earlier_answer(tx, request, now):
        return [existing(tx, change.kind, change.name) for change in changes]
    for change in changes:
        stored = tx.definitions.find(change.kind, change.name)
        _check_etag(change, change.expected_etag, stored)
        if stored is None or stored.etag != change.etag:
            _write(tx, change, stored, now)
    requests.store_answer(tx, request, _ANSWER, now)
    return [existing(tx, change.kind, change.name) for change in changes]


def existing(reading: ReadTransaction, kind: str, name: str) -> StoredDefinition:
    """
    Read a definition.

    Raises:
        DefinitionNotFound: There is none of that kind and name.
    """
    definition = reading.definitions.find(kind, name)
    if definition is None:
        raise DefinitionNotFound(kind, name)
    return definition


def delete(tx: Transaction, kind: str, name: str, expected_etag: str) -> None:
    """
    Remove a definition.

    Raises:
        DefinitionNotFound: There is none of that kind and name.
        DefinitionChanged: It has another etag than expected.
    """
    stored = existing(tx, kind, name)
    _check_etag(stored, expected_etag, stored)
    if not tx.definitions.delete(kind, name):
        raise DefinitionNotFound(kind, name)


def _check_etag(
    definition: DefinitionChange | StoredDefinition, expected: str, stored: StoredDefinition | None
) -> None:
    actual = stored.etag if stored else ""
    if expected and expected != actual:
        raise DefinitionChanged(definition.kind, definition.name, expected, actual)


def _write(tx: Transaction, change: DefinitionChange, stored: StoredDefinition | None, now: int) -> None:
    """
    Write a definition if it is still as *stored*.

    Raises:
        DefinitionChanged: Another transaction has changed it since.
    """
    definition = StoredDefinition(change.kind, change.name, change.description, change.etag, change.body, now, now)
    before = stored.etag if stored else ""
    if not (tx.definitions.replace(definition, before) if stored else tx.definitions.insert(definition)):
        current = tx.definitions.find(change.kind, change.name)
        raise DefinitionChanged(change.kind, change.name, before, current.etag if current else "")
