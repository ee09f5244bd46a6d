"""Fixtures of the tests of the command line."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests import older_platform
from tests.cluster import Cluster, cluster


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder with a short path, as the path of a socket has at most some 100 characters."""
    folder = Path(tempfile.mkdtemp(prefix="pkger-test-"))
    yield folder
    shutil.rmtree(folder)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def empty_services(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    """All services on an empty store, shared by the tests of a module that write nothing; they run in its loop."""
    async with cluster(tmp_path_factory.mktemp("services")) as running:
        yield running
        assert (await running.resources(), await running.stack_names()) == ([], [])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rejecting_services(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    """As ``empty_services``, whose platform refuses at the write: the tests of a module leave nothing there."""
    folder = tmp_path_factory.mktemp("services")
    async with cluster(folder, {"platform": older_platform.opened}) as running:
        yield running
        assert (await running.resources(), await running.stack_names()) == ([], [])
