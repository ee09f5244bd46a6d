"""Numbers that are written as text (docs/reference/package-format.md, "Chart rules", CH2)."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.kinds.format.floats import FLOAT_PATTERN, parse_float


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10", 10.0),
        ("+5.", 5.0),
        ("-.5", -0.5),
        ("1e5", 1e5),
        ("1E-2", 0.01),
        ("1_000.5_0", 1000.5),
        ("1e-400", 0.0),
        ("0x1p-2", 0.25),
        ("0X.8P+1", 1.0),
        ("0x_1_0.p0", 16.0),
        ("inf", math.inf),
        ("+Inf", math.inf),
        ("-INFINITY", -math.inf),
    ],
)
def test_the_text_of_a_number_is_read_as_that_number(text: str, value: float) -> None:
    assert parse_float(text) == value
    assert re.search(FLOAT_PATTERN, text)


def test_nan_is_read_as_a_float() -> None:
    value = parse_float("NaN")
    assert value is not None
    assert math.isnan(value)


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "-", "e5", "1e", "ten", "1 ", " 1", "1\n", "1,5", "1.2.3", "--1", "١"),
        *("_1", "1_", "1__0", "1_.5", "0x1", "0xp1", "0b1", "+nan", "infin"),
    ],
)
def test_any_other_text_is_none(text: str) -> None:
    assert parse_float(text) is None


@pytest.mark.parametrize("text", ["1e400", "-1e400", "0x1p1024"])
def test_a_number_of_more_than_64_bits_is_none(text: str) -> None:
    assert parse_float(text) is None


@given(st.floats(allow_nan=False))
def test_every_float_is_read_as_it_is_written(value: float) -> None:
    assert parse_float(repr(value)) == value
    if math.isfinite(value):
        assert parse_float(value.hex()) == value


@given(st.text("0123456789_.eExXpP+-infa", max_size=12))
def test_the_pattern_of_the_schema_matches_floats_only(text: str) -> None:
    if parse_float(text) is not None:
        assert re.search(FLOAT_PATTERN, text)
    elif re.search(FLOAT_PATTERN, text):
        assert "e" in text.lower() or "p" in text.lower(), "only too large a number fits the pattern"
