"""Fixtures of the simulation."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simulation.search import template


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """A folder with empty databases, which each run copies."""
    with template() as made:
        yield made
