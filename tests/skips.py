"""Plugin of pytest: print why tests were skipped, and fail a run that skipped one for a cause within the repository."""

from collections import Counter

import pytest

from tests import needs


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many tests were skipped for each reason."""
    for reason, count in sorted(_skips(terminalreporter).items()):
        because = reason if needs.is_known(reason) else f"{reason}, which is no reason of tests/needs.py"
        terminalreporter.write_line(f"{count} skipped: {because}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run if ``tests/needs.py`` lacks the reason of a skip."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and not all(map(needs.is_known, _skips(reporter))):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _skips(reporter: pytest.TerminalReporter) -> Counter[str]:
    """How many tests were skipped for each reason."""
    places = [report.longrepr for report in reporter.stats.get("skipped", ())]
    return Counter(reason.removeprefix("Skipped: ") for _, _, reason in places)
