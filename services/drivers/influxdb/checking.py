"""Checks an InfluxDB server and a token without writing."""

import asyncio
import re

from services.core.check import CheckAspect, CheckVerdict, Finding, PlatformCheck
from services.core.model import Organization
from services.drivers.influxdb.codecs.registry import CODECS
from services.drivers.influxdb.kinds import PLATFORM
from services.drivers.influxdb.reading import CannotRead, OrgMissing, ResourceReader
from services.engine.outcome import RejectionReason

_TRIED = re.compile(r"v?2\.[789]\..*")
"""The versions that the driver supports."""

_SHOWN_ORGS = 5

_OK, _WRONG, _UNKNOWN = CheckVerdict.OK, CheckVerdict.WRONG, CheckVerdict.UNKNOWN


async def check(reader: ResourceReader, url: str, org: str) -> PlatformCheck:
    """Check the server at *url*, and the rights of the token to read in *org*; empty: in no organization."""
    try:
        version = await reader.version()
    except CannotRead as error:
        return PlatformCheck((Finding(CheckAspect.PLATFORM, _WRONG, f"{url}: {error}"),), PLATFORM)
    findings, orgs = [_of_version(url, version)], list[Organization]()
    try:
        await reader.prove_token()
        findings.append(Finding(CheckAspect.CREDENTIAL, _OK, "the server knows the token, and it is active"))
        orgs = await reader.orgs()
        findings.append(_of_orgs(orgs))
        if org:
            findings += await _in_org(reader, org)
    except CannotRead as error:
        findings.append(_of_trouble(error, CheckAspect.CREDENTIAL))
    return PlatformCheck(tuple(findings), PLATFORM, version, tuple(orgs))


def _of_version(url: str, version: str) -> Finding:
    if _TRIED.fullmatch(version):
        return Finding(CheckAspect.PLATFORM, _OK, f"{url} answers")
    return Finding(CheckAspect.PLATFORM, _UNKNOWN, f"{url} answers; this driver supports versions 2.7 to 2.9")


def _of_orgs(orgs: list[Organization]) -> Finding:
    if not orgs:
        return Finding(CheckAspect.ORG, _WRONG, "the token can read no organization")
    names = ", ".join(sorted(org.name for org in orgs)[:_SHOWN_ORGS]) + (", …" if len(orgs) > _SHOWN_ORGS else "")
    return Finding(CheckAspect.ORG, _OK, f"the token can read {len(orgs):,}: {names}")


async def _in_org(reader: ResourceReader, org: str) -> list[Finding]:
    try:
        org_id = await reader.org_id(org)
    except OrgMissing as error:
        return [Finding(CheckAspect.ORG, _WRONG, str(error), org)]
    collections = sorted({codec.collection for codec in CODECS.values()})
    shown = await asyncio.gather(*(reader.shows_any(org_id, collection) for collection in collections))
    rights = [_of_list(collection, any_) for collection, any_ in zip(collections, shown, strict=True)]
    message = "rights to write are known only after a write"
    return [
        Finding(CheckAspect.ORG, _OK, "the token can read it", org),
        *rights,
        await _of_secrets(reader, org_id),
        Finding(CheckAspect.WRITE, _UNKNOWN, message),
    ]


def _of_list(collection: str, is_any: bool) -> Finding:
    if is_any:
        return Finding(CheckAspect.READ, _OK, "the server shows some", collection)
    # Lists leave out, without an error, the resources that a token may not read.
    message = "the server shows none: there are none, or the token may not read them"
    return Finding(CheckAspect.READ, _UNKNOWN, message, collection)


async def _of_secrets(reader: ResourceReader, org_id: str) -> Finding:
    try:
        await reader.secret_keys(org_id)
    except CannotRead as error:
        return _of_trouble(error, CheckAspect.READ, "secrets")
    return Finding(CheckAspect.READ, _OK, "the token may read their keys", "secrets")


def _of_trouble(error: CannotRead, aspect: CheckAspect, subject: str = "") -> Finding:
    """Why the check ends: a refusal, which is about *aspect*, or a server that does not answer."""
    if error.reason is RejectionReason.NOT_PERMITTED:
        return Finding(aspect, _WRONG, str(error), subject)
    return Finding(CheckAspect.PLATFORM, _WRONG, str(error))
