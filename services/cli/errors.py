"""How the command line ends when something is wrong: one line on standard error, exit status 1."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from services.core.errors import PkgerError, Reason
from services.core.model import Violation

HINTS: dict[Reason, str] = {
    Reason.STACK_NOT_FOUND: "`pkger stacks list`",
    Reason.STACK_NOT_EMPTY: "`pkger stacks uninstall`",
    Reason.PLAN_NOT_FOUND: "`pkger plans list`",
    Reason.OPERATION_NOT_FOUND: "`pkger operations list`",
    Reason.OPERATION_UNFINISHED: "`pkger operations recover`",
    Reason.PACKAGE_EMPTY: "--allow-empty",
    Reason.VALUES_MISSING: "--env-ref, --secret, --allow-missing",
    Reason.PLATFORM_UNKNOWN: "--platform",
    Reason.REPLACEMENT_REFUSED: "--allow-replace",
}
"""The command or the options for what the text of an error advises, which names fields and methods of the contract."""


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
        raise Failed(text_of(error)) from error


def _listed(error: PkgerError) -> str:
    """The refusals of a platform, each on a line of its own, below the sum."""
    told, count = error.metadata["objects"].split("\n"), int(error.metadata["count"])
    left = [f"and {count - len(told)} more"] if count > len(told) else []
    objects = "1 object" if count == 1 else f"{count} objects"
    first = f"platform {error.metadata['platform']!r} refuses {objects}; nothing was written"
    return "\n".join([first, *told, *left])


def text_of(error: PkgerError) -> str:
    """The text of *error*, and the command or the options that help with it in parentheses."""
    if error.reason is Reason.CONTENT_REFUSED:
        return _listed(error)
    hint = HINTS.get(error.reason)
    if error.reason is Reason.OPERATION_UNFINISHED and error.metadata.get("state") != "BLOCKED":
        # An applier resumes it without anybody's help.
        hint = "`pkger operations list`"
    return f"{error} ({hint})" if hint else str(error)
