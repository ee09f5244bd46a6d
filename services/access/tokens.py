"""The form of tokens, ``pkg1_ID_SECRET``, and what is kept of one."""

import hashlib
import hmac
import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass

from services.system import Ids

LONGEST_HEADER = 4096
"""Most bytes of an ``authorization`` header."""

TOKEN_RULE = "pkg1_, 16 hexadecimal digits, _ and 43 letters, digits, - and _, as `pkger token local` prints one"  # noqa: S105
"""The form of a token, for messages."""

_FORM = re.compile(r"pkg1_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", re.ASCII)

_ID_BYTES, _SECRET_BYTES = 8, 32


@dataclass(frozen=True, slots=True)
class TokenDigest:
    """
    What a server keeps of a token.

    Attributes:
        id: The id in the token, which logs may show.
        digest: SHA-256 of its secret: 256 random bits need no slow hash.
    """

    id: str
    digest: bytes

    def matches(self, other: "TokenDigest") -> bool:
        """Whether *other* is of the same token; the comparison takes the same time for any two digests."""
        return hmac.compare_digest(self.digest, other.digest) and self.id == other.id


def digest_of(token: str) -> TokenDigest | None:
    """The digest of *token*; None: it does not have the form of a token."""
    match = _FORM.fullmatch(token)
    return TokenDigest(match[1], hashlib.sha256(match[2].encode()).digest()) if match else None


def new_token(ids: Ids) -> str:
    """Draw a token."""
    secret = urlsafe_b64encode(ids.salt(_SECRET_BYTES)).decode().rstrip("=")
    return f"pkg1_{ids.token(_ID_BYTES)}_{secret}"
