"""The token that a command sends: it sends one only if it was given one."""

from collections.abc import Mapping
from pathlib import Path

from services.access.token_file import TokenFile, TokenUnusable
from services.access.tokens import TOKEN_RULE, digest_of
from services.cli.errors import CommandFailed
from services.cli.exit_codes import Exit
from services.rpc.sent_token import SentToken, no_token

VARIABLE = "PKGER_TOKEN"
FILE_VARIABLE = "PKGER_TOKEN_FILE"


def command_token(environ: Mapping[str, str]) -> SentToken:
    """
    The token of the environment: ``PKGER_TOKEN``, or the one in the file of ``PKGER_TOKEN_FILE``.

    Raises:
        CommandFailed: It is no token, or cannot be read.
    """
    if token := environ.get(VARIABLE, "").strip():
        if digest_of(token) is None:
            raise CommandFailed(f"{VARIABLE} has no token: write {TOKEN_RULE}", Exit.UNAUTHENTICATED)
        return lambda: token
    if path := environ.get(FILE_VARIABLE):
        file = TokenFile(Path(path))
        try:
            file.token()
        except TokenUnusable as error:
            problem = f"{FILE_VARIABLE}, or token_file of the context in use: {error}"
            raise CommandFailed(problem, Exit.UNAUTHENTICATED) from error
        return file.token
    return no_token
