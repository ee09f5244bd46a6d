"""Times, facts and lists as text."""

from collections.abc import Mapping

from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console
from rich.text import Text

from services.cli.output.consoles import console, print_lines
from services.cli.output.escapes import one_line

LISTED = 50
"""Default number of rows of a list that may have thousands."""

LARGEST_PAGE = 500
"""The most rows that a service returns in one page."""


def print_more(has_more: bool) -> None:
    """Say that a list is cut, if it *has_more*."""
    if has_more:
        console(stderr=True).print(Text("there are more; --limit N lists up to N", "dim"))


def print_facts(out: Console, title: str, facts: Mapping[str, str]) -> None:
    """Print *facts* below *title*; empty facts are omitted."""
    print_lines(out, [Text(one_line(title), "bold"), *fact_lines(facts)])


def fact_lines(facts: Mapping[str, str]) -> list[Text]:
    """A line for each of *facts*; empty facts are omitted."""
    width = max(map(len, facts)) + 1
    return [Text(f"  {name:<{width}}{one_line(fact)}") for name, fact in facts.items() if fact]


def moment(time: Timestamp) -> str:
    """A time as text: to the second, always of the same length."""
    return f"{time.ToDatetime():%Y-%m-%dT%H:%M:%SZ}"
