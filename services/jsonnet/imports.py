"""
The files that a Jsonnet program may read: regular files in the folder of the package and in libraries, and none whose
name, or the name of a folder on the way to it, begins with a dot: there are keys, tokens and histories.
"""

import json
import os
import stat
from collections.abc import Sequence

_DOTTED = "programs read no file or folder whose name begins with a dot; import a file with another name"


class ImportRefused(Exception):
    """The program may not import the file, or the file cannot be read; the text is one sentence for people."""


class Imports:
    """
    Reads the files that one program imports.

    Attributes:
        root: The folder of the package, as a real path; None: the program is in no folder.
        texts: The files that were read so far, by real path.
        refusal: Why an import failed; empty if none did. The messages of evaluators lack this text.
    """

    def __init__(self, folder: str | None, most: int, libraries: Sequence[str] = ()) -> None:
        """
        Args:
            folder: Files in it and in its subfolders can be imported. None: only files of libraries.
            most: Most bytes of all files together.
            libraries: Folders in which an import is looked up, in this order, after the folder of the importing file.
                Files in them and in their subfolders can be imported.

        Raises:
            OSError: The folder cannot be entered. It becomes the working directory, to which imports are relative.
        """
        self.root: str | None = None
        self.texts: dict[str, str] = {}
        self.refusal = ""
        self._left = most
        self._libraries = [os.path.realpath(library) for library in libraries]
        if folder is not None:
            self.root = os.path.realpath(folder)
            os.chdir(self.root)
        self._roots = [*([self.root] if self.root else []), *self._libraries]

    def shown(self, real: str) -> str:
        """The path of an imported file, relative to the folder of the package, or to its library."""
        return os.path.relpath(real, next(root for root in self._roots if _is_in(root, real)))

    def read(self, base: str, path: str) -> tuple[str, str]:
        """
        The callback of evaluators.

        Args:
            base: Folder of the importing file.
            path: The imported file.

        Returns:
            The real path and the text.

        Raises:
            ImportRefused: The file may not be imported, or cannot be read.
        """
        try:
            return self._read(base, path)
        except ImportRefused as refused:
            self.refusal = f"cannot import {json.dumps(path[:200], ensure_ascii=False)}: {refused}"
            raise

    def _read(self, base: str, path: str) -> tuple[str, str]:
        if not self._roots:
            raise ImportRefused("only a program in a local file can import files")
        if os.path.isabs(path):
            raise ImportRefused("write a path relative to the importing file, or to a library")
        if any(part.startswith(".") for part in path.split("/") if part not in (".", "..")):
            raise ImportRefused(_DOTTED)
        try:
            real = self._target(base, path)
            if real not in self.texts:
                self.texts[real] = self._text(real)
        except OSError as error:
            raise ImportRefused(error.strerror or "it cannot be read") from None
        except UnicodeDecodeError:
            raise ImportRefused("it is not UTF-8 text") from None
        except ValueError:
            raise ImportRefused("it is not a valid file name") from None
        return real, self.texts[real]

    def _target(self, base: str, path: str) -> str:
        """
        The real path of an import: of the first file that exists, else of the first that could be imported.

        Raises:
            ImportRefused: Each place is outside of the folders that can be read, or hidden in them.
        """
        beside = [os.path.join(self.root or "", base)] if self.root or os.path.isabs(base) else []
        # The check applies to the target of links; O_NOFOLLOW refuses a target that was replaced by a link since.
        targets = [os.path.realpath(os.path.join(folder, path)) for folder in (*beside, *self._libraries)]
        inside = [real for real in targets if any(_is_in(root, real) for root in self._roots)]
        if not inside:
            where = "the folder of the package, or below it, or in a folder of --jpath" if self.root else "PKGER_JPATH"
            raise ImportRefused(f"it is not in {where}")
        allowed = [real for real in inside if any(_is_visible_in(root, real) for root in self._roots)]
        if not allowed:
            raise ImportRefused(_DOTTED)
        return next(filter(os.path.exists, allowed), allowed[0])

    def _text(self, real: str) -> str:
        # Without O_NONBLOCK, opening a pipe blocks until another process opens it for writing.
        with open(os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ImportRefused("it is not a regular file")
            data = file.read(self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise ImportRefused("the imported files together are too large")
        return data.decode()


def _is_in(folder: str, real: str) -> bool:
    """Whether a real path is *folder* itself, or below it."""
    return os.path.commonpath([folder, real]) == folder


def _is_visible_in(folder: str, real: str) -> bool:
    """
    Whether a real path is in *folder*, and none of the names below it begins with a dot.

    Names that begin with two dots count as visible. They are what the links in a folder that Kubernetes mounts lead to,
    such as ``..data``; no import can write them.
    """
    if not _is_in(folder, real):
        return False
    names = os.path.relpath(real, folder).split("/")
    return not any(name.startswith(".") and not name.startswith("..") for name in names if name != ".")
