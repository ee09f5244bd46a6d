"""Secrets from the command line, the terminal and standard input."""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence

import click

from services.cli.common import caller
from services.cli.errors import CommandFailed
from services.cli.output.consoles import print_warnings
from services.cli.packages.sources import STDIN
from services.cli.process.interrupts import Interrupts
from services.cli.process.terminal import Terminal, controlling_terminal


def split(options: Sequence[str]) -> dict[str, str | None]:
    """
    The values by key of options ``KEY=VALUE``, split at the first "="; None where there is only a key.

    Raises:
        UsageError: A key is empty or given twice. The message has no value.
    """
    values: dict[str, str | None] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not key:
            raise click.UsageError("--secret: the key is empty; write KEY=VALUE, or KEY alone to be asked")
        if key in values:
            raise click.UsageError(f"--secret {key}: given twice")
        values[key] = value if equals else None
    return values


def read_keys(options: Sequence[str]) -> list[str]:
    """
    The keys of all secrets, for a plan, which has no use for values; a value is warned of.

    Raises:
        UsageError: As for ``split``.
    """
    values = split(options)
    print_warnings(_warnings(values))
    return list(values)


def read_secrets(options: Sequence[str], sources: Sequence[str]) -> dict[str, str]:
    """
    The values of all secrets by key; missing values are read in the order of *options*, and others are warned of.

    Args:
        options: As for ``split``.
        sources: Sources of the package: standard input cannot hold both.

    Raises:
        UsageError: As for ``split``, or standard input would hold the package, too.
        CommandFailed: A value is empty, standard input ends before it, or it is not UTF-8 text; or the user
            pressed Ctrl-C.
    """
    values = split(options)
    print_warnings(_warnings(values))
    is_package_typed = STDIN in sources
    missing_keys = [key for key, value in values.items() if value is None]
    if missing_keys and is_package_typed and not _has_terminal():
        raise click.UsageError(f"--secret {missing_keys[0]}: standard input holds the package; write KEY=VALUE")
    read = _read(missing_keys, is_package_typed) if missing_keys else {}
    secrets = {key: read[key] if value is None else value for key, value in values.items()}
    for key, value in secrets.items():
        if not value:
            raise CommandFailed(f"--secret {key}: the value is empty")
        if not _is_text(value):
            raise CommandFailed(f"--secret {key}: the value is not UTF-8 text")
    return secrets


def _warnings(values: Mapping[str, str | None]) -> Iterator[str]:
    """A warning for each value that is on the command line, which all users of a machine can read (proc(5))."""
    for key, value in values.items():
        if value:
            yield (
                f"--secret {key}=VALUE: other users of this machine can read the value while the command runs; write"
                f" --secret {key} and enter the value, or use --secret-file FILE"
            )


def _has_terminal() -> bool:
    if (descriptor := controlling_terminal()) is None:
        return False
    os.close(descriptor)
    return True


def _read(keys: Sequence[str], is_package_typed: bool) -> dict[str, str]:
    """The values of *keys* in their order: asked for at a terminal, else one line of standard input each."""
    stdin = caller().stdin
    if is_package_typed or os.isatty(stdin):
        return {key: asyncio.run(_typed(key)) for key in keys}
    with open(stdin, "rb", closefd=False) as lines:
        return {key: lines.readline().decode(errors="surrogateescape").rstrip("\r\n") for key in keys}


async def _typed(key: str) -> str:
    # A blocking read may miss a Ctrl-C right before it.
    with Interrupts() as interrupts, Terminal.opened() as terminal:
        return await terminal.ask(f"Secret {key}: ", interrupts, hidden=True) if terminal else ""


def _is_text(value: str) -> bool:
    """Whether *value* can be sent: bytes that are not UTF-8 were decoded to surrogates."""
    return not any("\ud800" <= character <= "\udfff" for character in value)
