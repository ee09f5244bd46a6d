"""
The tables of the stack store, as migrations that run when the service starts (docs/reference/engine.md, "Tables").
"""

from collections.abc import Collection

import orjson
import sqlite_utils
from pkger.journal.v1 import journal_pb2
from sqlite_utils.migrations import Migrations

from services.core.model import InventoryEntry, Key, OperationKind, Origin
from stack_svc.sqlite.frozen import messages as frozen
from stack_svc.sqlite.frozen.translation import Translated, blocks_of, event_of, plan_of

MIGRATIONS = Migrations("stack")
"""Append only: a released migration is never changed. Times are microseconds since 1970, UTC."""


@MIGRATIONS()
def stacks_inventory_requests(db: sqlite_utils.Database) -> None:
    """
    Create the first tables.

    A lease is free when ``lease_expires`` is in the past (0 at first), so one comparison is enough. ``config`` (an
    object), ``sources`` (a list of texts) and ``associations`` (a list of [kind, name]) are JSON. ``requests`` holds
    the answers to request ids: ``result`` is the id of the stack.
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
    Add the state NAMELESS; SQLite can change a CHECK only by recreating the table.

    The inventory is recreated, too: dropping the table that it refers to would delete its rows by cascade. When the new
    stacks are renamed, the new inventory refers to them by that name.
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

    Operations outlive their stack, so ``stack`` is no foreign key; for an operation without a stack it is the id of the
    nameless one. ``token`` is that of the operation's last lease. The plan has a table of its own, as SQLite writes the
    whole row when one of its columns changes. ``before_ids`` is a JSON list of texts, ``reason`` a number of
    ``pkger.model.v1.RejectionReason``, ``body`` a message in its wire format.
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
    """
    Mark resources that could not be deleted yet; add the policy under which an entry was recorded
    (docs/reference/engine.md, "Tables").
    """
    db.execute(
        "ALTER TABLE inventory ADD COLUMN state TEXT NOT NULL DEFAULT 'PRESENT'"
        " CHECK (state IN ('PRESENT', 'PENDING_DELETE'))"
    )
    db.execute("ALTER TABLE inventory ADD COLUMN policy TEXT NOT NULL DEFAULT '{}'")


@MIGRATIONS()
def plans(db: sqlite_utils.Database) -> None:
    """
    Store plans independently of operations; the plans of operations move here.

    ``stack`` is no foreign key, as a stack may be removed before a plan expires, or be created only by it. ``state``
    has no CHECK: SQLite can change one only by recreating the table, and more states will follow. ``expires`` is NULL
    for the plan that an operation made for itself. The bodies have a table of their own, as SQLite writes the whole
    row when one of its columns changes.

    The request id of an operation that ends before it starts can be used again, so requests have an index by result.
    """
    db.execute(
        """
        CREATE TABLE plans (
            name TEXT PRIMARY KEY,
            stack TEXT NOT NULL,
            stack_name TEXT NOT NULL,
            platform TEXT NOT NULL,
            org TEXT NOT NULL,
            digest TEXT NOT NULL,
            base_generation BIGINT NOT NULL,
            ends_stack INTEGER NOT NULL CHECK (ends_stack IN (0, 1)),
            step_count BIGINT NOT NULL,
            state TEXT NOT NULL,
            problem TEXT NOT NULL DEFAULT '',
            operation TEXT UNIQUE REFERENCES operations (name) ON DELETE CASCADE,
            create_time BIGINT NOT NULL,
            expires BIGINT
        )
        """
    )
    db.execute("CREATE INDEX plans_by_time ON plans (create_time, name)")
    db.execute("CREATE INDEX unused_plans ON plans (expires) WHERE operation IS NULL")
    db.execute(
        """
        CREATE TABLE plan_bodies (
            plan TEXT PRIMARY KEY REFERENCES plans (name) ON DELETE CASCADE,
            body BLOB NOT NULL
        )
        """
    )
    rows = db.execute(
        """
        SELECT name, CASE nameless WHEN 0 THEN stack ELSE '' END, stack_name, platform, org, kind = 'UNINSTALL',
            step_count, state IN ('SUCCEEDED', 'ROLLED_BACK', 'FAILED'), create_time, body
        FROM operation_plans JOIN operations ON name = operation
        """
    )
    for operation, stack, stack_name, platform, org, ends_stack, step_count, is_over, create_time, body in rows:
        name = f"plans/{operation.rpartition('/')[2]}"
        plan = frozen.Plan.FromString(body)
        db.execute(
            """
            INSERT INTO plans (name, stack, stack_name, platform, org, digest, base_generation, ends_stack, step_count,
                state, operation, create_time)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                name,
                stack,
                stack_name,
                platform,
                org,
                plan.digest,
                plan.base_generation,
                ends_stack,
                step_count,
                "APPLIED" if is_over else "APPLYING",
                operation,
                create_time,
            ],
        )
        plan.name, plan.stack_name, plan.ends_stack = name, stack_name, bool(ends_stack)
        db.execute("INSERT INTO plan_bodies (plan, body) VALUES (?, ?)", [name, plan.SerializeToString()])
    db.execute("DROP TABLE operation_plans")
    db.execute("CREATE INDEX requests_by_result ON requests (result)")


@MIGRATIONS()
def blocks(db: sqlite_utils.Database) -> None:
    """Store the blocks of BLOCKED operations; ``body`` is a part of a ``pkger.model.v1.Operation``."""
    db.execute(
        """
        CREATE TABLE blocks (
            operation TEXT PRIMARY KEY REFERENCES operations (name) ON DELETE CASCADE,
            body BLOB NOT NULL
        )
        """
    )


@MIGRATIONS()
def contracts_that_carry_more(db: sqlite_utils.Database) -> None:
    """
    Store a plan as header, body and content; translate stored messages to the contracts of issue 12.

    Stored plans, blocked steps and events are translated from the frozen messages of ``stack_svc.sqlite.frozen``.
    Translated plans have no content, so their differences and summaries are lost.

    ``plan_bodies.header`` is the first column, as lists read no other; ``body`` and ``content`` are as in
    ``pkger.journal.v1.NewPlan``. ``blocks.reason`` is a number of ``pkger.model.v1.BlockedReason``.
    ``steps.observed`` is the spec that the platform held after the step, if it differs from the spec that was sent.
    ``stacks.config`` was never written and is dropped.
    """
    for table in ("inventory", "steps"):
        db.execute(f"ALTER TABLE {table} RENAME COLUMN remote_id TO resource_id")
    db.execute("ALTER TABLE steps ADD COLUMN observed TEXT NOT NULL DEFAULT ''")
    db.execute("ALTER TABLE stacks DROP COLUMN config")
    db.execute("ALTER TABLE plans ADD COLUMN kind TEXT NOT NULL DEFAULT 'APPLY' CHECK (kind IN ('APPLY', 'UNINSTALL'))")
    db.execute("UPDATE plans SET kind = 'UNINSTALL' WHERE ends_stack")
    db.execute("ALTER TABLE plans DROP COLUMN ends_stack")
    db.execute("ALTER TABLE plan_bodies RENAME TO old_plan_bodies")
    db.execute("ALTER TABLE blocks RENAME TO old_blocks")
    db.execute(
        """
        CREATE TABLE plan_bodies (
            plan TEXT PRIMARY KEY REFERENCES plans (name) ON DELETE CASCADE,
            header BLOB NOT NULL,
            body BLOB NOT NULL,
            content BLOB NOT NULL
        )
        """
    )
    db.execute(
        """
        CREATE TABLE blocks (
            operation TEXT PRIMARY KEY REFERENCES operations (name) ON DELETE CASCADE,
            reason BIGINT NOT NULL,
            step_count BIGINT NOT NULL,
            body BLOB NOT NULL
        )
        """
    )
    rows = db.execute(
        "SELECT name, stack, kind, state, base_generation, operation, body"
        " FROM plans JOIN old_plan_bodies ON plan = name"
    )
    for name, stack, kind, state, base_generation, operation, body in rows:
        recorded = _recorded(db, stack, base_generation) if state in ("PENDING", "APPLYING") else None
        old = frozen.Plan.FromString(body)
        translated = plan_of(old, OperationKind(kind), recorded if old.stack_id or old.stack_name else None)
        db.execute(
            "INSERT INTO plan_bodies (plan, header, body, content) VALUES (?, ?, ?, x'')",
            [name, translated.header.SerializeToString(), translated.body.SerializeToString()],
        )
        if operation:
            _translate_journal(db, operation, translated)
    db.execute("DROP TABLE old_plan_bodies")
    db.execute("DROP TABLE old_blocks")


@MIGRATIONS()
def leases_and_journal(db: sqlite_utils.Database) -> None:
    """
    Store leases in a table of their own, and one row for each write of an operation (docs/reference/engine.md, "Tables"
    and "Journal").

    A lease is renewed often, and the row of a stack is wide. The duration of older leases is unknown, so they get the
    longest ``ttl``.

    ``stacks.resource_count`` is the number of rows of the inventory, so that reading a stack does not count them.

    The records of the steps of an operation, and its events, become the row at position 0 of its journal.
    ``operations.last_event`` is the last event of a finished operation, in the wire format.
    """
    db.execute(
        """
        CREATE TABLE leases (
            stack TEXT PRIMARY KEY REFERENCES stacks (id) ON DELETE CASCADE,
            holder TEXT NOT NULL,
            operation TEXT NOT NULL,
            token BIGINT NOT NULL,
            ttl BIGINT NOT NULL,
            expires BIGINT NOT NULL
        ) WITHOUT ROWID
        """
    )
    db.execute(
        "INSERT INTO leases (stack, holder, operation, token, ttl, expires)"
        " SELECT id, lease_holder, lease_operation, lease_token, 600000000, lease_expires FROM stacks"
    )
    for column in ("lease_holder", "lease_operation", "lease_token", "lease_expires"):
        db.execute(f"ALTER TABLE stacks DROP COLUMN {column}")
    db.execute("ALTER TABLE stacks ADD COLUMN resource_count BIGINT NOT NULL DEFAULT 0")
    db.execute("UPDATE stacks SET resource_count = (SELECT COUNT(*) FROM inventory WHERE inventory.stack = stacks.id)")
    db.execute("DROP INDEX nameless_stacks")
    db.execute("CREATE INDEX stacks_of_operations ON stacks (id) WHERE state <> 'ACTIVE'")
    db.execute("DROP INDEX operations_by_token")
    db.execute("ALTER TABLE operations ADD COLUMN position BIGINT NOT NULL DEFAULT 0")
    db.execute("ALTER TABLE operations ADD COLUMN last_event BLOB NOT NULL DEFAULT x''")
    db.execute(
        """
        UPDATE operations SET last_event = events.body FROM events
        WHERE operation = operations.name AND seq = last_seq AND state IN ('SUCCEEDED', 'ROLLED_BACK', 'FAILED')
        """
    )
    db.execute(
        """
        CREATE TABLE journal (
            operation TEXT NOT NULL REFERENCES operations (name) ON DELETE CASCADE,
            position BIGINT NOT NULL,
            token BIGINT NOT NULL,
            last_seq BIGINT NOT NULL,
            time BIGINT NOT NULL,
            records BLOB NOT NULL,
            events BLOB NOT NULL,
            PRIMARY KEY (operation, position)
        )
        """
    )
    rows = db.execute("SELECT name, token, last_seq, update_time FROM operations WHERE last_seq > 0").fetchall()
    for name, token, last_seq, time in rows:
        db.execute(
            "INSERT INTO journal (operation, position, token, last_seq, time, records, events)"
            " VALUES (?, 0, ?, ?, ?, ?, ?)",
            [name, token, last_seq, time, _stored_records(db, name), _stored_events(db, name)],
        )
    db.execute("DROP TABLE steps")
    db.execute("DROP TABLE events")


@MIGRATIONS()
def owners(db: sqlite_utils.Database) -> None:
    """
    Store the owners of items that only one stack at a time may own, recorded or claimed (docs/reference/engine.md,
    "Claims").

    The inventory is recreated without its unique key on resources, as this table enforces that rule now.
    """
    db.execute(
        """
        CREATE TABLE owners (
            platform TEXT NOT NULL,
            org TEXT NOT NULL,
            what TEXT NOT NULL,
            stack TEXT NOT NULL REFERENCES stacks (id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            operation TEXT NOT NULL,
            since BIGINT NOT NULL,
            PRIMARY KEY (platform, org, what)
        ) WITHOUT ROWID
        """
    )
    db.execute("CREATE INDEX owners_by_stack ON owners (stack, operation)")
    db.execute(
        """
        INSERT INTO owners (platform, org, what, stack, name, operation, since)
        SELECT inventory.platform, inventory.org, 'i:' || kind || ':' || resource_id, stack, inventory.name, '',
            stacks.update_time
        FROM inventory JOIN stacks ON stacks.id = stack
        """
    )
    db.execute(
        """
        CREATE TABLE new_inventory (
            stack TEXT NOT NULL REFERENCES stacks (id) ON DELETE CASCADE,
            kind TEXT NOT NULL,
            name TEXT NOT NULL,
            platform TEXT NOT NULL,
            org TEXT NOT NULL,
            resource_id TEXT NOT NULL,
            origin TEXT NOT NULL CHECK (origin IN ('created', 'adopted')),
            associations TEXT NOT NULL,
            state TEXT NOT NULL CHECK (state IN ('PRESENT', 'PENDING_DELETE')),
            policy TEXT NOT NULL DEFAULT '{}',
            PRIMARY KEY (stack, kind, name)
        )
        """
    )
    columns = "stack, kind, name, platform, org, resource_id, origin, associations, state, policy"
    db.execute(f"INSERT INTO new_inventory ({columns}) SELECT {columns} FROM inventory")  # noqa: S608
    db.execute("DROP TABLE inventory")
    db.execute("ALTER TABLE new_inventory RENAME TO inventory")


@MIGRATIONS()
def sizes_of_operations(db: sqlite_utils.Database) -> None:
    """Store the size of a finished operation with its plan and its journal; the next sweep measures it."""
    db.execute("ALTER TABLE operations ADD COLUMN size BIGINT")


@MIGRATIONS()
def defects(db: sqlite_utils.Database) -> None:
    """Count the attempts to resume an operation that ended with a defect."""
    db.execute("ALTER TABLE operations ADD COLUMN defects BIGINT NOT NULL DEFAULT 0")


@MIGRATIONS()
def last_tokens(db: sqlite_utils.Database) -> None:
    """
    Store the token of the lease before the last one.

    For existing leases it is unknown. They get their own token, as no platform has seen a token between the two.
    """
    db.execute("ALTER TABLE leases ADD COLUMN last_token BIGINT NOT NULL DEFAULT 0")
    db.execute("UPDATE leases SET last_token = token")


@MIGRATIONS()
def uses(db: sqlite_utils.Database) -> None:
    """Store which stacks use resources of others, and count the hand-overs to a stack during its operation."""
    db.execute(
        """
        CREATE TABLE uses (
            platform TEXT NOT NULL,
            org TEXT NOT NULL,
            what TEXT NOT NULL,
            stack TEXT NOT NULL REFERENCES stacks (id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            operation TEXT NOT NULL,
            since BIGINT NOT NULL,
            PRIMARY KEY (platform, org, what, stack, operation)
        ) WITHOUT ROWID
        """
    )
    db.execute("CREATE INDEX uses_by_stack ON uses (stack, operation)")
    db.execute("ALTER TABLE operations ADD COLUMN handed_over BIGINT NOT NULL DEFAULT 0")
    db.execute(
        """
        CREATE TABLE new_inventory (
            stack TEXT NOT NULL REFERENCES stacks (id) ON DELETE CASCADE,
            kind TEXT NOT NULL,
            name TEXT NOT NULL,
            platform TEXT NOT NULL,
            org TEXT NOT NULL,
            resource_id TEXT NOT NULL,
            origin TEXT NOT NULL CHECK (origin IN ('created', 'adopted', 'shared')),
            associations TEXT NOT NULL,
            state TEXT NOT NULL CHECK (state IN ('PRESENT', 'PENDING_DELETE')),
            policy TEXT NOT NULL DEFAULT '{}',
            PRIMARY KEY (stack, kind, name)
        )
        """
    )
    columns = "stack, kind, name, platform, org, resource_id, origin, associations, state, policy"
    db.execute(f"INSERT INTO new_inventory ({columns}) SELECT {columns} FROM inventory")  # noqa: S608
    db.execute("DROP TABLE inventory")
    db.execute("ALTER TABLE new_inventory RENAME TO inventory")


@MIGRATIONS()
def owners_by_rowid(db: sqlite_utils.Database) -> None:
    """
    Store owners in the order of insertion, with both indexes pointing to the rows.

    Ids are inserted in random order. While the table was ordered by its primary key, each write of the journal rewrote
    most of it.
    """
    db.execute(
        """
        CREATE TABLE new_owners (
            platform TEXT NOT NULL,
            org TEXT NOT NULL,
            what TEXT NOT NULL,
            stack TEXT NOT NULL REFERENCES stacks (id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            operation TEXT NOT NULL,
            since BIGINT NOT NULL,
            PRIMARY KEY (platform, org, what)
        )
        """
    )
    columns = "platform, org, what, stack, name, operation, since"
    db.execute(f"INSERT INTO new_owners ({columns}) SELECT {columns} FROM owners")  # noqa: S608
    db.execute("DROP TABLE owners")
    db.execute("ALTER TABLE new_owners RENAME TO owners")
    db.execute("CREATE INDEX owners_by_stack ON owners (stack, operation)")


@MIGRATIONS()
def revisions_and_baselines(db: sqlite_utils.Database) -> None:
    """
    Store the history of stacks, and the baselines of their resources.

    ``attachments`` are the packages of revisions and plans, and the baselines of plans: texts by their digest, in
    compressed ``attachment_parts``. ``time`` is when an attachment was last known to be in use. ``baselines`` are
    removed with their entries; ``refs`` is a JSON list of [pointer, kind, id], ``missing_labels`` one of [kind, name].

    ``stacks.policy`` is a JSON object.

    Kinds and states of operations and plans lose their CHECK, which SQLite can change only by recreating the table. To
    remove it, the columns are replaced.
    """
    db.execute(
        """
        CREATE TABLE attachments (
            digest TEXT PRIMARY KEY,
            time BIGINT NOT NULL,
            is_complete INTEGER NOT NULL CHECK (is_complete IN (0, 1))
        )
        """
    )
    db.execute(
        """
        CREATE TABLE attachment_parts (
            digest TEXT NOT NULL REFERENCES attachments (digest) ON DELETE CASCADE,
            number BIGINT NOT NULL,
            body BLOB NOT NULL,
            PRIMARY KEY (digest, number)
        )
        """
    )
    db.execute("CREATE INDEX attachments_by_time ON attachments (time)")
    db.execute(
        """
        CREATE TABLE revisions (
            stack TEXT NOT NULL REFERENCES stacks (id) ON DELETE CASCADE,
            number BIGINT NOT NULL,
            kind TEXT NOT NULL,
            package_digest TEXT NOT NULL,
            sources TEXT NOT NULL,
            author TEXT NOT NULL,
            operation TEXT NOT NULL,
            leftover_count BIGINT NOT NULL,
            rollback_of BIGINT NOT NULL,
            create_time BIGINT NOT NULL,
            PRIMARY KEY (stack, number)
        ) WITHOUT ROWID
        """
    )
    db.execute("CREATE INDEX revisions_by_package ON revisions (package_digest)")
    db.execute(
        """
        CREATE TABLE baselines (
            stack TEXT NOT NULL,
            kind TEXT NOT NULL,
            name TEXT NOT NULL,
            spec TEXT NOT NULL,
            refs TEXT NOT NULL,
            missing_labels TEXT NOT NULL,
            PRIMARY KEY (stack, kind, name),
            FOREIGN KEY (stack, kind, name) REFERENCES inventory (stack, kind, name) ON DELETE CASCADE
        )
        """
    )
    db.execute("ALTER TABLE stacks ADD COLUMN revision BIGINT NOT NULL DEFAULT 0")
    db.execute("ALTER TABLE stacks ADD COLUMN package_digest TEXT NOT NULL DEFAULT ''")
    db.execute("ALTER TABLE stacks ADD COLUMN policy TEXT NOT NULL DEFAULT '{}'")
    db.execute("ALTER TABLE plans ADD COLUMN package_digest TEXT NOT NULL DEFAULT ''")
    db.execute("ALTER TABLE plans ADD COLUMN baselines_digest TEXT NOT NULL DEFAULT ''")
    db.execute("ALTER TABLE plans ADD COLUMN rollback_of BIGINT NOT NULL DEFAULT 0")
    db.execute("CREATE INDEX plans_by_package ON plans (package_digest) WHERE package_digest <> ''")
    db.execute("CREATE INDEX plans_by_baselines ON plans (baselines_digest) WHERE baselines_digest <> ''")
    db.execute("ALTER TABLE operations ADD COLUMN author TEXT NOT NULL DEFAULT ''")
    db.execute("DROP INDEX unfinished_operations")
    db.execute("DROP INDEX finished_operations")
    for table, column in (("operations", "kind"), ("operations", "state"), ("plans", "kind")):
        db.execute(f"ALTER TABLE {table} ADD COLUMN unchecked TEXT NOT NULL DEFAULT ''")
        db.execute(f"UPDATE {table} SET unchecked = {column}")  # noqa: S608
        db.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        db.execute(f"ALTER TABLE {table} RENAME COLUMN unchecked TO {column}")
    db.execute(
        "CREATE UNIQUE INDEX unfinished_operations ON operations (stack)"
        " WHERE state IN ('PREPARING', 'APPLYING', 'ROLLING_BACK', 'BLOCKED')"
    )
    db.execute(
        "CREATE INDEX finished_operations ON operations (update_time, name)"
        " WHERE state IN ('SUCCEEDED', 'ROLLED_BACK', 'FAILED')"
    )


@MIGRATIONS()
def stackless_operations(db: sqlite_utils.Database) -> None:
    """
    Rename NAMELESS to STACKLESS, for operations without a stack and the rows that carry their leases.

    Stacks of users may have no name either. The new column has no CHECK, as SQLite can change one only by replacing the
    column or the table.
    """
    db.execute("ALTER TABLE operations RENAME COLUMN nameless TO stackless")
    db.execute("DROP INDEX stacks_of_operations")
    db.execute("ALTER TABLE stacks ADD COLUMN new_state TEXT NOT NULL DEFAULT 'ACTIVE'")
    db.execute("UPDATE stacks SET new_state = CASE state WHEN 'NAMELESS' THEN 'STACKLESS' ELSE state END")
    db.execute("ALTER TABLE stacks DROP COLUMN state")
    db.execute("ALTER TABLE stacks RENAME COLUMN new_state TO state")
    db.execute("CREATE INDEX stacks_of_operations ON stacks (id) WHERE state <> 'ACTIVE'")


@MIGRATIONS()
def urls_of_stacks(db: sqlite_utils.Database) -> None:
    """
    Add the URLs of stacks, a JSON list of texts, and a version that counts the changes by users.

    The indexes have the order of lists: of all stacks, and of the stacks of a target.
    """
    db.execute("ALTER TABLE stacks ADD COLUMN urls TEXT NOT NULL DEFAULT '[]'")
    db.execute("ALTER TABLE stacks ADD COLUMN version BIGINT NOT NULL DEFAULT 1")
    db.execute("CREATE INDEX stacks_in_order ON stacks (name, id) WHERE state = 'ACTIVE'")
    db.execute("CREATE INDEX stacks_of_target ON stacks (platform, org, name, id) WHERE state = 'ACTIVE'")


@MIGRATIONS()
def ends_of_uninstalls(db: sqlite_utils.Database) -> None:
    """Set the field ``then`` of older plans of uninstalls: they delete their stack."""
    rows = db.execute("SELECT plan, header FROM plan_bodies JOIN plans ON name = plan WHERE kind = 'UNINSTALL'")
    # A field appended to a serialised message overrides an earlier one: field 19, Plan.then, is AFTER_UNINSTALL_DELETE.
    db.conn.executemany(
        "UPDATE plan_bodies SET header = ? WHERE plan = ?",
        [(bytes(header) + b"\x98\x01\x02", plan) for plan, header in rows.fetchall()],
    )


@MIGRATIONS()
def operations_by_lease(db: sqlite_utils.Database) -> None:
    """Add an index for the last operations on a stack: the order of their leases does not depend on clocks."""
    db.execute("CREATE INDEX operations_by_lease ON operations (stack, token)")


@MIGRATIONS()
def looks(db: sqlite_utils.Database) -> None:
    """Store the last drift detection of each stack; ``counts`` is a JSON object of numbers of resources by status."""
    db.execute(
        """
        CREATE TABLE looks (
            stack TEXT PRIMARY KEY REFERENCES stacks (id) ON DELETE CASCADE,
            time BIGINT NOT NULL,
            generation BIGINT NOT NULL,
            counts TEXT NOT NULL
        )
        """
    )


@MIGRATIONS()
def plans_of_new_nameless_stacks(db: sqlite_utils.Database) -> None:
    """Mark plans that create a stack without a name, and index the stacks without a name."""
    db.execute("ALTER TABLE plans ADD COLUMN creates_nameless_stack INTEGER NOT NULL DEFAULT 0")
    db.execute(
        "CREATE INDEX nameless_stacks ON stacks (platform, org, create_time) WHERE name = '' AND state = 'ACTIVE'"
    )


def _stored_records(db: sqlite_utils.Database, operation: str) -> bytes:
    rows = db.execute(
        "SELECT n, state, resource_id, message, reason, before_ids, observed FROM steps WHERE operation = ? ORDER BY n",
        [operation],
    )
    stored = journal_pb2.StoredRecords()
    for step, state, resource_id, message, reason, before_ids, observed in rows:
        stored.steps.add(
            step=step,
            state=journal_pb2.StepState.Value(f"STEP_STATE_{state}"),
            resource_id=resource_id,
            message=message,
            reason=reason,
            before_ids=orjson.loads(before_ids),
            observed_spec_json=observed,
        )
    return stored.SerializeToString()


def _stored_events(db: sqlite_utils.Database, operation: str) -> bytes:
    stored = journal_pb2.StoredEvents()
    for (body,) in db.execute("SELECT body FROM events WHERE operation = ? ORDER BY seq", [operation]):
        stored.events.add().MergeFromString(body)
    return stored.SerializeToString()


def _recorded(db: sqlite_utils.Database, stack: str, generation: int) -> Collection[InventoryEntry] | None:
    """The inventory of a stack; None when its generation is not *generation*, as no plan of that can be applied."""
    moved = db.execute("SELECT 1 FROM stacks WHERE id = ? AND generation <> ?", [stack, generation]).fetchone()
    if moved:
        return None
    rows = db.execute(
        "SELECT kind, name, resource_id, origin, associations, state FROM inventory WHERE stack = ?", [stack]
    )
    return [
        InventoryEntry(
            Key(kind, name),
            resource_id,
            Origin(origin),
            tuple(Key(*label) for label in orjson.loads(labels)),
            state == "PENDING_DELETE",
        )
        for kind, name, resource_id, origin, labels, state in rows
    ]


def _translate_journal(db: sqlite_utils.Database, operation: str, plan: Translated) -> None:
    """Translate the blocked steps and the events of an operation that runs or ran *plan*."""
    for (body,) in db.execute("SELECT body FROM old_blocks WHERE operation = ?", [operation]).fetchall():
        blocks = blocks_of(frozen.Operation.FromString(body), plan.plan.steps)
        db.execute("INSERT INTO blocks (operation, reason, step_count, body) VALUES (?, ?, ?, ?)", [operation, *blocks])
    events = db.execute("SELECT seq, body FROM events WHERE operation = ?", [operation]).fetchall()
    db.conn.executemany(
        "UPDATE events SET body = ? WHERE operation = ? AND seq = ?",
        [(event_of(body, plan.header), operation, seq) for seq, body in events],
    )
