"""The driver under test, once for each platform."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.core.model import PlatformTraits
from tests.drivers import cases
from tests.drivers.client import DriverClient
from tests.drivers.platforms import PlatformUnderTest, Sample


def pytest_configure(config: pytest.Config) -> None:
    for marker in cases.MARKERS:
        config.addinivalue_line("markers", marker)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each test of the conformance suite runs on the platforms, and with the kinds, for which it has a rule."""
    cases.parametrize(metafunc)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests of a trait that no platform has."""
    config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("no_case")])
    items[:] = [item for item in items if not item.get_closest_marker("no_case")]


@pytest.fixture
def sample(platform: PlatformUnderTest) -> Sample:
    return platform.sample


@pytest.fixture
def traits(platform: PlatformUnderTest) -> PlatformTraits:
    return platform.traits


@pytest.fixture
async def driver(platform: PlatformUnderTest, tmp_path: Path) -> AsyncIterator[DriverClient]:
    """A driver of an empty platform."""
    async with platform.running(tmp_path) as client:
        yield client
