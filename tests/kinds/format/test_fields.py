"""Reading untyped values (docs/reference/package-format.md, "Field values"), and writing them plainly."""

import math
from typing import Any

import pytest

from services.kinds.diagnostics import Code
from services.kinds.format.canonical import plain
from services.kinds.format.fields import Fields, integer_of, text_of


def field(value: Any) -> Fields:
    return Fields({"key": value}, "spec", ("spec",))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (" as is ", " as is "),
        (12, "12"),
        (12.0, "12"),
        (1.50, "1.5"),
        (1e21, "1000000000000000000000"),
        (1e-7, "0.0000001"),
        (-0.0, "-0"),
        (math.nan, "NaN"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (2**63 - 1, "9223372036854775807"),
        (2**63, None),
        (True, None),
        (None, None),
        (["a"], None),
        ({"a": "b"}, None),
        (object(), None),
    ],
)
def test_text_is_text_or_a_number(value: Any, text: str | None) -> None:
    assert text_of(value) == text
    assert field(value).text("key") == (text or "")


@pytest.mark.parametrize(
    ("value", "integer"),
    [
        (5, 5),
        (5.9, 5),
        (-5.9, -5),
        ("5", 0),
        (True, 0),
        (None, 0),
        (2**63, 0),
        (1e300, 0),
        (math.nan, 0),
        (math.inf, 0),
    ],
)
def test_an_integer_is_a_number_of_64_bits(value: Any, integer: int) -> None:
    assert integer_of(value) == integer


def test_absent_lists_and_maps_are_empty() -> None:
    for no_list in (None, "x", 5, {"a": 1}):
        assert field(no_list).texts("key") == []
        assert field(no_list).mappings("key") == []
    for no_map in (None, "x", 5, [1]):
        assert field(no_map).text_map("key") == {}


def test_items_without_text_are_dropped() -> None:
    assert field(["a", 1, True, None, ["b"]]).texts("key") == ["a", "1"]
    assert field({"a": 1, "b": True}).text_map("key") == {"a": "1"}


def test_items_that_are_no_mappings_are_dropped_before_they_are_counted() -> None:
    [first, second] = field(["x", {"a": 1}, None, {"a": 2}]).mappings("key")
    assert (first.path, first.pointer, second.path, second.pointer) == (
        "spec.key[0]",
        ("spec", "key", 1),
        "spec.key[1]",
        ("spec", "key", 3),
    )
    fault = second.fault(Code.FIELD_MISSING, "a", "reason")
    assert (fault.path, fault.pointer) == ("spec.key[1].a", ("spec", "key", 3, "a"))


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (1.0, 1),
        (1.5, 1.5),
        (1e300, 1e300),
        (math.nan, None),
        (math.inf, None),
        (2**64, 2.0**64),
        (object(), None),
        ({1: "x", "a": [True, None, "b", 2.0]}, {"a": [True, None, "b", 2]}),
    ],
)
def test_plain_trees_hold_json_values_only(value: Any, written: Any) -> None:
    assert plain(value) == written
    assert type(plain(value)) is type(written)
