"""Connects to the configured services, or runs services for the time of one command."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from services.cli.errors import CommandFailed
from services.cli.process.command_token import command_token
from services.private_files import PathRefused, own_folder
from services.rpc.client import Peer
from services.rpc.listening import answers, data_of
from services.rpc.sent_token import SentToken, no_token
from services.settings import Settings, is_configured, load

PLANNING = ("parser", "planner", "stack", "platform")
"""The services that make plans."""

APPLYING = (*PLANNING, "applier")
"""The services that run them."""


@asynccontextmanager
async def session(
    needs: Sequence[str], environ: Mapping[str, str], platform: str | None = None
) -> AsyncIterator["Session"]:
    """
    Connections to services.

    Args:
        needs: Services that the command needs. Without a configured server, those that run in ``PKGER_HOME`` are
            called; if there are none, they run for the time of the block.
        environ: The environment.
        platform: The platform of the command, whose driver is started if it runs here; empty for the default one.
            None: the command may concern any platform, so all drivers are started.

    Raises:
        CommandFailed: The services cannot be started.
        PlatformUnknown: There is no such platform.
        PlatformsInvalid: The platforms file cannot be used.
    """
    settings = load(environ)
    if is_configured(environ):
        async with _open(settings, command_token(environ)) as opened:
            yield opened
        return
    if services_answer(settings, needs):
        async with _open(settings) as opened:
            yield opened
        return
    from services.cli.process.own_services import own_services

    async with own_services(needs, environ, platform) as own, _open(own) as opened:
        yield opened


def outlive_command(settings: Settings, environ: Mapping[str, str], needs: Sequence[str]) -> bool:
    """
    Whether the services of a session go on when the command ends: they are configured, or run in ``PKGER_HOME``.

    Raises:
        CommandFailed: As ``services_answer``.
    """
    return is_configured(environ) or services_answer(settings, needs)


def services_answer(settings: Settings, needs: Sequence[str]) -> bool:
    """
    Whether a service of *needs* answers at its socket in the folder of this home: then all of them are called there.

    Raises:
        CommandFailed: Others may have made the sockets, or the services use other databases than *settings* say.
    """
    if not any(answers(settings.run / f"{name}.sock") for name in needs if name != "platform"):
        return False
    try:
        own_folder(settings.run)
    except PathRefused as error:
        raise CommandFailed(str(error)) from error
    data = data_of(settings.run / "stack.sock") if "stack" in needs else None
    if data and data.resolve() != settings.data.resolve():
        raise CommandFailed(
            f"the services of {settings.run} run on the databases in {data}, and this command is for those in"
            f" {settings.data}; set PKGER_DATA to the first, or PKGER_RUN to a folder of other services"
        )
    return True


class Session:
    """Connections to the services."""

    def __init__(self, settings: Settings, token: SentToken = no_token) -> None:
        def peer(name: str) -> Peer:
            return Peer(name, settings.addresses[name], token=token)

        self.parser, self.planner, self.applier, self.stack = map(peer, ("parser", "planner", "applier", "stack"))

    async def close(self) -> None:
        """Close all connections."""
        for peer in (self.parser, self.planner, self.applier, self.stack):
            await peer.close()


@asynccontextmanager
async def _open(settings: Settings, token: SentToken = no_token) -> AsyncIterator[Session]:
    opened = Session(settings, token)
    try:
        yield opened
    finally:
        await opened.close()
