"""What every driver promises of organisations: one that holds something is told."""

from tests.drivers.client import ORG, DriverClient, create
from tests.drivers.platforms import Sample


async def test_an_organisation_that_holds_something_is_told(driver: DriverClient, sample: Sample) -> None:
    await driver.made(create("Label", sample("Label", "first", "what it is"), "key"))
    told = await driver.orgs()
    assert driver.org_name(ORG) in {id_ for id_, _ in told}
    assert told == sorted(told)
    assert all(id_ and name for id_, name in told)
