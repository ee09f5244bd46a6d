"""What the linter cannot see of what services take from their machine (docs/architecture.md, "Seams")."""

import re
from pathlib import Path

from tests.conftest import ROOT

FOLDERS = ("services", "parser_svc", "planner_svc", "applier_svc", "stack_svc")


def modules() -> list[Path]:
    return [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py") if "gen" not in path.parts]


def test_no_service_asks_a_message_for_the_time() -> None:
    """``GetCurrentTime`` is a method, whose calls the linter does not recognise."""
    assert [path.name for path in modules() if "GetCurrentTime" in path.read_text()] == []
    assert len(modules()) > 100


def test_what_is_free_to_use_sqlite_asks_the_machine_for_nothing_either() -> None:
    """One rule of the linter holds both, and is off in folders called ``sqlite``."""
    asks = re.compile(r"^(import|from) (time|datetime|random|secrets|uuid|socket|os)\b", re.MULTILINE)
    found = [path for path in modules() if path.parent.name == "sqlite"]
    assert [path.name for path in found if asks.search(path.read_text())] == []
    assert len(found) > 10
