"""The command as a process: its streams, its errors and its exit status."""

import errno
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn, TextIO

import click

from services.cli.escapes import escaped
from services.cli.exit_codes import Exit

DETAILED = "--detailed-exitcode"

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a file system that is full."""


class Root(click.Group):
    """The group of all commands."""

    def main(self, args: Sequence[str] | None = None, *_: Any, **extra: Any) -> NoReturn:
        """Run the command line *args*, or that of this process, and end the process."""
        words = list(sys.argv[1:] if args is None else args)
        sys.stdout, sys.stderr = _opened(sys.stdout), _opened(sys.stderr)
        for stream in (sys.stdout, sys.stderr):
            # A character outside the encoding of the terminal must not end the command.
            stream.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined]
        try:
            code = self._run(words, extra)
            sys.stdout.flush()
        except OSError as error:
            if error.errno not in (errno.EPIPE, *_FULL):
                raise
            if error.errno in _FULL:
                place = error.filename or "the output"
                click.echo(
                    f"Error: cannot write {place}: {error.strerror}; `pkger operations list` lists what runs", err=True
                )
            # The reader is gone, or the disk is full: discard what is left in the buffers.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = Exit.ERROR
        sys.exit(code)

    def _run(self, words: list[str], extra: Any) -> int:
        try:
            ended = super().main(words, standalone_mode=False, **extra)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.ctx.get_help() if error.ctx else "")
            return Exit.USAGE
        except click.UsageError as error:
            _show(error, words)
            return Exit.ERROR if DETAILED in words else Exit.USAGE
        except click.ClickException as error:
            _show(error, words)
            return getattr(error, "code", error.exit_code)
        except (click.Abort, KeyboardInterrupt):
            click.echo("Aborted!", err=True)
            return Exit.ERROR
        return ended if isinstance(ended, int) else Exit.DONE


def _opened(stream: TextIO | None) -> TextIO:
    """*stream*; if the caller closed it, as some schedulers do, a stream to the null device."""
    return stream or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _show(error: click.ClickException, words: Sequence[str]) -> None:
    """Print *error* on standard error: as an object if the output format is data, else as text."""
    if (output := _output(words)) != "text":
        from services.cli.documents import text_document

        document = getattr(error, "document", None)
        shown = document() if document else {"message": error.format_message(), "reason": "", "metadata": {}}
        shown.setdefault("exit_code", error.exit_code)
        click.echo(text_document({"error": shown}, output, one_line=True), err=True)
        return
    if isinstance(error, click.UsageError) and error.ctx is not None:
        click.echo(error.ctx.get_usage(), err=True)
        click.echo(f"Try '{error.ctx.command_path} --help' for help.\n", err=True)
    click.echo(escaped(f"Error: {error.format_message()}"), err=True)


def _output(words: Sequence[str]) -> str:
    """The output format in *words*; read here because click does not parse the options of a mistyped command."""
    for number, word in enumerate(words):
        following = words[number + 1] if number + 1 < len(words) else ""
        for value in (
            following if word in ("-o", "--output") else "",
            word.removeprefix("--output=") if word.startswith("--output=") else "",
            word.removeprefix("-o") if word.startswith("-o") else "",
        ):
            if value in ("json", "yaml"):
                return value
    return "text"
