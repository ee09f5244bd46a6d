"""The changes of installed packages that plans make, in SQLite."""

import sqlite_utils

from services.packages.installed import InstalledPackage
from stack_svc.sqlite.packages import COLUMNS, package_of, values_of
from stack_svc.store.packages import PackageChanges


class SqlitePlanPackages:
    """The changes of packages, in one transaction."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def of(self, plan: str) -> dict[str, InstalledPackage | None]:
        """Read the changes of a plan."""
        rows = self._db.execute(
            f"SELECT {COLUMNS} FROM plan_packages WHERE plan = ? ORDER BY name",  # noqa: S608
            [plan],
        )
        return {name: None if version is None else package_of((name, version, *more)) for name, version, *more in rows}

    def add(self, plan: str, changes: PackageChanges) -> None:
        """Add the changes of a plan."""
        self._db.conn.executemany(
            f"INSERT INTO plan_packages (plan, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
            [(plan, *values_of(*change)) for change in sorted(changes.items(), key=lambda change: change[0])],
        )
