"""The state of the server."""

import itertools
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.influx.access import Permission
from tests.influx.problem import Problem

Resource = dict[str, Any]
"""A resource in the form of its answer, without labels and links. Keys with a leading underscore are never shown."""

_BLANKS = "".join(letter for letter in map(chr, range(0x3001)) if letter.isspace() and letter not in "\x1c\x1d\x1e\x1f")

ZERO_TIME = "0001-01-01T00:00:00Z"

LABELLED = (
    "buckets",
    "dashboards",
    "checks",
    "notificationEndpoints",
    "notificationRules",
    "tasks",
    "telegrafs",
    "variables",
)
"""The kinds that can have labels, by their paths."""


@dataclass(slots=True)
class Authorization:
    """A token; its value is returned once, in the answer to its creation."""

    id: str
    token: str
    org: str
    user: str
    permissions: list[Permission]
    description: str
    status: str
    created: str
    updated: str


class Names:
    """
    The taken names of a kind, found without a search through all resources.

    Every naming of a resource is recorded. Deletions and released names are not: an entry is valid while its resource
    has that name.
    """

    def __init__(self, resources: Mapping[str, Resource], fold: Callable[[str], str] = str) -> None:
        self._resources, self._fold = resources, fold
        self._ids: dict[tuple[str, str], str] = {}

    def record(self, resource: Resource) -> None:
        """Record the current name and organization of the resource."""
        self._ids[self._key(resource["orgID"], resource["name"])] = resource["id"]

    def are_taken(self, org: str, name: str, own: str = "") -> bool:
        """Whether a resource other than *own* has this name."""
        key = self._key(org, name)
        holder = self._resources.get(self._ids.get(key, ""))
        return holder is not None and holder["id"] != own and key == self._key(holder["orgID"], holder["name"])

    def _key(self, org: str, name: str) -> tuple[str, str]:
        return org, self._fold(name)


@dataclass(slots=True)
class State:
    """
    The metadata of one server.

    Attributes:
        kinds: For each labelled kind its resources by id, oldest first.
        views: Names and properties of views by the ids of their dashboards and cells.
        attached: Ids of labels by kind and id of the labelled resource, whether it exists or not.
        names: For each kind with unique names, the taken ones.
        secrets: Values by key, for each organization.
        erased: System buckets that lost their data because of a DELETE, which no driver sends.
    """

    users: dict[str, str] = field(default_factory=dict)
    orgs: dict[str, Resource] = field(default_factory=dict)
    authorizations: dict[str, Authorization] = field(default_factory=dict)
    labels: dict[str, Resource] = field(default_factory=dict)
    kinds: dict[str, dict[str, Resource]] = field(default_factory=lambda: {kind: {} for kind in LABELLED})
    views: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    attached: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    secrets: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    erased: set[str] = field(default_factory=set)
    is_set_up: bool = False
    names: dict[str, Names] = field(init=False)
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(time.time_ns() >> 8))

    def __post_init__(self) -> None:
        exact = {kind: Names(self.kinds[kind]) for kind in ("buckets", "checks", "notificationEndpoints")}
        variables = Names(self.kinds["variables"], lowered)
        self.names = {**exact, "variables": variables, "labels": Names(self.labels, lowered)}

    def new_id(self) -> str:
        """An id that is larger than all before and unique over all kinds."""
        return format(next(self._ids), "016x")

    def random_id(self) -> str:
        """An id in the form of buckets and organizations."""
        while True:
            found = secrets.token_hex(8)
            if found not in self.orgs and found not in self.kinds["buckets"]:
                return found

    def org_by_name(self, name: str) -> Resource | None:
        wanted = name.strip()
        return next((org for org in self.orgs.values() if org["name"].strip() == wanted), None)

    def org_name(self, org: str) -> str:
        return self.orgs[org]["name"] if org in self.orgs else ""

    def named_org(self, name: str, code: str = "not found") -> str:
        """The id of the organization with this name."""
        org = self.org_by_name(name)
        if org is None:
            raise Problem(code, f'organization name "{name}" not found')
        return str(org["id"])

    def of_org(self, kind: str, org: str) -> Iterable[Resource]:
        return (item for item in self.kinds[kind].values() if item["orgID"] == org)

    def labels_of(self, kind: str, id_: str) -> list[Resource]:
        """The labels of a resource, sorted by id. A deleted label is attached to no resource."""
        attached = self.attached.get((kind, id_), ())
        return [self.labels[label] for label in sorted(attached) if label in self.labels]


def public(resource: Resource) -> Resource:
    """The part of a resource that answers may show."""
    return {key: value for key, value in resource.items() if not key.startswith("_")}


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def whole_second() -> str:
    """The time in the form of tasks."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def lowered(text: str) -> str:
    """*text* in lower case, each letter by itself as in the server, whatever the letters around it."""
    return "".join(map(str.lower, text))


def trimmed(text: str) -> str:
    """*text* without white space at its ends; as in the server, U+001C to U+001F are not white space."""
    return text.strip(_BLANKS)
