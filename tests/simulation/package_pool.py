"""The published packages that clients of package stacks install, and the folder of their repository."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.packages.folders import write_repository
from tests.simulation.packages import objects_of
from tests.simulation.scenario import Item

REPOSITORY = "main"
"""Its name."""


@dataclass(frozen=True, slots=True)
class PoolVersion:
    """
    One version of a package.

    Attributes:
        items: Its objects. Those of other packages have full names, such as "base.red".
        requires: The ranges of the packages that it requires, by name.
    """

    items: tuple[Item, ...]
    requires: Mapping[str, str]


_ALERT = (Item("red"), Item("hook", labels=("red",)), Item("alarm", labels=("red",)))

POOL: Mapping[str, Mapping[str, PoolVersion]] = {
    "base": {
        "1.0.0": PoolVersion((Item("red"), Item("blue")), {}),
        "1.1.0": PoolVersion((Item("red"), Item("blue", 1)), {}),
        "2.0.0": PoolVersion((Item("red"),), {}),
    },
    "data": {
        "1.0.0": PoolVersion((Item("raw", labels=("base.red",)),), {"base": ">=1"}),
        "1.1.0": PoolVersion((Item("raw", 1, ("base.red",)), Item("clean", labels=("base.red",))), {"base": ">=1"}),
    },
    "view": {
        "1.0.0": PoolVersion(
            (Item("cpu", labels=("base.red", "base.blue")), Item("region", labels=("base.blue",))),
            {"base": "^1", "data": ">=1"},
        ),
        "2.0.0": PoolVersion((Item("cpu", 1, ("base.red",)),), {"base": ">=1"}),
    },
    "alert": {
        "1.0.0": PoolVersion(_ALERT, {}),
        "1.1.0": PoolVersion((Item("red"), Item("hook", 1, ("red",))), {}),
    },
}
"""
All versions by package, those of ``scenario.PACKAGES``.

The objects have the names that objects of plain stacks have, and version 0 of them equals theirs. Two packages declare
one label, and an update of ``base`` alone may break a reference of ``view``.
"""


def write_pool(root: Path) -> None:
    """Write the repository into a folder."""
    write_repository(root, [*map(_row, POOL)], lambda name, version: _text(POOL[name][version]))


def _row(name: str) -> str:
    """A package as in ``tests.packages.rows``."""
    versions = []
    for version, each in POOL[name].items():
        requires = ", ".join(f"{other} {range_}" for other, range_ in each.requires.items())
        versions.append(f"{version} [{requires}]" if requires else version)
    return f"{name} {' | '.join(versions)}"


def _text(version: PoolVersion) -> str:
    return "---\n".join(f"{json.dumps(each)}\n" for each in objects_of(version.items, ""))


def items_of(versions: Mapping[str, str]) -> Iterator[Item]:
    """The objects of installed packages, whose versions are given by name; labels by their own names only."""
    for name, version in versions.items():
        for item in POOL[name][version].items:
            labels = tuple(label.rpartition(".")[2] for label in item.labels)
            yield Item(item.name, item.version, labels)
