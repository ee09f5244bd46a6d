"""
The packages and mistakes in ``tests/fixtures`` are complete: every encoding, every field and word of every kind, every
code, and a mistake at every field with a rule.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from parser_svc.sources import Encoding
from services.kinds.diagnostics import DIAGNOSTICS, Code
from services.kinds.format.field_table import Field, Mappings, Nested, Table
from services.kinds.format.shapes import Text
from services.kinds.influxdb.charts.kinds import CHART_KINDS
from services.kinds.registry import FAMILY_NAMES, KINDS
from services.kinds.schema import spec_table
from tests.corpora import own_packages, package_objects
from tests.parser.test_diagnostics import DEFINITION
from tests.parser.test_golden import OWN_CASES, own_cases

_RULES = ("required", "words", "minimum", "secret")
"""Attributes of shapes that make some values wrong."""

Place = tuple[str, ...]
"""A kind, and the keys from its spec to a field, without positions."""


def fields_of(place: Place, table: Table) -> Iterator[tuple[Place, Field]]:
    """The fields of a table, at any depth."""
    for key, field in table.fields.items():
        yield (*place, key), field
        if isinstance(field.shape, Mappings | Nested):
            yield from fields_of((*place, key), field.shape.table)


def values_in(place: Place, value: Any) -> Iterator[tuple[Place, Any]]:
    """A value and the values in it, with their places."""
    if isinstance(value, list):
        for item in value:
            yield from values_in(place, item)
        return
    yield place, value
    if isinstance(value, dict):
        for key, item in value.items():
            yield from values_in((*place, key), item)


OBJECTS = [each for path in own_packages() for each in package_objects(path)]
VALUES = [value for each in OBJECTS for value in values_in((each.kind,), each.spec)]
FIELDS = [field for kind in KINDS for field in fields_of((kind,), spec_table(kind))]
CASES = [case for path in OWN_CASES for case in own_cases(path)]
FINDINGS = [tuple(text.split(" ")) for case in CASES for text in case["expect"]["findings"]]


def test_every_encoding_has_a_package() -> None:
    endings = {path.suffix.removeprefix(".").replace("yml", "yaml") for path in own_packages()}
    assert endings == {encoding.value for encoding in Encoding}


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_in_a_package(kind: str) -> None:
    written = {place for place, _ in VALUES}
    assert [place for place, _ in FIELDS if place[0] == kind and place not in written] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_word_is_in_a_package(kind: str) -> None:
    """The word that an absent field stands for may be left out."""
    missing = []
    for place, field in FIELDS:
        shape = field.shape
        if place[0] == kind and isinstance(shape, Text):
            written = {shape.read(value) for at, value in VALUES if at == place}
            missing += [(place, word) for word in sorted({*shape.words} - {"", shape.absent} - written)]
    assert missing == []


def test_every_type_of_a_parameter_is_in_a_package() -> None:
    written = {value for place, value in VALUES if place[-1] == "type" and {"params", "task"} & {*place}}
    shapes = [field.shape for _, field in FIELDS if isinstance(field.shape, Text)]
    assert {word for shape in shapes for word in shape.vocabulary} - written == set()


@pytest.mark.parametrize("name", CHART_KINDS)
def test_every_field_of_a_kind_of_chart_is_in_one_chart(name: str) -> None:
    charts = [
        dict(values_in((), chart))
        for each in OBJECTS
        if each.kind == "Dashboard"
        for chart in each.spec["charts"]
        if chart["kind"].lower() == name
    ]
    needed = {place for place, _ in fields_of((), CHART_KINDS[name].fields)}
    assert min((sorted(needed - chart.keys()) for chart in charts), key=len) == []


def test_every_code_has_a_mistake() -> None:
    """Except for those that only a plan gives, and those of definitions, whose rules tests/actions has."""
    refusals = {case["expect"]["refused"] for case in CASES}
    missing = set(Code) - {code for code, _, _ in FINDINGS} - refusals
    of_definitions = {code for code, row in DIAGNOSTICS.items() if DEFINITION.search(row.wrong)}
    only_plans = {Code.PACKAGE_LACKS_OBJECT, Code.PACKAGE_NOT_RESOLVED}
    no_example = {Code.DEFINITION_TOO_LARGE, Code.BLUEPRINT_NOT_FOUND, Code.CONFIG_MAP_NOT_FOUND}
    assert missing == {*only_plans, *of_definitions, *no_example}


def test_every_kind_has_a_mistake() -> None:
    assert {*KINDS, *FAMILY_NAMES} - {kind for _, kind, _ in FINDINGS} == set()


def test_every_field_with_a_rule_has_a_mistake() -> None:
    # The last key of a path, as some paths have their position at the end.
    broken = {(kind, re.sub(r"(\[\d+\])+$", "", path).rpartition(".")[2]) for _, kind, path in FINDINGS}
    ruled = {
        (place[0], place[-1])
        for place, field in FIELDS
        # The rules of associations are those of all kinds.
        if "associations" not in place and any(getattr(field.shape, name, None) for name in _RULES)
    }
    assert ruled - broken == set()
