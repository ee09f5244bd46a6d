"""What the linter cannot see of what services take from their machine (docs/architecture.md, Seams)."""

from tests.conftest import ROOT


def test_no_service_asks_a_message_for_the_time() -> None:
    """``GetCurrentTime`` is a method, whose calls the linter does not recognise."""
    folders = ("services", "parser_svc", "planner_svc", "applier_svc", "stack_svc")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py") if "gen" not in path.parts]
    assert [path.name for path in files if "GetCurrentTime" in path.read_text()] == []
    assert len(files) > 100
