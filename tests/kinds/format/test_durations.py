"""Durations (docs/reference/package-format.md, "Durations")."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.kinds.format.durations import (
    calendar_duration,
    canonical_duration,
    flux_duration,
    go_duration,
    parse_duration,
    parse_go_duration,
    schedule_duration,
)

MS, SECOND, MINUTE, HOUR = 10**6, 10**9, 60 * 10**9, 3600 * 10**9


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("", 0),
        ("-", 0),
        ("0s", 0),
        ("1d1h", 25 * HOUR),
        ("1h30m", 90 * MINUTE),
        ("-5m", -5 * MINUTE),
        ("1w", 168 * HOUR),
        ("1mo", 672 * HOUR),
        ("3mo", 13 * 168 * HOUR),
        ("1y", 8736 * HOUR),
        ("1m1m", 2 * MINUTE),
        ("1ms2us3µs4ns", MS + 5004),
        ("007s", 7 * SECOND),
        ("9223372036854775807ns", 2**63 - 1),
    ],
)
def test_a_duration_is_digits_and_units(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    "text",
    [
        "90",
        "1.5h",
        "5S",
        "1m 30s",
        "1h-5m",
        "+1h",
        "h",
        "1",
        "1h ",
        "1M",
        "٣s",
        "9223372036854775808ns",
        "300y",
        "9" * 5000 + "s",
    ],
)
def test_any_other_text_is_no_duration(text: str) -> None:
    assert parse_duration(text) is None


@pytest.mark.parametrize(
    ("nanoseconds", "go", "canonical"),
    [
        (0, "0s", ""),
        (1, "1ns", "1ns"),
        (1_500, "1.5µs", "1us500ns"),
        (10_000, "10µs", "10us"),
        (1_500_000, "1.5ms", "1ms500us"),
        (SECOND, "1s", "1s"),
        (1_500_000_000, "1.5s", "1s500ms"),
        (61 * SECOND + 1, "1m1.000000001s", "1m1s1ns"),
        (MINUTE, "1m0s", "1m0s"),
        (25 * HOUR, "25h0m0s", "25h0m0s"),
        (HOUR + 5 * SECOND, "1h0m5s", "1h0m5s"),
        (-90 * MINUTE, "-1h30m0s", "-1h30m0s"),
        (-1_500_000, "-1.5ms", "-1ms500us"),
    ],
)
def test_a_duration_is_written_in_two_forms(nanoseconds: int, go: str, canonical: str) -> None:
    assert (go_duration(nanoseconds), canonical_duration(nanoseconds)) == (go, canonical)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("1m0s", MINUTE),
        ("1.5h", 90 * MINUTE),
        ("+.5s", SECOND // 2),
        ("-1.s", -SECOND),
        ("1h1h", 2 * HOUR),
        ("1.5ms2us3µs4μs1.9ns", 1_509_001),
        ("0.0000000000000000000000001h", 0),
        ("9223372036854775807ns", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
    ],
)
def test_go_reads_decimals_and_one_sign(text: str, nanoseconds: int) -> None:
    assert parse_go_duration(text) == nanoseconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "1",
        "1d",
        "1w",
        ".s",
        "1..5s",
        "1h-5m",
        "1 h",
        "1h ",
        "٣s",
        "9223372036854775808ns",
        "12345678901234567890ns",
        "9" * 5000 + "s",
    ],
)
def test_go_reads_nothing_else(text: str) -> None:
    assert parse_go_duration(text) is None


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("5d", "5d"),
        ("1h30m", "1h30m"),
        ("-1mo2w", "-1mo2w"),
        ("007s", "7s"),
        ("10µs", "10us"),
        ("0s", "0s"),
        ("", None),
        ("-", None),
        ("5", None),
        ("1.5h", None),
        ("300y", None),
    ],
)
def test_flux_writes_a_duration_with_the_units_it_has(text: str, written: str | None) -> None:
    assert flux_duration(text) == written


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_go_reads_what_it_writes(nanoseconds: int) -> None:
    assert parse_go_duration(go_duration(nanoseconds)) == nanoseconds


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_the_canonical_form_reads_back_equal(nanoseconds: int) -> None:
    assert parse_duration(canonical_duration(nanoseconds)) == nanoseconds


@pytest.mark.parametrize(
    ("text", "calendar", "schedule"),
    [
        ("1mo", "1mo", "1mo"),
        ("1y06mo2d", "1y6mo2d", "1y6mo2d"),
        ("-1mo", "-1mo", "-1mo"),
        ("0mo1h", None, "1h0m0s"),
        ("28d", None, "672h0m0s"),
        ("10m", None, "10m0s"),
        ("0y", None, ""),
        ("1 mo", None, ""),
        ("", None, ""),
    ],
)
def test_months_and_years_are_kept_as_such(text: str, calendar: str | None, schedule: str) -> None:
    assert (calendar_duration(text), schedule_duration(text)) == (calendar, schedule)
