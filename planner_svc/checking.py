"""What can be told of a platform without writing, whatever its driver is able to tell."""

from services.core.check import CheckAspect, CheckVerdict, Finding, PlatformCheck
from services.core.errors import PkgerError
from services.core.model import Organization, PlatformTraits
from services.rpc.client import Peer
from services.rpc.resources import check_platform, list_orgs, platform_traits


async def check(driver: Peer, org: str) -> PlatformCheck:
    """Have *driver* look at its platform, in *org* as far as rights go; a driver that does not answer is a finding."""
    try:
        found = await check_platform(driver, org)
        return found or as_far_as_told(org, await platform_traits(driver), await list_orgs(driver))
    except PkgerError as error:
        return PlatformCheck((Finding(CheckAspect.PLATFORM, CheckVerdict.WRONG, str(error)),))


def as_far_as_told(org: str, traits: PlatformTraits, orgs: list[Organization] | None) -> PlatformCheck:
    """What is known of a platform whose driver does not look; *orgs*: None where it does not list them either."""
    findings = [
        Finding(CheckAspect.PLATFORM, CheckVerdict.OK, "its driver answers"),
        Finding(CheckAspect.CREDENTIAL, CheckVerdict.UNKNOWN, "its driver does not check credentials and rights"),
    ]
    if org and orgs and any(org == each.id for each in orgs):
        findings.append(Finding(CheckAspect.ORG, CheckVerdict.OK, "it is there", org))
    elif org:
        told = "its driver does not list organisations" if orgs is None else "its driver does not list it"
        findings.append(Finding(CheckAspect.ORG, CheckVerdict.UNKNOWN, told, org))
    return PlatformCheck(tuple(findings), traits.platform, traits.version, tuple(orgs or ()))
