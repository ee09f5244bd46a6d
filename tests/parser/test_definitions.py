"""ParseDefinitions: definitions from sources of each encoding, with places of what is wrong."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pkger.parser.v1 import parser_pb2

from parser_svc.definitions import parse_definitions
from parser_svc.sources import Encoding, Source
from services.core.errors import PkgerError, RequestInvalid, SourceUndecodable
from tests.parser.conftest import Parser

BLUEPRINT = """\
apiVersion: pkger/v1
kind: Blueprint
metadata:
  name: backup
spec:
  actions:
    backup:
      phases:
      - name: export
        func: ExportStack
      - {name: check, func: VerifySnapshot, args: {snapshot: "{{ phases.export.output.snapshot }}"}}
"""
ACTION_SET = """\
apiVersion: pkger/v1
kind: ActionSet
metadata: {name: nightly}
spec:
  actions:
  - {name: backup, blueprint: backup, object: {kind: Stack, name: prod}}
"""
BUCKET = "apiVersion: influxdata.com/v2alpha1\nkind: Bucket\nmetadata: {name: b1}\n"


def source(text: str, name: str = "", **fields: object) -> parser_pb2.Source:
    return parser_pb2.Source(name=name, text=text, **fields)  # type: ignore[arg-type]


async def test_definitions_of_several_sources_belong_together(parser: Parser) -> None:
    answer = await parser.definitions(source(ACTION_SET, "set.yml"), source(BLUEPRINT, "b.yml"), source("# nothing\n"))
    assert not answer.violations
    assert [(each.kind, each.name) for each in answer.definitions] == [
        ("ActionSet", "nightly"),
        ("Blueprint", "backup"),
    ]
    assert list(answer.header.sources) == ["set.yml", "b.yml"]
    assert dict(answer.header.kind_counts) == {"ActionSet": 1, "Blueprint": 1}
    document = json.loads(answer.definitions[1].json)
    assert document["spec"]["actions"]["backup"]["phases"][0] == {"func": "ExportStack", "name": "export"}


async def test_a_definition_in_json_is_the_same_as_in_yaml(parser: Parser) -> None:
    written = {
        "apiVersion": "pkger/v1",
        "kind": "Blueprint",
        "metadata": {"name": "backup"},
        "spec": {
            "actions": {
                "backup": {
                    "phases": [
                        {"name": "export", "func": "ExportStack"},
                        {
                            "name": "check",
                            "func": "VerifySnapshot",
                            "args": {"snapshot": "{{ phases.export.output.snapshot }}"},
                        },
                    ]
                }
            }
        },
    }
    from_json = await parser.definitions(source(json.dumps([written])))
    assert list(from_json.definitions) == list((await parser.definitions(source(BLUEPRINT))).definitions)


async def test_violations_have_places_and_fixes(parser: Parser) -> None:
    wrong = BLUEPRINT.replace("ExportStack", "ExportStak").replace("phases.export", "phases.exprt")
    answer = await parser.definitions(source(wrong, "b.yml"))
    assert not answer.definitions
    assert (answer.header.violation_count, dict(answer.header.kind_counts)) == (2, {})
    function, reference = answer.violations
    assert (function.path, function.location.line, function.location.column) == (
        "root[0].spec.actions.backup.phases[0].func",
        10,
        15,
    )
    assert [edit.new_text for fix in function.fixes for edit in fix.edits] == ["ExportStack"]
    assert reference.path == "root[0].spec.actions.backup.phases[1].args.snapshot"
    assert (reference.location.line, reference.kind) == (11, "Blueprint")
    assert "did you mean" in reference.reason


async def test_the_positions_of_documents_count_over_all_sources(parser: Parser) -> None:
    answer = await parser.definitions(
        source(BLUEPRINT, "b.yml"), source(ACTION_SET.replace("kind: Stack", "kind: Stuck"))
    )
    [violation] = answer.violations
    assert violation.path == "root[1].spec.actions[0].object.kind"


async def test_an_action_set_may_name_a_blueprint_of_no_source(parser: Parser) -> None:
    [action_set] = (await parser.definitions(source(ACTION_SET))).definitions
    assert json.loads(action_set.json)["spec"]["actions"][0]["blueprint"] == "backup"
    [violation] = (await parser.definitions(source(ACTION_SET.replace("blueprint: backup", "blueprint: B")))).violations
    assert violation.path == "root[0].spec.actions[0].blueprint"


async def test_a_source_has_definitions_or_objects(parser: Parser) -> None:
    [violation] = (await parser.definitions(source(f"{BLUEPRINT}---\n{BUCKET}"))).violations
    assert (violation.path, violation.code) == ("root[1].kind", "unknown-kind")
    assert violation.reason == (
        "a Bucket is an object of a package; a source has definitions or objects of a package, not both"
    )
    [violation] = (await parser.parse(source(f"{BUCKET}---\n{BLUEPRINT}"))).violations
    assert violation.reason == "a Blueprint is a definition; a source has definitions or objects of a package, not both"


@pytest.mark.parametrize("text", ["spec: [", "[1]", "- a\n", "just text\n", "spec: text\nkind: Blueprint\n"])
async def test_what_cannot_be_read_is_an_error(parser: Parser, text: str) -> None:
    with pytest.raises(SourceUndecodable):
        await parser.definitions(source(text))


async def test_a_request_needs_a_source(parser: Parser) -> None:
    with pytest.raises(RequestInvalid):
        await parser.definitions()


async def test_a_number_that_is_not_finite_is_refused_with_all_other_violations(parser: Parser) -> None:
    phases = "[{name: s, func: Sleep, args: {duration: .inf}}]"
    spec = f"{{actions: {{a: {{phases: {phases}}}}}}}"
    text = f"{{apiVersion: pkger/v1, kind: Blueprint, metadata: {{name: B}}, spec: {spec}}}"

    violations = (await parser.definitions(source(text))).violations

    assert [(each.path, each.code) for each in violations] == [
        ("root[0].metadata.name", "name-invalid"),
        ("root[0].spec.actions.a.phases[0].args.duration", "type-invalid"),
    ]


WORDS = [
    *("{{", "}}", "{{ phases.a.output.b }}", "- ", ": ", "\n  ", "[", "]", "{", "}", '"', "*a", "&a ", "---\n", "null"),
    *("1e400", "~", "\t", "if", "args", "retry", "kind", "name", "deferPhase", "from", "Sleep", "\U0001f6f0", "\x01"),
]


@st.composite
def nearly(draw: st.DrawFn) -> str:
    """The text of a definition with parts that are replaced, removed or repeated."""
    text = draw(st.sampled_from([BLUEPRINT, ACTION_SET, f"{BLUEPRINT}---\n{ACTION_SET}"]))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.sampled_from([0, 1, 3, 12])))
        new = draw(st.sampled_from(WORDS) | st.just("") | st.just(2 * text[start:end]))
        text = text[:start] + new + text[end:]
    return text


@given(nearly(), st.sampled_from([None, Encoding.YAML, Encoding.JSON]))
def test_any_text_has_definitions_violations_or_an_error_that_names_it(text: str, encoding: Encoding | None) -> None:
    try:
        parsed = parse_definitions([Source("a.yml", text, encoding) if encoding else Source("a.yml", text)])
    except PkgerError as error:
        problem = str(error)
        assert problem.startswith("a.yml")
    else:
        assert not (parsed.definitions and parsed.violations)
        assert all(each.location and each.reason for each in parsed.violations)
