"""What a Jsonnet program may read: regular files in the package's own folder, or nothing at all."""

import json
import os
import stat


class ImportRefused(Exception):
    """The program may not import that file, or the file cannot be read; the text is one sentence for people."""


class Imports:
    """
    Reads the files that one program imports.

    Attributes:
        root: The folder, as a real path; None: nothing can be imported.
        texts: What was read so far, by real path.
        refusal: Why an import failed; empty if none did. Evaluators tell of it in words of their own.
    """

    def __init__(self, folder: str | None, most: int) -> None:
        """
        Args:
            folder: Its files, and those in folders below it, can be imported. None: nothing can.
            most: Bytes that they may have together.

        Raises:
            OSError: The folder cannot be entered. It becomes the working directory: relative imports begin there.
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
            base: Folder of the file that imports.
            path: The file that it wants.

        Returns:
            The real path and the text.

        Raises:
            ImportRefused: See there.
        """
        try:
            return self._read(base, path)
        except ImportRefused as refused:
            self.refusal = f"cannot import {json.dumps(path[:200], ensure_ascii=False)}: {refused}"
            raise

    def _read(self, base: str, path: str) -> tuple[str, str]:
        if self.root is None:
            raise ImportRefused("a program that is sent or fetched can import nothing")
        if os.path.isabs(path):
            raise ImportRefused("write the path as seen from the file that imports it")
        try:
            # Where links lead is what counts; the file is opened by that path, and not if it became a link since.
            real = os.path.realpath(os.path.join(base, path))
            if os.path.commonpath([self.root, real]) != self.root:
                raise ImportRefused("it is not in the folder of the package, or below it")
            if real not in self.texts:
                self.texts[real] = self._text(real)
        except OSError as error:
            raise ImportRefused(error.strerror or "it cannot be read") from None
        except UnicodeDecodeError:
            raise ImportRefused("it is no UTF-8 text") from None
        except ValueError:
            raise ImportRefused("this is no name of a file") from None
        return real, self.texts[real]

    def _text(self, real: str) -> str:
        # Without O_NONBLOCK, opening a pipe waits for somebody to write to it.
        with open(os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ImportRefused("it is no regular file")
            data = file.read(self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise ImportRefused("the imported files are too large together")
        return data.decode()
