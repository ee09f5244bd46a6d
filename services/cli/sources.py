"""Package files, folders, addresses and standard input as sources for the parser."""

import asyncio
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pkger.parser.v1 import parser_pb2

from services.cli.errors import Failed
from services.jsonnet.evaluation import Limits, evaluate
from services.settings import Bounds

STDIN = "-"
_STDIN_DESCRIPTOR = 0
_CHUNK = 64 * 1024

MAX_BYTES = 32 * 1024 * 1024
"""The most text that is read for one call; what a package may really have, the parser decides."""

ENDINGS = (".yml", ".yaml", ".json", ".jsonnet")
"""Of the files that count in folders."""

WORKSPACE = "pkger.yml"
"""Not a package file, wherever it is: it is kept for the settings of a workspace."""

JSONNET = "jsonnet"
ENCODINGS: Mapping[str, parser_pb2.Encoding.ValueType] = {
    "yml": parser_pb2.ENCODING_YAML,
    "yaml": parser_pb2.ENCODING_YAML,
    "json": parser_pb2.ENCODING_JSON,
}
"""What may be typed for an encoding, beside ``JSONNET``, which is evaluated here."""

_PSEUDO_FOLDERS = ("/proc", "/sys", "/dev")
"""What is in here is no file, even if some of it looks like one; but for the memory that is shared as files."""

_SHARED_MEMORY = "/dev/shm"  # noqa: S108


async def read_sources(
    names: Sequence[str], recursive: bool = False, bounds: Bounds | None = None, encoding: str = ""
) -> list[parser_pb2.Source]:
    """
    Read the sources of a package. Jsonnet in files is evaluated, with what is beside and below it to import.

    Args:
        names: Files; folders, if *recursive*; http(s) addresses, which the parser fetches; ``-`` for standard input.
        recursive: Whether a folder stands for all package files in it and below.
        bounds: What the evaluation of Jsonnet may take; None: the default.
        encoding: A key of ``ENCODINGS``: what standard input holds, and files whose names do not say it.

    Returns:
        The sources in the order of *names*; those of a folder by their paths.

    Raises:
        Failed: Something cannot be read, is too large, or is no UTF-8 text.
        SourceUndecodable: A program has an error.
        SourceTooLarge: The evaluation of a program exceeds a bound.
    """
    left = MAX_BYTES
    sources = []
    for name in expanded(names, recursive):
        is_address = _is_address(name)
        source = parser_pb2.Source(url=name) if is_address else await _source(name, left, bounds or Bounds(), encoding)
        left -= len(source.text.encode())
        sources.append(source)
    return sources


def _is_address(name: str) -> bool:
    return name.lower().startswith(("http://", "https://"))


def expanded(names: Sequence[str], recursive: bool) -> Iterator[str]:
    """
    The names, with the files in a folder instead of the folder.

    Raises:
        Failed: A folder cannot be read, has no package files, or is not to be looked into.
    """
    for name in names:
        if name == STDIN or _is_address(name) or not Path(name).is_dir():
            yield name
        elif recursive:
            yield from _files(name)
        else:
            raise Failed(f"{name}: is a directory; name the files in it, or take all package files in it with -R")


def _files(folder: str) -> list[str]:
    """The package files in a folder and below, sorted; hidden ones are left out, links to folders are not followed."""

    def tell(error: OSError) -> None:
        raise Failed(f"{error.filename}: {error.strerror}") from error

    found = []
    for path, folders, files in os.walk(folder, onerror=tell):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [os.path.join(path, name) for name in files if _is_package(name)]
    if not found:
        raise Failed(f"{folder}: there are no package files in it (*{', *'.join(ENDINGS)})")
    return sorted(found)


def _is_package(name: str) -> bool:
    return name.endswith(ENDINGS) and not name.startswith(".") and name != WORKSPACE


async def _source(name: str, limit: int, bounds: Bounds, encoding: str) -> parser_pb2.Source:
    if name == STDIN:
        shown, text = "stdin", _text(name, await _standard_input(limit))
    else:
        # Names of files can be any bytes; those of sources are texts.
        shown = os.fsencode(name).decode(errors="replace")
        text = _text(shown, _read(shown, name, limit))
    # What a name says of its file counts.
    meant = "" if name.lower().endswith(ENDINGS) else encoding
    if meant != JSONNET and not name.lower().endswith(".jsonnet"):
        return parser_pb2.Source(name=shown, text=text, encoding=ENCODINGS.get(meant, parser_pb2.ENCODING_UNSPECIFIED))
    limits = Limits(limit, bounds.memory, bounds.seconds)
    result = await evaluate(text, shown, Path(name).parent, limits)
    return parser_pb2.Source(name=shown, text=result, encoding=parser_pb2.ENCODING_JSON, generated=True)


def _read(shown: str, name: str, limit: int) -> bytes:
    """The bytes of a regular file, reading no more than one past *limit*."""
    try:
        # Opening some devices has effects, so they are told from files by name first. A pipe would wait for a writer.
        if _is_pseudo(Path(os.path.realpath(name))):
            raise Failed(f"{shown}: {_NO_FILE}")
        with open(os.open(name, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Failed(f"{shown}: {_NO_FILE}")
            data = file.read(limit + 1)
    except OSError as error:
        raise Failed(f"{shown}: {error.strerror or error}") from error
    _bounded(shown, data, limit)
    return data


_NO_FILE = f"is no regular file; for standard input, write {STDIN}"


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
        raise Failed(f"{STDIN}: {error.strerror or error}") from error
    return bytes(data)


async def _some_input() -> bytes:
    """What there is now on standard input, or nothing at its end; a Ctrl-C is heard while there is nothing yet."""
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(_STDIN_DESCRIPTOR, readable.set)
    except PermissionError:
        # A file on standard input cannot be waited for, and need not be.
        return os.read(_STDIN_DESCRIPTOR, _CHUNK)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(_STDIN_DESCRIPTOR)
    return os.read(_STDIN_DESCRIPTOR, _CHUNK)


def _bounded(shown: str, data: bytes | bytearray, limit: int) -> None:
    if len(data) > limit:
        raise Failed(f"{shown}: a package has at most {MAX_BYTES // 2**20} MiB of text in all its files")


def _text(shown: str, data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Failed(f"{shown}: is UTF-16 text; save it as UTF-8")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Failed(f"{shown}:{line}: is no UTF-8 text (byte {data[error.start]:#04x}); save it as UTF-8") from error
