"""The contract for organizations: one that holds resources is listed."""

from tests.drivers.client import ORG, DriverClient, create
from tests.drivers.platforms import Sample


async def test_an_organization_that_holds_resources_is_listed(driver: DriverClient, sample: Sample) -> None:
    await driver.made(create("Label", sample("Label", "first", "what it is"), "key"))
    orgs = await driver.orgs()
    assert driver.org_name(ORG) in {id_ for id_, _ in orgs}
    assert orgs == sorted(orgs)
    assert all(id_ and name for id_, name in orgs)
