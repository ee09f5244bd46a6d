"""The history of installed packages."""

from collections.abc import Mapping, Sequence

import pytest

from services.packages.installed import PackageMove, revisions_with
from services.packages.versions import Version

HISTORY: Sequence[tuple[int, Sequence[PackageMove]]] = (
    (9, [PackageMove("d", "2.0.0", ""), PackageMove("e", "", "1.0.0")]),
    (8, [PackageMove("d", "2.0.0", "2.0.0")]),
    (7, []),
    (5, [PackageMove("d", "1.0.0", "2.0.0"), PackageMove("f", "1.0.0", "1.1.0")]),
    (4, [PackageMove("d", "0.9.0", "1.0.0"), PackageMove("g", "3.0.0", "")]),
)
"""Revisions, newest first; older ones are no longer retained."""


@pytest.mark.parametrize(
    ("versions", "numbers"),
    [
        ({"d": "2.0.0"}, {"d": 8}),
        ({"d": "1.0.0"}, {"d": 4}),
        ({"e": "1.0.0"}, {"e": 9}),
        ({"f": "1.0.0"}, {"f": 4}),
        ({"f": "1.1.0", "e": "1.0.0"}, {"f": 5, "e": 9}),
        ({"d": "0.9.0", "g": "3.0.0", "e": "2.0.0", "x": "1.0.0"}, {}),
        ({}, {}),
    ],
)
def test_the_newest_revision_with_a_version(versions: Mapping[str, str], numbers: Mapping[str, int]) -> None:
    assert revisions_with({name: Version.parse(text) for name, text in versions.items()}, HISTORY) == numbers
