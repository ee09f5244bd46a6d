"""The one table of the kinds of objects. A kind is added by a row here (docs/kinds.md)."""

from services.kinds.format.kind import Kind
from services.kinds.influxdb import (
    bucket,
    check_deadman,
    check_threshold,
    dashboard,
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

FAMILY_NAMES = {kind.family_kind: kind.family for kind in KINDS.values() if kind.family_kind}
"""Families by the name under which they are accepted as kinds; an object of one is ignored (packages.md 3.1, P5)."""

ACCEPTED = FAMILY_NAMES.keys() | KINDS.keys()
"""All kinds of the package format; what an association may name without being wrong."""

REFERABLE_FAMILIES = frozenset(family for kind in KINDS.values() for family in kind.uses.values())
"""Families whose objects others may refer to by name."""
