"""Evaluates a Jsonnet program in a child process, and translates its outcome."""

import asyncio
import contextlib
import json
import math
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from services.core.errors import SourceTooLarge, SourceUndecodable
from services.core.limits import MAX_PACKAGE_BYTES
from services.jsonnet.child import OUT_OF_MEMORY
from services.jsonnet.evaluators import Evaluator, preferred

_CHILD = ("-I", "-B", "-m", "services.jsonnet.child")
"""Isolated: neither environment variables nor the working directory can add a module."""

_STDERR = 2

_STDERR_BYTES = 4096
"""Bytes of standard error that are kept, from its end; a program can write without limit."""


@dataclass(frozen=True, slots=True)
class EvaluationLimits:
    """
    Limits of the evaluation of one program.

    Attributes:
        bytes: Of its JSON result, and of the files that it imports.
        memory: Bytes of address space.
        seconds: From start to end.
    """

    bytes: int = MAX_PACKAGE_BYTES
    memory: int = 512 * 1024 * 1024
    seconds: float = 30


async def evaluate(
    text: str,
    name: str,
    folder: Path | None = None,
    limits: EvaluationLimits | None = None,
    evaluator: Evaluator | None = None,
    libraries: Sequence[Path] = (),
) -> str:
    """
    Evaluate a program.

    Args:
        text: The program.
        name: Name for errors.
        folder: Files in it and in its subfolders can be imported; None: only files of *libraries*.
        limits: Limits of the evaluation; None: the default.
        evaluator: None: the fastest one; if it reports an error, the reference implementation finds its position.
        libraries: Folders in which an import is looked up, in this order, after the folder of the importing file.

    Returns:
        The result of the program: any JSON text, without line breaks.

    Raises:
        SourceUndecodable: The program has an error.
        SourceTooLarge: The evaluation exceeds a limit.
    """
    limits = limits or EvaluationLimits()
    request = _Request(text, name, folder, limits, libraries)
    loop = asyncio.get_running_loop()
    end = loop.time() + limits.seconds
    chosen = evaluator or preferred()
    try:
        return await _run(request, chosen, limits.seconds)
    except SourceUndecodable as error:
        if evaluator or chosen is Evaluator.JSONNET:
            raise
        try:
            return await _run(request, Evaluator.JSONNET, end - loop.time())
        except SourceTooLarge:
            if isinstance(error, _EvaluatorDiedError):
                raise
            raise error from None


class _EvaluatorDiedError(SourceUndecodable):
    """The program made the evaluator crash, for example by a recursion that fills its stack."""


@dataclass(frozen=True, slots=True)
class _Request:
    text: str
    name: str
    folder: Path | None
    limits: EvaluationLimits
    libraries: Sequence[Path]

    def encoded(self, evaluator: Evaluator) -> bytes:
        """The request as the child reads it: JSON."""
        document = {
            "text": self.text,
            "folder": None if self.folder is None else str(self.folder.absolute()),
            "libraries": [str(library.absolute()) for library in self.libraries],
            "bytes": self.limits.bytes,
            "memory": self.limits.memory,
            "seconds": math.ceil(self.limits.seconds),
            "evaluator": evaluator.value,
        }
        return json.dumps(document).encode()


async def _run(request: _Request, evaluator: Evaluator, seconds: float) -> str:
    # A separate session, so that the whole process group can be killed, and a Ctrl-C at the terminal does not reach it.
    transport, answer = await asyncio.get_running_loop().subprocess_exec(
        lambda: _Answer(request.limits), *(sys.executable, *_CHILD), env={}, cwd="/", start_new_session=True
    )
    try:
        async with asyncio.timeout(seconds):
            stdin: Any = transport.get_pipe_transport(0)
            stdin.write(request.encoded(evaluator))
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
    The output of a child, of which at most the useful part is kept.

    Attributes:
        written: Its standard output.
        stderr_end: The end of its standard error.
        ended: Whether it has exited.
    """

    def __init__(self, limits: EvaluationLimits) -> None:
        # The response escapes the result once more, which at most doubles the length of a JSON text.
        self._most = 2 * limits.bytes + 1024
        self.written = bytearray()
        self.stderr_end = b""
        self.ended = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The child has started."""
        self._transport: Any = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """The child wrote output."""
        if fd == _STDERR:
            self.stderr_end = (self.stderr_end + data)[-_STDERR_BYTES:]
        elif len(self.written) <= self._most:
            self.written += data
        else:
            self.end()

    def connection_lost(self, exc: Exception | None) -> None:
        """The child has exited, and all its output was read."""
        self.ended.set()

    def end(self) -> None:
        """Kill the child and its process group, unless it has exited."""
        if self._transport.get_returncode() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._transport.get_pid(), signal.SIGKILL)


def _outcome(request: _Request, answer: _Answer, status: int) -> str:
    """
    The JSON text that a child returned.

    Raises:
        SourceUndecodable: The child reported an error of the program, or crashed.
        SourceTooLarge: The child exceeded a limit.
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
    # Both evaluators report an allocation that fails and exit; a system that runs out of memory kills the process.
    if status in (OUT_OF_MEMORY, -signal.SIGKILL) or b"memory allocation" in answer.stderr_end:
        raise SourceTooLarge(request.name, "bytes of memory for evaluation", request.limits.memory)
    if status in (-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT, -signal.SIGILL):
        raise _EvaluatorDiedError(request.name, "it nests or calls itself too deeply for the Jsonnet evaluator")
    raise RuntimeError(f"the evaluator ended with status {status}: {answer.stderr_end.decode(errors='replace')}")


def _too_slow(request: _Request) -> SourceTooLarge:
    return SourceTooLarge(request.name, "seconds of evaluation", math.ceil(request.limits.seconds))
