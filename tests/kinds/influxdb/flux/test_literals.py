"""Literals of Flux, read and written (docs/reference/package-format.md, "Parameter types", "Parameter values")."""

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.kinds.format.timestamp import Timestamp
from services.kinds.influxdb.flux.expressions import expression, quoted, untyped_expression
from services.kinds.influxdb.flux.literals import Literal, full_time, read_literal, text_in
from services.kinds.influxdb.flux.scanner import TokenKind, scan

HOUR = 3600 * 10**9


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ('"a b"', Literal("string", "a b")),
        ('""', Literal("string", "")),
        ('"\\n\\r\\t\\"\\\\\\${x}\\x41"', Literal("string", '\n\r\t"\\${x}A')),
        ('"\\xe6\\x97\\xa5"', Literal("string", "日")),
        ("10", Literal("integer", 10)),
        ("007", Literal("integer", 7)),
        ("9223372036854775807", Literal("integer", 2**63 - 1)),
        ("1.5", Literal("float", 1.5)),
        ("1.", Literal("float", 1.0)),
        (".5", Literal("float", 0.5)),
        ("1h30m", Literal("duration", 90 * 60 * 10**9, "1h30m0s")),
        ("1mo", Literal("duration", 672 * HOUR, "1mo")),
        ("0s", Literal("duration", 0, "0s")),
        ("2020-01-01", Literal("time", "2020-01-01T00:00:00Z")),
        ("2020-01-01T00:00:00Z", Literal("time", "2020-01-01T00:00:00Z")),
        ("now()", Literal("", "now()")),
        ("now ( )", Literal("", "now()")),
        ("-1d", Literal("", "-24h0m0s", "-24h0m0s")),
        ("- 1500ms", Literal("", "-1.5s", "-1s500ms")),
        ("-1y6mo", Literal("", "-1y6mo", "-1y6mo")),
        ("-5", Literal("", -5)),
        ("-1.5", Literal("", -1.5)),
        # Too long for a number of nanoseconds, but a duration.
        ("300y", Literal("duration")),
    ],
)
def test_a_literal_has_its_value(text: str, literal: Literal) -> None:
    found = read_literal(scan(text))
    assert found == literal
    assert type(found.value) is type(literal.value)


@pytest.mark.parametrize(
    "text",
    [
        *["true", "foo", "[1]", "{a: 1}", "f()", "now(a: 1)", "x.now()", "/r/", '"${x}"', "(5)", "--5", "+5", "not 5"],
        *['-"a"', "-now()", "1 + 1", '"\\q"', '"\\x4"', '"\\$x"', "9223372036854775808", "9" * 5000, "9" * 400 + ".0"],
        *["2020-02-30", "2020-01-01T25:00:00Z", "2020-01-01T00:00:00", ""],
    ],
)
def test_any_other_expression_is_no_literal(text: str) -> None:
    assert read_literal(scan(text)) == Literal()


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("2020-01-01", "2020-01-01T00:00:00Z"),
        ("2020-02-29T23:59:59Z", "2020-02-29T23:59:59Z"),
        ("2020-01-01T00:00:00.50Z", "2020-01-01T00:00:00.5Z"),
        ("2020-01-01T00:00:00.000Z", "2020-01-01T00:00:00Z"),
        ("2020-01-01T00:00:00.1234567899Z", "2020-01-01T00:00:00.123456789Z"),
        ("2020-01-01T00:00:00+02:00", "2020-01-01T00:00:00+02:00"),
        ("2020-01-01T00:00:00+00:00", "2020-01-01T00:00:00Z"),
        *[(text, None) for text in ("", "now()", "2019-02-29", "2020-13-01", "20200101", "2020-01-01 00:00:00Z")],
        *[(f"2020-01-01{rest}", None) for rest in ("T00:00Z", "T24:00:00Z", "T00:60:00Z", "T00:00:60Z", "T00:00:00.Z")],
        *[(f"2020-01-01T00:00:00{rest}", None) for rest in ("", "z", "+2:00", "+24:00", "Z\n", "Z }")],
    ],
)
def test_a_time_is_a_date_or_has_an_offset(text: str, full: str | None) -> None:
    assert full_time(text) == full


@pytest.mark.parametrize(
    ("value_type", "value", "written"),
    [
        ("bool", True, "true"),
        ("bool", False, "false"),
        ("bool", "true", "true"),
        ("bool", "false", "false"),
        ("duration", "5d", "5d"),
        ("duration", "-1mo2w", "-1mo2w"),
        ("duration", "10µs", "10us"),
        ("float", 5, "5.0"),
        ("float", -1.5, "-1.5"),
        ("float", 1e21, "1000000000000000000000.0"),
        ("float", 1e-7, "0.0000001"),
        ("float", 2**64 - 1, "18446744073709552000.0"),
        ("float", "5", "5.0"),
        ("float", "-.5", "-0.5"),
        ("float", "+5.", "5.0"),
        ("float", "1.5E3", "1500.0"),
        ("float", "0e-999", "0.0"),
        ("float", "123456789012345678901234567890", "123456789012345680000000000000.0"),
        ("integer", 5, "5"),
        ("integer", -5.0, "-5"),
        ("integer", 2.0**62, "4611686018427387904"),
        ("integer", 2**63 - 1, "9223372036854775807"),
        ("integer", "9007199254740993", "9007199254740993"),
        ("integer", "-9223372036854775807", "-9223372036854775807"),
        ("integer", "+007", "7"),
        ("integer", "5.0", "5"),
        ("integer", "-0", "0"),
        ("string", "", '""'),
        ("string", 'q"t', '"q\\"t"'),
        ("string", 5, '"5"'),
        ("string", 5.0, '"5"'),
        ("string", 2**62, '"4611686018427387904"'),
        ("string", 2.0**62, '"4611686018427387904"'),
        ("string", -1.5, '"-1.5"'),
        ("string", 2**64 - 1, '"18446744073709551615"'),
        ("string", 1e30, '"1e+30"'),
        ("string", True, '"true"'),
        ("time", "now()", "now()"),
        ("time", "2020-01-01", "2020-01-01T00:00:00Z"),
        ("time", Timestamp("2020-1-1"), "2020-01-01T00:00:00Z"),
        ("time", "2020-01-01T01:02:03.5+02:00", "2020-01-01T01:02:03.5+02:00"),
    ],
)
def test_a_value_is_written_by_its_type(value_type: str, value: Any, written: str) -> None:
    assert expression(value_type, value) == written


DAY = Timestamp("2020-01-01")


@pytest.mark.parametrize(
    ("value_type", "values"),
    [
        ("bool", ["True", "yes", "1", " true", "", 1, 0, 1.0, [], DAY]),
        ("duration", ["", "-", "x", "1.5h", "5", "5 m", "+5m", "1h-5m", "300y", 5, 0, 1.5, True, [], {}, DAY]),
        ("float", ["", "x", "5m", " 5", "1_0", "0x1p4", "٣", "inf", "NaN", "1e400", "-1e400", "1e-400", "1,5"]),
        ("float", [True, math.nan, math.inf, [], {}, DAY]),
        (
            "integer",
            ["", "x", "5m", "5.5", "5.", "1e3", " 5", "5\n", "1_0", "0x1F", "٣", "9" * 30, "-9223372036854775808"],
        ),
        ("integer", [True, math.nan, math.inf, 5.9, -0.1, 2**63, 2.0**63, -(2**63), 1e30, 1e300, [], {}, DAY]),
        ("string", [math.nan, math.inf, [], ["a"], {}, DAY]),
        ("time", ["", "tomorrow", "now", "2020-02-30", "2020-1-1", "10:00", 5, True, [], {}, Timestamp("0000-01-01")]),
    ],
)
def test_a_value_that_does_not_read_as_its_type_has_no_literal(value_type: str, values: list[Any]) -> None:
    assert [value for value in values if expression(value_type, value) is not None] == []


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (True, "true"),
        (5, "5"),
        (2**63, "9223372036854776000.0"),
        (-1.5, "-1.5"),
        ("now()", '"now()"'),
        (None, None),
        (7.0, "7"),
        (DAY, '"2020-01-01T00:00:00Z"'),
        ([1], None),
        ({}, None),
        (math.nan, None),
    ],
)
def test_a_value_without_a_type_is_written_by_its_json_type(value: Any, written: str | None) -> None:
    assert untyped_expression(value) == written


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("5$ and $5", '"5$ and $5"'),
        ("${x}", '"\\${x}"'),
        ("$${x}", '"\\x24\\${x}"'),
        ('$"', '"\\x24\\""'),
        ("$\\", '"\\x24\\\\"'),
        ("$\n", '"\\x24\n"'),
        ("a\r\n\tb\x00", '"a\\r\n\tb\\x00"'),
        ("日本", '"日本"'),
    ],
)
def test_a_string_is_escaped_as_flux_reads_it(text: str, literal: str) -> None:
    assert quoted(text) == literal


@given(st.text() | st.text('${}"\\nx4\n'))
@example('$"')
@example("$$$${x}")
@example('$\\"${x}')
def test_any_text_is_one_string_with_this_text(text: str) -> None:
    [token] = scan(quoted(text))
    assert token.kind is TokenKind.TEXT
    assert text_in(token.text) == text


_TYPES = ["bool", "duration", "float", "integer", "string", "time"]


@given(st.sampled_from(_TYPES), st.text() | st.text("-+.e0159mh") | st.floats() | st.integers())
def test_a_value_is_one_literal_or_none(value_type: str, value: Any) -> None:
    if (written := expression(value_type, value)) is not None:
        tokens = scan(written)
        assert read_literal(tokens) != Literal() or [token.text for token in tokens] in (["true"], ["false"])


@given(
    st.sampled_from(["float", "integer"]),
    st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**62), 2**62),
)
def test_a_number_keeps_its_value(value_type: str, value: int | float) -> None:
    if (written := expression(value_type, value)) is not None:
        assert Decimal(written) == (value if value_type == "integer" else Decimal(repr(float(value))))
    for text in (str(value), repr(float(value))):
        written = expression(value_type, text)
        assert written is None or float(written) == float(text)
