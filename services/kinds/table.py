"""The kinds of objects that this version serves, and the names of those it knows of."""

from services.kinds import bucket, dashboard, label, task, variable
from services.kinds.kind import Kind

KINDS: dict[str, Kind] = {
    kind.name: kind for kind in (label.KIND, variable.KIND, bucket.KIND, dashboard.KIND, task.KIND)
}
"""The kinds by name, in the order in which objects are looked at (packages.md 9): names and labels go by it."""

FAMILY_NAMES = frozenset({"Check", "NotificationEndpoint"})
"""Accepted as kinds, but an object of one is ignored (packages.md 3.1, P5)."""

NOT_SERVED = frozenset(
    {
        "CheckThreshold",
        "CheckDeadman",
        "NotificationEndpointHTTP",
        "NotificationEndpointPagerDuty",
        "NotificationEndpointSlack",
        "NotificationRule",
        "Telegraf",
    }
)
"""Kinds of the package format that this version does not serve yet."""

ACCEPTED = FAMILY_NAMES | NOT_SERVED | KINDS.keys()
"""All kinds of the package format; what an association may name without being wrong."""
