"""The least CPU time that a plan and an apply can take: that of libyaml, protobuf, hashing and SQLite alone."""

import gc
import hashlib
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pkger.model.v1 import object_pb2
from yaml._yaml import CParser

from bench.figures import Seconds
from parser_svc.package import parse
from parser_svc.sources import Source
from services.rpc.convert.objects import object_fields

RUNS = 5

BATCH = 2000
"""Rows in one transaction, as the embedded platform writes them."""


@dataclass(frozen=True, slots=True)
class Floors:
    """
    CPU time in seconds.

    Attributes:
        parse: libyaml reads the text, and nothing is made of it.
        plan: That; a package and a listing go through a message each; all specs are hashed, and read from a table.
        apply: That; the rows of the platform are written in batches, those of the inventory in one transaction.
    """

    parse: Seconds
    plan: Seconds
    apply: Seconds


def floors(text: str, folder: Path) -> Floors:
    """Measure the floors of a package *text* that was applied to the databases in *folder*."""
    parsed = parse([Source("bench.yml", text)], {}).package
    assert parsed is not None
    package = object_pb2.Package(objects=map(object_fields, parsed.objects))
    specs = [item.spec_json for item in package.objects]
    parsing = least(lambda: CParser(text).raw_parse())
    moving = least(lambda: object_pb2.Package.FromString(package.SerializeToString()))
    hashing = least(lambda: [hashlib.blake2b(spec.encode()).digest() for spec in specs])
    resources, inventory = _rows(folder / "platform.db", "resources"), _rows(folder / "stack.db", "inventory")
    writing = _writing(resources, BATCH) + _writing(inventory, len(inventory))
    plan = parsing + 2 * moving + hashing + _reading(specs)
    return Floors(parsing, plan, plan + writing)


def least(work: Callable[[], object], runs: int = RUNS) -> Seconds:
    """The least CPU time of *work* in this process, without collections of garbage."""
    taken = []
    for _ in range(runs):
        gc.disable()
        before = time.process_time()
        work()
        taken.append(time.process_time() - before)
        gc.enable()
    return min(taken)


def _rows(path: Path, table: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        return database.execute(f"SELECT * FROM {table}").fetchall()


def _reading(specs: list[str]) -> Seconds:
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE specs (id INTEGER PRIMARY KEY, spec TEXT)")
        database.executemany("INSERT INTO specs (spec) VALUES (?)", ((spec,) for spec in specs))
        return least(lambda: database.execute("SELECT id, spec FROM specs").fetchall())


def _writing(rows: list[tuple[object, ...]], size: int) -> Seconds:
    with tempfile.TemporaryDirectory(prefix="pkger-bench-") as folder:
        numbers = iter(range(RUNS))

        def write() -> None:
            with closing(sqlite3.connect(Path(folder, f"{next(numbers)}.db"), isolation_level=None)) as database:
                database.execute("PRAGMA journal_mode=WAL")
                database.execute("PRAGMA synchronous=FULL")
                columns = [f"c{number}" for number in range(len(rows[0]))]
                database.execute(f"CREATE TABLE copied ({', '.join(columns)})")
                insert = f"INSERT INTO copied VALUES ({', '.join('?' * len(columns))})"
                for start in range(0, len(rows), size):
                    database.execute("BEGIN")
                    database.executemany(insert, rows[start : start + size])
                    database.execute("COMMIT")

        return least(write)
