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


@MIGRATIONS()
def nameless_stacks(db: sqlite_utils.Database) -> None:
    """
    Let stacks be NAMELESS, too; SQLite changes a CHECK by making the table again.

    The inventory is made again with it: to drop the table it refers to would empty it, as rows go with their stack.
    Renaming the new stacks makes the new inventory refer to them by that name.
    """
    db.execute(
        """
        CREATE TABLE new_stacks (
            id TEXT PRIMARY KEY,
            platform TEXT NOT NULL,
            org TEXT NOT NULL,
            name TEXT NOT NULL,
            description TEXT NOT NULL,
            config TEXT NOT NULL DEFAULT '{}',
            state TEXT NOT NULL CHECK (state IN ('PENDING', 'ACTIVE', 'NAMELESS')),
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
    db.execute(
        """
        CREATE TABLE new_inventory (
            stack TEXT NOT NULL REFERENCES new_stacks (id) ON DELETE CASCADE,
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
    db.execute("INSERT INTO new_stacks SELECT * FROM stacks")
    db.execute("INSERT INTO new_inventory SELECT * FROM inventory")
    db.execute("DROP TABLE inventory")
    db.execute("DROP TABLE stacks")
    db.execute("ALTER TABLE new_stacks RENAME TO stacks")
    db.execute("ALTER TABLE new_inventory RENAME TO inventory")
    db.execute("CREATE UNIQUE INDEX stacks_by_name ON stacks (platform, org, name) WHERE name <> ''")
    db.execute("CREATE INDEX nameless_stacks ON stacks (id) WHERE state = 'NAMELESS'")


@MIGRATIONS()
def operations_steps_events(db: sqlite_utils.Database) -> None:
    """
    Create the journal.

    Operations outlive their stack, so ``stack`` refers to nothing; of an operation on behalf of no stack it is the id
    of the nameless one. ``token`` is that of the operation's last lease. The plan has a table of its own, as SQLite
    writes a row as a whole whenever one of its columns changes. ``before_ids`` is a JSON list of texts, ``reason`` a
    number of ``pkger.model.v1.RejectionReason``, ``body`` a message in its wire format.
    """
    db.execute(
        """
        CREATE TABLE operations (
            name TEXT PRIMARY KEY,
            stack TEXT NOT NULL,
            nameless INTEGER NOT NULL CHECK (nameless IN (0, 1)),
            stack_name TEXT NOT NULL,
            platform TEXT NOT NULL,
            org TEXT NOT NULL,
            kind TEXT NOT NULL CHECK (kind IN ('APPLY', 'UNINSTALL')),
            state TEXT NOT NULL CHECK (state IN (
                'PREPARING', 'APPLYING', 'ROLLING_BACK', 'BLOCKED', 'SUCCEEDED', 'ROLLED_BACK', 'FAILED'
            )),
            rolling_back INTEGER NOT NULL DEFAULT 0 CHECK (rolling_back IN (0, 1)),
            sealed INTEGER NOT NULL DEFAULT 0 CHECK (sealed IN (0, 1)),
            cancel_requested INTEGER NOT NULL DEFAULT 0 CHECK (cancel_requested IN (0, 1)),
            cause TEXT NOT NULL DEFAULT '',
            holder TEXT NOT NULL,
            token BIGINT NOT NULL,
            step_count BIGINT NOT NULL DEFAULT 0,
            done_count BIGINT NOT NULL DEFAULT 0,
            last_seq BIGINT NOT NULL DEFAULT 0,
            create_time BIGINT NOT NULL,
            update_time BIGINT NOT NULL
        ) WITHOUT ROWID
        """
    )
    db.execute(
        "CREATE UNIQUE INDEX unfinished_operations ON operations (stack)"
        " WHERE state IN ('PREPARING', 'APPLYING', 'ROLLING_BACK', 'BLOCKED')"
    )
    db.execute(
        "CREATE INDEX finished_operations ON operations (update_time, name)"
        " WHERE state IN ('SUCCEEDED', 'ROLLED_BACK', 'FAILED')"
    )
    db.execute("CREATE UNIQUE INDEX operations_by_token ON operations (stack, token)")
    db.execute("CREATE INDEX operations_by_time ON operations (create_time, name)")
    db.execute("CREATE INDEX operations_by_stack ON operations (stack, create_time, name)")
    db.execute(
        """
        CREATE TABLE operation_plans (
            operation TEXT PRIMARY KEY REFERENCES operations (name) ON DELETE CASCADE,
            body BLOB NOT NULL
        )
        """
    )
    db.execute(
        """
        CREATE TABLE steps (
            operation TEXT NOT NULL REFERENCES operations (name) ON DELETE CASCADE,
            n BIGINT NOT NULL,
            state TEXT NOT NULL,
            remote_id TEXT NOT NULL,
            message TEXT NOT NULL,
            reason BIGINT NOT NULL,
            before_ids TEXT NOT NULL,
            PRIMARY KEY (operation, n)
        ) WITHOUT ROWID
        """
    )
    db.execute(
        """
        CREATE TABLE events (
            operation TEXT NOT NULL REFERENCES operations (name) ON DELETE CASCADE,
            seq BIGINT NOT NULL,
            body BLOB NOT NULL,
            PRIMARY KEY (operation, seq)
        )
        """
    )


@MIGRATIONS()
def states_and_policies_of_entries(db: sqlite_utils.Database) -> None:
    """Mark what could not be deleted yet; make room for the policy that an entry was recorded under (engine.md 8)."""
    db.execute(
        "ALTER TABLE inventory ADD COLUMN state TEXT NOT NULL DEFAULT 'PRESENT'"
        " CHECK (state IN ('PRESENT', 'PENDING_DELETE'))"
    )
    db.execute("ALTER TABLE inventory ADD COLUMN policy TEXT NOT NULL DEFAULT '{}'")
