"""The command as a process: its streams, its errors and its exit status."""

import errno
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn, TextIO

import click

from services.cli.caller import Caller
from services.cli.common import Common
from services.cli.exit_codes import Exit
from services.cli.output.escapes import escaped
from services.system import leave_no_core

DETAILED = "--detailed-exitcode"

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a file system that is full."""


class Root(click.Group):
    """The group of all commands."""

    def main(self, args: Sequence[str] | None = None, *_: Any, **__: Any) -> NoReturn:
        """Run the command line *args*, or the command line of this process, and end the process."""
        leave_no_core()
        sys.stdout, sys.stderr = _opened(sys.stdout), _opened(sys.stderr)
        try:
            code = self.call(sys.argv[1:] if args is None else args, Caller.of_process())
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

    def call(self, args: Sequence[str], caller: Caller) -> int:
        """
        Run the command line *args* for *caller*; only help is printed to the streams of this process.

        Returns:
            The exit status.

        Raises:
            OSError: A stream cannot be written.
        """
        words = list(args)
        for stream in (caller.stdout, caller.stderr):
            # A character outside the encoding of the terminal must not end the command.
            stream.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined]
        try:
            ended = super().main(words, "pkger", standalone_mode=False, obj=Common(caller=caller))
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.ctx.get_help() if error.ctx else "", file=caller.stdout)
            return Exit.USAGE
        except click.UsageError as error:
            _show(error, words, caller.stderr)
            return Exit.ERROR if DETAILED in words else Exit.USAGE
        except click.ClickException as error:
            _show(error, words, caller.stderr)
            return getattr(error, "code", error.exit_code)
        except UnicodeEncodeError as error:
            # The system passes bytes that are no UTF-8 text as surrogates, which no message of a service can have.
            if not any(error.object in word for word in words):
                raise
            _show(click.UsageError("an argument is no UTF-8 text; type it in UTF-8"), words, caller.stderr)
            return Exit.ERROR if DETAILED in words else Exit.USAGE
        except (click.Abort, KeyboardInterrupt):
            click.echo("Aborted!", file=caller.stderr)
            return Exit.ERROR
        except SystemExit as error:
            # A setting, or the platforms file, is invalid: the code is the message.
            if not isinstance(error.code, str):
                raise
            click.echo(error.code, file=caller.stderr)
            return Exit.ERROR
        return ended if isinstance(ended, int) else Exit.DONE


def _opened(stream: TextIO | None) -> TextIO:
    """*stream*; if the caller closed it, as some schedulers do, a stream to the null device."""
    return stream or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _show(error: click.ClickException, words: Sequence[str], stderr: TextIO) -> None:
    """Print *error* on *stderr*: as an object if the output format is data, else as text."""
    if (output := _output(words)) != "text":
        from services.cli.output.documents import text_document

        document = getattr(error, "document", None)
        shown = document() if document else {"message": error.format_message(), "reason": "", "metadata": {}}
        shown.setdefault("exit_code", error.exit_code)
        click.echo(text_document({"error": shown}, output, one_line=True), file=stderr)
        return
    if isinstance(error, click.UsageError) and error.ctx is not None:
        click.echo(error.ctx.get_usage(), file=stderr)
        click.echo(f"Try '{error.ctx.command_path} --help' for help.\n", file=stderr)
    click.echo(escaped(f"Error: {error.format_message()}"), file=stderr)


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
