"""Errors of commands: one line or one object on standard error, and an exit status."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click

from services.cli.exit_codes import Exit
from services.core.errors import PkgerError, Reason, ServiceUnavailable
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
    Reason.DELETES_EXCEEDED: "--max-deletes",
}
"""The command or options that do what an error advises; its own text names fields and methods of the contract."""


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
    Reason.DELETES_EXCEEDED: Exit.ERROR,
    Reason.IN_USE: Exit.ERROR,
    Reason.SHARED_DIFFERS: Exit.ERROR,
    Reason.CONTENT_REFUSED: Exit.ERROR,
    Reason.INTERNAL: Exit.ERROR,
}
"""The exit status for each reason of an error. A test holds it complete."""


def exit_code(reason: Reason, metadata: Mapping[str, str]) -> Exit:
    """The exit status for an error: that of its reason, except for a blocked operation."""
    if reason is Reason.OPERATION_UNFINISHED and metadata.get("state") == "BLOCKED":
        return Exit.BLOCKED
    return EXIT_CODES[reason]


class Failed(click.ClickException):
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


class InvalidPackageError(Failed):
    """The package breaks rules: the message has their number, then each violation on its own line."""

    def __init__(self, violations: list[Violation]) -> None:
        lines = [f"{violation.location}: {violation.path}: {violation.reason}" for violation in violations]
        rules = "1 rule" if len(lines) == 1 else f"{len(lines)} rules"
        super().__init__("\n".join([f"the package breaks {rules}; nothing was written", *lines]))


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn errors of services into ``Failed``."""
    try:
        yield
    except PkgerError as error:
        raise failed(error) from error


def failed(error: PkgerError) -> Failed:
    """*error* of a service as the error of the command."""
    return Failed(text_of(error), exit_code(error.reason, error.metadata), error)


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
    hint = _usable(HINTS.get(error.reason, ""))
    if error.reason is Reason.OPERATION_UNFINISHED and error.metadata.get("state") != "BLOCKED":
        # An applier resumes the operation without a decision.
        hint = "`pkger operations list`"
    if error.reason is Reason.DELETES_EXCEEDED and error.metadata.get("stack"):
        hint = "`pkger stacks policy`"
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
    known = {name for option in context.command.params for name in option.opts}
    return ", ".join(option for option in hint.split(", ") if option in known)
