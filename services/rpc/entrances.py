"""The entrances of a server: where it listens, and what follows from that for its callers, by the settings."""

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from services.access.listeners import Listener, ListenerInvalid, ListenerKind, listeners_of
from services.access.token_file import TokenFile, TokenUnusable, home_token
from services.private_files import private_folder
from services.rpc.call import MESSAGE_LIMIT
from services.settings import Settings

log = logging.getLogger("pkger.rpc")

_MORE_THAN_PACKAGE = 8 * 1024 * 1024
"""Bytes of a request beside the text of its package."""

_STACK_REQUEST_BYTES = 4 * 1024 * 1024
"""Most bytes of a request of a person to the stack service."""


class CannotServe(Exception):
    """The service lacks something that it needs; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Entrance:
    """
    A listener, and what it demands and allows.

    Attributes:
        listener: Where it is, and what it is.
        token: The token that it demands; None: none.
        message_bytes: Most bytes of a message to the server.
        has_reflection: Whether reflection is served.
        data: Folder of the databases of the process, which commands compare with theirs before they use a socket.
    """

    listener: Listener
    token: TokenFile | None = None
    message_bytes: int = MESSAGE_LIMIT
    has_reflection: bool = True
    data: Path = Path()


def entrances_of(
    service: str, addresses: Iterable[str], settings: Settings, has_tokens: bool = False
) -> list[Entrance]:
    """
    The entrances of *service* at *addresses*; *has_tokens*: it has tokens beside that of the operator.

    Raises:
        CannotServe: An address cannot be used, or a token is missing.
    """
    try:
        return [_entrance(service, listener, settings, has_tokens) for listener in listeners_of(addresses)]
    except (ListenerInvalid, TokenUnusable, OSError) as error:
        raise CannotServe(str(error)) from error


def _entrance(service: str, listener: Listener, settings: Settings, has_tokens: bool) -> Entrance:
    reflection = settings.reflection
    match listener.kind:
        case ListenerKind.SOCKET:
            if listener.path.startswith(f"{settings.run}/") and not os.path.lexists(settings.run):
                private_folder(settings.run)
            return Entrance(listener, has_reflection=reflection is not False, data=settings.data)
        case ListenerKind.LOOPBACK:
            token = home_token(settings.home, report=lambda path: log.info("token made", extra={"path": str(path)}))
            return Entrance(listener, token, _people_bytes(service, settings), reflection is not False)
        case ListenerKind.NETWORK:
            token_of_operator = _operator_token(listener, settings, has_tokens)
            return Entrance(listener, token_of_operator, has_reflection=reflection is True)


def _operator_token(listener: Listener, settings: Settings, has_tokens: bool) -> TokenFile | None:
    """
    The token that a listener accepts which other machines reach; None: other tokens than that of the operator.

    Raises:
        CannotServe: It may not listen there, or there is no usable token.
    """
    if not settings.allow_plaintext:
        raise CannotServe(
            f"{listener.address} can be reached from other machines, and tokens would pass unencrypted: listen on"
            " 127.0.0.1, or set PKGER_ALLOW_PLAINTEXT=1 where a proxy or a private network protects them"
        )
    log.warning("unencrypted: other machines reach this address", extra={"address": listener.address})
    if settings.operator_token is None and has_tokens:
        return None
    if settings.operator_token is None:
        raise CannotServe(
            f"{listener.address} can be reached from other machines: put a token into a file that only this user may"
            " read, and name it in PKGER_OPERATOR_TOKEN_FILE"
        )
    token = TokenFile(settings.operator_token)
    try:
        token.token()
    except TokenUnusable as error:
        raise CannotServe(f"PKGER_OPERATOR_TOKEN_FILE: {error}") from error
    return token


def _people_bytes(service: str, settings: Settings) -> int:
    """
    Most bytes of a message of a person to *service*.

    Services call each other over sockets, or over networks, where their messages are larger.
    """
    if service in ("parser", "planner", "applier"):
        return min(settings.bounds.bytes + _MORE_THAN_PACKAGE, MESSAGE_LIMIT)
    return _STACK_REQUEST_BYTES if service == "stack" else MESSAGE_LIMIT
