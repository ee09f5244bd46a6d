"""The files that a Jsonnet program may read: regular files in the folder of the package, or none."""

import json
import os
import stat


class ImportRefused(Exception):
    """The program may not import the file, or the file cannot be read; the text is one sentence for people."""


class Imports:
    """
    Reads the files that one program imports.

    Attributes:
        root: The folder, as a real path; None: nothing can be imported.
        texts: The files that were read so far, by real path.
        refusal: Why an import failed; empty if none did. The messages of evaluators lack this text.
    """

    def __init__(self, folder: str | None, most: int) -> None:
        """
        Args:
            folder: Files in it and in its subfolders can be imported. None: no files.
            most: Most bytes of all files together.

        Raises:
            OSError: The folder cannot be entered. It becomes the working directory, to which imports are relative.
        """
        self.root: str | None = None
        self.texts: dict[str, str] = {}
        self.refusal = ""
        self._left = most
        if folder is not None:
            self.root = os.path.realpath(folder)
            os.chdir(self.root)

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
        if self.root is None:
            raise ImportRefused("only a program in a local file can import files")
        if os.path.isabs(path):
            raise ImportRefused("write a path relative to the importing file")
        try:
            # The check applies to the target of links; O_NOFOLLOW refuses a target that was replaced by a link since.
            real = os.path.realpath(os.path.join(base, path))
            if os.path.commonpath([self.root, real]) != self.root:
                raise ImportRefused("it is not in the folder of the package, or below it")
            if real not in self.texts:
                self.texts[real] = self._text(real)
        except OSError as error:
            raise ImportRefused(error.strerror or "it cannot be read") from None
        except UnicodeDecodeError:
            raise ImportRefused("it is not UTF-8 text") from None
        except ValueError:
            raise ImportRefused("it is not a valid file name") from None
        return real, self.texts[real]

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
