"""How the command line ends when something is wrong: one line on standard error, exit status 1."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from services.core.errors import PkgerError
from services.core.model import Violation


class Failed(click.ClickException):
    """The command failed; its message is the line to print."""

    exit_code = 1


class InvalidPackageError(Failed):
    """The package breaks rules: every violation on a line of its own, then the sum."""

    def __init__(self, violations: list[Violation]) -> None:
        lines = [f"{violation.location}: {violation.path}: {violation.reason}" for violation in violations]
        rules = "1 rule" if len(lines) == 1 else f"{len(lines)} rules"
        super().__init__("\n".join([f"the package breaks {rules}; nothing was written", *lines]))


@contextmanager
def told_plainly() -> Iterator[None]:
    """Turn errors of services into ``Failed``."""
    try:
        yield
    except PkgerError as error:
        raise Failed(str(error)) from error
