"""Package files, folders, addresses and standard input as sources for the parser."""

import asyncio
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pkger.parser.v1 import parser_pb2

from services.cli.common import caller
from services.cli.errors import CommandFailed
from services.jsonnet.evaluation import EvaluationLimits, evaluate
from services.rpc.convert.values import env_texts
from services.settings import Bounds

STDIN = "-"
_CHUNK = 64 * 1024

MAX_BYTES = 32 * 1024 * 1024
"""The most text that is read for one call; the parser enforces the bounds of a package."""

ENDINGS = (".yml", ".yaml", ".json", ".jsonnet")
"""Endings of the package files in folders."""

WORKSPACE = "pkger.yml"
"""Never a package file: the name is reserved for the settings of a workspace."""

JSONNET = "jsonnet"
ENCODINGS: Mapping[str, parser_pb2.Encoding.ValueType] = {
    "yml": parser_pb2.ENCODING_YAML,
    "yaml": parser_pb2.ENCODING_YAML,
    "json": parser_pb2.ENCODING_JSON,
}
"""The values of ``--encoding``, except ``JSONNET``, which is evaluated here."""

_PSEUDO_FOLDERS = ("/proc", "/sys", "/dev")
"""Folders whose entries are not regular files, even if stat says so; except for ``_SHARED_MEMORY``."""

_SHARED_MEMORY = "/dev/shm"  # noqa: S108


async def read_sources(
    names: Sequence[str],
    recursive: bool = False,
    bounds: Bounds | None = None,
    encoding: str = "",
    libraries: Sequence[Path] = (),
) -> list[parser_pb2.Source]:
    """
    Read the sources of a package. Jsonnet is evaluated; it can import files of its own folder and of libraries.

    Args:
        names: Files; folders, if *recursive*; http(s) addresses, which the parser fetches; ``-`` for standard input.
        recursive: Whether a folder stands for all package files in it and below.
        bounds: Bounds of the evaluation of Jsonnet; None: the default.
        encoding: ``JSONNET`` or a key of ``ENCODINGS``: of standard input, and of files whose names do not show it.
        libraries: Folders in which Jsonnet imports are looked up, in this order, after the folder of the importing
            file.

    Returns:
        The sources in the order of *names*; the sources of a folder are sorted by path.

    Raises:
        CommandFailed: A source cannot be read, is too large, or is not UTF-8 text.
        SourceUndecodable: A program has an error.
        SourceTooLarge: The evaluation of a program exceeds a bound.
    """
    left = MAX_BYTES
    sources = []
    for name in expanded(names, recursive):
        source = (
            parser_pb2.Source(url=name)
            if is_address(name)
            else await _source(name, left, bounds or Bounds(), encoding, libraries)
        )
        left -= len(source.text.encode())
        sources.append(source)
    return sources


def is_address(name: str) -> bool:
    """Whether a source is an http(s) address, which the parser fetches."""
    return name.lower().startswith(("http://", "https://"))


def expanded(names: Sequence[str], recursive: bool) -> Iterator[str]:
    """
    The names, with each folder replaced by the package files in it.

    Raises:
        CommandFailed: A folder cannot be read or has no package files, or *recursive* is off.
    """
    for name in names:
        if name == STDIN or is_address(name) or not Path(name).is_dir():
            yield name
        elif recursive:
            yield from _files(name)
        else:
            raise CommandFailed(f"{name}: is a directory; name the files in it, or use -R for all package files in it")


def _files(folder: str) -> list[str]:
    """The package files in and below a folder, sorted; without hidden ones, and without following links to folders."""

    def fail(error: OSError) -> None:
        raise CommandFailed(f"{error.filename}: {error.strerror}") from error

    paths = []
    for path, folders, files in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths += [os.path.join(path, name) for name in files if _is_package(name)]
    if not paths:
        raise CommandFailed(f"{folder}: it has no package files (*{', *'.join(ENDINGS)})")
    return sorted(paths)


def _is_package(name: str) -> bool:
    return name.endswith(ENDINGS) and not name.startswith(".") and name != WORKSPACE


async def _source(name: str, limit: int, bounds: Bounds, encoding: str, libraries: Sequence[Path]) -> parser_pb2.Source:
    if name == STDIN:
        shown, text = "stdin", _text(name, await _standard_input(limit))
    else:
        # File names can be any bytes; names of sources are text.
        shown = os.fsencode(name).decode(errors="replace")
        text = _text(shown, _read(shown, name, limit))
    # The ending of a file name takes precedence over --encoding.
    meant = "" if name.lower().endswith(ENDINGS) else encoding
    if meant != JSONNET and not name.lower().endswith(".jsonnet"):
        return parser_pb2.Source(name=shown, text=text, encoding=ENCODINGS.get(meant, parser_pb2.ENCODING_UNSPECIFIED))
    limits = EvaluationLimits(limit, bounds.memory, bounds.seconds)
    result = await evaluate(text, shown, Path(name).parent, limits, libraries=libraries)
    return parser_pb2.Source(name=shown, text=result, encoding=parser_pb2.ENCODING_JSON, generated=True)


def _read(shown: str, name: str, limit: int) -> bytes:
    """The bytes of a regular file; reads at most one byte more than *limit*."""
    try:
        # Opening a device may have effects, so its path is refused first. O_NONBLOCK: a pipe would wait for a writer.
        if _is_pseudo(Path(os.path.realpath(name))):
            raise CommandFailed(f"{shown}: {_NO_FILE}")
        with open(os.open(name, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise CommandFailed(f"{shown}: {_NO_FILE}")
            data = file.read(limit + 1)
    except OSError as error:
        raise CommandFailed(f"{shown}: {error.strerror or error}") from error
    _bounded(shown, data, limit)
    return data


_NO_FILE = f"is not a regular file; for standard input, write {STDIN}"


def _is_pseudo(path: Path) -> bool:
    return not path.is_relative_to(_SHARED_MEMORY) and any(map(path.is_relative_to, _PSEUDO_FOLDERS))


async def _standard_input(limit: int) -> bytes:
    """Standard input to its end."""
    data = bytearray()
    try:
        while more := await _some_input():
            data += more
            _bounded(STDIN, data, limit)
    except OSError as error:
        raise CommandFailed(f"{STDIN}: {error.strerror or error}") from error
    return bytes(data)


async def _some_input() -> bytes:
    """Available bytes of standard input, none at its end; the wait for them can be cancelled."""
    loop, readable, stdin = asyncio.get_running_loop(), asyncio.Event(), caller().stdin
    try:
        loop.add_reader(stdin, readable.set)
    except PermissionError:
        # epoll refuses regular files, which never block.
        return os.read(stdin, _CHUNK)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(stdin)
    return os.read(stdin, _CHUNK)


def _bounded(shown: str, data: bytes | bytearray, limit: int) -> None:
    if len(data) > limit:
        raise CommandFailed(f"{shown}: a package has at most {MAX_BYTES // 2**20} MiB of text in all its files")


def _text(shown: str, data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise CommandFailed(f"{shown}: is UTF-16 text; save it as UTF-8")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CommandFailed(
            f"{shown}:{line}: is not UTF-8 text (byte {data[error.start]:#04x}); save it as UTF-8"
        ) from error


def sendable(env: Mapping[str, Any]) -> dict[str, str]:
    """
    Environment values as a request carries them: JSON texts by key.

    Raises:
        CommandFailed: A value cannot be sent.
    """
    try:
        return env_texts(env)
    except ValueError as error:
        raise CommandFailed(str(error)) from error
