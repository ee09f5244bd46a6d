"""A file of the embedded platform of an earlier version."""

from pathlib import Path

import sqlite_utils

from services.drivers.embedded.sqlite.schema import MIGRATIONS
from services.kinds.format.canonical import spec_of
from tests.drivers.client import ORG
from tests.drivers.platforms import sample


def older_file(folder: Path, kind: str, *names: str, org: str = ORG) -> list[str]:
    """A file from before names of variables and labels were folded, with resources of *names*; return their ids."""
    database = sqlite_utils.Database(folder / "platform.db")
    MIGRATIONS.apply(database, stop_before="names_as_influxdb_compares_them")
    ids = [f"{number:016x}" for number in range(1, len(names) + 1)]
    database.table("resources").insert_all(
        {
            "id": id_,
            "org": org,
            "kind": kind,
            "name_scope": kind,
            "unique_name": name,
            "spec": spec_of(sample(kind, name, "old")).text,
        }
        for id_, name in zip(ids, names, strict=True)
    )
    database.close()
    return ids
