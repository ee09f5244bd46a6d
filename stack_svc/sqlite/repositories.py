"""Repositories in SQLite."""

from collections.abc import Sequence
from typing import Any

import orjson
import sqlite_utils

from stack_svc.store.repositories import Repository, RepositoryChanges, RepositoryPlace

_COLUMNS = "name, address, priority, only_names, is_enabled, create_time, update_time"


class SqliteRepositories:
    """Repositories of one transaction."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def find(self, name: str) -> Repository | None:
        """Read one repository."""
        row = self._db.execute(f"SELECT {_COLUMNS} FROM repositories WHERE name = ?", [name]).fetchone()  # noqa: S608
        return _repository(row) if row else None

    def page(self, after: RepositoryPlace, most: int) -> list[Repository]:
        """Read a page of repositories."""
        rows = self._db.execute(
            f"SELECT {_COLUMNS} FROM repositories WHERE name > ? ORDER BY name LIMIT ?",  # noqa: S608
            [*after, most],
        )
        return list(map(_repository, rows))

    def insert(self, repository: Repository) -> bool:
        """Add a repository."""
        added = self._db.execute(
            f"INSERT INTO repositories ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",  # noqa: S608
            [
                repository.name,
                repository.address,
                repository.priority,
                _listed(repository.only),
                repository.is_enabled,
                repository.create_time,
                repository.update_time,
            ],
        )
        return bool(added.rowcount)

    def change(self, name: str, changes: RepositoryChanges, now: int) -> Repository | None:
        """Change fields of a repository."""
        rows = self._db.execute(
            f"""
            UPDATE repositories
            SET address = COALESCE(?, address), priority = COALESCE(?, priority),
                only_names = COALESCE(?, only_names), is_enabled = COALESCE(?, is_enabled),
                update_time = MAX(update_time, ?)
            WHERE name = ?
            RETURNING {_COLUMNS}
            """,  # noqa: S608
            [
                changes.address,
                changes.priority,
                None if changes.only is None else _listed(changes.only),
                changes.is_enabled,
                now,
                name,
            ],
        ).fetchall()
        return _repository(rows[0]) if rows else None

    def delete(self, name: str) -> bool:
        """Remove a repository."""
        return bool(self._db.execute("DELETE FROM repositories WHERE name = ?", [name]).rowcount)


def _listed(texts: Sequence[str]) -> str:
    return orjson.dumps(texts).decode()


def _repository(row: Sequence[Any]) -> Repository:
    name, address, priority, only, is_enabled, create_time, update_time = row
    return Repository(name, address, priority, tuple(orjson.loads(only)), bool(is_enabled), create_time, update_time)
