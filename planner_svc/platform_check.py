"""Checks a platform without writing to it. Works with every driver, even with a driver that implements no check."""

from services.core.check import CheckAspect, CheckVerdict, Finding, PlatformCheck
from services.core.errors import PkgerError
from services.core.model import Organization, PlatformTraits
from services.rpc.client import Peer
from services.rpc.resources import check_platform, list_orgs, platform_traits


async def check(driver: Peer, org: str) -> PlatformCheck:
    """
    Have *driver* check its platform, and the rights of its credential in *org*.

    A driver that does not answer is a finding, not an error.
    """
    try:
        driver_check = await check_platform(driver, org)
        return driver_check or derived_check(org, await platform_traits(driver), await list_orgs(driver))
    except PkgerError as error:
        return PlatformCheck((Finding(CheckAspect.PLATFORM, CheckVerdict.WRONG, str(error)),))


def derived_check(org: str, traits: PlatformTraits, orgs: list[Organization] | None) -> PlatformCheck:
    """
    The result for a platform whose driver implements no check; *orgs* is None if the driver does not list
    organizations.
    """
    findings = [
        Finding(CheckAspect.PLATFORM, CheckVerdict.OK, "its driver answers"),
        Finding(CheckAspect.CREDENTIAL, CheckVerdict.UNKNOWN, "its driver does not check credentials and rights"),
    ]
    if org and orgs and any(org == each.id for each in orgs):
        findings.append(Finding(CheckAspect.ORG, CheckVerdict.OK, "it is there", org))
    elif org:
        text = "its driver does not list organizations" if orgs is None else "its driver does not list it"
        findings.append(Finding(CheckAspect.ORG, CheckVerdict.UNKNOWN, text, org))
    return PlatformCheck(tuple(findings), traits.platform, traits.version, tuple(orgs or ()))
