"""Changes during which an applier dies, and the failpoints of an operation."""

from applier_svc.failpoints import NAMES
from tests.applier.packages import EXPLICIT, FRESH, HELD, IMPLICIT, MIXED, MOVED, REVERSIBLE, TURNED, WATCHED
from tests.apply.packages import an_object, text

FAILING = text(
    an_object("Label", "red", "crimson"),
    an_object("Dashboard", "disk", "board", ["red"]),
    an_object("Bucket", "reserved", "_system"),
)
"""A change from FRESH whose last step the platform refuses, so that the others are rolled back."""

CHANGES = {
    "new": ("", FRESH),
    "mixed": (FRESH, MIXED),
    "reversible": (FRESH, REVERSIBLE),
    "replaced": (IMPLICIT, EXPLICIT),
    "turned": (WATCHED, TURNED),
    "moved": (HELD, MOVED),
    "failing": (FRESH, FAILING),
}
"""The package that a stack has, and the one that is applied, by name of the change."""

FORWARD = [name for name in NAMES if "undo" not in name and name not in ("after_rollback", "after_claim")]
"""The failpoints of an operation that succeeds."""

BACK = [name for name in NAMES if "undo" in name or name == "after_rollback"]
"""The further failpoints of an operation that rolls back."""
