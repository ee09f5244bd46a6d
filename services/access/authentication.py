"""Who makes a call: the decision, from its listener and metadata, before its message is read."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from services.access.listeners import ListenerKind
from services.access.tokens import LONGEST_HEADER, TokenDigest, digest_of

AUTHORIZATION = "authorization"
"""The metadata key of the token."""

_SCHEMES = ("bearer", "token")

Metadata = Iterable[tuple[str, str | bytes]]


@dataclass(frozen=True, slots=True)
class Caller:
    """
    Who makes a call.

    Attributes:
        principal: ``local``: the user who runs the service; ``operator``; empty for ``NOBODY``.
        token_id: The id of the token; empty without one.
    """

    principal: str
    token_id: str = ""


NOBODY = Caller("")
"""Nobody who is known: the caller of a health check without a token."""

LOCAL = Caller("local")
"""The user who runs the service: nobody else can open its socket."""


class Refusal(StrEnum):
    """Why a call is refused, for the log: its caller gets one text for all."""

    NO_TOKEN = "no token"  # noqa: S105
    SEVERAL_TOKENS = "several authorization headers"
    NO_SCHEME = "the scheme is neither Bearer nor Token"
    NO_FORM = "no token of pkger"
    UNKNOWN = "unknown token"


def authenticate(kind: ListenerKind, metadata: Metadata, accepted: TokenDigest | None) -> Caller | Refusal:
    """
    Decide who makes a call.

    Args:
        kind: What its listener is.
        metadata: Its metadata.
        accepted: The token that the listener accepts; None: none, and a socket needs none.
    """
    if kind is ListenerKind.SOCKET:
        return LOCAL
    digest = digest_in([value for key, value in metadata if key == AUTHORIZATION])
    if isinstance(digest, Refusal):
        return digest
    if accepted is None or not digest.matches(accepted):
        return Refusal.UNKNOWN
    return Caller("local" if kind is ListenerKind.LOOPBACK else "operator", digest.id)


def digest_in(headers: list[str | bytes]) -> TokenDigest | Refusal:
    """The digest of the token in the ``authorization`` headers of a call: exactly one, ``Bearer TOKEN``."""
    if not headers:
        return Refusal.NO_TOKEN
    if len(headers) > 1:
        return Refusal.SEVERAL_TOKENS
    (header,) = headers
    if not isinstance(header, str) or len(header) > LONGEST_HEADER:
        return Refusal.NO_FORM
    scheme, _, token = header.partition(" ")
    if scheme.lower() not in _SCHEMES:
        return Refusal.NO_SCHEME
    return digest_of(token) or Refusal.NO_FORM
