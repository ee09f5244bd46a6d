"""
Completes the summary of a plan for InfluxDB's clients.

They expect ids as numbers, the id of the organization, and some members in two places.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec
import orjson

from services.gateway.documents.contents import task_times
from services.kinds.registry import KINDS
from services.views.ids import EMBEDDED, Entry, SummaryIds

Ids = Mapping[tuple[str, str], int]
"""Ids of resources, by kind and metadata.name of their objects."""

LISTS = tuple(sorted({kind.summary_key for kind in KINDS.values()}))
"""Names of the lists of objects."""

ENDPOINTS = "notificationEndpoints"

_FLAT = ("checks", ENDPOINTS)
"""Lists whose entries repeat the members of the embedded object, as clients expect them there."""

_MISSING = ("missingEnvRefs", "missingSecrets")
"""The lists of keys without a value."""

_LISTS_OF_TEXTS = msgspec.json.Decoder(dict[str, list[msgspec.Raw]])
"""Splits a summary into entries without decoding them, in a tenth of the time of decoding."""


class Summary:
    """
    The summary of a plan, completed.

    Its entries are decoded one at a time. A large summary as a whole would be slow to make and to free, and no other
    thread could run while orjson decodes it.
    """

    def __init__(self, text: str, ids: Ids, org_id: str, is_applied: bool) -> None:
        """
        Args:
            text: The document as the planner made it (docs/reference/package-format.md, "Summary"), as JSON; empty for
                none.
            ids: Ids of all resources that exist.
            org_id: Id of the organization, 16 hex digits.
            is_applied: Whether the plan ran: InfluxDB names the organization of endpoints and variables only then.
        """
        self._lists = _LISTS_OF_TEXTS.decode(text) if text else {}
        self._ids, self._is_applied = SummaryIds(ids), is_applied
        self._org_id, self._org_number = org_id, int(org_id, 16)

    def entries(self, name: str) -> Iterator[Entry]:
        """The entries of a list of objects; the caller may change them."""
        for entry in self._read(name):
            self._complete(name, entry, self._ids.complete(name, entry))
            for label in entry.get("labelAssociations", ()):
                label["orgID"] = self._org_number
            yield entry

    def further(self) -> Iterator[tuple[str, Iterator[Any]]]:
        """All other lists, by name: the associations of objects and labels, and the keys of missing values."""
        yield "labelMappings", self._mappings()
        for name in _MISSING:
            yield name, self._read(name)

    def _mappings(self) -> Iterator[Entry]:
        for mapping in self._read("labelMappings"):
            self._ids.complete_mapping(mapping)
            yield mapping

    def _read(self, name: str) -> Iterator[Any]:
        return (orjson.loads(memoryview(text)) for text in self._lists.get(name, ()))

    def _complete(self, name: str, entry: Entry, number: int) -> None:
        if name in EMBEDDED:
            embedded = entry[EMBEDDED[name]]
            if name != ENDPOINTS or self._is_applied:
                embedded["orgID"] = self._org_id
            if name in _FLAT:
                entry |= {**embedded, "id": number, **({"status": entry["status"]} if "status" in entry else {})}
        if name in ("buckets", "dashboards", "labels") or (name == "variables" and self._is_applied):
            entry["orgID"] = self._org_number


def empty_summary() -> dict[str, list[Entry]]:
    """The summary of a package that breaks rules."""
    return {name: [] for name in (*LISTS, "labelMappings", *_MISSING, "tasks")}


def plain_task(entry: Mapping[str, Any]) -> Entry:
    """The entry of a task without empty times, as an empty time crashes the command line."""
    return {name: value for name, value in entry.items() if name not in ("cron", "every", "offset")} | task_times(entry)


def hide_keys(endpoint: dict[str, Any], keys: Collection[str]) -> None:
    """
    Leave out keys of secrets that an apply would make for credentials, as InfluxDB shows no key before it exists.

    Args:
        endpoint: The members of an endpoint; changed in place.
        keys: The keys to leave out.
    """
    if keys:
        references = {f"secret: {key}" for key in keys}
        endpoint.update(
            {name: "" for name, value in endpoint.items() if isinstance(value, str) and value in references}
        )


def json_fragment(value: Any) -> orjson.Fragment:
    """*value* as encoded JSON, to embed in a larger document."""
    return orjson.Fragment(orjson.dumps(value))
