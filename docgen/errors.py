"""docs/reference/errors.md: every reason of an error, from the comments of reason.proto and the classes of errors."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from pkger.errors.v1 import reason_pb2

from services.cli.exit_codes import Exit
from services.core.errors import ERRORS, Reason
from services.gateway.transcoding.comments import read_comments

_COMMENT = re.compile(r"(?P<what>.+?) (?P<code>[A-Z_]+)\. metadata: (?P<metadata>.+?)\. To do: (?P<to_do>.+)")

_HEAD = """\
# Errors

A failed call has a gRPC status with a `google.rpc.ErrorInfo`: its `domain` is `pkger`, its `reason` one of the values
below, and its `metadata` has every value that the message names. Compare the reason, not the message: messages change.
[Clients](../clients.md#an-error) shows how to read them, [the HTTP API](../http-api.md#errors) their form over HTTP.

`make reference` writes this page from [reason.proto](../../protos/pkger/errors/v1/reason.proto) and the classes of the
errors.

| reason | gRPC code | exit status of `pkger` |
|---|---|---|
"""


class Entry(NamedTuple):
    """
    The comment of one reason in the contract.

    Attributes:
        reason: The reason, without the prefix of the enum.
        what: What is wrong: one sentence or more.
        code: Name of the gRPC code.
        metadata: The keys of the metadata, with remarks in parentheses.
        to_do: What the caller can do.
    """

    reason: Reason
    what: str
    code: str
    metadata: str
    to_do: str


def entries() -> list[Entry]:
    """
    All reasons, sorted.

    Raises:
        ValueError: The comment of a reason lacks a part.
    """
    comments = read_comments()
    reasons = []
    for value in reason_pb2.Reason.DESCRIPTOR.values:
        if value.number:
            comment = comments[f"pkger.errors.v1.Reason.{value.name}"]
            parts = _COMMENT.fullmatch(comment)
            if parts is None:
                raise ValueError(
                    f"the comment of {value.name} must have the form 'What is wrong. CODE. metadata: keys. To do: ...':"
                    f" {comment}"
                )
            reasons.append(Entry(Reason(value.name.removeprefix("REASON_")), **parts.groupdict()))
    return sorted(reasons)


def errors_page() -> str:
    """The text of the page."""
    return _HEAD + "".join(_rows()) + "".join(map(_section, entries()))


def _rows() -> Iterator[str]:
    for entry in entries():
        error = ERRORS[entry.reason]
        yield f"| [{entry.reason}](#{entry.reason.lower()}) | {error.code} | {Exit[error.exit_status].value} |\n"


def _section(entry: Entry) -> str:
    hint = ERRORS[entry.reason].cli_hint
    hint = f" On the command line: {hint}." if hint else ""
    return f"""
## {entry.reason}

{entry.what}

- Code: `{entry.code}`
- Metadata: {entry.metadata}
- What to do: {entry.to_do}{hint}
"""
