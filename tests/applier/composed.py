"""Texts of several packages, one after the other in the life of a stack."""

from tests.apply.packages import a_check, a_rule, an_endpoint, an_object, text
from tests.composing import a_package

_BASE = (
    an_object("Label", "env", "env"),
    an_object("Label", "old", "old"),
    an_object("Bucket", "raw", "raw", ["env"]),
    an_endpoint("PagerDuty", "pager", "pager", ["env"]),
)
_TEAM = (
    an_object("Label", "red", "red"),
    an_object("Dashboard", "cpu", "board", ["base.env", "red"]),
    an_object("Task", "roll", "roll", ["base.old"], every="1h", query="buckets()"),
    an_object("Bucket", "own", "ours", ["red"]),
    an_object("Variable", "region", "region", ["red"], type="constant", values=["eu"]),
    a_rule("paging", "base.pager", labels=["base.env"]),
)

BASE = text(*a_package("base", *_BASE))
BOTH = text(*a_package("base", *_BASE), *a_package("team", *_TEAM, requires=["base"]))
"""The second package attaches labels of the first one, and has a rule for its endpoint."""

BASE_UPDATED = text(
    *a_package("base", *_BASE[:2], an_object("Bucket", "raw", "raw", ["env"], description="as it comes"), _BASE[3]),
    *a_package(
        "team", *(each | {"spec": each["spec"] | {"description": "other"}} for each in _TEAM), requires=["base"]
    ),
)
"""After BOTH: every object of the second package differs, and a bucket of the first one."""

UPDATED = text(
    *a_package(
        "base",
        an_object("Label", "env", "environment"),
        an_object("Bucket", "raw", "raw", ["env"], description="as it comes"),
        an_endpoint("PagerDuty", "pager", "pager", ["env"], description="day and night"),
        an_endpoint("Slack", "chat", "chat"),
    ),
    *a_package(
        "team",
        an_object("Label", "red", "red"),
        an_object("Dashboard", "cpu", "board", ["red"]),
        an_object("Task", "roll", "roll", ["base.env"], every="2h", query="buckets()"),
        a_rule("paging", "base.chat", labels=["base.env"]),
        a_check("Deadman", "silent", "silent", ["base.env"]),
        requires=["base"],
    ),
)
"""
After BOTH: a label of the first package leaves that the second one had attached, as does a bucket of the second one,
and a rule gets another endpoint.
"""

MOVED = text(
    *a_package(
        "base", *_BASE[:2], an_object("Label", "red", "red"), an_endpoint("PagerDuty", "pager", "pager", ["env"])
    ),
    *a_package(
        "team",
        an_object("Bucket", "data", "raw", ["base.env"]),
        an_object("Bucket", "own", "ours", ["base.red"]),
        an_object("Dashboard", "cpu", "board", ["base.env", "base.red"]),
        an_object("Task", "roll", "roll", ["base.old"], every="1h", query="buckets()"),
        an_object("Variable", "region", "region", ["base.red"], type="constant", values=["eu"]),
        a_rule("paging", "base.pager", labels=["base.env"]),
        requires=["base"],
    ),
    *a_package("more", an_object("Dashboard", "extra", "extra", ["base.red"]), requires=["base"]),
)
"""After BOTH: a bucket and a label are in the other package, and a third package comes."""

_OURS = an_object("Label", "env", "env"), an_object("Bucket", "raw", "raw", ["env"])
SHARED = text(
    *a_package("base", *_OURS, an_object("Dashboard", "disk", "disk", ["env"])),
    *a_package(
        "team",
        an_object("Label", "environment", "env"),
        an_object("Label", "red", "red"),
        an_object("Bucket", "data", "raw", ["environment", "red"]),
        an_object("Dashboard", "mem", "mem", ["environment"]),
    ),
)
"""Two packages have one label and one bucket."""

SHARED_LEFT = text(
    *a_package(
        "team",
        an_object("Label", "environment", "env"),
        an_object("Label", "red", "red"),
        an_object("Bucket", "data", "raw", ["environment", "red"], description="ours"),
        an_object("Dashboard", "mem", "mem", ["environment"]),
    ),
)
"""After SHARED: the package leaves under whose keys the label and the bucket are recorded."""

CHANGES = {
    "installed": ("", BOTH),
    "joined": (BASE, BOTH),
    "updated": (BOTH, UPDATED),
    "moved": (BOTH, MOVED),
    "left": (BOTH, BASE),
    "turned": (UPDATED, BOTH),
    "shared": (BASE, SHARED),
    "shared-left": (SHARED, SHARED_LEFT),
}
"""Pairs of texts: the current packages of a stack, and the next ones."""

FAILING = text(
    *a_package("base", *_BASE[:1], an_object("Bucket", "raw", "raw", ["env"], description="as it comes"), _BASE[3]),
    *a_package(
        "team",
        *_TEAM[:2],
        an_object("Bucket", "reserved", "_system"),
        a_rule("paging", "base.pager"),
        requires=["base"],
    ),
)
"""A change from BOTH of which the platform refuses a bucket of the second package, so that all else is rolled back."""
