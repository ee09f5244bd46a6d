"""Changes to crash in, and the places to crash at."""

from applier_svc.failpoints import NAMES
from tests.applier.packages import EXPLICIT, FRESH, HELD, IMPLICIT, MIXED, MOVED, REVERSIBLE, TURNED, WATCHED
from tests.apply.packages import an_object, text

FAILING = text(
    an_object("Label", "red", "crimson"),
    an_object("Dashboard", "disk", "board", ["red"]),
    an_object("Bucket", "reserved", "_system"),
)
"""After FRESH: the platform refuses the last one, when the others are done, and so all is undone."""

CHANGES = {
    "new": ("", FRESH),
    "mixed": (FRESH, MIXED),
    "reversible": (FRESH, REVERSIBLE),
    "replaced": (IMPLICIT, EXPLICIT),
    "turned": (WATCHED, TURNED),
    "moved": (HELD, MOVED),
    "failing": (FRESH, FAILING),
}
"""What a stack has, and what it is to get."""

FORWARD = [name for name in NAMES if "undo" not in name and name not in ("after_rollback", "after_claim")]
"""Where an operation comes by that succeeds."""

BACK = [name for name in NAMES if "undo" in name or name == "after_rollback"]
"""Where one comes by, besides, that takes back what it did."""
