"""The tables of the stack store, as migrations that run when the service starts (engine.md 8)."""

import sqlite_utils
from sqlite_utils.migrations import Migrations

MIGRATIONS = Migrations("stack")
"""Append only: a migration that was released is never changed. Times are microseconds since 1970, UTC."""


@MIGRATIONS()
def stacks_inventory_requests(db: sqlite_utils.Database) -> None:
    """
    Create the first tables.

    A lease is free when ``lease_expires`` is in the past (0 from the start), so one comparison tells. JSON stands in
    ``config`` (an object), ``sources`` (a list of texts) and ``associations`` (a list of [kind, name]). ``requests``
    holds what was answered to a request id: ``result`` is the id of the stack.
    """
    db.execute(
        """
        CREATE TABLE stacks (
            id TEXT PRIMARY KEY,
            platform TEXT NOT NULL,
            org TEXT NOT NULL,
            name TEXT NOT NULL,
            description TEXT NOT NULL,
            config TEXT NOT NULL DEFAULT '{}',
            state TEXT NOT NULL CHECK (state IN ('PENDING', 'ACTIVE')),
            generation BIGINT NOT NULL DEFAULT 0,
            sources TEXT NOT NULL DEFAULT '[]',
            lease_holder TEXT NOT NULL DEFAULT '',
            lease_operation TEXT NOT NULL DEFAULT '',
            lease_token BIGINT NOT NULL DEFAULT 0,
            lease_expires BIGINT NOT NULL DEFAULT 0,
            create_time BIGINT NOT NULL,
            update_time BIGINT NOT NULL,
            CHECK (update_time >= create_time)
        )
        """
    )
    db.execute("CREATE UNIQUE INDEX stacks_by_name ON stacks (platform, org, name) WHERE name <> ''")
    db.execute(
        """
        CREATE TABLE inventory (
            stack TEXT NOT NULL REFERENCES stacks (id) ON DELETE CASCADE,
            kind TEXT NOT NULL,
            name TEXT NOT NULL,
            platform TEXT NOT NULL,
            org TEXT NOT NULL,
            remote_id TEXT NOT NULL,
            origin TEXT NOT NULL CHECK (origin IN ('created', 'adopted')),
            associations TEXT NOT NULL,
            PRIMARY KEY (stack, kind, name),
            UNIQUE (platform, org, kind, remote_id)
        )
        """
    )
    db.execute(
        """
        CREATE TABLE requests (
            request_id TEXT PRIMARY KEY,
            digest TEXT NOT NULL,
            result TEXT NOT NULL,
            expires BIGINT NOT NULL
        )
        """
    )
    db.execute("CREATE INDEX requests_by_expiry ON requests (expires)")
