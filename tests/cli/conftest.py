"""Services to call, and short paths for their sockets."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder whose path is short enough for sockets, which have some 100 characters at most."""
    folder = Path(tempfile.mkdtemp(prefix="pkger-test-"))
    yield folder
    shutil.rmtree(folder)
