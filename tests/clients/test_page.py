"""docs/clients.md as a whole."""

import re

from services.core.errors import Reason
from services.rpc.errors import RETRIES
from tests.clients.page import PAGE, section


def test_every_section_has_its_test() -> None:
    """Those of grpcurl in test_grpcurl.py, each other one in a file of its own."""
    grpcurl = ["Explore a server", "A dry run", "An apply", "A plan, and its apply"]
    grpcurl += ["A stack, its history and its platform", "An error", "What to retry", "Limits"]
    others = ["Go", "TypeScript", "Python", "Other languages", "Compatibility of the contracts"]
    assert re.findall("^## (.*)$", PAGE.read_text(), re.MULTILINE) == grpcurl + others


def test_what_to_retry_is_what_the_services_say() -> None:
    """The rows of unchanged retries have the reasons with a ``RetryInfo``; every reason is a known one."""
    rows = dict(re.findall(r"^\| (`.*`) \| (.*) \|$", section("What to retry"), re.MULTILINE))
    named = {reason: says for names, says in rows.items() for reason in re.findall(r"`(\w+)`", names)}
    assert set(named) <= set(Reason)
    retried = {reason for reason, says in named.items() if says.startswith(("retries after the delay", "likewise"))}
    assert retried == set(RETRIES)
