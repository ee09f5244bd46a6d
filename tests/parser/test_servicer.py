"""ParserService as its callers see it, over a real server."""

import orjson
import pytest
from pkger.model.v1 import object_pb2
from pkger.parser.v1 import parser_pb2

from services.core.errors import RequestInvalid, SourceTooLarge, SourceUndecodable
from tests.parser.conftest import VIEWS, Parser, package_of
from tests.parser.parsing import document

LABEL = document("Label", "name: {envRef: {key: shown, default: Good}}")


def source(text: str, name: str = "", encoding: int = 0) -> parser_pb2.Source:
    return parser_pb2.Source(name=name, text=text, encoding=parser_pb2.Encoding.ValueType(encoding))


def without_locations(package: object_pb2.Package) -> object_pb2.Package:
    """The package without locations."""
    for item in package.objects:
        item.ClearField("location")
    return package


async def test_a_valid_package_comes_back_with_its_summary(parser: Parser) -> None:
    answer = await parser.parse(source(LABEL))
    assert list(answer.violations) == []
    assert list(answer.header.sources) == ["string"]
    [item] = answer.objects
    assert (item.key.kind, item.key.name, item.api_version) == ("Label", "thing", "influxdata.com/v2alpha1")
    assert item.spec_json == '{"color":"","description":"","name":"Good"}'
    assert list(answer.missing_env_refs) == ["shown"]
    assert orjson.loads(answer.summary)["labels"][0]["name"] == "Good"


async def test_without_a_view_the_response_has_only_violations_and_missing_values(parser: Parser) -> None:
    answer = await parser.parse(source(LABEL + "color: red\n"), view=())
    assert (answer.objects, answer.summary, answer.warnings) == ([], "", [])
    assert answer.missing_env_refs == ["shown"]
    assert (answer.header.object_count, dict(answer.header.kind_counts)) == (1, {"Label": 1})
    assert (list(answer.header.sources), answer.header.violation_count, answer.header.warning_count) == (
        ["string"],
        0,
        0,
    )


async def test_a_faulty_package_is_an_answer(parser: Parser) -> None:
    answer = await parser.parse(source(document("Label", "name: x"), name="labels.yml"))
    assert (answer.objects, answer.summary) == ([], "")
    assert (answer.header.object_count, dict(answer.header.kind_counts)) == (0, {})
    assert (list(answer.header.sources), answer.header.violation_count) == (["labels.yml"], 1)
    [violation] = answer.violations
    location = violation.location
    assert (violation.kind, violation.path) == ("Label", "root[0].spec.name")
    assert (location.source, location.line, location.column) == ("labels.yml", 6, 9)
    assert "at least 2 bytes" in violation.reason


async def test_environment_values_arrive_with_their_types(parser: Parser) -> None:
    selected = ", ".join(f"{{envRef: {{key: {key}, default: d}}}}" for key in "abcdef")
    env = {"a": '"text"', "b": "12", "c": "true", "d": "null", "e": "[1.5]", "f": '{"k": "v"}'}
    answer = await parser.parse(source(document("Variable", f"selected: [{selected}]")), env_json=env)
    [item] = answer.objects
    assert [reference.value_json for reference in item.env_references] == [
        '"text"',
        "12",
        "true",
        "null",
        "[1.5]",
        '{"k":"v"}',
    ]
    assert orjson.loads(item.spec_json)["selected"] == ["text", "12", "d", "d", "d", "d"]
    assert list(answer.missing_env_refs) == ["d"]


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 2**53 + 1])
async def test_an_environment_value_keeps_all_digits_of_an_integer(parser: Parser, number: int) -> None:
    given = {"a": str(number), "b": f'{{"k": [{number}]}}'}
    selected = "[{envRef: {key: a}}, {envRef: {key: b}}]"
    answer = await parser.parse(source(document("Variable", f"selected: {selected}")), env_json=given)
    [item] = answer.objects
    assert [orjson.loads(each.value_json) for each in item.env_references] == [number, {"k": [number]}]
    assert orjson.loads(item.spec_json)["selected"][0] == str(number)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("canary", "is no JSON: expecting value at character 1; each value is a JSON text, so a text has quotes"),
        ("", "is no JSON: expecting value at character 1"),
        ("1 2", "is no JSON: extra data at character 3"),
        ("-Infinity", "has a number that is no JSON"),
        ("1e999", "has a number that is no JSON"),
        ('{"canary": 1, "canary": 2}', "has a key twice in one object"),
        ("[" * 100 + "]" * 100, "is nested 100 levels deep or more"),
        ("[" * 100_000, "is nested 100 levels deep or more"),
    ],
    ids=lambda each: each[:20],
)
async def test_an_environment_value_that_is_no_json_is_refused_by_its_key(
    parser: Parser, text: str, problem: str
) -> None:
    with pytest.raises(RequestInvalid) as caught:
        await parser.parse(source(document("Label", "name: label")), env_json={"stage": text})
    assert str(caught.value).startswith(f"env_json.stage: {problem}")
    assert "canary" not in str(caught.value)


async def test_half_a_character_in_an_environment_value_is_replaced(parser: Parser) -> None:
    text = document("Variable", "selected: [{envRef: {key: a}}]")
    [item] = (await parser.parse(source(text), env_json={"a": r'"x\ud800"'})).objects
    assert orjson.loads(item.spec_json)["selected"] == ["x\ufffd"]


async def test_an_empty_package_is_valid_when_asked_for(parser: Parser) -> None:
    assert (await parser.parse(source(""))).violations[0].path == "resources"
    assert (await parser.parse(source(""), allow_empty=True)).header.violation_count == 0


async def test_a_faulty_source_is_an_error(parser: Parser) -> None:
    with pytest.raises(SourceUndecodable) as caught:
        await parser.parse(source("a: [", name="bad.yml"))
    assert caught.value.metadata["source"] == "bad.yml"
    with pytest.raises(SourceUndecodable):
        await parser.parse(source(LABEL, encoding=parser_pb2.ENCODING_JSON))
    with pytest.raises(SourceTooLarge):
        await parser.parse(source("[" * 1000 + "]" * 1000))


async def test_a_faulty_request_is_an_error(parser: Parser) -> None:
    with pytest.raises(RequestInvalid, match="at least one source"):
        await parser.parse()
    with pytest.raises(RequestInvalid, match=r"sources\[0\].content"):
        await parser.parse(parser_pb2.Source(name="x"))
    with pytest.raises(RequestInvalid, match=r"sources\[1\].encoding"):
        await parser.parse(source(LABEL), source(LABEL, encoding=9))
    for unknown in (0, 9):
        with pytest.raises(RequestInvalid, match=r"view\[1\]"):
            await parser.parse(source(LABEL), view=[*VIEWS[:1], parser_pb2.PackageView.ValueType(unknown)])


async def test_warnings_change_nothing_and_can_be_left_out(parser: Parser) -> None:
    answer = await parser.parse(source("kind: Check", name="a.yml"))
    assert (len(answer.objects), answer.header.warning_count) == (0, 1)
    [warning] = answer.warnings
    assert (warning.path, warning.location.source, warning.location.column) == ("root[0].kind", "a.yml", 7)
    assert (await parser.parse(source("kind: Check"), view=VIEWS[:2])).warnings == []


async def test_valid_parts_are_returned_if_they_are_asked_for(parser: Parser) -> None:
    text = "---\n".join([LABEL, "kind: x\n", document("Bucket", "retentionRules: [{}]")])
    answer = await parser.parse(source(text), keep_valid_parts=True)
    assert len(answer.violations) == 3
    assert [item.key.kind for item in answer.objects] == ["Label", "Bucket"]
    assert len(orjson.loads(answer.summary)["buckets"]) == 1


@pytest.mark.parametrize(
    "encoding", [parser_pb2.ENCODING_UNSPECIFIED, parser_pb2.ENCODING_YAML, parser_pb2.ENCODING_JSON]
)
async def test_a_package_is_written_and_read_back(parser: Parser, encoding: parser_pb2.Encoding.ValueType) -> None:
    env = {"shown": '"Other"'}
    package = package_of(await parser.parse(source(LABEL), env_json=env))
    text = await parser.render(package, encoding)
    assert without_locations(package_of(await parser.parse(source(text), env_json=env))) == without_locations(package)


async def test_a_package_that_cannot_be_written_is_an_error(parser: Parser) -> None:
    package = package_of(await parser.parse(source(LABEL)))
    with pytest.raises(RequestInvalid, match="package"):
        await parser.render(None)
    with pytest.raises(RequestInvalid, match="encoding"):
        await parser.render(package, parser_pb2.ENCODING_JSONNET)
    with pytest.raises(RequestInvalid, match="encoding"):
        await parser.render(package, parser_pb2.Encoding.ValueType(9))
    package.objects[0].spec_json = "[]"
    with pytest.raises(RequestInvalid, match="spec_json"):
        await parser.render(package)


async def test_all_kinds_are_listed(parser: Parser) -> None:
    kinds = (await parser.kinds()).kinds
    assert [
        (kind.name, kind.resource_type, kind.unique_display_name, kind.min_display_name_bytes, kind.labelled)
        for kind in kinds
    ] == [
        ("Bucket", "buckets", True, 2, True),
        ("CheckDeadman", "checks", False, 1, True),
        ("CheckThreshold", "checks", False, 1, True),
        ("Dashboard", "dashboards", False, 2, True),
        ("Label", "labels", True, 2, False),
        ("NotificationEndpointHTTP", "notificationEndpoints", True, 1, True),
        ("NotificationEndpointPagerDuty", "notificationEndpoints", True, 1, True),
        ("NotificationEndpointSlack", "notificationEndpoints", True, 1, True),
        ("NotificationRule", "notificationRules", False, 1, True),
        ("Task", "tasks", False, 1, True),
        ("Telegraf", "telegrafs", False, 1, True),
        ("Variable", "variables", True, 1, True),
    ]


async def test_every_kind_comes_with_its_schema(parser: Parser) -> None:
    answer = await parser.kinds()
    assert {orjson.loads(kind.schema_json)["title"] for kind in answer.kinds} == {kind.name for kind in answer.kinds}
    assert set(orjson.loads(answer.schema_json)["$defs"]) == {
        *("Package", "Lifecycle", "Policy"),
        *(kind.name for kind in answer.kinds),
    }
    assert orjson.loads(answer.manifest_schema_json)["title"] == "Package"
    assert orjson.loads(answer.lifecycle_schema_json)["title"] == "Lifecycle"
