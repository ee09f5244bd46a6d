"""The driver under test, once for each platform."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.core.model import PlatformTraits
from services.kinds.registry import KINDS
from tests.drivers.client import DriverClient
from tests.drivers.platforms import PLATFORMS, PlatformUnderTest, Sample


@pytest.fixture(params=PLATFORMS)
def platform(request: pytest.FixtureRequest) -> PlatformUnderTest:
    return PLATFORMS[request.param]


@pytest.fixture
def sample(platform: PlatformUnderTest) -> Sample:
    return platform.sample


@pytest.fixture
async def driver(platform: PlatformUnderTest, tmp_path: Path) -> AsyncIterator[DriverClient]:
    """A driver of an empty platform."""
    async with platform.running(tmp_path) as client:
        yield client


@pytest.fixture
async def traits(driver: DriverClient) -> PlatformTraits:
    return await driver.describe()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, traits: PlatformTraits) -> str:
    """Each kind of the platform."""
    if request.param not in traits.kinds:
        pytest.skip(f"the platform has no kind {request.param}")
    return str(request.param)


@pytest.fixture
def labelled(kind: str, traits: PlatformTraits) -> str:
    """Each kind that can have labels."""
    if not traits.kinds[kind].labelled:
        pytest.skip(f"labels cannot be attached to a {kind}")
    return kind
