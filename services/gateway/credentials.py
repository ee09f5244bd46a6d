"""Authentication of clients by tokens: of this machine or of the operator, and of a file with digests."""

import hashlib
import hmac
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from services.access.authentication import LOCAL
from services.access.token_file import TokenFile, TokenUnusable
from services.access.tokens import digest_of
from services.gateway.answers import Code
from services.gateway.errors import Problem
from services.private_files import read_shared

log = logging.getLogger("pkger.http")

_ROW = re.compile(r"(\S{1,200})\s+([0-9a-fA-F]{64})")

_SCHEMES = ("token", "bearer")


class TokensInvalid(Exception):
    """The file of tokens cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """
    The tokens that clients of one listener may use.

    Attributes:
        rows: Names of clients, with the SHA-256 of their tokens.
        own: The token of this machine or of the operator, which pkger itself made; None: there is none.
        name: The name of a client with that token, or of any client if no token is needed.
        are_needed: Whether each client needs a token.
    """

    rows: Sequence[tuple[str, bytes]] = ()
    own: TokenFile | None = None
    name: str = LOCAL.principal
    are_needed: bool = True

    def principal(self, headers: Sequence[str]) -> str | Problem:
        """The name of the client that sends these Authorization headers; or the reason to refuse the request."""
        if not self.are_needed:
            return self.name
        scheme, _, token = (headers[0] if len(headers) == 1 else "").strip().partition(" ")
        if scheme.lower() not in _SCHEMES:
            return _unauthorized("send one header Authorization: Token TOKEN")
        if self._is_own(token.strip()):
            return self.name
        digest, principal = hashlib.sha256(token.strip().encode(errors="surrogateescape")).digest(), ""
        for name, expected in self.rows:
            # Compares all rows, so that the time of the comparison does not depend on the token.
            if hmac.compare_digest(digest, expected):
                principal = name
        return principal or _unauthorized("the token is unknown")

    def _is_own(self, token: str) -> bool:
        if self.own is None or (digest := digest_of(token)) is None:
            return False
        try:
            own = self.own.digest()
        except TokenUnusable as error:
            log.warning("the token cannot be used", extra={"problem": str(error)})
            return False
        return own is not None and digest.matches(own)


def read_rows(path: Path) -> list[tuple[str, bytes]]:
    """
    Read a file with a line ``NAME SHA256`` for each token; empty lines and lines that begin with ``#`` are ignored.

    Raises:
        TokensInvalid: The file cannot be read, has an invalid line, or has no token.
    """
    try:
        text = read_shared(path)
    except (OSError, UnicodeDecodeError) as error:
        raise TokensInvalid(f"cannot read the tokens of {path}: {error}") from error
    rows: list[tuple[str, bytes]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        row = _ROW.fullmatch(line.strip())
        if row is None:
            raise TokensInvalid(f"{path}, line {number}: write a name and the SHA-256 of its token, in 64 hex digits")
        if any(row[1] == name for name, _ in rows):
            raise TokensInvalid(f"{path}, line {number}: {row[1]} has a token already")
        rows.append((row[1], bytes.fromhex(row[2])))
    if not rows:
        raise TokensInvalid(f"{path} has no token, so every request would be refused; add a line NAME SHA256")
    return rows


def _unauthorized(detail: str) -> Problem:
    return Problem(
        Code.UNAUTHORIZED, f"unauthorized access: {detail}", headers={"WWW-Authenticate": 'Token realm="pkger"'}
    )
