"""Baselines in SQLite."""

from collections.abc import Collection, Mapping
from typing import Any

import orjson
import sqlite_utils

from services.core.model import Baseline, Key, Reference


class SqliteBaselines:
    """Baselines of one transaction."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def lacking(self, stack: str, keys: Collection[Key]) -> list[Key]:
        """Return the keys without a baseline."""
        rows = self._db.execute(
            """
            SELECT json_extract(asked.value, '$[0]'), json_extract(asked.value, '$[1]') FROM json_each(:keys) AS asked
            WHERE NOT EXISTS (
                SELECT 1 FROM baselines WHERE stack = :stack AND kind = json_extract(asked.value, '$[0]')
                    AND name = json_extract(asked.value, '$[1]')
            )
            """,
            {"keys": orjson.dumps(list(map(list, keys))).decode(), "stack": stack},
        )
        return [Key(*row) for row in rows]

    def of(self, stack: str, keys: Collection[Key]) -> list[Baseline]:
        """Read some baselines of a stack."""
        rows = self._db.execute(
            f"""
            SELECT {_COLUMNS} FROM json_each(:keys) AS asked
            CROSS JOIN baselines ON stack = :stack AND kind = json_extract(asked.value, '$[0]')
                AND name = json_extract(asked.value, '$[1]')
            """,  # noqa: S608
            {"keys": orjson.dumps(list(map(list, keys))).decode(), "stack": stack},
        )
        return [_baseline(*row) for row in rows]

    def page(self, stack: str, after: Key, most: int) -> list[Baseline]:
        """Read a page of baselines."""
        rows = self._db.execute(
            f"SELECT {_COLUMNS} FROM baselines"  # noqa: S608
            " WHERE stack = ? AND (kind, name) > (?, ?) ORDER BY kind, name LIMIT ?",
            [stack, *after, most],
        )
        return [_baseline(*row) for row in rows]

    def put(self, stack: str, baselines: Collection[Baseline]) -> None:
        """Write baselines."""
        ordered = sorted(baselines, key=lambda each: each.key)
        self._db.conn.executemany(
            """
            INSERT INTO baselines (stack, kind, name, spec, refs, missing_labels) VALUES (?, ?, ?, ?, ?, ?)
            ON CONFLICT (stack, kind, name)
            DO UPDATE SET spec = excluded.spec, refs = excluded.refs, missing_labels = excluded.missing_labels
            """,
            [
                (
                    stack,
                    *each.key,
                    each.spec,
                    _text([[one.pointer, one.kind, one.id] for one in each.references]),
                    _text(list(map(list, each.missing_labels))),
                )
                for each in ordered
                if each.spec
            ],
        )
        self._db.conn.executemany(
            "UPDATE baselines SET missing_labels = ? WHERE stack = ? AND kind = ? AND name = ?",
            [(_text(list(map(list, each.missing_labels))), stack, *each.key) for each in ordered if not each.spec],
        )

    def rebind(self, stack: str, ids: Mapping[str, str]) -> None:
        """Replace resource ids in references."""
        self._db.conn.executemany(
            "UPDATE baselines SET refs = replace(refs, ?, ?) WHERE stack = ? AND refs <> '[]'",
            [(_text(old), _text(new), stack) for old, new in sorted(ids.items())],
        )


_COLUMNS = "kind, name, spec, refs, missing_labels"


def _text(value: Any) -> str:
    return orjson.dumps(value).decode()


def _baseline(kind: str, name: str, spec: str, references: str, missing_labels: str) -> Baseline:
    return Baseline(
        Key(kind, name),
        spec,
        tuple(Reference(*each) for each in orjson.loads(references)),
        tuple(Key(*each) for each in orjson.loads(missing_labels)),
    )
