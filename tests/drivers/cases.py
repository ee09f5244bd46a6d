"""
The cases of the conformance suite: each test runs on the platforms, and with the kinds, whose traits it is about.

A test that takes ``kind`` runs for each kind of a platform, one that takes ``use`` for each kind that refers to
another one, and one that takes ``chart`` for each type of chart.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from services.core.model import KindTraits
from services.kinds.influxdb.charts.kinds import CHART_KINDS
from services.kinds.registry import KINDS, family_of, kinds_of
from tests.drivers.platforms import PLATFORMS, PlatformUnderTest

MARKERS = (
    "only_platforms(condition): the platforms on which a test runs",
    "only_kinds(condition): the kinds for which a test runs",
    "large: slow on a platform of which only a sample is tested by default",
    "no_case: no platform has what the test is about",
)

Use = tuple[str, str, str]
"""A kind, a pointer into its spec, and the kind that it refers to there."""

SAMPLE_CHARTS = ("band", "geo")
"""One type with fields that it shares with others, and the one with nested fields."""


@dataclass(frozen=True, slots=True)
class Case:
    """
    One value of an argument.

    Attributes:
        value: The value.
        id: Its part of the id of a test.
        kinds: The kinds that a platform needs for it.
        is_in_sample: Whether it is tested by default on a platform of which only a sample is.
    """

    value: str | Use
    id: str
    kinds: tuple[str, ...]
    is_in_sample: bool


def _is_first(*kinds: str) -> bool:
    return all(kind == kinds_of(family_of(kind))[0] for kind in kinds)


_CASES: dict[str, list[Case]] = {
    "kind": [Case(kind, kind, (kind,), _is_first(kind)) for kind in KINDS],
    "use": [
        Case((kind, f"/{field}", other), f"{kind}-{other}", (kind, other), _is_first(kind, other))
        for kind, definition in KINDS.items()
        for field, family in definition.uses.items()
        for other in kinds_of(family)
    ],
    "chart": [Case(chart, chart, ("Dashboard",), chart in SAMPLE_CHARTS) for chart in CHART_KINDS],
}
"""The values of each argument."""


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
    names = ["platform", *(name for name in _CASES if name in metafunc.fixturenames)]
    parameters = [
        parameter
        for name, platform in PLATFORMS.items()
        if _meets(metafunc, "only_platforms", platform)
        for parameter in _parameters(metafunc, name, platform, names[1:])
    ]
    nothing = pytest.param(*(None for _ in names), id="none", marks=pytest.mark.no_case)
    metafunc.parametrize(names, parameters or [nothing])


def _parameters(metafunc: pytest.Metafunc, name: str, platform: PlatformUnderTest, rows: list[str]) -> Iterator[Any]:
    """The parameters of a test on *platform*."""
    if not rows:
        is_large = metafunc.definition.get_closest_marker("large")
        yield pytest.param(platform, id=name, marks=_marks(platform, is_in_sample=not is_large))
        return
    [row] = rows
    for case in _CASES[row]:
        kinds = [platform.traits.kinds.get(kind) for kind in case.kinds]
        if all(kind is not None and _meets(metafunc, "only_kinds", kind) for kind in kinds):
            yield pytest.param(platform, case.value, id=f"{name}-{case.id}", marks=_marks(platform, case.is_in_sample))


def _marks(platform: PlatformUnderTest, is_in_sample: bool) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow] if platform.is_sampled and not is_in_sample else []


def _meets(metafunc: pytest.Metafunc, marker: str, item: PlatformUnderTest | KindTraits) -> bool:
    return all(mark.args[0](item) for mark in metafunc.definition.iter_markers(marker))
