"""What stacks own: the map from object keys to resources; a resource has one owner (engine.md 1, I8)."""

from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import orjson
import sqlite_utils

from services.core.errors import RequestInvalid, ResourceOwned
from services.core.model import InventoryEntry, Key, Origin, Target

ResourceId = tuple[str, str]
"""Kind and id of a resource of a target."""


@dataclass(frozen=True, slots=True)
class Ownership:
    """A stack owns a resource for the object *key*."""

    stack: str
    stack_name: str
    key: Key
    resource_id: str


def read(db: sqlite_utils.Database, stack: str) -> tuple[InventoryEntry, ...]:
    """All that the stack owns, sorted by kind and name."""
    return tuple(_entries(db.execute(f"{_SELECT} WHERE stack = ? ORDER BY kind, name", [stack])))


def page(db: sqlite_utils.Database, stack: str, after: Key, size: int) -> list[InventoryEntry]:
    """What the stack owns behind *after*, sorted by kind and name; at most *size* entries."""
    rows = db.execute(
        f"{_SELECT} WHERE stack = ? AND (kind, name) > (?, ?) ORDER BY kind, name LIMIT ?", [stack, *after, size]
    )
    return list(_entries(rows))


def owners(db: sqlite_utils.Database, target: Target, resources: Collection[ResourceId]) -> list[Ownership]:
    """Who owns which of the *resources* of *target*, sorted by kind and id; nothing for those without an owner."""
    # The asked resources travel as one JSON parameter: one query, however many. CROSS JOIN: look each up in the index.
    rows = db.execute(
        """
        SELECT owned.stack, stacks.name, owned.kind, owned.name, owned.resource_id
        FROM json_each(:resources) AS asked
        CROSS JOIN inventory AS owned
            ON owned.platform = :platform AND owned.org = :org
            AND owned.kind = json_extract(asked.value, '$[0]') AND owned.resource_id = json_extract(asked.value, '$[1]')
        JOIN stacks ON stacks.id = owned.stack
        ORDER BY owned.kind, owned.resource_id
        """,
        {
            "resources": orjson.dumps(sorted(set(resources))).decode(),
            "platform": target.platform,
            "org": target.org,
        },
    )
    return [
        Ownership(stack, stack_name, Key(kind, name), resource_id)
        for stack, stack_name, kind, name, resource_id in rows
    ]


def content(entries: Collection[InventoryEntry]) -> AbstractSet[InventoryEntry]:
    """What counts when inventories are compared: the order of entries and of their associations means nothing."""
    return {_in_order(entry) for entry in entries}


def write(db: sqlite_utils.Database, stack: str, target: Target, wanted: Collection[InventoryEntry]) -> bool:
    """
    Make *wanted* all that the stack owns.

    Returns:
        Whether that changed anything.

    Raises:
        RequestInvalid: Two entries share a key or a resource, or a key or an id is empty.
        ResourceOwned: Another stack owns one of the resources.
    """
    _check(wanted)
    before, after = content(read(db, stack)), content(wanted)
    gone, new = before - after, after - before
    _refuse_owned(db, stack, target, new)
    db.conn.executemany(
        "DELETE FROM inventory WHERE stack = ? AND kind = ? AND name = ?", [(stack, *entry.key) for entry in gone]
    )
    db.conn.executemany(
        "INSERT INTO inventory (stack, kind, name, platform, org, resource_id, origin, associations, state)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                stack,
                *entry.key,
                target.platform,
                target.org,
                entry.resource_id,
                entry.origin.value,
                orjson.dumps([list(label) for label in entry.associations]).decode(),
                "PENDING_DELETE" if entry.is_pending_delete else "PRESENT",
            )
            for entry in sorted(new, key=lambda entry: entry.key)
        ],
    )
    return bool(gone or new)


_SELECT = "SELECT kind, name, resource_id, origin, associations, state = 'PENDING_DELETE' FROM inventory"


def _entries(rows: Iterable[Any]) -> Iterator[InventoryEntry]:
    for kind, name, resource_id, origin, labels, is_pending_delete in rows:
        associations = tuple(Key(*label) for label in orjson.loads(labels))
        yield InventoryEntry(Key(kind, name), resource_id, Origin(origin), associations, bool(is_pending_delete))


def _in_order(entry: InventoryEntry) -> InventoryEntry:
    associations = tuple(sorted(entry.associations))
    return entry if associations == entry.associations else entry._replace(associations=associations)


def _check(wanted: Collection[InventoryEntry]) -> None:
    keys: set[Key] = set()
    resources: set[ResourceId] = set()
    for entry in wanted:
        resource = (entry.key.kind, entry.resource_id)
        if not (entry.key.kind and entry.key.name and entry.resource_id):
            raise RequestInvalid("record.resources", f"{entry.key} lacks its kind, its name or its id")
        if entry.key in keys:
            raise RequestInvalid("record.resources", f"{entry.key} occurs twice")
        if resource in resources:
            raise RequestInvalid("record.resources", f"{entry.key.kind} {entry.resource_id} belongs to two objects")
        keys.add(entry.key)
        resources.add(resource)


def _refuse_owned(db: sqlite_utils.Database, stack: str, target: Target, new: Collection[InventoryEntry]) -> None:
    names = {(entry.key.kind, entry.resource_id): entry.key.name for entry in new}
    for owner in owners(db, target, names):
        if owner.stack != stack:
            kind = owner.key.kind
            raise ResourceOwned(kind, names[kind, owner.resource_id], owner.resource_id, owner.stack, owner.stack_name)
