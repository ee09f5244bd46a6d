"""The contract for platform checks, which do not write."""

from pkger.model.v1.check_pb2 import (
    CHECK_ASPECT_ORG,
    CHECK_ASPECT_PLATFORM,
    CHECK_VERDICT_OK,
    CHECK_VERDICT_WRONG,
)

from tests.drivers.client import ORG, DriverClient, create
from tests.drivers.platforms import Sample


async def test_a_working_platform_has_no_wrong_verdict(driver: DriverClient, sample: Sample) -> None:
    await driver.made(create("Label", sample("Label", "first", "what it is"), "key"))
    found, described = await driver.check(), await driver.describe()
    assert (found.platform, found.version) == (described.platform, described.version)
    assert found.findings[0].aspect == CHECK_ASPECT_PLATFORM
    assert CHECK_VERDICT_WRONG not in {each.verdict for each in found.findings}
    assert all(each.message for each in found.findings)
    assert [(org.id, org.name) for org in found.orgs] == await driver.orgs()


async def test_an_existing_organization_is_a_finding(driver: DriverClient, sample: Sample) -> None:
    await driver.made(create("Label", sample("Label", "first", "what it is"), "key"))
    held = await driver.listing("Label")
    found = await driver.check(ORG)
    verdicts = [each.verdict for each in found.findings if each.aspect == CHECK_ASPECT_ORG]
    assert set(verdicts) <= {CHECK_VERDICT_OK}
    assert CHECK_VERDICT_WRONG not in {each.verdict for each in found.findings}
    assert await driver.listing("Label") == held
