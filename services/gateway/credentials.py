"""Who asks: tokens, by a file of their digests. Roles come here."""

import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from services.gateway.answers import Code
from services.gateway.errors import Problem

_ROW = re.compile(r"(\S{1,200})\s+([0-9a-fA-F]{64})")

_SCHEMES = ("token", "bearer")


class TokensInvalid(Exception):
    """The file of tokens cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """
    Who may ask.

    Attributes:
        rows: Names, with the SHA-256 of their tokens; None: whoever reaches the server may.
    """

    rows: Sequence[tuple[str, bytes]] | None = None

    @property
    def are_needed(self) -> bool:
        """Whether nobody may ask without one."""
        return self.rows is not None

    def principal(self, authorization: str | None) -> str | Problem:
        """
        The name of who sends that header.

        Returns:
            The name, empty where nobody needs a token; or why the request is refused.
        """
        if self.rows is None:
            return ""
        scheme, _, token = (authorization or "").strip().partition(" ")
        if scheme.lower() not in _SCHEMES:
            return _unauthorized("send the header Authorization: Token TOKEN")
        digest, found = hashlib.sha256(token.strip().encode(errors="surrogateescape")).digest(), ""
        for name, expected in self.rows:
            # All of them, whatever the first ones are: the time tells nothing.
            if hmac.compare_digest(digest, expected):
                found = name
        return found or _unauthorized("the token is not known here")


def read_tokens(path: Path) -> Tokens:
    """
    Read a file with a line ``NAME SHA256`` for each token; lines that are empty or begin with ``#`` do not count.

    Raises:
        TokensInvalid: It cannot be read, or has another line.
    """
    try:
        text = path.read_text()
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
        raise TokensInvalid(f"{path} has no token: nobody could ask anything")
    return Tokens(rows)


def _unauthorized(way_out: str) -> Problem:
    return Problem(
        Code.UNAUTHORIZED, f"unauthorized access: {way_out}", headers={"WWW-Authenticate": 'Token realm="pkger"'}
    )
