"""
Empty databases of the stack service and of the embedded platform, made once in each test process and copied.

A copy costs a quarter of what it costs to create the tables.
"""

import atexit
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from services.drivers.embedded.sqlite.schema import MIGRATIONS as PLATFORM_MIGRATIONS
from services.rpc.call import request_id
from services.sqlite.database import Database
from stack_svc.sqlite.schema import MIGRATIONS as STACK_MIGRATIONS

_SCHEMAS = {"stack": STACK_MIGRATIONS, "platform": PLATFORM_MIGRATIONS}


def copy_databases(folder: Path, *services: str) -> None:
    """Copy the empty databases of *services* into *folder*, except those that it has; other services have none."""
    for service in _SCHEMAS.keys() & {*services}:
        copy_database(service, folder / f"{service}.db")


def copy_database(service: str, path: Path) -> None:
    """Copy the empty database of *service* to *path*, unless that exists."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_templates() / service, path)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many transactions of calls have written to each database; with ``synchronous=FULL``, each is one fsync."""
    counts: Counter[str] = Counter()
    write = Database.write

    async def counted(self: Database, work: Callable[[Any], Any]) -> Any:
        # Sweeps have no request.
        counts[self._path.stem] += bool(request_id.get())
        return await write(self, work)

    monkeypatch.setattr(Database, "write", counted)
    return counts


@cache
def _templates() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="pkger-databases-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    # When the last connection to a database closes, all of it is in one file.
    for service, migrations in _SCHEMAS.items():
        Database(folder / service, migrations).close()
    return folder
