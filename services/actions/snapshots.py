"""Manifests of snapshots: what a snapshot is of, what made it, and the contents that it names."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from services.actions.json_form import from_json, to_json
from services.core.errors import SnapshotCorrupt
from services.core.model import Target
from services.kinds.attachment import text_digest
from services.kinds.format.canonical import canonical_text

FORMAT = 1
"""The format of manifests that this version writes and reads."""

PACKAGE = "application/vnd.pkger.package+json"
"""The media type of a package in the form of the packages of revisions."""

_SNAPSHOT_ID = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class SnapshotContent:
    """A content of a snapshot: the digest of its whole text, and its size in bytes."""

    digest: str
    bytes: int


@dataclass(frozen=True, slots=True)
class LeftOutObject:
    """A resource that exists and is not part of the snapshot; *problem* says why."""

    kind: str
    name: str
    problem: str


@dataclass(frozen=True, slots=True)
class SnapshotStack:
    """
    The stack that a snapshot is of, as it was then.

    Attributes:
        name: Its name.
        target: Where its resources were.
        generation: Its generation.
        description: Free text.
        urls: Its addresses of packages, in order.
        policy: Its policy, as JSON data; empty: all defaults.
    """

    name: str
    target: Target
    generation: int
    description: str
    urls: tuple[str, ...]
    policy: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Manifest:
    """
    What a snapshot is.

    Attributes:
        operation: The id of the operation that made it.
        action: The name of the action that made it.
        index: The index of that action in its action set, so that no two actions make one snapshot.
        phase: The name of its phase.
        time: When, as RFC 3339 text in UTC.
        media_type: What its contents are.
        contents: Its contents, in order.
        stack: The stack that it is of; None: it is of none.
        objects: Number of objects in it.
        secrets: The keys of the secrets that its objects need, sorted.
        left_out: What is not part of it.
    """

    operation: str
    action: str
    index: int
    phase: str
    time: str
    media_type: str
    contents: tuple[SnapshotContent, ...]
    stack: SnapshotStack | None
    objects: int
    secrets: tuple[str, ...]
    left_out: tuple[LeftOutObject, ...]


def manifest_text(manifest: Manifest) -> str:
    """The canonical JSON text of a manifest."""
    return canonical_text({"format": FORMAT, **to_json(manifest, with_defaults=True)})


def read_manifest(text: str) -> Manifest:
    """
    Read a text of ``manifest_text``.

    Raises:
        SnapshotCorrupt: It is none, or one of another format.
    """
    try:
        document = orjson.loads(text)
        format_number = document.pop("format")
        if format_number == FORMAT:
            return from_json(Manifest, document)
    except (ValueError, TypeError, AttributeError, KeyError):
        raise SnapshotCorrupt(snapshot_id(text), "its manifest cannot be read") from None
    problem = f"its format is {str(format_number)[:20]}, and this version reads format {FORMAT}"
    raise SnapshotCorrupt(snapshot_id(text), problem)


def snapshot_id(text: str) -> str:
    """The id of the snapshot whose manifest *text* is."""
    return text_digest(text)


def is_snapshot_id(text: str) -> bool:
    """Whether *text* has the form of an id of a snapshot."""
    return _SNAPSHOT_ID.fullmatch(text) is not None


def snapshot_ids(texts: Iterable[str]) -> tuple[str, ...]:
    """Those of *texts* that have the form of an id of a snapshot, each once, sorted."""
    return tuple(sorted(set(filter(is_snapshot_id, texts))))
