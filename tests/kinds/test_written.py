"""Normalised specs are written as a person would, and read again as the same spec."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given

from parser_svc.package import parse
from parser_svc.sources import Encoding, Source
from services.core.model import Key, Object
from services.kinds.format.canonical import canonical_text
from services.kinds.format.fields import Fields
from services.kinds.format.kind import ReadResult, Scope
from services.kinds.registry import EXPORT_ORDER, KINDS
from tests.corpora import corpus_parameters, package_text, packages_in
from tests.parser.parsing import parse_text
from tests.parser.written import environments, packages


def read_again(item: Object, objects: dict[str, dict[str, Key]]) -> ReadResult:
    """The reading of the written spec of *item*."""
    kind = KINDS[item.key.kind]
    written = kind.written(item.spec.value) | {"name": item.spec.display_name}
    scope = Scope(item.key.name, item.spec.display_name, "influxdata.com/v2alpha1", objects=objects)
    return kind.read(Fields(json.loads(json.dumps(written)), "spec", ("spec",)), scope)


def hold_law(objects: tuple[Object, ...]) -> None:
    keys = {family: {item.key.name: item.key for item in objects} for family in {k.family for k in KINDS.values()}}
    for item in objects:
        reading = read_again(item, keys)
        assert list(reading.faults) == []
        assert canonical_text(reading.spec) == item.spec.text


@given(packages, environments)
def test_a_written_spec_is_read_as_the_same_spec(documents: list[dict[str, Any]], env: dict[str, Any]) -> None:
    package = parse_text(json.dumps(documents), env, Encoding.JSON).package
    event(f"valid: {package is not None}")
    hold_law(package.objects if package else ())


@pytest.mark.parametrize("folder", corpus_parameters())
def test_so_are_the_specs_of_packages(folder: Path) -> None:
    for path in packages_in(folder):
        package = parse([Source(path.stem, package_text(path))], {}).package
        assert package is not None
        hold_law(package.objects)


SPECS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "Label": ({"color": "", "description": ""}, {}),
    "Bucket": (
        {
            "description": "",
            "measurementSchemas": [],
            "retentionRules": [{"everySeconds": 3600, "type": "expire"}],
            "schemaType": "",
        },
        {"retentionRules": [{"everySeconds": 3600, "type": "expire"}]},
    ),
    "Task": (
        {"cron": "", "description": "", "every": "1h0m0s", "offset": "", "query": "x", "status": "active"},
        {"every": "1h0m0s", "query": "x"},
    ),
    "NotificationEndpointHTTP": (
        {"method": "GET", "password": "", "status": "active", "token": "", "type": "basic", "url": "x", "username": ""},
        {"method": "GET", "password": "", "type": "basic", "url": "x", "username": ""},
    ),
    "NotificationEndpointPagerDuty": (
        {"routingKey": "", "status": "active", "url": "x"},
        {"routingKey": "", "url": "x"},
    ),
    "Variable": (
        {"description": "", "selected": [], "type": "map", "values": {"a": ""}},
        {"type": "map", "values": {"a": ""}},
    ),
    "Dashboard": (
        {
            "charts": [
                {"kind": "mosaic", "name": "", "width": 1, "height": 1, "axes": [{"name": "x", "label": ""}]},
                {"kind": "table", "width": 1, "height": 1, "decimalPlaces": 0, "tableOptions": {"wrapping": ""}},
            ]
        },
        {
            "charts": [
                {"height": 1, "kind": "mosaic", "width": 1},
                {"decimalPlaces": 0, "height": 1, "kind": "table", "width": 1},
            ]
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", SPECS)
def test_default_values_are_left_out(kind: str) -> None:
    spec, written = SPECS[kind]
    assert KINDS[kind].written(spec) == written


ODD: list[Any] = [None, 5, "x", [], {}, [5], [[]], {"x": 1}, [{"x": []}], True]


@pytest.mark.parametrize("kind", KINDS)
def test_odd_specs_of_a_driver_break_nothing(kind: str) -> None:
    for value in ODD:
        for key in (*KINDS[kind].fields.fields, "no field"):
            written = KINDS[kind].written({key: value})
            KINDS[kind].read(Fields(written, "spec", ("spec",)), Scope("a", "a"))


def test_exports_have_every_kind_in_its_place() -> None:
    assert sorted(EXPORT_ORDER, key=EXPORT_ORDER.__getitem__) == [
        *("Label", "Bucket", "CheckDeadman", "CheckThreshold"),
        *("NotificationEndpointHTTP", "NotificationEndpointPagerDuty", "NotificationEndpointSlack"),
        *("NotificationRule", "Task", "Variable", "Dashboard", "Telegraf"),
    ]
