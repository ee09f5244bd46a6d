"""Pairs of packages, the applied and the wanted one, that together need every type of step."""

from dataclasses import dataclass

from services.core.model import Object
from tests.planner.world import an_object

Objects = tuple[Object, ...]


@dataclass(frozen=True)
class Change:
    """
    One pair.

    Attributes:
        before: The applied package.
        after: The wanted package.
        unowned: Unowned resources on the platform.
        held_secrets: Keys of the secrets that the platform holds.
        secrets: Keys of the secrets that are given with the wanted package.
    """

    before: Objects
    after: Objects
    unowned: Objects = ()
    held_secrets: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


def _board(key: str, *labels: str, **spec: str) -> Object:
    """A dashboard; all have the same display name, so that it does not identify one."""
    return an_object("Dashboard", key, labels, name="board", **spec)


def _bucket(*labels: str, **spec: str) -> Object:
    return an_object("Bucket", "raw", labels, **spec)


def _rule(key: str, endpoint: str, *labels: str) -> Object:
    return an_object("NotificationRule", key, labels, endpointName=endpoint)


_RED, _GREEN, _BLUE = (an_object("Label", name) for name in ("red", "green", "blue"))
_CRIMSON = an_object("Label", "red", name="crimson")
_PAGER = an_object("NotificationEndpointPagerDuty", "pager")
_CHAT = an_object("NotificationEndpointSlack", "chat")
_HOOK = an_object("NotificationEndpointHTTP", "hook")
_DEADMAN, _THRESHOLD = (an_object(kind, "silent", ["red"], name="check") for kind in ("CheckDeadman", "CheckThreshold"))

FRESH = (_RED, _GREEN, _bucket("red"), _board("cpu", "red", "green"), _board("mem"))
MIXED = (_CRIMSON, _BLUE, _board("cpu", "blue"), _board("disk", "red"))
REVERSIBLE = (_CRIMSON, _BLUE, _bucket("blue"), _board("cpu", "blue", description="new"), _board("disk", "red"))

CHANGES = {
    # Everything is created; an unowned dashboard equals the ones of the package.
    "fresh": Change((), FRESH, unowned=(_board("theirs"),)),
    # Creates, an update, attaches, detaches, deletions that can be undone and, last, the deletion of a bucket.
    "mixed": Change(FRESH, MIXED, unowned=(_board("theirs"),)),
    # The same without an irreversible step; an unowned label is adopted.
    "reversible": Change(FRESH, REVERSIBLE, unowned=(an_object("Label", "blue", description="theirs"),)),
    # Everything is deleted.
    "emptied": Change(FRESH, ()),
    # A field that cannot change: the bucket is replaced past the seal, and labelled again.
    "replaced": Change((_RED, _bucket("red")), (_RED, _GREEN, _bucket("red", "green", schemaType="explicit"))),
    # A rule gets another endpoint, one is deleted with its endpoint, a third is created with a new one.
    "rewired": Change(
        (_RED, _PAGER, _CHAT, _rule("moving", "pager", "red"), _rule("leaving", "pager", "red")),
        (_RED, _CHAT, _HOOK, _rule("moving", "chat", "red"), _rule("coming", "hook")),
    ),
    # A check and an endpoint that a rule refers to are replaced by ones of another kind.
    "turned": Change(
        (_RED, _DEADMAN, _PAGER, _rule("paging", "pager")),
        (
            _RED,
            _THRESHOLD,
            an_object("NotificationEndpointHTTP", "pager", ["red"], name="pager"),
            _rule("paging", "pager"),
        ),
    ),
    # Replacements under other names, so that the new resource is created before the old one is deleted.
    "moved": Change(
        (
            _RED,
            _GREEN,
            _bucket("red", "green"),
            _DEADMAN,
            _PAGER,
            _CHAT,
            _rule("paging", "pager"),
            _rule("chat", "chat"),
        ),
        (
            _RED,
            _bucket("red", name="new", schemaType="explicit"),
            an_object("CheckThreshold", "silent", ["red"], name="new check"),
            an_object("NotificationEndpointHTTP", "pager", ["red"], name="new pager"),
            an_object("NotificationEndpointSlack", "chat", name="new chat", url="https://example.org"),
            _rule("paging", "pager"),
            _rule("chat", "chat"),
        ),
    ),
    # A secret is new, another one is overwritten.
    "secrets": Change((_RED,), (_CRIMSON, _CHAT), held_secrets=("held",), secrets=("held", "new")),
}
