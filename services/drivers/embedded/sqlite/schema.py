"""The tables of the embedded platform."""

from services.sqlite.schema import created_by

SCRIPT = """
CREATE TABLE resources (
    id TEXT PRIMARY KEY NOT NULL,
    org TEXT NOT NULL,
    kind TEXT NOT NULL,
    name_scope TEXT NOT NULL,
    unique_name TEXT,
    display_name TEXT NOT NULL,
    spec TEXT NOT NULL
) STRICT;
CREATE INDEX resources_by_kind ON resources (org, kind, id);
CREATE INDEX resources_by_name ON resources (org, name_scope, unique_name);

CREATE TABLE attachments (
    resource_id TEXT REFERENCES resources (id) ON DELETE CASCADE,
    label_id TEXT REFERENCES resources (id) ON DELETE CASCADE,
    PRIMARY KEY (resource_id, label_id)
) STRICT;
CREATE INDEX attachments_by_label ON attachments (label_id);

CREATE TABLE bindings (
    resource_id TEXT REFERENCES resources (id) ON DELETE CASCADE,
    pointer TEXT,
    referred_id TEXT NOT NULL REFERENCES resources (id) ON DELETE CASCADE,
    PRIMARY KEY (resource_id, pointer)
) STRICT;
CREATE INDEX bindings_by_referred ON bindings (referred_id);

CREATE TABLE secrets (
    org TEXT NOT NULL,
    key TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (org, key)
) STRICT;

CREATE TABLE creates (
    org TEXT,
    kind TEXT,
    idempotency_key TEXT,
    resource_id TEXT NOT NULL,
    operation TEXT NOT NULL,
    time INTEGER NOT NULL,
    PRIMARY KEY (org, kind, idempotency_key)
) STRICT;
CREATE INDEX creates_by_time ON creates (time);

CREATE TABLE fences (
    scope TEXT PRIMARY KEY,
    token INTEGER NOT NULL,
    operation TEXT NOT NULL,
    lower_token INTEGER NOT NULL,
    lower_operation TEXT NOT NULL,
    is_transient INTEGER NOT NULL,
    time INTEGER NOT NULL
) STRICT;
CREATE INDEX fences_by_operation ON fences (operation);
CREATE INDEX transient_fences ON fences (time) WHERE is_transient;
"""
"""
All times are microseconds since 1970.

``resources``
    ``unique_name`` is the name as the platform compares it, among the kinds of a ``name_scope``; NULL where names may
    repeat. The index is not unique, as a batch may exchange names: ``batch.perform`` refuses a taken name, in the
    transaction that writes. ``display_name`` is the name in the spec, so that listing and comparing names reads no
    spec.
``bindings``
    The references of resources to each other.
``secrets``
    ``hash`` is a result of ``secrets.hashed``.
``creates``
    The idempotency keys. Rows outlive their resources: a key never creates a second resource. ``time`` is the age of a
    key, after which it is removed.
``fences``
    ``operation`` is the operation that has the token; ``lower_token`` is the highest token before it, 0 if there was
    none. ``is_transient`` marks fences of operations on behalf of no stack, which are removed when they are old.
"""

MIGRATIONS = created_by(SCRIPT, "platform")
