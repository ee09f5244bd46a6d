"""Callers, and the permissions of their tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.influx.problem import Problem

TYPES = (
    "authorizations",
    "buckets",
    "dashboards",
    "orgs",
    "sources",
    "tasks",
    "telegrafs",
    "users",
    "variables",
    "scrapers",
    "secrets",
    "labels",
    "views",
    "documents",
    "notificationRules",
    "notificationEndpoints",
    "checks",
    "dbrp",
    "notebooks",
    "annotations",
    "remotes",
    "replications",
    "instance",
)
"""Types of resources that permissions are for."""


@dataclass(frozen=True, slots=True)
class Permission:
    """
    One action on resources of one type.

    Attributes:
        id: The one resource it is for, "" for all.
        org: The organization it is for, "" for all.
    """

    action: str
    type: str
    id: str = ""
    org: str = ""

    def covers(self, wanted: "Permission") -> bool:
        """Whether this permission includes *wanted*."""
        if (self.action, self.type) != (wanted.action, wanted.type):
            return False
        if not self.id and not self.org:
            return True
        if self.id:
            return self.id == wanted.id
        return self.org == wanted.org

    def __str__(self) -> str:
        org = f"orgs/{self.org}/" if self.org and self.type != "orgs" else ""
        return f"{self.action}:{org}{self.type}" + (f"/{self.id}" if self.id else "")


OPERATOR = tuple(Permission(action, type_) for type_ in TYPES if type_ != "instance" for action in ("read", "write"))
"""The permissions of the token of the set-up: everything, in every organization."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The token of a request."""

    user: str
    permissions: Sequence[Permission]
    active: bool = True

    def may(self, action: str, type_: str, org: str = "", id_: str = "") -> bool:
        """Whether the token permits this; an inactive one permits nothing."""
        wanted = Permission(action, type_, id_, org)
        return self.active and any(own.covers(wanted) for own in self.permissions)

    def require(self, action: str, type_: str, org: str = "", id_: str = "") -> None:
        """Raise unless the token permits this."""
        self.require_active()
        if not self.may(action, type_, org, id_):
            raise Problem("unauthorized", f"{Permission(action, type_, id_, org)} is unauthorized")

    def require_active(self) -> None:
        """Raise if the token is inactive."""
        if not self.active:
            raise Problem("unauthorized", "token is inactive")


ANONYMOUS = Caller("", ())
"""The caller of the few paths that need no credentials."""
