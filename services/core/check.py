"""The result of a platform check, which reads and writes nothing."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from services.core.model import Organization


class CheckAspect(Enum):
    """The aspect of a platform that a finding is about."""

    PLATFORM = "platform"
    CREDENTIAL = "credential"
    ORG = "organization"
    READ = "read"
    WRITE = "write"


class CheckVerdict(Enum):
    """The result for an aspect; ``UNKNOWN``: only a write could show it."""

    OK = "ok"
    WRONG = "wrong"
    UNKNOWN = "unknown"


class Finding(NamedTuple):
    """
    One result of a platform check.

    Attributes:
        aspect: The aspect that it is about.
        verdict: The result.
        message: One sentence, without any credential.
        subject: The part of the aspect, by the platform's own term, such as "buckets"; empty: the whole aspect.
    """

    aspect: CheckAspect
    verdict: CheckVerdict
    message: str
    subject: str = ""


@dataclass(frozen=True, slots=True)
class PlatformCheck:
    """
    All results of a platform check.

    Attributes:
        findings: In the order of the checks. A check that depends on a failed one is not made.
        platform: Type of the platform, such as "embedded"; empty: unknown.
        version: Its version; empty: unknown.
        orgs: Its organizations; if a target may name any organization, those that hold resources.
    """

    findings: tuple[Finding, ...]
    platform: str = ""
    version: str = ""
    orgs: tuple[Organization, ...] = ()
