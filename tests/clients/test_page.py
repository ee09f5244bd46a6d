"""docs/clients.md as a whole."""

import re

from tests.clients.page import PAGE


def test_every_section_has_its_test() -> None:
    """Those of grpcurl in test_grpcurl.py, each other one in a file of its own."""
    grpcurl = ["What is there", "A dry run", "An apply", "A plan, and its apply", "An error", "Limits"]
    others = ["Go", "TypeScript", "Other languages", "What may change"]
    assert re.findall("^## (.*)$", PAGE.read_text(), re.MULTILINE) == grpcurl + others
