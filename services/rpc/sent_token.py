"""The token that a process sends to the services that it calls at ports; sockets need none."""

from collections.abc import Callable

from services.access.token_file import TokenFile
from services.settings import Settings

SentToken = Callable[[], str]
"""Returns the token to send; empty: there is none. Raises ``TokenUnusable``."""


def no_token() -> str:
    """No token: for drivers of others, and for connections in memory."""
    return ""


def service_token(settings: Settings) -> SentToken:
    """The token that a service sends to other services: that of the operator."""
    return TokenFile(settings.operator_token).token if settings.operator_token else no_token
