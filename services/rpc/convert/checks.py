"""Platform checks as messages and back."""

from pkger.model.v1 import check_pb2

from services.core.check import CheckAspect, CheckVerdict, Finding, PlatformCheck
from services.rpc.convert.drivers import LONGEST_MESSAGE
from services.rpc.convert.enums import Numbers
from services.rpc.convert.objects import org_from_pb, org_to_pb

_ASPECT = Numbers(CheckAspect, check_pb2.CheckAspect, "CHECK_ASPECT")
_VERDICT = Numbers(CheckVerdict, check_pb2.CheckVerdict, "CHECK_VERDICT")


def check_to_pb(check: PlatformCheck) -> check_pb2.PlatformCheck:
    """Translate a check."""
    return check_pb2.PlatformCheck(
        platform=check.platform,
        version=check.version,
        findings=map(_finding_to_pb, check.findings),
        orgs=map(org_to_pb, sorted(check.orgs)),
    )


def check_from_pb(message: check_pb2.PlatformCheck) -> PlatformCheck:
    """Translate the check of a driver; unknown aspects and verdicts of a newer driver are PLATFORM and UNKNOWN."""
    return PlatformCheck(
        tuple(map(_finding_from_pb, message.findings)),
        message.platform,
        message.version,
        tuple(map(org_from_pb, message.orgs)),
    )


def _finding_to_pb(finding: Finding) -> check_pb2.CheckFinding:
    return check_pb2.CheckFinding(
        aspect=_ASPECT.number(finding.aspect),
        verdict=_VERDICT.number(finding.verdict),
        subject=finding.subject,
        message=finding.message,
    )


def _finding_from_pb(message: check_pb2.CheckFinding) -> Finding:
    return Finding(
        _ASPECT.find(message.aspect) or CheckAspect.PLATFORM,
        _VERDICT.find(message.verdict) or CheckVerdict.UNKNOWN,
        message.message[:LONGEST_MESSAGE],
        message.subject[:LONGEST_MESSAGE],
    )
