"""How the command line ends when something is wrong: one line on standard error, or one object, and an exit status."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click

from services.cli.exit_codes import Exit
from services.core.errors import PkgerError, Reason
from services.core.listing import and_more
from services.core.model import Violation

HINTS: dict[Reason, str] = {
    Reason.STACK_NOT_FOUND: "`pkger stacks list`",
    Reason.STACK_NOT_EMPTY: "`pkger stacks uninstall`",
    Reason.STACK_LEASED: "--wait",
    Reason.PLAN_NOT_FOUND: "`pkger plans list`",
    Reason.OPERATION_NOT_FOUND: "`pkger operations list`",
    Reason.OPERATION_UNFINISHED: "`pkger operations recover`",
    Reason.PACKAGE_EMPTY: "--allow-empty",
    Reason.VALUES_MISSING: "--env-ref, --secret, --allow-missing",
    Reason.PLATFORM_UNKNOWN: "--platform",
    Reason.ORG_UNKNOWN: "`pkger platforms check`",
    Reason.REPLACEMENT_REFUSED: "--allow-replace",
}
"""The command or the options for what the text of an error advises, which names fields and methods of the contract."""


EXIT_CODES: Mapping[Reason, Exit] = {
    Reason.REQUEST_INVALID: Exit.ERROR,
    Reason.SOURCE_UNDECODABLE: Exit.ERROR,
    Reason.SOURCE_TOO_LARGE: Exit.ERROR,
    Reason.SOURCE_UNREADABLE: Exit.ERROR,
    Reason.ENCODING_INVALID: Exit.ERROR,
    Reason.STACK_NOT_FOUND: Exit.ERROR,
    Reason.STACK_EXISTS: Exit.ERROR,
    Reason.STACK_NOT_EMPTY: Exit.ERROR,
    Reason.STACK_CHANGED: Exit.ERROR,
    Reason.REVISION_NOT_FOUND: Exit.ERROR,
    Reason.RESOURCE_NOT_FOUND: Exit.ERROR,
    Reason.STACK_LEASED: Exit.LOCKED,
    Reason.STACK_MOVED: Exit.STALE,
    Reason.LEASE_LOST: Exit.LOCKED,
    Reason.TOKEN_STALE: Exit.LOCKED,
    Reason.PLAN_STALE: Exit.STALE,
    Reason.PLAN_NOT_FOUND: Exit.ERROR,
    Reason.PLAN_USED: Exit.STALE,
    Reason.PLAN_EXPIRED: Exit.STALE,
    Reason.PLAN_TOO_LARGE: Exit.ERROR,
    Reason.DIGEST_MISMATCH: Exit.STALE,
    Reason.PLATFORM_UNKNOWN: Exit.ERROR,
    Reason.ORG_UNKNOWN: Exit.ERROR,
    Reason.KIND_UNSUPPORTED: Exit.ERROR,
    Reason.RESOURCE_OWNED: Exit.ERROR,
    Reason.NAME_TAKEN: Exit.ERROR,
    Reason.DEPENDENCY_CYCLE: Exit.ERROR,
    Reason.SERVICE_UNAVAILABLE: Exit.ERROR,
    Reason.OPERATION_NOT_FOUND: Exit.ERROR,
    Reason.OPERATION_UNFINISHED: Exit.LOCKED,
    Reason.REQUEST_ID_REUSED: Exit.ERROR,
    Reason.PACKAGE_EMPTY: Exit.ERROR,
    Reason.VALUES_MISSING: Exit.ERROR,
    Reason.REPLACEMENT_REFUSED: Exit.ERROR,
    Reason.IN_USE: Exit.ERROR,
    Reason.SHARED_DIFFERS: Exit.ERROR,
    Reason.CONTENT_REFUSED: Exit.ERROR,
    Reason.INTERNAL: Exit.ERROR,
}
"""The status for each reason of an error. A test holds it complete."""


def exit_code(reason: Reason, metadata: Mapping[str, str]) -> Exit:
    """The status for an error: that of its reason, but for an operation that waits for a decision."""
    if reason is Reason.OPERATION_UNFINISHED and metadata.get("state") == "BLOCKED":
        return Exit.BLOCKED
    return EXIT_CODES[reason]


class Failed(click.ClickException):
    """
    The command failed; its message is the line to print.

    Attributes:
        code: Status of the command.
        reason: Reason of the error of a service; empty for any other.
        metadata: The values in that error.
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
        raise failed(error) from error


def failed(error: PkgerError) -> Failed:
    """The end of a command by an error of a service."""
    return Failed(text_of(error), exit_code(error.reason, error.metadata), error)


def _listed(error: PkgerError) -> str:
    """The refusals of a platform, each on a line of its own, below the sum."""
    told, count = error.metadata["objects"].split("\n"), int(error.metadata["count"])
    left = [more] if (more := and_more(count - len(told), "")) else []
    objects = "1 object" if count == 1 else f"{count} objects"
    first = f"platform {error.metadata['platform']!r} refuses {objects}; nothing was written"
    return "\n".join([first, *told, *left])


def text_of(error: PkgerError) -> str:
    """The text of *error*, and the command or the options that help with it in parentheses."""
    if error.reason is Reason.CONTENT_REFUSED:
        return _listed(error)
    hint = _usable(HINTS.get(error.reason, ""))
    if error.reason is Reason.OPERATION_UNFINISHED and error.metadata.get("state") != "BLOCKED":
        # An applier resumes it without anybody's help.
        hint = "`pkger operations list`"
    return f"{error} ({hint})" if hint else str(error)


def _usable(hint: str) -> str:
    """*hint* without the options that the command that runs does not have."""
    context = click.get_current_context(silent=True)
    if context is None or not hint.startswith("--"):
        return hint
    known = {name for option in context.command.params for name in option.opts}
    return ", ".join(option for option in hint.split(", ") if option in known)
