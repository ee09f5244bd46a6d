"""The table of the kinds of objects. A new kind is a row here (docs/kinds.md)."""

from services.core.model import LABEL, Key
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
"""
The kinds by name, in the order in which objects are read (docs/reference/package-format.md, "Order of kinds"): the
first object with a name has it.
"""

FAMILY_NAMES = {kind.family_kind: kind.family for kind in KINDS.values() if kind.family_kind}
"""
Families by the name under which they are accepted as kinds; an object of one is ignored
(docs/reference/package-format.md, "Kinds", P5).
"""

ACCEPTED = FAMILY_NAMES.keys() | KINDS.keys()
"""All kinds of the package format, families included; an association may name any of them."""

_EXPORTED_FIRST = ("label", "bucket", "check", "endpoint", "rule", "task", "variable", "dashboard", "telegraf")
"""Families in the order of exports (docs/export.md); others follow."""

EXPORT_ORDER = {
    name: place
    for place, (_, name) in enumerate(
        sorted(
            (_EXPORTED_FIRST.index(kind.family) if kind.family in _EXPORTED_FIRST else len(_EXPORTED_FIRST), name)
            for name, kind in KINDS.items()
        )
    )
}
"""The place of each kind among the objects of an export."""

REFERABLE_FAMILIES = frozenset(family for kind in KINDS.values() for family in kind.uses.values())
"""Families whose objects others may refer to by name."""


def family_of(kind: str) -> str:
    """The family of *kind*; an unknown kind, which platforms and records may have, is its own family."""
    return KINDS[kind].family if kind in KINDS else kind


def family_and_name(key: Key) -> tuple[str, str]:
    """What names an object: it may change its kind within its family, and keeps its name."""
    return family_of(key.kind), key.name


def family_named(kind: str, path: str) -> str:
    """The family of the objects that the field at *path* of an object of *kind* names; an association names a label."""
    return KINDS[kind].uses.get(path.rpartition(".")[2]) or KINDS[LABEL].family


def kinds_of(family: str) -> tuple[str, ...]:
    """The kinds of *family*, in the order of ``KINDS``; an unknown family is its only kind."""
    return tuple(name for name, kind in KINDS.items() if kind.family == family) or (family,)


def kinds_meant(word: str) -> tuple[str, ...]:
    """The kinds that *word* names: itself, or all kinds of the family that it names."""
    return kinds_of(FAMILY_NAMES[word]) if word in FAMILY_NAMES else (word,)
