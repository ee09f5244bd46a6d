"""Published packages, and changes of the packages of a stack, one after the other in its life."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pkger.planner.v1 import package_pb2

from tests.apply.packages import a_check, a_rule, an_endpoint, an_object
from tests.package_stacks.client import changes_of, objects_text
from tests.packages.folders import write_repository

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
_DESCRIBED = an_object("Bucket", "raw", "raw", ["env"], description="as it comes")

_PACKAGES = (
    "base 1.0.0 | 2.0.0 | 3.0.0 | 4.0.0 | 5.0.0",
    "team 1.0.0 [base ^1] | 2.0.0 [base ^2] | 3.0.0 [base ^3] | 4.0.0 | 4.1.0 | 5.0.0 [base ^5]",
    "more 3.0.0 [base ^3]",
    "labels 1.0.0",
    "views 1.0.0 [labels ^1]",
)

_OBJECTS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "base@1.0.0": _BASE,
    "team@1.0.0": _TEAM,
    # A label leaves that the other package had attached, a bucket leaves, and a rule gets another endpoint.
    "base@2.0.0": (
        an_object("Label", "env", "environment"),
        _DESCRIBED,
        an_endpoint("PagerDuty", "pager", "pager", ["env"], description="day and night"),
        an_endpoint("Slack", "chat", "chat"),
    ),
    "team@2.0.0": (
        an_object("Label", "red", "red"),
        an_object("Dashboard", "cpu", "board", ["red"]),
        an_object("Task", "roll", "roll", ["base.env"], every="2h", query="buckets()"),
        a_rule("paging", "base.chat", labels=["base.env"]),
        a_check("Deadman", "silent", "silent", ["base.env"]),
    ),
    # A bucket and a label are in the other package.
    "base@3.0.0": (*_BASE[:2], an_object("Label", "red", "red"), _BASE[3]),
    "team@3.0.0": (
        an_object("Bucket", "data", "raw", ["base.env"]),
        an_object("Bucket", "own", "ours", ["base.red"]),
        an_object("Dashboard", "cpu", "board", ["base.env", "base.red"]),
        an_object("Task", "roll", "roll", ["base.old"], every="1h", query="buckets()"),
        an_object("Variable", "region", "region", ["base.red"], type="constant", values=["eu"]),
        a_rule("paging", "base.pager", labels=["base.env"]),
    ),
    "more@3.0.0": (an_object("Dashboard", "extra", "extra", ["base.red"]),),
    # Both have one label and one bucket.
    "base@4.0.0": (_BASE[0], _BASE[2], an_object("Dashboard", "disk", "disk", ["env"])),
    "team@4.0.0": (
        an_object("Label", "environment", "env"),
        an_object("Label", "red", "red"),
        an_object("Bucket", "data", "raw", ["environment", "red"]),
        an_object("Dashboard", "mem", "mem", ["environment"]),
    ),
    "team@4.1.0": (
        an_object("Label", "environment", "env"),
        an_object("Label", "red", "red"),
        an_object("Bucket", "data", "raw", ["environment", "red"], description="ours"),
        an_object("Dashboard", "mem", "mem", ["environment"]),
    ),
    # The platform refuses a bucket of the second package.
    "base@5.0.0": (_BASE[0], _DESCRIBED, _BASE[3]),
    "team@5.0.0": (*_TEAM[:2], an_object("Bucket", "reserved", "_system"), a_rule("paging", "base.pager")),
    # Labels that another package needs, and no data.
    "labels@1.0.0": (an_object("Label", "dev", "dev"), an_object("Label", "prod", "prod")),
    "views@1.0.0": (an_object("Dashboard", "all", "all", ["labels.dev", "labels.prod"]),),
}


def publish(folder: Path) -> Path:
    """Write the repository of the packages into *folder*."""
    return write_repository(folder, _PACKAGES, lambda name, version: objects_text(_OBJECTS[f"{name}@{version}"]))


@dataclass(frozen=True)
class StackChange:
    """
    A change of the packages of a stack.

    Attributes:
        before: The change that installs what the stack has before; None: it does not exist.
        change: The change.
    """

    before: package_pb2.PackageChanges | None
    change: package_pb2.PackageChanges


def changes(words: str, *, allow_downgrade: bool = False) -> package_pb2.PackageChanges:
    """Changes of packages as words, as those of ``tests.packages.rows``."""
    options = package_pb2.ResolutionOptions(update_dependencies=True, allow_downgrade=allow_downgrade)
    return package_pb2.PackageChanges(changes=changes_of(words), options=options)


BASE = changes("install base@1.0.0")
BOTH = changes("install base@1.0.0 team@1.0.0")
UPDATED = changes("install base@2.0.0 team@2.0.0")
SHARED = changes("install base@4.0.0 team@4.0.0")
UPDATE_ALL = changes("update-all")

CHANGES: Mapping[str, StackChange] = {
    "installed": StackChange(None, changes("install team@1.0.0")),
    "joined": StackChange(BASE, changes("install team@1.0.0")),
    "updated": StackChange(BOTH, changes("update base@2.0.0 team@2.0.0")),
    "moved": StackChange(BOTH, changes("install more; update base@3.0.0 team@3.0.0")),
    "left": StackChange(BOTH, changes("uninstall team")),
    "turned": StackChange(UPDATED, changes("install base@1.0.0 team@1.0.0", allow_downgrade=True)),
    "shared": StackChange(BASE, changes("install team@4.0.0; update base@4.0.0")),
    "shared-left": StackChange(SHARED, changes("update team@4.1.0; uninstall base")),
    "pruned": StackChange(changes("install views base@1.0.0"), changes("uninstall views")),
    "emptied": StackChange(BOTH, changes("uninstall base team")),
}
"""Changes that succeed, by name."""

FAILING = StackChange(BOTH, changes("update base@5.0.0 team@5.0.0"))
"""A change of which the platform refuses a bucket of the second package, so that all else is rolled back."""
