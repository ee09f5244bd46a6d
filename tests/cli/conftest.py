"""Fixtures of the tests of the command line."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder with a short path, as the path of a socket has at most some 100 characters."""
    folder = Path(tempfile.mkdtemp(prefix="pkger-test-"))
    yield folder
    shutil.rmtree(folder)
