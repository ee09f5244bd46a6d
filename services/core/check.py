"""What a look at a platform finds that writes nothing."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from services.core.model import Organization


class CheckAspect(Enum):
    """What a finding is about."""

    PLATFORM = "platform"
    CREDENTIAL = "credential"
    ORG = "organisation"
    READ = "read"
    WRITE = "write"


class CheckVerdict(Enum):
    """How it is; ``UNKNOWN``: nobody can tell without writing."""

    OK = "ok"
    WRONG = "wrong"
    UNKNOWN = "unknown"


class Finding(NamedTuple):
    """
    One thing that was found.

    Attributes:
        aspect: What it is about.
        verdict: How it is.
        message: One sentence for people; never a credential.
        subject: What of the aspect, in the words of the platform, such as "buckets"; empty: all of it.
    """

    aspect: CheckAspect
    verdict: CheckVerdict
    message: str
    subject: str = ""


@dataclass(frozen=True, slots=True)
class PlatformCheck:
    """
    All that a look at a platform finds.

    Attributes:
        findings: In the order in which they were made. What depends on something wrong is not looked for.
        platform: Sort of the platform, such as "embedded"; empty: nobody could tell.
        version: Its version; empty likewise.
        orgs: Its organisations; where anybody may name one, those that hold something.
    """

    findings: tuple[Finding, ...]
    platform: str = ""
    version: str = ""
    orgs: tuple[Organization, ...] = ()
