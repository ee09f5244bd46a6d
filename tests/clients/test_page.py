"""docs/clients.md: its sections have tests, and its table of retries agrees with the services."""

import re

from services.core.errors import ERRORS, PkgerError, Reason
from services.rpc import door, server
from services.rpc.call import LONGEST_CALL_SECONDS, MESSAGE_LIMIT
from tests.clients.page import PAGE, section


def test_every_section_has_its_test() -> None:
    """Sections about grpcurl in test_grpcurl.py, each other section in a file of its own."""
    grpcurl = ["Tokens", "Explore a server", "A dry run", "An apply", "A plan, and its apply"]
    grpcurl += [
        "A stack, its history and its platform",
        "Packages of repositories",
        "An error",
        "What to retry",
        "Limits",
    ]
    others = ["Go", "TypeScript", "Python", "Other languages", "Compatibility of the contracts"]
    assert re.findall("^## (.*)$", PAGE.read_text(), re.MULTILINE) == grpcurl + others


def test_the_page_retries_the_reasons_that_have_a_retry_info() -> None:
    """The rows that advise an unchanged retry name the reasons with a ``RetryInfo``; all named reasons exist."""
    rows = dict(re.findall(r"^\| (`.*`) \| (.*) \|$", section("What to retry"), re.MULTILINE))
    named = {reason: says for names, says in rows.items() for reason in re.findall(r"`(\w+)`", names)}
    assert set(named) <= set(Reason)
    retried = {reason for reason, says in named.items() if says.startswith(("retries after the delay", "likewise"))}
    assert retried == {
        reason for reason, error in ERRORS.items() if error.retry_seconds is not PkgerError.retry_seconds
    }


def test_the_page_has_the_limits_of_the_servers() -> None:
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", section("Limits"), re.MULTILINE)
    limits = {what.split(",")[0]: limit for what, limit in rows}
    assert limits["Any other message"] == f"{MESSAGE_LIMIT // 2**20} MiB"
    assert limits["Calls at a time with the home token"] == f"{door.MOST_CALLS_OF_PRINCIPAL}"
    assert limits["Calls at a time at an address"] == f"{door.MOST_CALLS_OF_LISTENER:,}"
    checks, watches = door.MOST_HEALTH_CHECKS, door.MOST_HEALTH_WATCHES
    assert limits["Health checks without a token"] == f"{checks:,} at a time, and {watches} watches"
    assert (
        limits["The message of a health check without a token"] == f"within {door.HEALTH_MESSAGE_SECONDS:.0f} seconds"
    )
    assert limits["Calls at a time on one connection"] == f"{server.MOST_CALLS_OF_CONNECTION}"
    assert limits["A call without a deadline"] == f"{LONGEST_CALL_SECONDS / 60:.0f} minutes"
    assert limits["A connection without calls"] == f"{server.LONGEST_IDLE_MS / 60_000:.0f} minutes"
