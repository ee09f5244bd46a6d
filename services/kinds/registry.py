"""The one table of the kinds of objects."""

from services.kinds.format.kind import Kind
from services.kinds.influxdb import (
    bucket,
    check,
    check_deadman,
    check_threshold,
    dashboard,
    endpoint,
    endpoint_http,
    endpoint_pagerduty,
    endpoint_slack,
    label,
    notification_rule,
    task,
    telegraf,
    variable,
)

KINDS: dict[str, Kind] = {
    module.KIND.name: module.KIND
    for module in (
        label,
        variable,
        bucket,
        check_threshold,
        check_deadman,
        dashboard,
        endpoint_http,
        endpoint_pagerduty,
        endpoint_slack,
        notification_rule,
        task,
        telegraf,
    )
}
"""The kinds by name, in the order in which objects are looked at (packages.md 9): it decides who has a name first."""

FAMILY_NAMES = {"Check": check.FAMILY, "NotificationEndpoint": endpoint.FAMILY}
"""Families by the name under which they are accepted as kinds; an object of one is ignored (packages.md 3.1, P5)."""

ACCEPTED = FAMILY_NAMES.keys() | KINDS.keys()
"""All kinds of the package format; what an association may name without being wrong."""
