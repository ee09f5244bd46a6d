"""
The cases of the conformance suite: each test runs on the platforms, and with the kinds, whose traits it is about.

A test that takes ``kind`` runs for each kind of a platform, and one that takes ``use`` for each kind that refers to
another one.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from services.core.model import KindTraits
from services.kinds.registry import KINDS, family_of, kinds_of
from tests.drivers.platforms import PLATFORMS, PlatformUnderTest

MARKERS = (
    "only_platforms(condition): the platforms on which a test runs",
    "only_kinds(condition): the kinds for which a test runs",
    "no_case: no platform has what the test is about",
)

Use = tuple[str, str, str]
"""A kind, a pointer into its spec, and the kind that it refers to there."""

USES: Sequence[Use] = [
    (kind, f"/{field}", other)
    for kind, definition in KINDS.items()
    for field, family in definition.uses.items()
    for other in kinds_of(family)
]


def only_platforms(condition: Callable[[PlatformUnderTest], object]) -> pytest.MarkDecorator:
    """Run the test only on platforms that meet *condition*."""
    return pytest.mark.only_platforms.with_args(condition)


def only_kinds(condition: Callable[[KindTraits], object]) -> pytest.MarkDecorator:
    """Run the test only for kinds that meet *condition*."""
    return pytest.mark.only_kinds.with_args(condition)


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Give a test of the suite its cases."""
    if "platform" not in metafunc.fixturenames:
        return
    names = ["platform", *(name for name in _ROWS if name in metafunc.fixturenames)]
    cases = [case for name, platform in PLATFORMS.items() for case in _cases(metafunc, name, platform, names[1:])]
    metafunc.parametrize(names, cases or [pytest.param(*(None for _ in names), id="none", marks=pytest.mark.no_case)])


def _cases(metafunc: pytest.Metafunc, name: str, platform: PlatformUnderTest, rows: list[str]) -> Iterator[Any]:
    """The cases of a test on *platform*."""
    if not _meets(metafunc, "only_platforms", platform):
        return
    if not rows:
        yield pytest.param(platform, id=name)
        return
    [row] = rows
    for value, kinds in _ROWS[row]:
        if all(
            kind in platform.traits.kinds and _meets(metafunc, "only_kinds", platform.traits.kinds[kind])
            for kind in kinds
        ):
            is_slow = platform.is_sampled and any(kinds_of(family_of(kind))[0] != kind for kind in kinds)
            yield pytest.param(
                platform, value, id="-".join((name, *kinds)), marks=[pytest.mark.slow] if is_slow else []
            )


_ROWS: dict[str, list[tuple[str | Use, tuple[str, ...]]]] = {
    "kind": [(kind, (kind,)) for kind in KINDS],
    "use": [((kind, pointer, other), (kind, other)) for kind, pointer, other in USES],
}
"""For each argument, its values, and the kinds that the platform needs for the value."""


def _meets(metafunc: pytest.Metafunc, marker: str, item: PlatformUnderTest | KindTraits) -> bool:
    return all(mark.args[0](item) for mark in metafunc.definition.iter_markers(marker))
