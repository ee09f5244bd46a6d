"""Authentication of clients by tokens, from a file with their digests. Roles belong here."""

import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from services.gateway.answers import Code
from services.gateway.errors import Problem
from services.private_files import read_shared

_ROW = re.compile(r"(\S{1,200})\s+([0-9a-fA-F]{64})")

_SCHEMES = ("token", "bearer")


class TokensInvalid(Exception):
    """The file of tokens cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """
    The tokens that clients may use.

    Attributes:
        rows: Names of clients, with the SHA-256 of their tokens; None: no token is needed.
    """

    rows: Sequence[tuple[str, bytes]] | None = None

    @property
    def are_needed(self) -> bool:
        """Whether each client needs a token."""
        return self.rows is not None

    def principal(self, authorization: str | None) -> str | Problem:
        """
        The name of the client that sends an Authorization header.

        Returns:
            The name, empty if no token is needed; or the reason to refuse the request.
        """
        if self.rows is None:
            return ""
        scheme, _, token = (authorization or "").strip().partition(" ")
        if scheme.lower() not in _SCHEMES:
            return _unauthorized("send the header Authorization: Token TOKEN")
        digest, principal = hashlib.sha256(token.strip().encode(errors="surrogateescape")).digest(), ""
        for name, expected in self.rows:
            # Compares all rows, so that the time of the comparison does not depend on the token.
            if hmac.compare_digest(digest, expected):
                principal = name
        return principal or _unauthorized("the token is unknown")


def read_tokens(path: Path) -> Tokens:
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
    return Tokens(rows)


def _unauthorized(detail: str) -> Problem:
    return Problem(
        Code.UNAUTHORIZED, f"unauthorized access: {detail}", headers={"WWW-Authenticate": 'Token realm="pkger"'}
    )
