"""Package files as sources for the parser."""

import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from pkger.parser.v1 import parser_pb2

from services.cli.errors import Failed
from services.core.limits import MAX_PACKAGE_BYTES

STDIN = "-"


def read_sources(names: Sequence[str]) -> list[parser_pb2.Source]:
    """
    Read package files; ``-`` is standard input.

    Raises:
        Failed: A file cannot be read, is too large, or is no UTF-8 text.
    """
    left = MAX_PACKAGE_BYTES
    sources = []
    for name in names:
        data = _read(name, left)
        left -= len(data)
        sources.append(parser_pb2.Source(name="stdin" if name == STDIN else name, text=_text(name, data)))
    return sources


def _read(name: str, limit: int) -> bytes:
    """The bytes of a file, reading no more than one past *limit*."""
    try:
        if name == STDIN:
            data = sys.stdin.buffer.read(limit + 1)
        else:
            path = Path(name)
            if stat.S_ISDIR(path.stat().st_mode):
                raise Failed(f"{name}: is a directory; name the files in it")
            with path.open("rb") as file:
                data = file.read(limit + 1)
    except OSError as error:
        raise Failed(f"{name}: {error.strerror or error}") from error
    if len(data) > limit:
        raise Failed(f"{name}: a package has at most {MAX_PACKAGE_BYTES // 2**20} MiB of text in all its files")
    return data


def _text(name: str, data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Failed(f"{name}: is UTF-16 text; save it as UTF-8")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Failed(f"{name}:{line}: is no UTF-8 text (byte {data[error.start]:#04x}); save it as UTF-8") from error
