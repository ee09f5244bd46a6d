"""Runs services for the time of one command."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import IO

from services.cli.errors import CommandFailed
from services.cli.process.supervisor import Supervisor, one_child
from services.core.addresses import MOST_SOCKET_BYTES
from services.core.model import DEFAULT_PLATFORM
from services.drivers.registry import DRIVERS
from services.platforms import Platform, find_platform, read_platforms
from services.private_files import PathRefused, open_private, private_folder
from services.settings import Settings, load

LOG_BYTES = 5 * 1024 * 1024
"""A log of earlier commands that is larger than this is deleted, and a new one started."""

LONGEST_SOCKET = "platform-embedded.sock"
"""One of the longest names of sockets."""


@asynccontextmanager
async def own_services(
    needs: Sequence[str], environ: Mapping[str, str], platform: str | None
) -> AsyncIterator[Settings]:
    """
    Run services, on the databases in ``PKGER_HOME``, while the block is open; arguments as for ``session``.

    Yields:
        Settings with their addresses.

    Raises:
        CommandFailed: The services cannot be started.
        PlatformUnknown: There is no such platform.
        PlatformsInvalid: The platforms file cannot be used.
    """
    with sockets_folder() as folder:
        local = {name: value for name, value in environ.items() if name != "PKGER_LISTEN"} | {"PKGER_RUN": str(folder)}
        settings = load(local)
        served = _platforms(settings, platform) if "platform" in needs else []
        running = one_child(needs, settings, served)
        supervisor = Supervisor([running], local, lambda name: open_log(settings.home, name))
        try:
            await supervisor.start()
            yield settings
        finally:
            await supervisor.stop()


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


def open_log(home: Path, name: str) -> IO[bytes]:
    """
    The log of a service that a command runs, opened for appending.

    Raises:
        CommandFailed: It cannot be written.
    """
    path = home / "logs" / f"{name}.log"
    try:
        private_folder(home)
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
