"""Values of parameters by type, with a real parser: converted exactly, or refused with their location."""

import json
from typing import Any

import orjson
import pytest
from pkger.parser.v1 import parser_pb2

from services.rpc.parsed_package import ParsedPackage
from tests.parser.conftest import Parser
from tests.parser.parameter_values import CONVERTED, OTHERS, SCRIPT, TEXTS, by_name, expected, key, task, written

VALUES = by_name((*TEXTS, *OTHERS))
YAML, JSON = parser_pb2.ENCODING_YAML, parser_pb2.ENCODING_JSON


def source(documents: list[dict[str, Any]], encoding: int) -> parser_pb2.Source:
    """JSON documents, which are YAML as well."""
    texts = [json.dumps(document) for document in documents]
    text = f"[{', '.join(texts)}]" if encoding == JSON else "".join(f"--- {text}\n" for text in texts)
    return parser_pb2.Source(name="a", text=text, encoding=parser_pb2.Encoding.ValueType(encoding))


def queries(answer: ParsedPackage) -> dict[str, str]:
    """The parameter of each task in the response."""
    tasks = orjson.loads(answer.summary)["summaryTask"]
    return {found["templateMetaName"]: written(found["query"]) for found in tasks}


def env(values: dict[str, Any]) -> dict[str, str]:
    return {key(name): json.dumps(value) for name, value in values.items()}


def usable(value_type: str) -> dict[str, Any]:
    return {name: value for name, value in VALUES.items() if expected(value_type, value) is not None}


def unusable(value_type: str) -> dict[str, Any]:
    return {name: value for name, value in VALUES.items() if expected(value_type, value) is None}


def test_the_table_knows_its_values() -> None:
    known = {json.dumps(value) for value in VALUES.values()}
    assert {json.dumps(value) for rows in CONVERTED.values() for value, _ in rows} <= known


@pytest.mark.parametrize("encoding", [YAML, JSON])
@pytest.mark.parametrize("value_type", SCRIPT)
async def test_a_default_that_fits_is_converted(parser: Parser, value_type: str, encoding: int) -> None:
    values = usable(value_type)
    documents = [task(name, value_type, default=value) for name, value in values.items()]
    answer = await parser.parse(source(documents, encoding))
    assert list(answer.violations) == []
    assert queries(answer) == {name: expected(value_type, value) for name, value in values.items()}


@pytest.mark.parametrize("encoding", [YAML, JSON])
@pytest.mark.parametrize("value_type", SCRIPT)
async def test_a_default_that_does_not_fit_is_refused_at_its_line(
    parser: Parser, value_type: str, encoding: int
) -> None:
    documents = [task(name, value_type, default=value) for name, value in unusable(value_type).items()]
    sent = source(documents, encoding)
    answer = await parser.parse(sent)
    assert answer.objects == []
    assert [violation.path for violation in answer.violations] == [
        f"root[{number}].spec.params[0].default" for number, _ in enumerate(documents)
    ]
    lines = sent.text.splitlines()
    for violation, document in zip(answer.violations, documents, strict=True):
        assert (violation.kind, violation.location.source) == ("Task", "a")
        begins = lines[violation.location.line - 1][violation.location.column - 1 :]
        assert begins.startswith(json.dumps(document["spec"]["params"][0]["default"]))


@pytest.mark.parametrize("value_type", SCRIPT)
async def test_a_supplied_value_that_fits_is_converted_and_shown_as_given(parser: Parser, value_type: str) -> None:
    values = usable(value_type)
    documents = [task(name, value_type) for name in values]
    answer = await parser.parse(source(documents, YAML), env_json=env(values))
    assert list(answer.violations) == []
    assert queries(answer) == {name: expected(value_type, value) for name, value in values.items()}
    shown = {found["templateMetaName"]: found["envReferences"] for found in _tasks(answer)}
    assert {name: found[0]["value"] for name, found in shown.items()} == values
    assert list(answer.missing_env_refs) == []


def _tasks(answer: ParsedPackage) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = orjson.loads(answer.summary)["summaryTask"]
    return found


@pytest.mark.parametrize("value_type", SCRIPT)
async def test_a_supplied_value_that_does_not_fit_is_refused_with_its_key(parser: Parser, value_type: str) -> None:
    values = unusable(value_type)
    documents = [task(name, value_type) for name in values]
    answer = await parser.parse(source(documents, YAML), env_json=env(values))
    assert answer.objects == []
    assert [violation.path for violation in answer.violations] == [
        f"root[{number}].spec.params.x" for number, _ in enumerate(documents)
    ]
    for name, violation in zip(values, answer.violations, strict=True):
        assert repr(key(name)) in violation.reason
        assert violation.location.line > 0


@pytest.mark.parametrize("value_type", SCRIPT)
async def test_null_is_no_value_in_any_way(parser: Parser, value_type: str) -> None:
    given = {key("a"): "null"}
    documents = [task("a", value_type), task("b", value_type, default=None)]
    answer = await parser.parse(source(documents, YAML), env_json=given)
    assert list(answer.violations) == []
    assert queries(answer) == dict.fromkeys(("a", "b"), SCRIPT[value_type])
    assert list(answer.missing_env_refs) == [key("a"), key("b")]


@pytest.mark.parametrize(
    ("value_type", "default", "flux"),
    [
        ("float", "18446744073709551615", "18446744073709552000.0"),
        ("float", ".nan", None),
        ("float", ".inf", None),
        ("float", "1e400", None),
        ("int", "0x1F", "31"),
        ("int", "1e3", "1000"),
        ("int", "9007199254740993", "9007199254740993"),
        ("int", "18446744073709551615", None),
        ("int", "12345678901234567890123", None),
        ("string", "18446744073709551615", '"18446744073709551615"'),
        ("string", ".nan", None),
        ("string", "2021-02-03", None),
        ("time", "2021-2-3", "2021-02-03T00:00:00Z"),
        ("time", "2021-02-03 04:05:06.7", "2021-02-03T04:05:06.7Z"),
        ("duration", "2021-02-03", None),
        ("bool", "yes", None),
        ("bool", "~", "true"),
    ],
)
async def test_scalars_that_only_yaml_has(parser: Parser, value_type: str, default: str, flux: str | None) -> None:
    text = json.dumps(task("a", value_type, default="HERE")).replace('"HERE"', default)
    answer = await parser.parse(parser_pb2.Source(text=text))
    paths = [violation.path for violation in answer.violations]
    assert (paths or queries(answer)["a"]) == (flux or ["root[0].spec.params[0].default"])


@pytest.mark.parametrize("encoding", [YAML, JSON])
async def test_no_source_loses_digits_of_an_integer(parser: Parser, encoding: int) -> None:
    answer = await parser.parse(source([task("a", "int", default=2**53 + 1)], encoding))
    assert queries(answer) == {"a": "9007199254740993"}


async def test_a_supplied_integer_keeps_all_digits(parser: Parser) -> None:
    answer = await parser.parse(source([task("a", "int")], YAML), env_json=env({"a": 2**63 - 1}))
    assert queries(answer) == {"a": "9223372036854775807"}


@pytest.mark.parametrize(
    ("script", "value_type"),
    [
        ("1h", "int"),
        ("1h", "string"),
        ("-1h", "time"),
        ("5", "bool"),
        ("5", "duration"),
        ("1.5", "int"),
        ('"s"', "float"),
    ],
)
async def test_a_type_that_the_value_of_the_script_does_not_fit_is_refused(
    parser: Parser, script: str, value_type: str
) -> None:
    document = task("a", "int", type=value_type)
    document["spec"]["query"] = f"option params = {{x: {script}}}"
    sent = source([document], YAML)
    [violation] = (await parser.parse(sent)).violations
    assert violation.path == "root[0].spec.params[0].type"
    assert sent.text[violation.location.column - 1 :].startswith(json.dumps(value_type))
    # A default of the right type makes the package valid.
    document["spec"]["params"][0]["default"] = CONVERTED[value_type][0][0]
    assert list((await parser.parse(source([document], YAML))).violations) == []


DASHBOARD = """
apiVersion: influxdata.com/v2alpha1
kind: Dashboard
metadata: {name: dash}
spec:
  charts:
    - &chart
      kind: table
      width: 3
      height: 2
      queries:
        - query: ""
        - query: |
            option params = {n: 1, t: 1h}
          params:
            - {key: n, default: DEFAULT}
    - *chart
"""


async def test_parameters_of_charts_are_held_to_their_types(parser: Parser) -> None:
    answer = await parser.parse(parser_pb2.Source(text=DASHBOARD.replace("DEFAULT", "abc")))
    assert [(found.path, found.location.line, found.location.column) for found in answer.violations] == [
        ("root[0].spec.charts[0].queries[1].params[0].default", 16, 33),
        ("root[0].spec.charts[1].queries[1].params[0].default", 17, 7),
    ]
    right = parser_pb2.Source(text=DASHBOARD.replace("DEFAULT", "'7'"))
    given = {
        f"dashboards[dash].spec.charts[{chart}].queries[1].params.{name}": json.dumps(value)
        for chart, name, value in ((0, "n", "x"), (1, "t", "5"))
    }
    answer = await parser.parse(right, env_json=given)
    # Keys number the charts of the file, fields those of the spec (docs/reference/package-format.md, "Parameter keys").
    assert [found.path for found in answer.violations] == [
        "root[0].spec.charts[0].queries[0].params.n",
        "root[0].spec.charts[1].queries[0].params.t",
    ]
    for found, name in zip(answer.violations, given, strict=True):
        assert repr(name) in found.reason
    answer = await parser.parse(right, env_json={name: '"8"' for name in given if name.endswith("n")})
    shown = orjson.loads(answer.summary)["dashboards"][0]["charts"]
    assert [chart["properties"]["queries"][0]["text"] for chart in shown] == [
        "option params = {n: 8, t: 1h0m0s}\n",
        "option params = {n: 7, t: 1h0m0s}\n",
    ]


async def test_options_of_tasks_are_held_to_their_types(parser: Parser) -> None:
    document = task("a", "int")
    document["spec"]["query"] = 'option task = {name: "n", every: 1h}'
    given = {f"tasks[a].spec.task.{name}": "5" for name in ("name", "every")}
    for version in ("v2alpha1", "v2alpha2"):
        sent = source([{**document, "apiVersion": f"influxdata.com/{version}"}], YAML)
        answer = await parser.parse(sent, env_json=given)
        assert [found.path for found in answer.violations] == ["root[0].spec.task.every"]
    document["spec"]["task"] = [{"key": "every", "default": 5}]
    answer = await parser.parse(source([document], YAML))
    assert [found.path for found in answer.violations] == ["root[0].spec.task[0].default"]
    answer = await parser.parse(source([{**document, "apiVersion": "influxdata.com/v2alpha2"}], YAML))
    assert [found.path for found in answer.violations] == ["root[0].task"]
