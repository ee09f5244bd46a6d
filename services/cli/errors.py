"""Errors of commands: one line or one object on standard error, and an exit status."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from services.cli.exit_codes import Exit
from services.core.errors import PkgerError, Reason, ServiceUnavailable
from services.core.model import Violation
from services.core.text_lists import and_more


class CommandFailed(click.ClickException):
    """
    The command failed; its message is the line to print.

    Attributes:
        code: Exit status of the command.
        reason: Reason of the error of a service; empty for other errors.
        metadata: The metadata of that error.
    """

    def __init__(self, message: str, code: Exit = Exit.ERROR, error: PkgerError | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = error.reason.value if error else ""
        self.metadata = dict(error.metadata) if error else {}

    def document(self) -> dict[str, Any]:
        """The error as data."""
        return {
            "message": self.message,
            "reason": self.reason,
            "metadata": self.metadata,
            "exit_code": int(self.code),
        }


class InvalidPackageError(CommandFailed):
    """The package breaks rules: the message has their number, then each violation on its own line."""

    def __init__(self, violations: list[Violation]) -> None:
        lines = [f"{violation.location}: {violation.path}: {violation.reason}" for violation in violations]
        rules = "1 rule" if len(lines) == 1 else f"{len(lines)} rules"
        super().__init__("\n".join([f"the package breaks {rules}; nothing was written", *lines]))


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn errors of services into ``CommandFailed``."""
    try:
        yield
    except PkgerError as error:
        raise failed(error) from error


def failed(error: PkgerError) -> CommandFailed:
    """*error* of a service as the error of the command."""
    return CommandFailed(text_of(error), Exit[error.exit_status], error)


def _listed(error: PkgerError) -> str:
    """The objects that a platform rejects, each on its own line, below their number."""
    shown, count = error.metadata["objects"].split("\n"), int(error.metadata["count"])
    left = [more] if (more := and_more(count - len(shown), "")) else []
    objects = "1 object" if count == 1 else f"{count} objects"
    first = f"platform {error.metadata['platform']!r} rejects {objects}; nothing was written"
    return "\n".join([first, *shown, *left])


def text_of(error: PkgerError) -> str:
    """The text of *error*, with the command or options that help in parentheses."""
    if error.reason is Reason.CONTENT_REFUSED:
        return _listed(error)
    if isinstance(error, ServiceUnavailable):
        return _of_service(error)
    hint = _usable(error.cli_hint)
    return f"{error} ({hint})" if hint else str(error)


def _of_service(error: ServiceUnavailable) -> str:
    """What a service failed to do, and what to check, unless its own answer says so."""
    service = "driver of the platform" if error.metadata.get("platform") else "service"
    # A proxy may answer with several lines.
    text = " ".join(str(error).split())
    if error.status:
        return f"{text} (try again; if it fails again, check the log and the version of the {service})"
    return text if error.answered else f"{text} (check whether it runs, and its address)"


def _usable(hint: str) -> str:
    """*hint* without options that the running command does not have."""
    context = click.get_current_context(silent=True)
    if context is None or not hint.startswith("--"):
        return hint
    names = {name for option in context.command.params for name in option.opts}
    return ", ".join(option for option in hint.split(", ") if option in names)
