"""Fixtures of the tests of the command line."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.cluster import Cluster, cluster


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder with a short path, as the path of a socket has at most some 100 characters."""
    folder = Path(tempfile.mkdtemp(prefix="pkger-test-"))
    yield folder
    shutil.rmtree(folder)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def module_services(module_folder: Path) -> AsyncIterator[Cluster]:
    """All services for all tests of a module, at addresses: commands connect as users do."""
    async with cluster(module_folder) as running:
        yield running
