"""Evaluates a Jsonnet program in a child process, and explains how that ended."""

import asyncio
import contextlib
import json
import math
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from services.core.errors import SourceTooLarge, SourceUndecodable
from services.core.limits import MAX_PACKAGE_BYTES
from services.jsonnet.child import OUT_OF_MEMORY
from services.jsonnet.evaluators import Evaluator, preferred

_CHILD = ("-I", "-B", "-m", "services.jsonnet.child")
"""Isolated: neither the environment nor the working directory can bring in a module of somebody else."""

_STDERR = 2

_LAST_WORDS = 4096
"""Bytes of standard error that are kept; programs can write any number there."""


@dataclass(frozen=True, slots=True)
class Limits:
    """
    How much the evaluation of one program may take.

    Attributes:
        bytes: Of the JSON that it gives, and of the files that it imports.
        memory: Bytes of address space.
        seconds: From start to end.
    """

    bytes: int = MAX_PACKAGE_BYTES
    memory: int = 512 * 1024 * 1024
    seconds: float = 30


async def evaluate(
    text: str, name: str, folder: Path | None = None, limits: Limits | None = None, evaluator: Evaluator | None = None
) -> str:
    """
    Evaluate a program.

    Args:
        text: The program.
        name: Name for errors.
        folder: Its files can be imported, and those in folders below it; None: nothing can.
        limits: What the evaluation may take; None: the default.
        evaluator: None: the fastest there is; where it finds an error, the reference implementation tells which.

    Returns:
        What the program comes to: any JSON text, without line breaks.

    Raises:
        SourceUndecodable: The program has an error.
        SourceTooLarge: The evaluation exceeds a limit.
    """
    limits = limits or Limits()
    request = _Request(text, name, folder, limits)
    loop = asyncio.get_running_loop()
    end = loop.time() + limits.seconds
    chosen = evaluator or preferred()
    try:
        return await _run(request, chosen, limits.seconds)
    except SourceUndecodable as told:
        if evaluator or chosen is Evaluator.JSONNET:
            raise
        try:
            return await _run(request, Evaluator.JSONNET, end - loop.time())
        except SourceTooLarge:
            if isinstance(told, _EvaluatorDiedError):
                raise
            raise told from None


class _EvaluatorDiedError(SourceUndecodable):
    """The program made the evaluator end without a word, as recursion does that fills its stack."""


@dataclass(frozen=True, slots=True)
class _Request:
    text: str
    name: str
    folder: Path | None
    limits: Limits

    def written(self, evaluator: Evaluator) -> bytes:
        """The request as the child reads it."""
        document = {
            "text": self.text,
            "folder": None if self.folder is None else str(self.folder.absolute()),
            "bytes": self.limits.bytes,
            "memory": self.limits.memory,
            "seconds": math.ceil(self.limits.seconds),
            "evaluator": evaluator.value,
        }
        return json.dumps(document).encode()


async def _run(request: _Request, evaluator: Evaluator, seconds: float) -> str:
    # In a session of its own, so that all of it can be ended, and so that a Ctrl-C at the terminal is not for it.
    transport, answer = await asyncio.get_running_loop().subprocess_exec(
        lambda: _Answer(request.limits), *(sys.executable, *_CHILD), env={}, cwd="/", start_new_session=True
    )
    try:
        async with asyncio.timeout(seconds):
            stdin: Any = transport.get_pipe_transport(0)
            stdin.write(request.written(evaluator))
            stdin.write_eof()
            await answer.ended.wait()
    except TimeoutError:
        raise _too_slow(request) from None
    finally:
        answer.end()
        await answer.ended.wait()
        transport.close()
    return _outcome(request, answer, transport.get_returncode() or 0)


class _Answer(asyncio.SubprocessProtocol):
    """
    What a child writes, of which no more is kept than is of use.

    Attributes:
        written: Its standard output.
        last_words: The end of its standard error.
        ended: Whether it is gone.
    """

    def __init__(self, limits: Limits) -> None:
        # Escaped once more, a text in JSON gets twice as long at most.
        self._most = 2 * limits.bytes + 1024
        self.written = bytearray()
        self.last_words = b""
        self.ended = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The child runs."""
        self._transport: Any = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """The child wrote something."""
        if fd == _STDERR:
            self.last_words = (self.last_words + data)[-_LAST_WORDS:]
        elif len(self.written) <= self._most:
            self.written += data
        else:
            self.end()

    def connection_lost(self, exc: Exception | None) -> None:
        """The child is gone, and all that it wrote was read."""
        self.ended.set()

    def end(self) -> None:
        """End the child, and what it may have started, unless it is gone."""
        if self._transport.get_returncode() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._transport.get_pid(), signal.SIGKILL)


def _outcome(request: _Request, answer: _Answer, status: int) -> str:
    """
    The JSON text that a child gave.

    Raises:
        SourceUndecodable: It told an error of the program, or did not survive the program.
        SourceTooLarge: It ran out of what it may use.
    """
    if status == 0:
        document = orjson.loads(answer.written)
        if "json" in document:
            return str(document["json"])
        if "fault" in document:
            raise SourceUndecodable(request.name, *document["fault"])
        raise SourceTooLarge(request.name, "bytes of evaluated JSON", request.limits.bytes)
    if status == -signal.SIGXCPU:
        raise _too_slow(request)
    # Both evaluators end by themselves when memory is refused to them, and say so; a system short of it just kills.
    if status in (OUT_OF_MEMORY, -signal.SIGKILL) or b"memory allocation" in answer.last_words:
        raise SourceTooLarge(request.name, "bytes of memory for evaluation", request.limits.memory)
    if status in (-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT, -signal.SIGILL):
        raise _EvaluatorDiedError(request.name, "it nests or calls itself too deeply for the Jsonnet evaluator")
    raise RuntimeError(f"the evaluator ended with status {status}: {answer.last_words.decode(errors='replace')}")


def _too_slow(request: _Request) -> SourceTooLarge:
    return SourceTooLarge(request.name, "seconds of evaluation", math.ceil(request.limits.seconds))
