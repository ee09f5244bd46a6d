"""Parameters of queries and options of tasks (docs/reference/package-format.md, "Queries")."""

import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from services.kinds.format.fields import Fields
from services.kinds.format.references import ReferenceSpec
from services.kinds.format.timestamp import Timestamp
from services.kinds.influxdb.flux.literals import text_in
from services.kinds.influxdb.flux.script import first_options, read_statements
from services.kinds.influxdb.parameters import NO_TASK_OPTIONS, Parameter, Script, read_chart_query, read_task_query
from tests.kinds.influxdb.flux.scripts import fragments, scripts

SECOND, HOUR = 10**9, 3600 * 10**9


def task(
    text: str, params: list[Any] | None = None, options: list[Any] | None = None, env: Mapping[str, Any] | None = None
) -> Script:
    """The query of a task; the keys of *env* lack their common prefix, ``tasks[t].spec.``."""
    supplied = {f"tasks[t].spec.{key}": value for key, value in (env or {}).items()}
    spec = {"query": text, "params": params or [], "task": options or []}
    return read_task_query(Fields(spec, "spec", ("spec",)), "t", supplied, feeds_task=True)


def chart_query(text: str, params: list[Any], places: tuple[int, int, int, int] = (0, 0, 0, 0)) -> Script:
    """A query of the dashboard ``d``; *places* are the positions of ``read_chart_query``."""
    return read_chart_query(Fields({"query": text, "params": params}, "spec", ("spec",)), "d", *places, {})


def written(value: str, listed: Mapping[str, Any] | None = None, supplied: Any = None) -> str:
    """The expression of the parameter ``a`` after reading, where it has this value in the script."""
    result = task(
        f"option params = {{a: {value}}}",
        [{"key": "a", **listed}] if listed is not None else [],
        env={"params.a": supplied} if supplied is not None else {},
    )
    return result.text.removeprefix("option params = {a: ").removesuffix("}\n")


def listed_values(parameters: tuple[Parameter, ...]) -> list[tuple[str, str, Any]]:
    return [(parameter.name, parameter.value_type, parameter.reference.default) for parameter in parameters]


def test_a_script_without_options_is_only_trimmed() -> None:
    for text in ("", "from()", "x = option_a", "x = 1 // option params = {a: 1}", 'x =~ /option task = {name: "a"}/'):
        assert task(f" {text}\n", [{"key": "a"}], [{"key": "name"}]) == Script(text)


def test_a_script_without_parameters_is_only_trimmed() -> None:
    for text in ("option params = {}", "option params = 5\nfrom()", 'option params = {"a": 1}\nfrom()'):
        assert task(f" {text}\n", [{"default": 1}, {"key": ""}, {"key": []}, "a"]) == Script(text)


@pytest.mark.parametrize(
    ("value", "value_type", "default"),
    [
        ('"x"', "string", "x"),
        ("10", "integer", 10),
        ("1.5", "float", 1.5),
        ("1h30m", "duration", 90 * 60 * SECOND),
        ("2020-01-01", "time", "2020-01-01T00:00:00Z"),
        ("now()", "", "now()"),
        ("-1d", "", "-24h0m0s"),
        ("-5", "", -5),
        ("true", "", None),
        ("[1]", "", None),
    ],
)
def test_the_script_determines_type_and_default(value: str, value_type: str, default: Any) -> None:
    assert listed_values(task(f"option params = {{a: {value}}}").parameters) == [("a", value_type, default)]


@pytest.mark.parametrize(
    ("listed", "value_type", "default"),
    [
        ({}, "integer", 1),
        ({"type": "float"}, "float", 1),
        ({"type": "INT"}, "integer", 1),
        ({"type": "String", "default": "x"}, "string", "x"),
        ({"default": "x"}, "integer", "x"),
        ({"default": None}, "integer", None),
        ({"type": None}, "integer", 1),
        ({"type": True}, "integer", 1),
        ({"type": ""}, "", 1),
        ({"type": "integer"}, "", 1),
        ({"type": 5}, "", 1),
    ],
)
def test_the_list_overrides_type_and_default(listed: dict[str, Any], value_type: str, default: Any) -> None:
    assert listed_values(task("option params = {a: 1}", [{"key": "a", **listed}]).parameters) == [
        ("a", value_type, default)
    ]


def test_names_that_only_the_list_has_come_last() -> None:
    params = [{"key": "z", "type": "int"}, {"key": "b", "default": 3}, {"key": "c"}, {"key": "z", "default": 5}]
    found = task("option params = {a: 1, b: 2}", params)
    assert listed_values(found.parameters) == [
        ("a", "integer", 1),
        ("b", "integer", 3),
        ("z", "integer", 5),
        ("c", "", None),
    ]
    assert found.text == "option params = {a: 1, b: 3, z: 5}\n"


def test_keys_and_fields_name_the_parameter() -> None:
    script = 'option params = {a: 1}\noption task = {name: "n"}'
    found = task(script)
    assert found.parameters == (
        Parameter("a", "spec.params.a", ReferenceSpec(env_key="tasks[t].spec.params.a", default=1), "integer"),
    )
    assert found.options == (
        Parameter("name", "spec.task.name", ReferenceSpec(env_key="tasks[t].spec.task.name", default="n"), "string"),
    )
    chart = chart_query(script, [], (5, 4, 3, 2))
    key = "dashboards[d].spec.charts[5].queries[4].params.a"
    assert chart.parameters == (
        Parameter("a", "spec.charts[3].queries[2].params.a", ReferenceSpec(env_key=key, default=1), "integer"),
    )


def test_task_options_in_a_chart_are_normalised_and_are_no_parameters() -> None:
    found = chart_query(" option task = {every: 1d} ", [{"key": "a", "default": 1}])
    assert found.text == "option task = {every: 24h0m0s}\n"
    assert (found.options, found.task) == ((), NO_TASK_OPTIONS)
    assert [parameter.name for parameter in found.parameters] == ["a"]


def test_a_list_beside_the_other_option_changes_no_text() -> None:
    found = task("option task = {every: 1h0m0s}\nx", [{"key": "a", "default": 1}], [{"key": "b", "default": 2}])
    assert found.text == "option task = {every: 1h0m0s, b: 2}\n\nx\n"
    assert [parameter.name for parameter in found.parameters] == ["a"]
    found = task("option params = 5 x", [{"key": "a", "default": 1}], [{"key": "b", "default": 2}])
    assert found.text == "option params = 5\n\nx\n"
    assert [parameter.name for parameter in found.parameters + found.options] == ["a", "b"]


@pytest.mark.parametrize(
    ("value", "listed", "supplied", "result"),
    [
        # Nothing changes but the form of durations, times and floats.
        ("1d", None, None, "24h0m0s"),
        ("1m", None, None, "1m0s"),
        ("1500ms", None, None, "1s500ms"),
        ("1.50", None, None, "1.5"),
        ("2020-01-01", None, None, "2020-01-01T00:00:00Z"),
        ('"a\\tb"', None, None, '"a\tb"'),
        # No type: the script keeps what it has, unless a value is supplied.
        ("true", None, None, "true"),
        ("-1d", {}, None, "-1d"),
        ("-5", None, None, "-5"),
        ("now()", {"type": "foo"}, None, "now()"),
        ("true", {"default": False}, None, "true"),
        ("true", None, False, "false"),
        ("-5", None, 7.0, "7"),
        ("-5", None, 7.5, "7.5"),
        ("now()", None, "1d", '"1d"'),
        # A type from the list.
        ("-1d", {"type": "duration"}, None, "-24h0m0s"),
        ("-1500ms", {"type": "duration"}, None, "-1s500ms"),
        ("-5", {"type": "int"}, None, "-5"),
        ("-1.5", {"type": "float"}, None, "-1.5"),
        ("5", {"type": "float"}, None, "5.0"),
        ("now()", {"type": "time"}, None, "now()"),
        ("-1h", {"type": "string"}, None, '"-1h0m0s"'),
        # A type without a value: the script is unchanged.
        ("true", {"type": "bool"}, None, "true"),
        ("foo", {"type": "string"}, None, "foo"),
        ("5", {"default": None}, None, "5"),
        # A default from the list, as YAML and as JSON have it.
        ("1", {"default": 3600}, None, "3600"),
        ("1", {"default": 3600.0}, None, "3600"),
        ("1.5", {"default": 3600}, None, "3600.0"),
        ("1.5", {"default": 3600.0}, None, "3600.0"),
        ("1h", {"default": "5d"}, None, "5d"),
        ("1.5", {"default": "2"}, None, "2.0"),
        ('"x"', {"default": 5}, None, '"5"'),
        ("true", {"type": "bool", "default": "false"}, None, "false"),
        ("5.0", {"type": "int"}, None, "5"),
        ('"5"', {"type": "int"}, None, "5"),
        ("5", {"type": "string"}, None, '"5"'),
        # A supplied value.
        ("1h", {"default": "5d"}, "90m", "90m"),
        ('"x"', None, "", '""'),
        ("2020-01-01", None, "2021-01-01", "2021-01-01T00:00:00Z"),
        ("2020-01-01", None, "now()", "now()"),
    ],
)
def test_a_value_is_written_by_type_and_origin(
    value: str, listed: dict[str, Any] | None, supplied: Any, result: str
) -> None:
    assert written(value, listed, supplied) == result


@pytest.mark.parametrize(
    ("listed", "entry"),
    [
        ({"default": "x"}, 'n: "x"'),
        ({"default": 5.0}, "n: 5"),
        # No value is none of its type either.
        ({"type": "string"}, ""),
        ({"type": "duration"}, ""),
        ({"type": "int", "default": None}, ""),
        ({"type": "foo", "default": True}, "n: true"),
        ({}, ""),
    ],
)
def test_a_new_parameter_is_written_when_there_is_anything_to_write(listed: dict[str, Any], entry: str) -> None:
    found = task("option params = {}", [{"key": "n", **listed}])
    assert found.text == f"option params = {{{entry}}}\n"
    assert [parameter.name for parameter in found.parameters] == ["n"]


def misfits(found: Script) -> list[tuple[str, str]]:
    """``path`` and reason of each value that does not fit."""
    return [(fault.path, fault.reason) for fault in found.misfits]


@pytest.mark.parametrize(
    ("value", "listed", "path", "reason"),
    [
        ("1h", {"default": 5}, "default", "a duration such as 1h30m, as the type is duration; found the number 5"),
        ("1h", {"default": 5.0}, "default", "a duration such as 1h30m, as the type is duration; found the number 5"),
        ("1", {"default": "x"}, "default", "9223372036854775807, as the type is integer; found the text 'x'"),
        ("foo", {"default": 1, "type": "Bool"}, "default", "true or false, as the type is Bool; found the number 1"),
        ("1.5", {"default": math.nan}, "default", "a finite number, as the type is float; found NaN"),
        ('"x"', {"default": Timestamp("2020-01-01")}, "default", "as the type is string; found an unquoted date"),
        ('"x"', {"default": ["y"]}, "default", "as the type is string; found a list"),
        ("5", {"type": "time"}, "type", "'a' in the script must be now(), a date such as 2020-01-01, or"),
        (
            "5.9",
            {"type": "int"},
            "type",
            "as the type is int; found the number 5.9; correct the type, or add a default",
        ),
        ("1h", {"type": "int"}, "type", "found the duration 1h0m0s"),
        ("1h", {"type": "string"}, "type", "found the duration 1h0m0s"),
        ("-1h", {"type": "float"}, "type", "found the duration -1h0m0s"),
        ("now()", {"type": "duration"}, "type", "found the text 'now()'"),
    ],
)
def test_a_default_or_type_that_does_not_fit_is_reported_at_its_entry(
    value: str, listed: dict[str, Any], path: str, reason: str
) -> None:
    found = task(f"option params = {{a: {value}}}", [{"key": "other"}, {"key": "a", **listed}])
    [fault] = found.misfits
    assert (fault.path, fault.pointer) == (f"spec.params[1].{path}", ("spec", "params", 1, path))
    assert reason in fault.reason
    # The script is unchanged.
    assert found.text == f"option params = {{a: {value}}}\n"


def test_the_entry_with_the_default_is_reported_not_the_one_with_the_type() -> None:
    params = [{"key": "n", "default": "x"}, "no mapping", {"key": "n", "type": "int"}, {"key": "m", "default": {}}]
    assert [path for path, _ in misfits(task("option params = {}", params))] == [
        "spec.params[0].default",
        "spec.params[2].default",
    ]
    assert misfits(task("option params = {}", [*params[:3], {"key": "n", "default": "5"}])) == []


@pytest.mark.parametrize(
    ("value", "listed", "supplied", "reason"),
    [
        ("10", None, "ten", "9223372036854775807, as the type is integer; found the text 'ten'"),
        ("10", {"default": 5}, 1e30, "found the number 1e+30"),
        ("10", None, math.nan, "found NaN, which is no number"),
        ("10", None, "", "found the text ''"),
        ("true", {"type": "bool"}, 1, "must be true or false, as the type is bool; found the number 1"),
        ("true", None, [1], "must be a text, a number, true or false, as there is no type; found a list"),
        ('"x"', None, {}, "found a mapping"),
        ("1h", None, True, "found true"),
    ],
)
def test_a_supplied_value_that_does_not_fit_is_reported_with_its_key(
    value: str, listed: dict[str, Any] | None, supplied: Any, reason: str
) -> None:
    params = [] if listed is None else [{"key": "a", **listed}]
    found = task(f"option params = {{a: {value}}}", params, env={"params.a": supplied})
    [fault] = found.misfits
    assert (fault.path, fault.pointer) == ("spec.params.a", ("spec", "query"))
    assert fault.reason.startswith("the value of 'tasks[t].spec.params.a' must be ")
    assert reason in fault.reason
    assert found.text == f"option params = {{a: {value}}}\n"


def test_a_missing_value_is_no_misfit() -> None:
    for supplied, params in ((None, []), (None, [{"key": "a", "default": None, "type": "bool"}])):
        assert task("option params = {a: 1}", params, env={"params.a": supplied}).misfits == ()


def test_a_default_without_a_type_changes_no_script_and_fits() -> None:
    """Without a type any value fits (docs/reference/package-format.md, "Oddities", P18)."""
    defaults: list[Any] = [5, [1], {}]
    for default in defaults:
        found = task("option params = {a: true}", [{"key": "a", "default": default, "type": "foo"}])
        assert (found.text, found.misfits) == ("option params = {a: true}\n", ())


def test_a_supplied_null_is_no_value() -> None:
    assert task("option params = {a: 1}", env={"params.a": None}).text == "option params = {a: 1}\n"


@pytest.mark.parametrize(
    ("listed", "value_type", "default", "text"),
    [
        ({"type": "duration", "default": "1m0s"}, "duration", 60 * SECOND, "1m0s"),
        ({"type": "duration", "default": "1.5s"}, "duration", 3 * SECOND // 2, "1s500ms"),
        ({"type": "duration", "default": "-1.5h"}, "duration", -3 * HOUR // 2, "-1h30m0s"),
        # Only the lower-case word is a duration of Go.
        ({"type": "duration", "default": None}, "duration", HOUR, "1h0m0s"),
        ({"type": "duration"}, "duration", HOUR, "1h0m0s"),
        ({"type": "Duration", "default": "1d"}, "duration", "1d", "1d"),
        ({"default": "1d"}, "duration", "1d", "1d"),
    ],
)
def test_durations_in_the_task_list_are_those_of_go(
    listed: dict[str, Any], value_type: str, default: Any, text: str
) -> None:
    found = task("option task = {every: 1h}", options=[{"key": "every", **listed}])
    assert listed_values(found.options) == [("every", value_type, default)]
    assert found.text == f"option task = {{every: {text}}}\n"


@pytest.mark.parametrize("default", ["1d", "", "1", "x", "1h-5m"])
def test_a_default_that_is_no_duration_drops_the_query(default: str) -> None:
    found = task('option task = {name: "n", every: 1h}', options=[{"key": "x", "type": "duration", "default": default}])
    [reason] = found.faults
    assert "'x'" in reason
    assert repr(default) in reason
    assert found == Script("", faults=(reason,))


def test_one_reason_names_all_defaults_that_are_no_durations() -> None:
    wrong = [{"key": key, "type": "duration", "default": "1d"} for key in ("every", "offset")]
    right = {"key": "every", "type": "duration", "default": "1h"}
    [reason] = task("option task = {}", options=[*wrong, right]).faults
    assert "'every'" in reason
    assert "'offset'" in reason


def test_a_task_takes_name_every_and_offset_from_its_options() -> None:
    found = task('option task = {name: "n", every: 1d, offset: 1500ms, cron: "x"}').task
    key = "tasks[t].spec.task.name"
    assert found.name == Parameter("name", "spec.name", ReferenceSpec(env_key=key, default="n"), "string")
    assert (found.every, found.offset, found.faults) == ("24h0m0s", "1s500ms", ())


def test_months_and_years_of_a_script_are_kept() -> None:
    found = task("option task = {every: 1mo, offset: 1d}\noption params = {window: 1y6mo}")
    assert (found.task.every, found.task.offset) == ("1mo", "24h0m0s")
    assert "every: 1mo, offset: 24h0m0s" in found.text
    assert "window: 1y6mo" in found.text


def test_a_script_with_parameters_only_has_no_task_options() -> None:
    assert task('option params = {name: "n", every: 1h}').task == NO_TASK_OPTIONS


@pytest.mark.parametrize(
    ("value", "listed", "supplied", "length"),
    [
        ("1h", {}, None, "1h0m0s"),
        ("0s", {}, None, ""),
        ("1h", {"type": "duration", "default": "1m0s"}, None, "1m0s"),
        ("1h", {"type": "duration", "default": "-1m"}, None, "-1m0s"),
        ("1h", {}, "5d", "120h0m0s"),
        ("1h", {}, "1mo", "1mo"),
        ("foo", {}, "1h30m", "1h30m0s"),
        ("1h", {"default": "1m"}, "2h", "2h0m0s"),
    ],
)
def test_the_length_of_an_option_is_the_supplied_value_else_its_default(
    value: str, listed: dict[str, Any], supplied: Any, length: str
) -> None:
    options = [{"key": "offset", **listed}]
    found = task(f"option task = {{offset: {value}}}", options=options, env={"task.offset": supplied}).task
    assert (found.every, found.offset, found.faults) == (None, length, ())


@pytest.mark.parametrize(
    ("value", "listed", "supplied"),
    [
        ("-1h", {}, None),
        ("-1h", {"type": "duration"}, None),
        ("5", {}, None),
        ('"1h"', {}, None),
        ("foo", {}, None),
        ("300y", {}, None),
        ("1h", {"default": "1m"}, None),
        ("1h", {"type": "Duration", "default": "1m"}, None),
        ("1h", {"default": 5}, None),
        ("1h", {"default": None}, None),
        ("1h", {"type": "duration", "default": 5}, None),
        ("foo", {}, 5),
        ("foo", {}, True),
        ("foo", {}, "x"),
    ],
)
def test_an_option_that_is_no_duration_is_a_fault(value: str, listed: dict[str, Any], supplied: Any) -> None:
    options = [{"key": "every", **listed}]
    found = task(f"option task = {{every: {value}}}", options=options, env={"task.every": supplied})
    [reason] = found.task.faults
    assert "every" in reason
    assert found.task.every is None
    assert found.misfits == ()
    assert found.text


@pytest.mark.parametrize("supplied", [5, True, "x", ""])
def test_a_supplied_value_that_is_no_duration_is_reported_once(supplied: Any) -> None:
    found = task("option task = {every: 1h}", env={"task.every": supplied})
    assert [path for path, _ in misfits(found)] == ["spec.task.every"]
    assert (found.task.faults, found.task.every) == ((), "1h0m0s")


def test_a_misfit_default_of_an_option_is_reported_where_it_is_no_length_of_the_task() -> None:
    script = "option task = {every: 1h, n: 1}"
    spec = {"query": script, "task": [{"key": "every", "default": 5}]}
    found = read_task_query(Fields(spec, "spec", ("spec",)), "t", {}, feeds_task=False)
    assert [path for path, _ in misfits(found)] == ["spec.task[0].default"]
    assert found.task == NO_TASK_OPTIONS
    found = task(script, options=[{"key": "n", "default": "x"}])
    assert ([path for path, _ in misfits(found)], found.task.faults) == (["spec.task[0].default"], ())
    wrong = [{"key": "every", "default": "1d", "type": "duration"}]
    found = task(script + "\noption params = {a: 1}", [{"key": "a", "default": "x"}], wrong)
    assert ([path for path, _ in misfits(found)], len(found.faults)) == (["spec.params[0].default"], 1)


def test_one_reason_names_every_and_offset() -> None:
    [reason] = task("option task = {every: 1, offset: 2}").task.faults
    assert "every" in reason
    assert "offset" in reason


_listed = st.lists(
    st.fixed_dictionaries(
        {"key": st.sampled_from(["a", "b", "name", "every", "offset", "a: f()}"]) | st.text(max_size=5)},
        optional={
            "type": st.sampled_from(["bool", "duration", "float", "int", "string", "time", "Duration", "foo", ""]),
            "default": st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("1h"),
        },
    ),
    max_size=4,
)
_supplied = st.dictionaries(
    st.sampled_from(["params.a", "params.b", "task.name", "task.every"]),
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers()),
)


def records(text: str) -> dict[str, dict[str, str]]:
    """The values in the option records of a script."""
    options = first_options(read_statements(text), ("params", "task"))
    return {
        name: {entry.key: text[entry.value_start : entry.end] for entry in statement.record.properties}
        for name, statement in options.items()
        if statement.record
    }


@given(fragments | scripts | st.text(), _listed, _listed, _supplied)
def test_any_script_list_and_values_give_a_script(
    text: str, params: list[Any], options: list[Any], env: dict[str, Any]
) -> None:
    found = task(text, params, options, env)
    again = task(found.text)
    assert task(again.text).text == again.text


@given(scripts, _listed, _listed)
def test_a_written_script_is_read_unchanged(text: str, params: list[Any], options: list[Any]) -> None:
    found = task(text, params, options)
    assume(not found.misfits)
    assert task(found.text, params, options).text == found.text


_texts = (st.text(min_size=1) | st.text('${}"\\n\n', min_size=1)).filter(lambda text: text not in ("a", "z"))


@given(_texts, st.sampled_from(["string", "foo"]))
def test_a_text_never_becomes_code(text: str, listed_type: str) -> None:
    """Any text in a name or value is that name or value, and the rest of the script is unchanged."""
    listed = [{"key": "a", "type": listed_type}, {"key": text, "type": listed_type, "default": text}]
    found = task('option params = {a: "x", z: 1}\n\nfrom()', listed, env={"params.a": text})
    values = records(found.text)["params"]
    assert values.pop("z") == "1"
    assert [(key, text_in(value)) for key, value in values.items()] == [("a", text), (text, text)]
    assert found.text.endswith("\n\nfrom()\n")
