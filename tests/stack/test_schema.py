"""Schemas of databases: how a file gets one, and which files are refused."""

import asyncio
import os
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import orjson
import pytest
import sqlite_utils
from sqlite_utils.migrations import Migrations

from services.drivers.embedded.sqlite.schema import MIGRATIONS as PLATFORM
from services.drivers.registry import opened as opened_driver
from services.platforms import Platform
from services.rpc.entrances import CannotServe
from services.settings import Settings
from services.sqlite.database import Database
from services.sqlite.schema import created_by
from stack_svc.__main__ import opened as opened_stack
from stack_svc.sqlite.schema import MIGRATIONS as STACK
from tests.cli.command import environment, pkger

SCRIPT = "CREATE TABLE notes (text TEXT NOT NULL); CREATE INDEX notes_by_text ON notes (text);"
PROBLEM = "cannot use the database {}: another version of pkger made it; use that version, or move or delete the file"
PACKAGE = """
apiVersion: influxdata.com/v2alpha1
kind: Bucket
metadata: {name: b}
"""
EDITED = "CREATE TABLE notes (text TEXT NOT NULL, time BIGINT NOT NULL);"


def first() -> Migrations:
    """The schema of the first release."""
    return created_by(SCRIPT, "notes")


def second() -> Migrations:
    """The schema of the release after it."""
    migrations = first()

    @migrations()
    def authors(db: sqlite_utils.Database) -> None:
        db.execute("ALTER TABLE notes ADD COLUMN author TEXT NOT NULL DEFAULT 'unknown'")

    return migrations


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "notes.db"


def rows(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def schema(path: Path) -> list[tuple[object, ...]]:
    return rows(path, "SELECT name, sql FROM sqlite_master ORDER BY name")


async def test_a_database_gets_the_migrations_that_it_lacks_and_keeps_its_rows(path: Path) -> None:
    database = Database(path, first())
    await database.write(lambda db: db.execute("INSERT INTO notes VALUES ('kept')"))
    database.close()

    for _ in range(2):
        Database(path, second()).close()
        assert rows(path, "SELECT text, author FROM notes") == [("kept", "unknown")]

    new = path.with_name("new.db")
    Database(new, second()).close()
    assert schema(new) == schema(path)


def foreign_script(path: Path) -> None:
    Database(path, created_by(EDITED, "notes")).close()


def newer_release(path: Path) -> None:
    Database(path, second()).close()


def other_order(path: Path) -> None:
    newer_release(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM _sqlite_migrations WHERE id = 1")


def no_record(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE notes (text TEXT NOT NULL)")


def other_service(path: Path) -> None:
    Database(path, created_by(SCRIPT, "others")).close()


@pytest.mark.parametrize("made", [foreign_script, newer_release, other_order, no_record, other_service])
def test_a_database_of_another_version_is_refused_and_not_written(path: Path, made: Callable[[Path], None]) -> None:
    made(path)
    before = path.read_bytes()

    with pytest.raises(OSError, match="another version of pkger made it") as refused:
        Database(path, first())

    assert str(refused.value) == PROBLEM.format(path)
    assert path.read_bytes() == before


def test_an_interrupted_creation_leaves_no_tables(path: Path) -> None:
    with pytest.raises(OSError, match="syntax error"):
        Database(path, created_by("CREATE TABLE notes (text TEXT); CREATE NOTHING", "notes"))
    assert rows(path, "SELECT name FROM sqlite_master WHERE tbl_name = 'notes'") == []
    Database(path, first()).close()


@pytest.mark.parametrize("migrations", [STACK, PLATFORM], ids=["stack", "platform"])
def test_opening_a_database_again_changes_nothing(path: Path, migrations: Migrations) -> None:
    Database(path, migrations).close()
    made = path.read_bytes()
    Database(path, migrations).close()
    assert path.read_bytes() == made


@pytest.mark.parametrize("migrations", [STACK, PLATFORM], ids=["stack", "platform"])
def test_a_file_can_shrink(path: Path, migrations: Migrations) -> None:
    Database(path, migrations).close()
    assert rows(path, "PRAGMA auto_vacuum") == [(2,)]


async def test_a_database_reaches_no_other_file(path: Path) -> None:
    database = Database(path, STACK)
    with pytest.raises(sqlite3.OperationalError, match="too many attached databases"):
        await database.read(lambda db: db.execute("ATTACH ':memory:' AS other"))
    assert await database.read(lambda db: db.execute("PRAGMA trusted_schema").fetchall()) == [(0,)]
    database.close()


async def test_services_name_the_database_that_they_refuse(tmp_path: Path) -> None:
    for name in ("stack.db", "embedded.db"):
        foreign_script(tmp_path / name)
    with pytest.raises(OSError, match=f"cannot use the database {tmp_path / 'stack.db'}: another version"):
        async with opened_stack(Settings({}, tmp_path, tmp_path, tmp_path)):
            pass
    problem = f"platform embedded: cannot use the database {tmp_path / 'embedded.db'}: another version"
    with pytest.raises(CannotServe, match=problem):
        async with opened_driver(Platform("embedded", "embedded", "", {"file": "embedded.db"}), tmp_path):
            pass


@pytest.mark.slow
@pytest.mark.parametrize(("service", "module"), [("stack", "stack_svc"), ("platform", "services.drivers")])
async def test_commands_and_services_end_with_one_sentence_about_the_database(
    tmp_path: Path, service: str, module: str
) -> None:
    database, package = tmp_path / f"{service}.db", tmp_path / "package.yml"
    foreign_script(database)
    package.write_text(PACKAGE)

    ended = await pkger("plan", "-f", str(package), env=environment(tmp_path))

    [line] = ended.err.splitlines()
    assert line.startswith(f"Error: the {service} service cannot start: ")
    assert line.endswith(PROBLEM.format(database))
    assert ended.code == 1

    env = {**os.environ, "PKGER_DATA": str(tmp_path), "PKGER_LISTEN": "127.0.0.1:0"}
    server = await asyncio.create_subprocess_exec(sys.executable, "-m", module, env=env, stderr=asyncio.subprocess.PIPE)
    _, log = await server.communicate()
    [line] = log.decode().splitlines()
    assert orjson.loads(line)["problem"].endswith(PROBLEM.format(database))
    assert server.returncode == 1
