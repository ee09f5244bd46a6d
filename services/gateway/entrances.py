"""The entrances of the gateway: where it listens, and the tokens that follow from that."""

from dataclasses import dataclass
from pathlib import Path

from services.access.listeners import Listener, ListenerKind
from services.gateway.credentials import Tokens, TokensInvalid, read_rows
from services.gateway.settings import GatewaySettings
from services.rpc.entrances import CannotServe, entrances_of
from services.settings import HTTP, Settings


@dataclass(frozen=True, slots=True)
class HttpEntrance:
    """
    A listener of the gateway.

    Attributes:
        listener: Where it is, and what it is.
        tokens: The tokens of its clients.
        data: As for ``Entrance``.
    """

    listener: Listener
    tokens: Tokens
    data: Path = Path()


def http_entrances(settings: GatewaySettings, common: Settings) -> list[HttpEntrance]:
    """
    The entrances of the gateway: what a listener demands is the same as for any service.

    Clients of a port may also use the tokens of ``PKGER_HTTP_TOKENS``.

    Raises:
        CannotServe: An address cannot be used, a token is missing, or the file of tokens cannot be used.
    """
    try:
        rows = read_rows(settings.tokens) if settings.tokens else []
    except TokensInvalid as error:
        raise CannotServe(f"PKGER_HTTP_TOKENS: {error}") from error
    return [
        HttpEntrance(each.listener, _tokens(each.listener, Tokens(rows, each.token)), each.data)
        for each in entrances_of(HTTP, common.listen_addresses(HTTP), common, bool(rows))
    ]


def _tokens(listener: Listener, tokens: Tokens) -> Tokens:
    match listener.kind:
        case ListenerKind.SOCKET:
            return Tokens(are_needed=False)
        case ListenerKind.LOOPBACK:
            return tokens
        case ListenerKind.NETWORK:
            return Tokens(tokens.rows, tokens.own, "operator")
