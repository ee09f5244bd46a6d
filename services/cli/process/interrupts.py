"""Ctrl-C as an event, so that a command can finish or roll back before it ends."""

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from services.cli.common import caller
from services.cli.errors import CommandFailed

T = TypeVar("T")


class Interrupts:
    """
    While the block is open, the signals of the caller, such as Ctrl-C, set events instead of raising.

    Attributes:
        event: Set by the first signal.
        again: Set by the second one.
    """

    def __init__(self) -> None:
        self.event, self.again = asyncio.Event(), asyncio.Event()
        self._signals = caller().signals

    def __enter__(self) -> Self:
        for number in self._signals:
            asyncio.get_running_loop().add_signal_handler(number, self._interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in self._signals:
            asyncio.get_running_loop().remove_signal_handler(number)

    def _interrupt(self) -> None:
        (self.again if self.event.is_set() else self.event).set()

    async def or_stop(self, work: Coroutine[Any, Any, T], message: str = "interrupted; nothing was written") -> T:
        """
        Await *work*, which writes nothing; an interrupt cancels it.

        Raises:
            CommandFailed: It was interrupted; with *message*.
        """
        return await self._until(self.event, work, message)

    async def or_leave(self, work: Coroutine[Any, Any, T], message: str) -> T:
        """
        Await *work*, which handles the first interrupt; a second one cancels it.

        Raises:
            CommandFailed: It was interrupted twice; with *message*.
        """
        return await self._until(self.again, work, message)

    async def _until(self, event: asyncio.Event, work: Coroutine[Any, Any, T], message: str) -> T:
        task, interrupted = asyncio.create_task(work), asyncio.create_task(event.wait())
        try:
            await asyncio.wait({task, interrupted}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise CommandFailed(message)
        finally:
            for each in (task, interrupted):
                each.cancel()
            await asyncio.gather(task, interrupted, return_exceptions=True)

    async def readable(self, descriptor: int) -> None:
        """
        Wait until there is something to read.

        Raises:
            CommandFailed: It was interrupted.
        """
        loop, readable = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(descriptor, readable.set)
        try:
            await self.or_stop(readable.wait())
        finally:
            loop.remove_reader(descriptor)
