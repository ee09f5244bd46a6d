"""Connects to the configured services, or runs services for the time of one command."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import IO

from services.access.listeners import MOST_SOCKET_BYTES
from services.cli.errors import CommandFailed
from services.cli.process.command_token import command_token
from services.cli.process.supervisor import Supervisor, one_child
from services.core.model import DEFAULT_PLATFORM
from services.drivers.registry import DRIVERS
from services.platforms import Platform, find_platform, read_platforms
from services.private_files import PathRefused, open_private, own_folder, private_folder
from services.rpc.client import Peer
from services.rpc.listening import answers, data_of
from services.rpc.sent_token import SentToken, no_token
from services.settings import Settings, is_configured, load

PLANNING = ("parser", "planner", "stack", "platform")
"""The services that make plans."""

APPLYING = (*PLANNING, "applier")
"""The services that run them."""

LOG_BYTES = 5 * 1024 * 1024
"""A log of earlier commands that is larger than this is deleted, and a new one started."""

LONGEST_SOCKET = "platform-embedded.sock"
"""One of the longest names of sockets."""


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
    with sockets_folder() as folder:
        local = {name: value for name, value in environ.items() if name != "PKGER_LISTEN"} | {"PKGER_RUN": str(folder)}
        settings = load(local)
        served = _platforms(settings, platform) if "platform" in needs else []
        running = one_child(needs, settings, served)
        supervisor = Supervisor([running], local, lambda name: open_log(settings.home, name))
        try:
            await supervisor.start()
            async with _open(settings) as opened:
                yield opened
        finally:
            await supervisor.stop()


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


@contextmanager
def sockets_folder() -> Iterator[Path]:
    """
    A new folder for sockets, until the block is left.

    Raises:
        CommandFailed: The folder cannot be made, or the paths of sockets in it would be too long.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="pkger-"))
    except OSError as error:
        raise CommandFailed(
            f"cannot make a folder for sockets: {error.strerror or error}; set TMPDIR to another one"
        ) from error
    if len(bytes(folder / LONGEST_SOCKET)) > MOST_SOCKET_BYTES:
        folder.rmdir()
        raise CommandFailed(
            f"the path of the folder {folder.parent} is too long for sockets in it; set TMPDIR to a shorter one"
        )
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _platforms(settings: Settings, platform: str | None) -> list[Platform]:
    """
    The platforms whose drivers a command needs; arguments as for ``session``.

    Raises:
        PlatformUnknown: There is no such platform.
        PlatformsInvalid: The platforms file cannot be used.
    """
    platforms = read_platforms(settings, DRIVERS)
    return list(platforms.values()) if platform is None else [find_platform(platforms, platform or DEFAULT_PLATFORM)]


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


def open_log(home: Path, name: str) -> IO[bytes]:
    """
    The log of a service that a command runs, opened for appending.

    Raises:
        CommandFailed: It cannot be written.
    """
    path = home / "logs" / f"{name}.log"
    try:
        private_folder(path.parent)
        if path.exists() and path.stat().st_size > LOG_BYTES:
            path.unlink()
        return open(path, "ab", opener=open_private)
    except PathRefused as error:
        raise CommandFailed(str(error)) from error
    except OSError as error:
        raise CommandFailed(
            f"cannot write {path}: {error.strerror}; set PKGER_HOME to a folder that can be written"
        ) from error
