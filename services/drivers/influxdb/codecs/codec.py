"""What a codec is: the pure translation of one kind."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.core.model import Reference

Content = Mapping[str, Any]
"""The normalised content of a spec."""

Body = Mapping[str, Any]
"""A resource as the API has it."""

References = Sequence[Reference]


class Refused(Exception):
    """The platform cannot hold a content; the message is one sentence that says why."""


Prepare = Callable[[Content, References], dict[str, Any]]
"""
Gives a spec as the platform would hold it. What it gives, it gives back unchanged.

Raises ``Refused``.
"""

Write = Callable[[Content, References, Body | None], dict[str, Any]]
"""
Makes the body that writes a prepared spec, without the organisation.

The last argument is what the platform holds before an update, from which it keeps what no spec knows; None: a creation.
"""

Read = Callable[[Body], dict[str, Any]]
"""Makes the spec of what the platform holds, as the parser would normalise it."""


@dataclass(frozen=True, slots=True)
class Codec:
    """
    How one kind is written and read; for each spec and its references, what is written and read again is prepared.

    Attributes:
        kind: The kind.
        collection: The last part of the path of its list.
        prepare: See ``Prepare``.
        write: See ``Write``.
        read: See ``Read``.
        replaces: Whether an update is a PUT of the whole resource, and not a PATCH.
    """

    kind: str
    collection: str
    prepare: Prepare
    write: Write
    read: Read
    replaces: bool = False
