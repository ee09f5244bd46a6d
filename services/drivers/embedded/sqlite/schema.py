"""The tables of the embedded platform, as migrations that run when its file is opened."""

import sqlite_utils
from sqlite_utils.db import ForeignKey
from sqlite_utils.migrations import Migrations

from services.drivers.embedded.kinds import unique_name
from services.kinds.format.canonical import spec_from_text
from services.machine import machine_clock

MIGRATIONS = Migrations("platform")
"""Append only: a released migration is never changed."""


@MIGRATIONS()
def resources_attachments_creates_fences(db: sqlite_utils.Database) -> None:
    """
    Create the first tables.

    ``resources.unique_name`` is the name as the platform compares it; NULL where names may repeat, as NULLs are
    distinct in an index. Rows of ``creates`` outlive their resources: a key never creates a second resource.
    """
    resources = db.table("resources").create(
        {"id": str, "org": str, "kind": str, "unique_name": str, "spec": str},
        pk="id",
        not_null=["id", "org", "kind", "spec"],
        strict=True,
    )
    resources.create_index(["org", "kind", "id"])
    resources.create_index(["org", "kind", "unique_name"], unique=True)
    attachments = db.table("attachments").create(
        {"resource_id": str, "label_id": str},
        pk=("resource_id", "label_id"),
        foreign_keys=[
            ForeignKey("attachments", column, "resources", "id", on_delete="CASCADE")
            for column in ("resource_id", "label_id")
        ],
        strict=True,
    )
    attachments.create_index(["label_id"])
    db.table("creates").create(
        {"org": str, "kind": str, "idempotency_key": str, "resource_id": str},
        pk=("org", "kind", "idempotency_key"),
        not_null=["resource_id"],
        strict=True,
    )
    db.table("fences").create({"scope": str, "token": int}, pk="scope", not_null=["token"], strict=True)


@MIGRATIONS()
def name_scopes_and_bindings(db: sqlite_utils.Database) -> None:
    """
    Let kinds share a scope of names, and resources refer to each other.

    Until this migration every kind has its own scope.
    """
    resources = db.table("resources")
    resources.add_column("name_scope", str, not_null_default="")
    db.execute("UPDATE resources SET name_scope = kind")
    db.execute("DROP INDEX idx_resources_org_kind_unique_name")
    resources.create_index(["org", "name_scope", "unique_name"], unique=True)
    bindings = db.table("bindings").create(
        {"resource_id": str, "pointer": str, "referred_id": str},
        pk=("resource_id", "pointer"),
        not_null=["referred_id"],
        foreign_keys=[
            ForeignKey("bindings", column, "resources", "id", on_delete="CASCADE")
            for column in ("resource_id", "referred_id")
        ],
        strict=True,
    )
    bindings.create_index(["referred_id"])


@MIGRATIONS()
def secrets(db: sqlite_utils.Database) -> None:
    """Create the table of secrets; ``hash`` is a result of ``secrets.hashed``."""
    db.table("secrets").create(
        {"org": str, "key": str, "hash": str}, pk=("org", "key"), not_null=["org", "key", "hash"], strict=True
    )


@MIGRATIONS()
def names_as_influxdb_compares_them(db: sqlite_utils.Database) -> None:
    """
    Compare names of variables without case, and names of labels without the white space around them.

    Two resources of an earlier version may now have the same name. Both stay, so the index is no longer unique:
    ``batch.perform`` refuses a taken name, in the transaction that writes.
    """
    connection = db.conn
    rows = connection.execute("SELECT id, kind, spec FROM resources WHERE unique_name IS NOT NULL").fetchall()
    connection.execute("DROP INDEX idx_resources_org_name_scope_unique_name")
    connection.executemany(
        "UPDATE resources SET unique_name = ? WHERE id = ?",
        [(unique_name(kind, spec_from_text(spec).display_name), id_) for id_, kind, spec in rows],
    )
    db.table("resources").create_index(["org", "name_scope", "unique_name"])


@MIGRATIONS()
def display_names(db: sqlite_utils.Database) -> None:
    """
    Store the display name beside the spec, so that listing and comparing names reads no spec.

    The names are computed in Python: ``json_extract`` of SQLite cuts a text at a NUL character.
    """
    db.table("resources").add_column("display_name", str, not_null_default="")
    rows = db.conn.execute("SELECT id, spec FROM resources").fetchall()
    db.conn.executemany(
        "UPDATE resources SET display_name = ? WHERE id = ?",
        [(spec_from_text(spec).display_name, id_) for id_, spec in rows],
    )


@MIGRATIONS()
def fences_remember_what_was_before(db: sqlite_utils.Database) -> None:
    """
    Store the operation of each token, and the highest token before it; 0: there was none.

    For existing rows the token before is unknown.
    """
    fences = db.table("fences")
    fences.add_column("operation", str, not_null_default="")
    fences.add_column("lower_token", int, not_null_default=0)
    fences.add_column("lower_operation", str, not_null_default="")


@MIGRATIONS()
def ages(db: sqlite_utils.Database) -> None:
    """
    Store the age of idempotency keys and of the fences of operations on behalf of no stack, to remove old ones.

    ``time`` is in microseconds since 1970. Existing keys are as old as this migration. For existing fences it is
    unknown whether they are on behalf of a stack, so they stay.
    """
    creates, fences = db.table("creates"), db.table("fences")
    creates.add_column("operation", str, not_null_default="")
    creates.add_column("time", int, not_null_default=0)
    db.execute("UPDATE creates SET time = ?", [machine_clock()])
    creates.create_index(["time"])
    fences.add_column("is_transient", int, not_null_default=0)
    fences.add_column("time", int, not_null_default=0)
    fences.create_index(["operation"])
    db.execute("CREATE INDEX transient_fences ON fences (time) WHERE is_transient")
