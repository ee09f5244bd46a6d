"""Fixtures of all tests."""

import logging
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, settings
from pytest_asyncio.plugin import PytestAsyncioFunction

from tests import older_platform
from tests.cluster import Calls, Cluster, cluster
from tests.transport import InMemory

pytest_plugins = ["tests.skips"]

# No test depends on the speed of the machine. Examples of a test share its fixtures. The gate tries the same examples
# each time: few of them with the quick tests, and with the slow ones those of the profile "thorough".
settings.register_profile(
    "steady",
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("steady")

ROOT = Path(__file__).resolve().parent.parent

MEMORY = Path("/dev/shm")
"""A file system in memory, on Linux (tmpfs(5)); containers often have a small one."""

# No test cuts the power, so none needs to wait for a disk at each commit. Processes of a run get the folder as well.
if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= 4 * 1024**3:
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files instead of comparing")
    parser.addoption("--faults", action="store_true", help="try every crash and every fault instead of a sample")


def pytest_configure(config: pytest.Config) -> None:
    is_whole = config.getoption("--faults")
    settings.register_profile("thorough", settings.get_profile("steady"), max_examples=100 if is_whole else 20)
    # Each example takes seconds: three services die and restart.
    settings.register_profile("crashes", settings.get_profile("steady"), max_examples=40 if is_whole else 2)
    settings.register_profile("faults", settings.get_profile("steady"), max_examples=100 if is_whole else 8)
    settings.register_profile("exports", settings.get_profile("steady"), max_examples=200 if is_whole else 6)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests marked ``faults``, unless ``--faults`` is given."""
    if not config.getoption("--faults"):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("faults")])
        items[:] = [item for item in items if not item.get_closest_marker("faults")]
    for item in items:
        # These services live as long as their module, and so does the event loop of their tests.
        if isinstance(item, PytestAsyncioFunction) and "module_services" in item.fixturenames:
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)


@pytest.fixture
async def own_services(tmp_path: Path) -> AsyncIterator[Cluster]:
    """All services on an empty store."""
    async with cluster(tmp_path) as running:
        yield running


@pytest.fixture
def services(own_services: Cluster) -> Cluster:
    """All services on an empty store; the folders whose tests need no empty store have ``shared_services`` instead."""
    return own_services


@pytest.fixture(scope="module")
def module_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the databases of ``module_services``."""
    return tmp_path_factory.mktemp("services")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def module_services(module_folder: Path) -> AsyncIterator[Cluster]:
    """All services, in memory, for all tests of a module; a module that needs others has a fixture of this name."""
    async with cluster(module_folder, transport=InMemory()) as running:
        yield running


_numbers = count(1)


@pytest.fixture
def shared_services(module_services: Cluster) -> Cluster:
    """The services of the module, with an empty organization of its own for each test."""
    return module_services.in_org(f"org-{next(_numbers)}")


@pytest.fixture
async def older_services(tmp_path: Path) -> AsyncIterator[Cluster]:
    """All services on an empty store, whose driver cannot prepare specs: the platform refuses at the write."""
    async with cluster(tmp_path, {"platform": older_platform.opened}) as running:
        yield running


@pytest.fixture
def calls() -> Iterator[Calls]:
    """The calls served in this process, counted from the start of the test."""
    handler, log = Calls(), logging.getLogger("pkger.rpc")
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield handler
    log.removeHandler(handler)
    log.setLevel(level)
