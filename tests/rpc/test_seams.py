"""Dependencies of services on their machine that the linter cannot see (docs/architecture.md, Seams)."""

import re
from pathlib import Path

from tests.conftest import ROOT

FOLDERS = ("services", "parser_svc", "planner_svc", "applier_svc", "stack_svc")


def modules() -> list[Path]:
    return [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py") if "gen" not in path.parts]


def test_no_service_asks_a_message_for_the_time() -> None:
    """``GetCurrentTime`` is a method, so the linter does not recognise its calls."""
    assert [path.name for path in modules() if "GetCurrentTime" in path.read_text()] == []
    assert len(modules()) > 100


def test_modules_that_may_use_sqlite_do_not_use_the_machine_either() -> None:
    """One rule of the linter covers both, and is off in folders called ``sqlite``."""
    asks = re.compile(r"^(import|from) (time|datetime|random|secrets|uuid|socket|os)\b", re.MULTILINE)
    found = [path for path in modules() if path.parent.name == "sqlite"]
    assert [path.name for path in found if asks.search(path.read_text())] == []
    assert len(found) > 10
