"""Packages that together make every type of step."""

from tests.apply.packages import a_check, a_rule, an_endpoint, an_object, text

FRESH = text(
    an_object("Label", "red", "red"),
    an_object("Label", "green", "green"),
    an_object("Bucket", "raw", "raw", ["red"]),
    an_object("Dashboard", "cpu", "board", ["red", "green"]),
    an_object("Dashboard", "mem", "board"),
    an_object("Task", "roll", "roll", ["green"], every="1h", query="buckets()"),
)

UPDATED = text(
    an_object("Label", "red", "crimson"),
    an_object("Label", "green", "green", description="grass"),
    an_object("Bucket", "raw", "raw", ["red"], description="as it comes"),
    an_object("Dashboard", "cpu", "cpu", ["red", "green"]),
    an_object("Dashboard", "mem", "board", description="memory"),
    an_object("Task", "roll", "roll", ["green"], every="2h", query="buckets()"),
)

MIXED = text(
    an_object("Label", "red", "crimson"),
    an_object("Label", "blue", "blue"),
    an_object("Dashboard", "cpu", "board", ["blue"]),
    an_object("Dashboard", "disk", "disk", ["red"]),
    an_object("Variable", "region", "region", type="constant", values=["eu"]),
)
"""After FRESH: creations, an update, attaches, detaches, reversible deletions and at last the deletion of a bucket."""

REVERSIBLE = text(
    an_object("Label", "red", "crimson"),
    an_object("Label", "blue", "blue"),
    an_object("Bucket", "raw", "raw", ["blue"]),
    an_object("Dashboard", "cpu", "board", ["blue"]),
    an_object("Dashboard", "disk", "disk", ["red"]),
)
"""After FRESH: as MIXED, without irreversible steps."""

EXPLICIT = text(an_object("Label", "red", "red"), an_object("Bucket", "raw", "raw", ["red"], schemaType="explicit"))
IMPLICIT = text(an_object("Label", "red", "red"), an_object("Bucket", "raw", "raw", ["red"], schemaType="implicit"))
"""One after the other: the bucket is replaced."""

ALERTS = text(
    a_check("Deadman", "silent", "silent"),
    an_endpoint("PagerDuty", "pager", "pager"),
    an_endpoint("Slack", "chat", "chat"),
    a_rule("moving", "pager"),
    a_rule("leaving", "pager"),
)
REWIRED = text(
    a_check("Deadman", "silent", "quiet"),
    a_check("Threshold", "hot", "silent"),
    an_endpoint("Slack", "chat", "chat"),
    an_endpoint("HTTP", "hook", "hook"),
    a_rule("moving", "chat"),
    a_rule("coming", "hook", "new rule"),
)
"""
After ALERTS: one rule gets another endpoint, a second rule is removed with its endpoint, a third one is added with a
new endpoint.
"""

WATCHED = text(
    an_object("Label", "red", "red"),
    a_check("Deadman", "silent", "silent", ["red"]),
    an_endpoint("PagerDuty", "pager", "pager", ["red"]),
    an_endpoint("Slack", "chat", "chat"),
    a_rule("paging", "pager"),
    a_rule("chatting", "chat"),
)
TURNED = text(
    an_object("Label", "red", "red"),
    a_check("Threshold", "silent", "silent", ["red"]),
    an_endpoint("HTTP", "pager", "pager", ["red"]),
    an_endpoint("Slack", "chat", "chat"),
    a_rule("paging", "pager"),
    a_rule("chatting", "chat"),
)
"""After WATCHED: a check and an endpoint are of another kind of their family."""

HELD = text(
    an_object("Label", "red", "red"),
    an_object("Bucket", "raw", "raw", ["red"]),
    a_check("Deadman", "silent", "silent", ["red"]),
    an_endpoint("PagerDuty", "pager", "pager", ["red"]),
    a_rule("paging", "pager"),
)
MOVED = text(
    an_object("Label", "red", "red"),
    an_object("Bucket", "raw", "new raw", ["red"], schemaType="explicit"),
    a_check("Threshold", "silent", "new silent", ["red"]),
    an_endpoint("HTTP", "pager", "new pager", ["red"]),
    a_rule("paging", "pager"),
)
"""After HELD: all replaceable objects are replaced under another display name, so that both can exist."""

CHANGES = {
    "fresh": ("", FRESH),
    "updated": (FRESH, UPDATED),
    "mixed": (FRESH, MIXED),
    "reversible": (FRESH, REVERSIBLE),
    "replaced": (IMPLICIT, EXPLICIT),
    "rewired": (ALERTS, REWIRED),
    "turned": (WATCHED, TURNED),
    "moved": (HELD, MOVED),
}
"""Pairs of packages: the current one of a stack, and the next one."""
