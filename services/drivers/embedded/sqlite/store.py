"""The resources of the embedded platform in SQLite, with few statements per batch; all functions need a transaction."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import sqlite_utils

from services.core.errors import TokenStale
from services.core.model import LABEL, Reference
from services.drivers.embedded.batch import Extract, perform
from services.drivers.embedded.kinds import name_scope, unique_name
from services.drivers.embedded.secrets import Item, KeptSecret
from services.drivers.mutation import (
    Attach,
    Create,
    Delete,
    DeleteSecret,
    Detach,
    Done,
    Fence,
    Rejected,
    ResourceId,
    StoredResource,
    Update,
)

ZERO_ID = "0" * 16
"""A well-formed id that no resource has (docs/reference/driver-contract.md, "Ids")."""

_PLACEHOLDERS = 1000
"""Most values in one statement; SQLite allows 32,766."""

DrawId = Callable[[], str]
"""Draws an id, which may already be taken."""


def list_resources(db: sqlite_utils.Database, org: str, kinds: Sequence[str]) -> list[StoredResource]:
    """All resources of *kinds*, sorted by kind and id."""
    attached = (
        "SELECT resource_id, label_id FROM attachments JOIN resources ON resources.id = resource_id"
        " WHERE org = ? AND kind IN ({}) ORDER BY label_id"
    )
    referring = (
        "SELECT resource_id, pointer, referred.kind, referred_id FROM bindings"
        " JOIN resources ON resources.id = resource_id JOIN resources AS referred ON referred.id = referred_id"
        " WHERE resources.org = ? AND resources.kind IN ({}) ORDER BY pointer"
    )
    rows = _rows_for(
        db,
        "SELECT kind, id, spec, display_name FROM resources WHERE org = ? AND kind IN ({}) ORDER BY kind, id",
        [org],
        kinds,
    )
    labels, references = _rows_for(db, attached, [org], kinds), _rows_for(db, referring, [org], kinds)
    return list(_stored(rows, labels, references))


def read_resources(
    db: sqlite_utils.Database, org: str, ids: Collection[ResourceId]
) -> dict[ResourceId, StoredResource]:
    """The existing resources among *ids*."""
    id_texts = {resource_id.id for resource_id in ids}
    attached = "SELECT resource_id, label_id FROM attachments WHERE resource_id IN ({}) ORDER BY label_id"
    referring = (
        "SELECT resource_id, pointer, kind, referred_id FROM bindings"
        " JOIN resources ON resources.id = referred_id WHERE resource_id IN ({}) ORDER BY pointer"
    )
    # With a plain "org = ?" SQLite scans the whole organization for ten or more ids; "+" prevents that.
    by_id = "SELECT kind, id, spec, display_name FROM resources WHERE +org = ? AND id IN ({})"
    rows = _rows_for(db, by_id, [org], id_texts)
    labels, references = _rows_for(db, attached, [], id_texts), _rows_for(db, referring, [], id_texts)
    return {resource.id: resource for resource in _stored(rows, labels, references)}


def secret_keys(db: sqlite_utils.Database, org: str) -> list[str]:
    """Keys of all secrets."""
    return [key for (key,) in db.conn.execute("SELECT key FROM secrets WHERE org = ?", [org])]


def orgs(db: sqlite_utils.Database) -> list[str]:
    """The organizations that hold a resource or a secret."""
    rows = db.conn.execute("SELECT org FROM resources UNION SELECT org FROM secrets")
    return [org for (org,) in rows]


def mutate(
    db: sqlite_utils.Database, org: str, fence: Fence | None, batch: Sequence[Item], draw_id: DrawId, now: int
) -> list[Done | Rejected]:
    """
    Perform a batch; results as for ``perform``.

    Args:
        db: The database, in a transaction that writes.
        org: The organization.
        fence: The right to write; None for writes on behalf of no stack.
        batch: The items.
        draw_id: Draws ids for new resources; called until one is free.
        now: The time.

    Raises:
        TokenStale: A newer token was seen in the scope; nothing was written.
    """
    if fence:
        pass_fence(db, fence, now)
    extract = _extract(db, org, batch)
    before = Extract(dict(extract.resources), dict(extract.holders), dict(extract.created), dict(extract.secrets))
    creates = sum(isinstance(item, Create) for item in batch)
    results = perform(batch, extract, iter(_free_ids(db, creates, draw_id)))
    _save(db, org, before, extract)
    _remember(db, org, fence.operation if fence else "", before, extract, now)
    return results


def forget(db: sqlite_utils.Database, before: int, most: int) -> int:
    """
    Remove idempotency keys and fences of operations on behalf of no stack that are from *before* a time.

    The keys of the last operation of a scope stay: it may be BLOCKED for long, and then send a creation again.

    Returns:
        How many rows of one table were removed, the higher of the two numbers; at most *most*.
    """
    fences = db.execute(
        "DELETE FROM fences WHERE rowid IN (SELECT rowid FROM fences WHERE is_transient AND time < ? LIMIT ?)",
        [before, most],
    )
    keys = db.execute(
        "DELETE FROM creates WHERE rowid IN (SELECT rowid FROM creates WHERE time < ? AND (operation = ''"
        " OR NOT EXISTS (SELECT 1 FROM fences WHERE fences.operation = creates.operation)) LIMIT ?)",
        [before, most],
    )
    return max(fences.rowcount, keys.rowcount)


def pass_fence(db: sqlite_utils.Database, fence: Fence, now: int) -> Fence | None:
    """
    Refuse tokens lower than the token of *fence* from *now* on.

    Returns:
        The highest lower token seen in the scope, with its operation; None: there is none.

    Raises:
        TokenStale: A newer token was seen in the scope.
    """
    columns = "token, operation, lower_token, lower_operation"
    row = db.conn.execute(f"SELECT {columns} FROM fences WHERE scope = ?", [fence.scope]).fetchone()  # noqa: S608
    if row and row[0] > fence.token:
        raise TokenStale(fence.scope, fence.token, row[0])
    if row and row[0] >= fence.token:
        return Fence(fence.scope, *row[2:]) if row[2] else None
    lower_token, lower_operation = row[:2] if row else (0, "")
    db.table("fences").upsert(
        {
            "scope": fence.scope,
            "token": fence.token,
            "operation": fence.operation,
            "lower_token": lower_token,
            "lower_operation": lower_operation,
            "is_transient": fence.is_transient,
            "time": now,
        },
        pk="scope",
    )
    return Fence(fence.scope, lower_token, lower_operation) if row else None


def _stored(
    rows: Iterable[tuple[str, str, str, str]],
    labels: Iterable[tuple[str, str]],
    references: Iterable[tuple[str, str, str, str]],
) -> Iterator[StoredResource]:
    """The resources of *rows*, in order, each with its sorted labels and references."""
    label_ids, referred = defaultdict[str, list[str]](list), defaultdict[str, list[Reference]](list)
    for id_, label_id in labels:
        label_ids[id_].append(label_id)
    for id_, pointer, kind, referred_id in references:
        referred[id_].append(Reference(pointer, kind, referred_id))
    for kind, id_, spec, display_name in rows:
        resource_id, labels_of, references_of = ResourceId(kind, id_), label_ids.get(id_, ()), referred.get(id_, ())
        yield StoredResource(resource_id, spec, display_name, tuple(labels_of), tuple(references_of))


def _extract(db: sqlite_utils.Database, org: str, batch: Sequence[Item]) -> Extract:
    # Kinds whose names may repeat have the unique name None, which no IN list of SQL matches.
    names: dict[str, set[str | None]] = defaultdict(set)
    keys: dict[str, set[str]] = defaultdict(set)
    ids: set[ResourceId] = set()
    secret_keys: set[str] = set()
    for item in batch:
        match item:
            case Create(kind, spec, key, references):
                names[name_scope(kind)].add(unique_name(kind, spec.display_name))
                keys[kind].add(key)
                ids |= {ResourceId(reference.kind, reference.id) for reference in references}
            case Update(id_, spec, references, _):
                names[name_scope(id_.kind)].add(unique_name(id_.kind, spec.display_name))
                ids |= {id_, *(ResourceId(reference.kind, reference.id) for reference in references)}
            case Delete(id_, _):
                ids.add(id_)
            case Attach(id_, label_id) | Detach(id_, label_id):
                ids |= {id_, ResourceId(LABEL, label_id)}
            case KeptSecret(key) | DeleteSecret(key):
                secret_keys.add(key)
    named = "SELECT unique_name, id FROM resources WHERE org = ? AND name_scope = ? AND unique_name IN ({})"
    holders = {
        (scope, name): id_
        for scope, values in names.items()
        for name, id_ in _rows_for(db, named, [org, scope], values)
    }
    by_key = "SELECT idempotency_key, resource_id FROM creates WHERE org = ? AND kind = ? AND idempotency_key IN ({})"
    created = {
        (kind, key): id_ for kind, values in keys.items() for key, id_ in _rows_for(db, by_key, [org, kind], values)
    }
    ids |= {ResourceId(kind, id_) for (kind, _), id_ in created.items()}
    secrets = dict(_rows_for(db, "SELECT key, hash FROM secrets WHERE org = ? AND key IN ({})", [org], secret_keys))
    return Extract(read_resources(db, org, ids), holders, created, secrets)


def _free_ids(db: sqlite_utils.Database, count: int, draw_id: DrawId) -> list[str]:
    free: list[str] = []
    while len(free) < count:
        drawn = dict.fromkeys(draw_id() for _ in range(count - len(free)))
        taken = {id_ for (id_,) in _rows_for(db, "SELECT id FROM resources WHERE id IN ({})", [], drawn)}
        free += [id_ for id_ in drawn if id_ not in taken and id_ not in free and id_ != ZERO_ID]
    return free


def _save(db: sqlite_utils.Database, org: str, before: Extract, after: Extract) -> None:
    gone = [(id_.id,) for id_ in before.resources.keys() - after.resources.keys()]
    written = [
        resource
        for id_, resource in after.resources.items()
        if id_ not in before.resources or before.resources[id_].spec_json != resource.spec_json
    ]
    attached, detached = _attachments(after.resources), _attachments(before.resources)
    connection = db.conn
    # Attachments of deleted resources are deleted with them (ON DELETE CASCADE).
    connection.executemany("DELETE FROM resources WHERE id = ?", gone)
    connection.executemany(
        "INSERT INTO resources (id, org, kind, name_scope, unique_name, display_name, spec)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET"
        " unique_name = excluded.unique_name, display_name = excluded.display_name, spec = excluded.spec",
        [
            (
                row.id.id,
                org,
                row.id.kind,
                name_scope(row.id.kind),
                unique_name(row.id.kind, row.display_name),
                row.display_name,
                row.spec_json,
            )
            for row in written
        ],
    )
    connection.executemany(
        "DELETE FROM attachments WHERE resource_id = ? AND label_id = ?", sorted(detached - attached)
    )
    connection.executemany("INSERT INTO attachments (resource_id, label_id) VALUES (?, ?)", sorted(attached - detached))
    referring, before_referring = _references(after.resources), _references(before.resources)
    connection.executemany(
        "DELETE FROM bindings WHERE resource_id = ? AND pointer = ? AND referred_id = ?",
        sorted(before_referring - referring),
    )
    connection.executemany(
        "INSERT INTO bindings (resource_id, pointer, referred_id) VALUES (?, ?, ?)",
        sorted(referring - before_referring),
    )
    connection.executemany(
        "DELETE FROM secrets WHERE org = ? AND key = ?", [(org, key) for key in before.secrets.keys() - after.secrets]
    )
    connection.executemany(
        "INSERT INTO secrets (org, key, hash) VALUES (?, ?, ?)"
        " ON CONFLICT (org, key) DO UPDATE SET hash = excluded.hash",
        [(org, key, hash_) for key, hash_ in after.secrets.items() if before.secrets.get(key) != hash_],
    )


def _remember(db: sqlite_utils.Database, org: str, operation: str, before: Extract, after: Extract, now: int) -> None:
    new = after.created.keys() - before.created.keys()
    db.conn.executemany(
        "INSERT INTO creates (org, kind, idempotency_key, resource_id, operation, time) VALUES (?, ?, ?, ?, ?, ?)",
        [(org, kind, key, after.created[kind, key], operation, now) for kind, key in sorted(new)],
    )


def _attachments(resources: Mapping[ResourceId, StoredResource]) -> set[tuple[str, str]]:
    return {(resource.id.id, label_id) for resource in resources.values() for label_id in resource.label_ids}


def _references(resources: Mapping[ResourceId, StoredResource]) -> set[tuple[str, str, str]]:
    return {(id_.id, each.pointer, each.id) for id_, resource in resources.items() for each in resource.references}


def _rows_for(db: sqlite_utils.Database, sql: str, fixed: Sequence[str], values: Iterable[str | None]) -> Iterator[Any]:
    """Rows of *sql* for all *values*; ``{}`` in it becomes the placeholders of one statement, as many as allowed."""
    remaining = list(values)
    for start in range(0, len(remaining), _PLACEHOLDERS):
        part = remaining[start : start + _PLACEHOLDERS]
        yield from db.conn.execute(sql.format(",".join("?" * len(part))), [*fixed, *part])
