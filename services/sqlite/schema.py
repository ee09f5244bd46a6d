"""
Schemas of SQLite files: a script that creates the tables, and migrations after it.

Until a version is released, a change edits the script. From then on, a change appends a migration, and the script stays
as it is.
"""

import hashlib

import sqlite_utils
from sqlite_utils.migrations import Migrations


class OtherSchema(Exception):
    """Another version of pkger, or another program, made the tables of a file."""

    def __str__(self) -> str:
        return "another version of pkger made it; use that version, or move or delete the file"


def created_by(script: str, name: str) -> Migrations:
    """
    The migrations of the schema *name*: the first one runs *script* in a file without tables.

    A digest of the script is part of its name, so a file of another script is refused (``check_origin``). No statement
    of the script contains a semicolon.
    """
    migrations = Migrations(name)

    @migrations(name=f"script {hashlib.sha256(script.encode()).hexdigest()[:16]}")
    def create(db: sqlite_utils.Database) -> None:
        # Not executescript, which commits first: an interrupted creation would leave tables without a record.
        for statement in script.split(";"):
            db.execute(statement)

    return migrations


def has_tables(db: sqlite_utils.Database) -> bool:
    """Whether *db* has tables beside the record of migrations, which is made before the first one runs."""
    return bool(set(db.table_names()) - {Migrations.migrations_table})


def check_origin(db: sqlite_utils.Database, migrations: Migrations) -> None:
    """
    Check that the tables of *db* were made by the first of *migrations*, in order.

    Raises:
        OtherSchema: They were made by others, by more, or without a record.
    """
    applied = [migration.name for migration in migrations.applied(db)]
    expected = [migration.name for migration in migrations.pending(sqlite_utils.Database(memory=True))]
    if not applied or applied != expected[: len(applied)]:
        raise OtherSchema
