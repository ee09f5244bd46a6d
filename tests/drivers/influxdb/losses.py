"""A proxy before a server that loses writes, or the answers to them."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import Enum, auto
from urllib.parse import urlsplit

_WRITE = re.compile(rb"(POST|PUT|PATCH|DELETE) ")
_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)


class Loss(Enum):
    """The message that is lost."""

    NOTHING = auto()
    REQUEST = auto()
    ANSWER = auto()


class Losses:
    """
    Forwards requests, byte by byte.

    Attributes:
        url: The address where it listens.
        loss: The loss of all further writes.
        writes: The number of writes that arrived.
    """

    def __init__(self, upstream: str) -> None:
        self.url = ""
        self.loss = Loss.NOTHING
        self.writes = 0
        parts = urlsplit(upstream)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._answered = asyncio.Event()
        self._serving: set[asyncio.Task[None] | None] = set()

    async def answered(self) -> None:
        """Return when the server has answered a write whose answer is lost, so the write had its effect."""
        await self._answered.wait()
        self._answered.clear()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        # Without this reference the task could be collected when its client disconnects.
        task = asyncio.current_task()
        self._serving.add(task)
        try:
            up_reader, up_writer = await asyncio.open_connection(self._host, self._port)
            back = asyncio.create_task(_pass_on(up_reader, writer))
            try:
                await self._requests(reader, writer, up_reader, up_writer, back)
            finally:
                back.cancel()
                up_writer.close()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            self._serving.discard(task)

    async def _requests(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        up_reader: asyncio.StreamReader,
        up_writer: asyncio.StreamWriter,
        back: asyncio.Task[None],
    ) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = _LENGTH.search(head)
            whole = head + (await reader.readexactly(int(length[1])) if length else b"")
            loss = Loss.NOTHING
            if _WRITE.match(head):
                self.writes += 1
                loss = self.loss
            if loss is Loss.REQUEST:
                return
            if loss is Loss.ANSWER:
                back.cancel()
                with suppress(asyncio.CancelledError):
                    await back
                writer.transport.abort()
            up_writer.write(whole)
            await up_writer.drain()
            if loss is Loss.ANSWER:
                await up_reader.read(1)
                self._answered.set()
                return


@asynccontextmanager
async def losses(upstream: str) -> AsyncIterator[Losses]:
    """A proxy before the server at *upstream*, on a port that the kernel picks; at first it loses nothing."""
    between = Losses(upstream)
    server = await asyncio.start_server(between.serve, "127.0.0.1", 0)
    between.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield between
    finally:
        server.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.close()
