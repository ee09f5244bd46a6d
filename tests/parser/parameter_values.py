"""
The conversion of parameter values by type (docs/reference/package-format.md, "Parameter values"): one table for lists,
the command line and gRPC.
"""

import json
from collections.abc import Sequence
from typing import Any

DIGITS = "123456789012345678901234567890"

TEXTS = (
    *("true", "false", "True", "yes", "null"),
    *("5", "-5", "+5", "007", "5.0", "5.5", ".5", "1e3", "0", "-0", "5x", " 5", "1_000", "0x10", "NaN", "Inf"),
    *("1e400", "1e-400", DIGITS, "9007199254740993", "9223372036854775807", "9223372036854775808"),
    *("5d", "-1h30m", "1mo", "1.5h", "5 m", "5M", "300y"),
    *("2021-02-03", "2021-02-03T04:05:06Z", "2021-02-30", "tomorrow", "now()"),
    *("", "abc", '"', "${x}", "1}"),
)
"""All that the command line can send."""

OTHERS: tuple[Any, ...] = (
    *(True, False, 0, 1, 5, -5, 5.0, 5.5, -0.5, 2**53 - 1, 2**62, 1e30, -1e30, 1e300),
    *([], ["5"], [5], {}, {"default": 5}),
)
"""Further values that only lists and gRPC can send."""

SCRIPT = {
    "bool": "true",
    "duration": "1h0m0s",
    "float": "1.5",
    "int": "10",
    "string": '"s"',
    "time": "2020-01-01T00:00:00Z",
}
"""A value in the script of each type."""

_WHOLE = 2**53 - 1

CONVERTED: dict[str, list[tuple[Any, str]]] = {
    "bool": [("true", "true"), ("false", "false"), (True, "true"), (False, "false")],
    "duration": [("5d", "5d"), ("-1h30m", "-1h30m"), ("1mo", "1mo")],
    "float": [
        *(("5", "5.0"), ("-5", "-5.0"), ("+5", "5.0"), ("007", "7.0"), ("5.0", "5.0"), ("5.5", "5.5"), (".5", "0.5")),
        *(("1e3", "1000.0"), ("0", "0.0"), ("-0", "-0.0"), (DIGITS, "123456789012345680000000000000.0")),
        *(("9007199254740993", "9007199254740992.0"), ("9223372036854775807", "9223372036854776000.0")),
        ("9223372036854775808", "9223372036854776000.0"),
        *((0, "0.0"), (1, "1.0"), (5, "5.0"), (-5, "-5.0"), (5.0, "5.0"), (5.5, "5.5"), (-0.5, "-0.5")),
        *((_WHOLE, "9007199254740991.0"), (2**62, "4611686018427388000.0")),
        *((1e30, f"1{'0' * 30}.0"), (-1e30, f"-1{'0' * 30}.0"), (1e300, f"1{'0' * 300}.0")),
    ],
    "int": [
        *(("5", "5"), ("-5", "-5"), ("+5", "5"), ("007", "7"), ("5.0", "5"), ("0", "0"), ("-0", "0")),
        *(("9007199254740993", "9007199254740993"), ("9223372036854775807", "9223372036854775807")),
        *((0, "0"), (1, "1"), (5, "5"), (-5, "-5"), (5.0, "5")),
        *((_WHOLE, "9007199254740991"), (2**62, "4611686018427387904")),
    ],
    "string": [
        *((text, f'"{text}"') for text in TEXTS if text not in ('"', "${x}")),
        *(('"', '"\\""'), ("${x}", '"\\${x}"'), (True, '"true"'), (False, '"false"')),
        *((0, '"0"'), (1, '"1"'), (5, '"5"'), (-5, '"-5"'), (5.0, '"5"'), (5.5, '"5.5"'), (-0.5, '"-0.5"')),
        *((_WHOLE, '"9007199254740991"'), (2**62, '"4611686018427387904"')),
        *((1e30, '"1e+30"'), (-1e30, '"-1e+30"'), (1e300, '"1e+300"')),
    ],
    "time": [
        ("2021-02-03", "2021-02-03T00:00:00Z"),
        ("2021-02-03T04:05:06Z", "2021-02-03T04:05:06Z"),
        ("now()", "now()"),
    ],
}
"""The values that each type can use, with the Flux that they become; every other one is refused."""


def expected(value_type: str, value: Any) -> str | None:
    """The Flux that a value becomes; None for one that is refused."""
    # As JSON, since in Python True == 1.
    return next((flux for known, flux in CONVERTED[value_type] if json.dumps(known) == json.dumps(value)), None)


def task(name: str, value_type: str, **entry: Any) -> dict[str, Any]:
    """A task with the parameter ``x``, whose type and other keys are in its list."""
    return {
        "apiVersion": "influxdata.com/v2alpha1",
        "kind": "Task",
        "metadata": {"name": name},
        "spec": {
            "every": "1h",
            "query": f"option params = {{x: {SCRIPT[value_type]}}}\n\nfrom(bucket: params.x)\n",
            "params": [{"key": "x", "type": value_type, **entry}],
        },
    }


def written(query: str) -> str:
    """The value of ``x`` in the query of such a task."""
    first, _, rest = query.partition("}\n\nfrom(bucket: params.x)")
    assert rest == "\n"
    return (
        first.replace("option params = {\n    x: ", "option params = {x: ")
        .removeprefix("option params = {x: ")
        .removesuffix(",\n")
    )


def key(name: str) -> str:
    """The environment key of ``x`` of a task."""
    return f"tasks[{name}].spec.params.x"


def by_name(values: Sequence[Any]) -> dict[str, Any]:
    """Values, each with the name of a task for it."""
    return {f"t{number}": value for number, value in enumerate(values)}
