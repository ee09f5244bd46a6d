"""The codec of a kind: a pure translation between spec and API."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.core.model import Reference

Content = Mapping[str, Any]
"""The normalised content of a spec."""

Body = Mapping[str, Any]
"""A resource in the form of the API."""

References = Sequence[Reference]


class Refused(Exception):
    """The platform cannot hold this content; the message says why in one sentence."""


Prepare = Callable[[Content, References], dict[str, Any]]
"""
Returns a spec as the platform would hold it. A prepared spec is returned unchanged.

Raises ``Refused``.
"""

Write = Callable[[Content, References, Body | None], dict[str, Any]]
"""
Returns the body that writes a prepared spec, without the organization.

The last argument is the resource before an update, whose fields unknown to specs are kept; None: a creation.
"""

Read = Callable[[Body], dict[str, Any]]
"""Returns the spec of a resource, as the parser would normalise it."""

Unexpressed = Callable[[Body], list[str]]
"""Names what a resource has beyond its spec, without values; an update keeps it, but for its resets."""

Resets = Callable[[Content, Body], list[str]]
"""Names what an update of a resource with a prepared spec changes beyond the spec; values only if they are public."""


def is_unset(value: Any) -> bool:
    """Whether a value of the API has no content: it is zero, empty, or consists of such values only."""
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else None
    return not value if items is None else all(map(is_unset, items))


@dataclass(frozen=True, slots=True)
class Codec:
    """
    Writes and reads one kind. For each spec and its references, writing and reading it returns the prepared spec.

    Attributes:
        kind: The kind.
        collection: The last part of the path of its list.
        prepare: See ``Prepare``.
        write: See ``Write``.
        read: See ``Read``.
        replaces: Whether an update is a PUT of the whole resource, and not a PATCH.
        unexpressed: See ``Unexpressed``; None: specs have all that users can set.
        resets: See ``Resets``; None: an update resets nothing.
    """

    kind: str
    collection: str
    prepare: Prepare
    write: Write
    read: Read
    replaces: bool = False
    unexpressed: Unexpressed | None = None
    resets: Resets | None = None
