"""Installed packages in SQLite."""

from collections.abc import Sequence
from typing import Any

import orjson
import sqlite_utils

from services.packages.installed import InstalledPackage, PackageOrigin, versions_in
from services.packages.manifest import Requirement
from services.packages.ranges import Range
from services.packages.versions import Version
from stack_svc.store.packages import PackageChanges, PackagePlace, PackageUser

COLUMNS = "name, version, repository, digest, content_digest, origin, requested, is_pinned, is_suspended, requires"
"""The columns of a package, in the order of ``values_of``."""


class SqlitePackages:
    """Installed packages of one transaction."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def page(self, stack: str, after: PackagePlace, most: int) -> list[InstalledPackage]:
        """Read a page of the packages of a stack."""
        rows = self._db.execute(
            f"SELECT {COLUMNS} FROM packages WHERE stack = ? AND name > ? ORDER BY name LIMIT ?",  # noqa: S608
            [stack, *after, most],
        )
        return list(map(package_of, rows))

    def users_of(self, repository: str, most: int) -> list[PackageUser]:
        """Read stacks with packages from a repository."""
        rows = self._db.execute(
            """
            SELECT packages.name, stacks.id, stacks.name FROM packages JOIN stacks ON stacks.id = packages.stack
            WHERE repository = ? ORDER BY packages.name, stacks.id LIMIT ?
            """,
            [repository, most],
        )
        return [PackageUser(*row) for row in rows]

    def change(self, stack: str, changes: PackageChanges) -> None:
        """Write changes of the packages of a stack."""
        self._db.conn.executemany(
            "DELETE FROM packages WHERE stack = ? AND name = ?", [(stack, name) for name in sorted(changes)]
        )
        self._db.conn.executemany(
            f"INSERT INTO packages (stack, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
            [
                (stack, *values_of(name, package))
                for name, package in sorted(changes.items(), key=lambda change: change[0])
                if package
            ],
        )


def values_of(name: str, package: InstalledPackage | None) -> tuple[str | bool | None, ...]:
    """The values of ``COLUMNS``; without a *package*, all but the *name* are NULL."""
    if package is None:
        return (name, *[None] * COLUMNS.count(","))
    required = [[each.name, None if each.range is None else str(each.range)] for each in package.requires]
    return (
        name,
        package.version.text,
        package.repository or "",
        package.digest,
        package.content_digest,
        package.origin.value,
        "" if package.requested is None else str(package.requested),
        package.is_pinned,
        package.is_suspended,
        orjson.dumps(required).decode(),
    )


def package_of(row: Sequence[Any]) -> InstalledPackage:
    """The package of a *row* with the ``COLUMNS``."""
    name, version, repository, digest, content_digest, origin, requested, is_pinned, is_suspended, required = row
    return InstalledPackage(
        name,
        Version.parse(version),
        repository or None,
        PackageOrigin(origin),
        bool(is_pinned),
        bool(is_suspended),
        versions_in(requested),
        tuple(Requirement(each, None if text is None else Range.parse(text)) for each, text in orjson.loads(required)),
        digest,
        content_digest,
    )
