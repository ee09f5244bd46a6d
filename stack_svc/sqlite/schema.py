"""The tables of the stack store (docs/reference/engine.md, "Tables")."""

from services.sqlite.schema import created_by
from stack_svc.sqlite.operation_states import IS_FINISHED, IS_UNFINISHED

SCRIPT = f"""
CREATE TABLE stacks (
    id TEXT PRIMARY KEY,
    platform TEXT NOT NULL,
    org TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    urls TEXT NOT NULL,
    state TEXT NOT NULL,
    policy TEXT NOT NULL,
    version BIGINT NOT NULL DEFAULT 1,
    generation BIGINT NOT NULL DEFAULT 0,
    revision BIGINT NOT NULL DEFAULT 0,
    package_digest TEXT NOT NULL DEFAULT '',
    sources TEXT NOT NULL DEFAULT '[]',
    resource_count BIGINT NOT NULL DEFAULT 0,
    package_count BIGINT NOT NULL DEFAULT 0,
    create_time BIGINT NOT NULL,
    update_time BIGINT NOT NULL,
    CHECK (update_time >= create_time)
);
CREATE UNIQUE INDEX stacks_by_name ON stacks (platform, org, name) WHERE name <> '';
CREATE INDEX stacks_of_operations ON stacks (id) WHERE state <> 'ACTIVE';
CREATE INDEX stacks_in_order ON stacks (name, id) WHERE state = 'ACTIVE';
CREATE INDEX stacks_of_target ON stacks (platform, org, name, id) WHERE state = 'ACTIVE';
CREATE INDEX nameless_stacks ON stacks (platform, org, create_time) WHERE name = '' AND state = 'ACTIVE';

CREATE TABLE leases (
    stack TEXT PRIMARY KEY REFERENCES stacks (id) ON DELETE CASCADE,
    holder TEXT NOT NULL,
    operation TEXT NOT NULL,
    token BIGINT NOT NULL,
    last_token BIGINT NOT NULL DEFAULT 0,
    shown_token BIGINT NOT NULL DEFAULT 0,
    ttl BIGINT NOT NULL,
    expires BIGINT NOT NULL
) WITHOUT ROWID;

CREATE TABLE owners (
    platform TEXT NOT NULL,
    org TEXT NOT NULL,
    what TEXT NOT NULL,
    stack TEXT NOT NULL REFERENCES stacks (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    operation TEXT NOT NULL,
    since BIGINT NOT NULL,
    PRIMARY KEY (platform, org, what)
);
CREATE INDEX owners_by_stack ON owners (stack, operation);

CREATE TABLE uses (
    platform TEXT NOT NULL,
    org TEXT NOT NULL,
    what TEXT NOT NULL,
    stack TEXT NOT NULL REFERENCES stacks (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    operation TEXT NOT NULL,
    since BIGINT NOT NULL,
    PRIMARY KEY (platform, org, what, stack, operation)
) WITHOUT ROWID;
CREATE INDEX uses_by_stack ON uses (stack, operation);

CREATE TABLE inventory (
    stack TEXT NOT NULL REFERENCES stacks (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    platform TEXT NOT NULL,
    org TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    origin TEXT NOT NULL CHECK (origin IN ('created', 'adopted', 'shared')),
    associations TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('PRESENT', 'PENDING_DELETE')),
    policy TEXT NOT NULL,
    own_policy TEXT NOT NULL,
    PRIMARY KEY (stack, kind, name)
);

CREATE TABLE baselines (
    stack TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    spec TEXT NOT NULL,
    refs TEXT NOT NULL,
    missing_labels TEXT NOT NULL,
    PRIMARY KEY (stack, kind, name),
    FOREIGN KEY (stack, kind, name) REFERENCES inventory (stack, kind, name) ON DELETE CASCADE
);

CREATE TABLE drift_checks (
    stack TEXT PRIMARY KEY REFERENCES stacks (id) ON DELETE CASCADE,
    time BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    counts TEXT NOT NULL
);

CREATE TABLE packages (
    stack TEXT NOT NULL REFERENCES stacks (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    repository TEXT NOT NULL,
    digest TEXT NOT NULL,
    content_digest TEXT NOT NULL,
    origin TEXT NOT NULL CHECK (origin IN ('manual', 'dependency')),
    requested TEXT NOT NULL,
    is_pinned INTEGER NOT NULL CHECK (is_pinned IN (0, 1)),
    is_suspended INTEGER NOT NULL CHECK (is_suspended IN (0, 1)),
    requires TEXT NOT NULL,
    PRIMARY KEY (stack, name)
) WITHOUT ROWID;
CREATE INDEX packages_by_repository ON packages (repository, name, stack);
CREATE INDEX packages_by_content ON packages (content_digest);

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
    packages TEXT NOT NULL,
    PRIMARY KEY (stack, number)
) WITHOUT ROWID;
CREATE INDEX revisions_by_package ON revisions (package_digest);

CREATE TABLE revision_contents (
    stack TEXT NOT NULL,
    revision BIGINT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (stack, revision, digest),
    FOREIGN KEY (stack, revision) REFERENCES revisions (stack, number) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX revision_contents_by_digest ON revision_contents (digest);

CREATE TABLE attachments (
    digest TEXT PRIMARY KEY,
    time BIGINT NOT NULL,
    is_complete INTEGER NOT NULL CHECK (is_complete IN (0, 1))
);
CREATE INDEX attachments_by_time ON attachments (time);

CREATE TABLE attachment_parts (
    digest TEXT NOT NULL REFERENCES attachments (digest) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (digest, number)
);

CREATE TABLE operations (
    id TEXT PRIMARY KEY,
    stack TEXT NOT NULL,
    stackless INTEGER NOT NULL CHECK (stackless IN (0, 1)),
    stack_name TEXT NOT NULL,
    platform TEXT NOT NULL,
    org TEXT NOT NULL,
    kind TEXT NOT NULL,
    author TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL,
    rolling_back INTEGER NOT NULL DEFAULT 0 CHECK (rolling_back IN (0, 1)),
    sealed INTEGER NOT NULL DEFAULT 0 CHECK (sealed IN (0, 1)),
    cancel_requested INTEGER NOT NULL DEFAULT 0 CHECK (cancel_requested IN (0, 1)),
    cause TEXT NOT NULL DEFAULT '',
    holder TEXT NOT NULL,
    token BIGINT NOT NULL,
    step_count BIGINT NOT NULL DEFAULT 0,
    done_count BIGINT NOT NULL DEFAULT 0,
    position BIGINT NOT NULL DEFAULT 0,
    last_seq BIGINT NOT NULL DEFAULT 0,
    last_event BLOB NOT NULL DEFAULT x'',
    handed_over BIGINT NOT NULL DEFAULT 0,
    defects BIGINT NOT NULL DEFAULT 0,
    parent TEXT NOT NULL DEFAULT '',
    action_set TEXT NOT NULL DEFAULT '',
    size BIGINT,
    create_time BIGINT NOT NULL,
    update_time BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX operations_by_time ON operations (create_time, id);
CREATE INDEX operations_by_stack ON operations (stack, create_time, id);
CREATE UNIQUE INDEX unfinished_operations ON operations (stack)
    WHERE {IS_UNFINISHED};
CREATE INDEX finished_operations ON operations (update_time, id)
    WHERE {IS_FINISHED};
CREATE INDEX operations_by_lease ON operations (stack, token);

CREATE TABLE blocks (
    operation TEXT PRIMARY KEY REFERENCES operations (id) ON DELETE CASCADE,
    reason BIGINT NOT NULL,
    step_count BIGINT NOT NULL,
    body BLOB NOT NULL
);

CREATE TABLE journal (
    operation TEXT NOT NULL REFERENCES operations (id) ON DELETE CASCADE,
    position BIGINT NOT NULL,
    token BIGINT NOT NULL,
    last_seq BIGINT NOT NULL,
    time BIGINT NOT NULL,
    records BLOB NOT NULL,
    events BLOB NOT NULL,
    PRIMARY KEY (operation, position)
);

CREATE TABLE action_sets (
    name TEXT PRIMARY KEY,
    operation TEXT NOT NULL UNIQUE REFERENCES operations (id) ON DELETE CASCADE,
    predecessor TEXT NOT NULL,
    blueprints TEXT NOT NULL,
    objects TEXT NOT NULL,
    labels TEXT NOT NULL,
    ttl BIGINT,
    phase_count BIGINT NOT NULL,
    has_begun INTEGER NOT NULL CHECK (has_begun IN (0, 1)),
    body BLOB NOT NULL
);

CREATE TABLE reservations (
    platform TEXT NOT NULL,
    org TEXT NOT NULL,
    name TEXT NOT NULL,
    stack TEXT NOT NULL,
    operation TEXT NOT NULL REFERENCES operations (id) ON DELETE CASCADE,
    action_set TEXT NOT NULL,
    since BIGINT NOT NULL,
    PRIMARY KEY (platform, org, name)
) WITHOUT ROWID;
CREATE UNIQUE INDEX reservations_by_stack ON reservations (stack) WHERE stack <> '';
CREATE INDEX reservations_by_operation ON reservations (operation);

CREATE TABLE snapshots (
    id TEXT PRIMARY KEY,
    manifest TEXT NOT NULL,
    made_by TEXT REFERENCES operations (id) ON DELETE SET NULL,
    stack_name TEXT NOT NULL,
    object_count BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    create_time BIGINT NOT NULL,
    delete_time BIGINT,
    deleted_by TEXT NOT NULL
);
CREATE INDEX snapshots_by_time ON snapshots (create_time, id) WHERE delete_time IS NULL;
CREATE INDEX snapshots_by_maker ON snapshots (made_by);

CREATE TABLE snapshot_contents (
    snapshot TEXT NOT NULL REFERENCES snapshots (id) ON DELETE CASCADE,
    digest TEXT NOT NULL,
    PRIMARY KEY (snapshot, digest)
) WITHOUT ROWID;
CREATE INDEX snapshot_contents_by_digest ON snapshot_contents (digest);

CREATE TABLE snapshot_users (
    snapshot TEXT NOT NULL REFERENCES snapshots (id) ON DELETE CASCADE,
    operation TEXT NOT NULL REFERENCES operations (id) ON DELETE CASCADE,
    PRIMARY KEY (snapshot, operation)
) WITHOUT ROWID;
CREATE INDEX snapshot_users_by_operation ON snapshot_users (operation);

CREATE TABLE plans (
    id TEXT PRIMARY KEY,
    stack TEXT NOT NULL,
    stack_name TEXT NOT NULL,
    platform TEXT NOT NULL,
    org TEXT NOT NULL,
    kind TEXT NOT NULL,
    digest TEXT NOT NULL,
    base_generation BIGINT NOT NULL,
    step_count BIGINT NOT NULL,
    package_digest TEXT NOT NULL,
    baselines_digest TEXT NOT NULL,
    rollback_of BIGINT NOT NULL,
    creates_nameless_stack INTEGER NOT NULL,
    state TEXT NOT NULL,
    problem TEXT NOT NULL,
    operation TEXT UNIQUE REFERENCES operations (id) ON DELETE CASCADE,
    create_time BIGINT NOT NULL,
    expires BIGINT
);
CREATE INDEX plans_by_time ON plans (create_time, id);
CREATE INDEX unused_plans ON plans (expires) WHERE operation IS NULL;
CREATE INDEX plans_by_package ON plans (package_digest) WHERE package_digest <> '';
CREATE INDEX plans_by_baselines ON plans (baselines_digest) WHERE baselines_digest <> '';

CREATE TABLE plan_headers (
    plan TEXT PRIMARY KEY REFERENCES plans (id) ON DELETE CASCADE,
    header BLOB NOT NULL
);

CREATE TABLE plan_parts (
    plan TEXT NOT NULL REFERENCES plans (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    view BIGINT NOT NULL,
    part BLOB NOT NULL,
    masked_part BLOB NOT NULL,
    PRIMARY KEY (plan, number)
);

CREATE TABLE plan_packages (
    plan TEXT NOT NULL REFERENCES plans (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    version TEXT,
    repository TEXT,
    digest TEXT,
    content_digest TEXT,
    origin TEXT,
    requested TEXT,
    is_pinned INTEGER,
    is_suspended INTEGER,
    requires TEXT,
    PRIMARY KEY (plan, name)
) WITHOUT ROWID;
CREATE INDEX plan_packages_by_content ON plan_packages (content_digest);

CREATE TABLE requests (
    request_id TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    result TEXT NOT NULL,
    expires BIGINT NOT NULL
);
CREATE INDEX requests_by_expiry ON requests (expires);
CREATE INDEX requests_by_result ON requests (result);

CREATE TABLE repositories (
    name TEXT PRIMARY KEY,
    address TEXT NOT NULL,
    priority BIGINT NOT NULL,
    only_names TEXT NOT NULL,
    is_enabled INTEGER NOT NULL CHECK (is_enabled IN (0, 1)),
    create_time BIGINT NOT NULL,
    update_time BIGINT NOT NULL,
    CHECK (update_time >= create_time)
);

CREATE TABLE definitions (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    etag TEXT NOT NULL,
    body TEXT NOT NULL,
    create_time BIGINT NOT NULL,
    update_time BIGINT NOT NULL,
    PRIMARY KEY (kind, name),
    CHECK (update_time >= create_time)
);
"""
"""
All times are microseconds since 1970, UTC. States and kinds have no CHECK, as SQLite can change one only by recreating
the table.

``stacks``
    ``urls`` and ``sources`` are JSON lists of texts, ``policy`` is a JSON object. ``version`` counts the changes by
    users. ``resource_count`` and ``package_count`` are the numbers of rows of ``inventory`` and of ``packages``, so
    that reading a stack does not count them. A row in the state STACKLESS carries the lease of an operation without a
    stack. The indexes ``stacks_in_order`` and ``stacks_of_target`` have the order of lists.
``leases``
    A table of its own, as a lease is renewed often and the row of a stack is wide. A lease is free when ``expires`` is
    in the past (0 at first), so one comparison is enough. ``last_token`` is the token of the lease before,
    ``shown_token`` the highest one with which an operation has ended after it was shown to the platform.
``owners``
    Items that only one stack at a time may own, recorded or claimed (docs/reference/engine.md, "Claims"). Rows are in
    the order of insertion: ids are inserted in random order, so in a table that is ordered by its primary key each
    write of the journal would rewrite most of it.
``inventory``
    ``associations`` is a JSON list of [kind, name]; ``policy`` is the policy under which the entry was recorded,
    and ``own_policy`` what package and object themselves said then; both are JSON objects.
``baselines``
    Removed with their entries. ``refs`` is a JSON list of [pointer, kind, id], ``missing_labels`` one of [kind, name].
``drift_checks``
    ``counts`` is a JSON object of numbers of resources by status.
``packages``
    ``repository`` is empty for a package of a folder, and ``requested`` where no range was requested.
    ``requires`` is a JSON list of [name, range or null]. ``content_digest`` is that of an attachment.
``revisions``
    ``sources`` is a JSON list of texts, ``packages`` one of [name, old version, new version].
``revision_contents``
    The attachments with the files of the packages that were installed after a revision.
``attachments``
    The packages of revisions and plans, the files of installed packages, the baselines of plans, and the contents of
    snapshots: texts by their digest, in compressed ``attachment_parts``. ``time`` is when an attachment was last known
    to be in use.
``operations``
    They outlive their stack, so ``stack`` is no foreign key; for an operation without a stack it is the id of its
    STACKLESS row. ``token`` is the token of the last lease of the operation: its order does not depend on clocks, so
    ``operations_by_lease`` finds the last operations on a stack. ``handed_over`` counts the hand-overs to the stack
    during the operation, ``defects`` the attempts to resume it that ended with a defect. ``last_event`` is the last
    event of a finished operation, in its wire format. ``parent`` is the operation whose phase began it, or empty; it is
    no foreign key, as that may be deleted before. ``action_set`` is the name of its action set, or empty. ``size`` is
    its size with plan and journal; NULL until a sweep measures it.
``blocks``
    Of BLOCKED operations. ``reason`` is a number of ``pkger.model.v1.BlockedReason``, ``body`` a part of a
    ``pkger.model.v1.Operation``.
``journal``
    One row for each write of an operation (docs/reference/engine.md, "Journal"). ``records`` is a
    ``pkger.journal.v1.StoredRecords``, ``events`` a ``StoredEvents``.
``action_sets``
    ``blueprints`` is a JSON list of names, ``objects`` one of [kind, name, stack, platform, org], ``labels`` a JSON
    object. ``ttl`` is NULL for an action set that has none. ``body`` is a ``pkger.journal.v1.NewActionSet`` in its wire
    format, compressed.
``reservations``
    ``stack`` is the id of the stack, or empty for one that did not exist when it was reserved. It is no foreign key:
    the name stays reserved if the stack is removed.
``snapshots``
    ``made_by`` is NULL once its maker was removed while an unfinished action set uses the snapshot. ``delete_time`` is
    NULL until it is deleted.
``snapshot_contents``
    The attachments that a snapshot names.
``snapshot_users``
    The operations that made a snapshot, or have it as input.
``plans``
    ``stack`` is no foreign key, as a stack may be removed before a plan expires, or be created only by it. ``expires``
    is NULL for a plan that was made for an operation.
``plan_headers``
    A table of its own, as SQLite writes the whole row when one of its columns changes. ``header`` is a
    ``pkger.model.v1.Plan``.
``plan_parts``
    The other parts of plans, as in ``pkger.journal.v1.StoredPart``, in the order of their stream.
``plan_packages``
    The rows that ``packages`` gets when an operation has run the plan; a package whose other columns are NULL is
    removed.
``requests``
    The answers to request ids; ``result`` names what the request made. The request id of an operation that ends before
    it starts can be used again, hence the index by result.
``repositories``
    ``only_names`` is a JSON list of patterns. ``name`` is no foreign key anywhere: what was read from a repository
    outlives it.
``definitions``
    ``body`` is canonical JSON, and ``etag`` its digest.
"""

MIGRATIONS = created_by(SCRIPT, "stack")
