"""Plain and tagged scalars (docs/reference/package-format.md, "YAML")."""

import math
from typing import Any

import pytest

from services.kinds.format.scalars import MERGE, plain_scalar, tagged_scalar
from services.kinds.format.timestamp import Timestamp


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((text, True) for text in ("true", "True", "TRUE")),
        *((text, False) for text in ("false", "False", "FALSE")),
        *((text, text) for text in ("yes", "Yes", "no", "NO", "on", "On", "off", "y", "Y", "n", "N", "tRUE")),
        *((text, None) for text in ("", "~", "null", "Null", "NULL")),
        ("12", 12),
        ("+5", 5),
        ("-0", 0),
        ("1_000", 1000),
        ("1__0", 10),
        ("0x1F", 31),
        ("-0x10", -16),
        ("0b11", 3),
        ("0o10", 8),
        ("010", 8),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", 2**63),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", 2.0**64),
        ("-9223372036854775809", -(2.0**63)),
        ("1e+08", 1e8),
        ("1e8", 1e8),
        ("1.5e3", 1500.0),
        ("12e03", 12000.0),
        (".5", 0.5),
        ("-.5", -0.5),
        (".5_0", 0.5),
        (".5_", ".5_"),
        ("5.", 5.0),
        ("08", 8.0),
        ("1_000.5", 1000.5),
        ("2.592e+06", 2592000.0),
        (".inf", math.inf),
        ("+.Inf", math.inf),
        ("-.INF", -math.inf),
        ("12:30:45", "12:30:45"),
        ("1:2", "1:2"),
        ("=", "="),
        ("0.1.0", "0.1.0"),
        ("1e400", "1e400"),
        ("0x", "0x"),
        ("_1", "_1"),
        ("-", "-"),
        (".", "."),
        ("1h", "1h"),
        ("9" * 5000, "9" * 5000),
        ("٣", "٣"),
        ("2020-13-01", "2020-13-01"),
        ("2020-02-30", "2020-02-30"),
        ("2020-01-01 10:00", "2020-01-01 10:00"),
        ("2020-01-01T00:00:00+25:00", "2020-01-01T00:00:00+25:00"),
        ("2020-01-01 10:00:00Z", "2020-01-01 10:00:00Z"),
        ("2020-01-01T10:00:00", "2020-01-01T10:00:00"),
    ],
)
def test_a_plain_scalar_resolves_as_the_table_says(text: str, value: Any) -> None:
    found = plain_scalar(text)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    "text",
    [
        "2020-01-01",
        "2020-1-1",
        "2020-01-01T00:00:00Z",
        "2020-01-01t1:2:3.5+01:00",
        "2020-01-01 10:00:00",
        "2020-01-01  1:2:3,5",
        "0000-02-29",
    ],
)
def test_a_date_is_a_timestamp_and_no_text(text: str) -> None:
    assert plain_scalar(text) == Timestamp(text)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2020-1-1", "2020-01-01T00:00:00Z"),
        ("2020-01-01 1:2:3.50", "2020-01-01T01:02:03.5Z"),
        ("2020-01-01t1:2:3.1234567891+01:00", "2020-01-01T01:02:03.123456789+01:00"),
        ("2020-01-01T00:00:00.0-00:00", "2020-01-01T00:00:00Z"),
    ],
)
def test_a_date_is_written_in_full(text: str, written: str) -> None:
    assert Timestamp(text).rfc3339() == written


def test_nan_is_a_float() -> None:
    assert math.isnan(plain_scalar(".nan"))


def test_the_merge_key_is_no_text() -> None:
    assert plain_scalar("<<") is MERGE


@pytest.mark.parametrize(
    ("tag", "text", "value"),
    [
        ("str", "5", "5"),
        ("int", "0x10", 16),
        ("float", "3", 3.0),
        ("bool", "true", True),
        ("null", "~", None),
        ("binary", "aGk =", "hi"),
        ("timestamp", "2020-01-01", Timestamp("2020-01-01")),
        ("merge", "<<", MERGE),
        ("merge", "5", "5"),
        ("mine", "5", "5"),
        ("!mine", "5", "5"),
        ("!", "5", "5"),
    ],
)
def test_a_tag_decides_the_type(tag: str, text: str, value: Any) -> None:
    found = tagged_scalar(tag if tag.startswith("!") else f"tag:yaml.org,2002:{tag}", text, quoted=True)
    assert (type(found), found) == (type(value), value)


def test_the_non_specific_tag_leaves_a_plain_scalar_unchanged() -> None:
    assert tagged_scalar("!", "5", quoted=False) == 5


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        ("int", "x"),
        ("int", "true"),
        ("float", "x"),
        ("bool", "yes"),
        ("null", "x"),
        ("binary", "%"),
        ("timestamp", "5"),
    ],
)
def test_a_tag_that_does_not_fit_is_refused(tag: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"tag|base64"):
        tagged_scalar(f"tag:yaml.org,2002:{tag}", text, quoted=True)
