"""Violations as data: their codes, marked text, related locations, and fixes."""

import json
import re
from collections.abc import Iterable

import pytest
import yaml

from parser_svc.package import ParseResult, parse
from parser_svc.sources import Encoding, Source
from services.actions.definitions import DefinitionKind
from services.actions.signatures import FUNCTIONS
from services.actions.validation import validate
from services.core.errors import Reason, SourceUndecodable
from services.core.model import Severity, Violation
from services.kinds.diagnostics import DIAGNOSTICS, Code, page
from services.kinds.format.canonical import plain
from services.syntax.yaml_reader import read_documents
from tests.conftest import ROOT
from tests.parser.parsing import document, edited, parse_text
from tests.parser.test_remarks import CANARY, HTTP

HOOK = "---\n" + document("NotificationEndpointSlack", "url: https://example.com", "hook")
DEFINITION = re.compile(f"^kind: ({'|'.join(DefinitionKind)})$", re.MULTILINE)
EXAMPLES = [code for code, row in DIAGNOSTICS.items() if row.wrong and code is not Code.SOURCE_UNDECODABLE]


def found(parsed: ParseResult) -> list[Violation]:
    return [*parsed.violations, *parsed.warnings]


def codes(text: str) -> set[str]:
    if DEFINITION.search(text):
        documents = [plain(root) for root in read_documents("a.yml", text)]
        return {fault.code for faults in validate(documents, FUNCTIONS).faults.values() for fault in faults}
    # Rules need an endpoint of the package, which an example does not repeat.
    return {each.code for each in found(parse_text(text + (HOOK if "kind: NotificationRule" in text else "")))}


def test_every_code_has_a_row_of_its_own_form() -> None:
    assert list(DIAGNOSTICS) == list(Code) == sorted(Code)
    assert all(re.fullmatch("[a-z]+(-[a-z]+)*", code) for code in Code)
    assert all(row.about.endswith(".") for row in DIAGNOSTICS.values())


@pytest.mark.parametrize("code", EXAMPLES)
def test_a_wrong_example_gets_its_code_and_a_right_one_gets_none(code: Code) -> None:
    row = DIAGNOSTICS[code]
    assert codes(row.wrong) == {code}
    assert codes(row.right) == set()
    if DEFINITION.search(row.wrong):
        assert row.severity is Severity.ERROR
        return
    [*_, last] = found(parse_text(row.wrong + (HOOK if "kind: NotificationRule" in row.wrong else "")))
    assert last.severity is row.severity


def test_codes_without_a_wrong_example_are_errors_of_sources() -> None:
    """Except for those that only a plan or a request to run actions gives, and an example that would fill the page."""
    of_requests = {Code.BLUEPRINT_NOT_FOUND, Code.CONFIG_MAP_NOT_FOUND}
    others = {Code.PACKAGE_LACKS_OBJECT, Code.PACKAGE_NOT_RESOLVED, Code.DEFINITION_TOO_LARGE, *of_requests}
    rest = {code for code in Code if code not in EXAMPLES} - others
    assert rest == {"encoding-invalid", "source-too-large", "source-undecodable", "source-unreadable"}
    assert {code.upper().replace("-", "_") for code in rest} <= set(Reason)
    with pytest.raises(SourceUndecodable):
        parse_text(DIAGNOSTICS[Code.SOURCE_UNDECODABLE].wrong)


def test_every_code_is_used() -> None:
    folders = (
        ROOT / "services" / "kinds",
        ROOT / "services" / "packages",
        ROOT / "services" / "actions",
        ROOT / "parser_svc",
    )
    texts = "".join(
        path.read_text() for folder in folders for path in folder.rglob("*.py") if path.name != "diagnostics.py"
    )
    assert {code for code in EXAMPLES if f"Code.{code.name}" not in texts} == set()


def test_the_page_of_diagnostics_is_that_of_the_table() -> None:
    assert (ROOT / "docs" / "diagnostics.md").read_text() == page()


def marked(text: str, violation: Violation) -> str:
    """The part of *text* that a violation marks."""
    assert violation.end.line == violation.location.line
    line = re.split("\n|\r\n?", text)[violation.location.line - 1]
    return line[violation.location.column - 1 : violation.end.column - 1]


ENVELOPE = "kind: Label\napiVersion: influxdata.com/v2alpha1\n"

MARKS = [
    (document("Label", "name: x"), ["x"]),
    (document("Label", "name: 'x'"), ["'x'"]),
    (document("Label", 'colour: "red"'), ["colour"]),
    (document("Label", "'colour': red"), ["'colour'"]),
    (document("Bucket", "retentionRules: [{type: expire}]"), ["{type: expire}"]),
    (document("Bucket", "retentionRules:\n- type: expire"), ["type: expire"]),
    (document("Bucket", "retentionRules: [{type: expire,\n  everySeconds: 1}]"), ["1"]),
    (document("Bucket", "retentionRules: [{type:  \n  expire}]"), ["{type:"]),
    (document("Variable", "type: map\nvalues: [a, b]"), ["[a, b]"]),
    (document("Variable", "type: map\nvalues:\n- a\n- b"), ["- a"]),
    (document("Variable", "type: map\nvalues:"), [""]),
    (document("Variable", "type: map"), ["spec"]),
    (document("Task", "every: 1h\nquery: |\n\n\n"), ["|"]),
    (document("Bucket", "associations: [{kind: Label, name: nope}]"), ["nope"]),
    (document("Bucket", "associations: [{kind: Label}]"), ["{kind: Label}"]),
    (ENVELOPE, ["kind: Label"]),
    (ENVELOPE + "metadata: {}", ["metadata"]),
    (ENVELOPE + "metadata:", ["metadata"]),
    ("kind: &k Labels\n", ["&k Labels"]),
    (document("Label", "é: ü\nname: ü"), ["é"]),
]


@pytest.mark.parametrize(("text", "expected"), MARKS)
def test_a_violation_marks_the_invalid_text_in_one_line(text: str, expected: list[str]) -> None:
    assert [marked(text, violation) for violation in found(parse_text(text))] == expected


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_marks_and_fixes_do_not_depend_on_line_breaks_and_byte_order_marks(line_break: str, mark: str) -> None:
    text = document("Bucket", "retentionRules:\n- type: expire\ncolour: red\ndescriptio: x").replace("\n", line_break)
    violations = found(parse_text(mark + text))
    assert [marked(text, violation) for violation in violations] == ["type: expire", "colour", "descriptio"]
    assert codes(corrected(text, violations[2])) == {"field-missing", "unknown-field"}


def test_json_is_marked_too() -> None:
    text = '[\n  {"kind": "Labels"},\n  {"Kind": "Label", "apiVersion": "x", "other": 1}\n]'
    parsed = parse([Source("a.json", text, Encoding.JSON)], {})
    assert [marked(text, violation) for violation in found(parsed)] == ['"Labels"', '"x"', '"other"']


def test_generated_text_has_no_marks_and_no_fixes() -> None:
    text = document("Label", "descriptio: x") + "---\n" + document("Label")
    violations = found(parse([Source("a", text, Encoding.YAML, generated=True)], {}))
    assert [(each.location.line, each.end.line, each.fixes) for each in violations] == [(0, 0, ())] * 2
    assert [str(each.location) for violation in violations for each in violation.related] == ["a"]


def corrected(text: str, violation: Violation) -> str:
    """*text* after the one fix of *violation*."""
    [fix] = violation.fixes
    [edit] = fix.edits
    return edited(text, edit)


LABEL = document("Label", "name: Good", "{}") + "---\n"
ASSOCIATED = "associations: [{{kind: Label, name: {}}}]"
CHART = "charts: [{kind: MARKDOWN, nots: x}]"

FIXES = [
    (document("Label", "descriptio: x"), "descriptio: x", "description: x"),
    (document("Label", "'descriptio': x"), "'descriptio'", "'description'"),
    (document("Label", "color: 000000"), "000000", '"000000"'),
    (document("Labels", "name: Good"), "kind: Labels", "kind: Label"),
    (document("Dashboard", CHART), "nots", "note"),
    (document("Dashboard", "charts: [{kind: markdwn}]"), "markdwn", "markdown"),
    (document("Task", "every: 1h\nquery: x\nstatus: aktive"), "aktive", "active"),
    (document("Task", "every: 1h\nquery: x\nparams: [{key: a, type: duraton}]"), "duraton", "duration"),
    (document("Label", version="V2alpha1"), "V2", "v2"),
    ("apiversion: influxdata.com/v2alpha1\nkind: Label\nmetadata: {name: x1}", "apiversion", "apiVersion"),
    (LABEL.format("lab") + document("Bucket", ASSOCIATED.format("Good")), "name: Good}", "name: lab}"),
    (LABEL.format('"123"') + document("Bucket", ASSOCIATED.format("Good")), "name: Good}", 'name: "123"}'),
    (LABEL.format("lab") + document("Bucket", "associations: [{kind: label, name: lab}]"), "label,", "Label,"),
    (document("Variable", "type: constnt\nvalues: [a]"), "constnt", "constant"),
]


@pytest.mark.parametrize(("text", "old", "new"), FIXES)
def test_a_fix_writes_the_text_of_the_reason(text: str, old: str, new: str) -> None:
    violation = next(each for each in found(parse_text(text)) if each.fixes)
    assert violation.fixes[0].is_preferred
    better = corrected(text, violation)
    assert better == text.replace(old, new)
    assert violation not in found(parse_text(better))
    assert codes(better) <= codes(text)


def test_a_fix_in_json_keeps_the_quotes() -> None:
    text = '[{"kind": "Labels", "apiVersion": "influxdata.com/v2alpha1", "metadata": {"name": "x1"}}]'
    [violation] = parse([Source("a.json", text, Encoding.JSON)], {}).violations
    assert corrected(text, violation) == text.replace("Labels", "Label")


@pytest.mark.parametrize(
    "text",
    [
        document("Label", "descriptio: x\ndescription: y"),
        document("&k Labels"),
        "kind: Label\nmetadat: {name: x1}\nmetadata:\n",
        document("!!str Labels"),
        document("Label", "description: &d {a: b}\ncolor: *d"),
        LABEL.format("lab") + document("Bucket", ASSOCIATED.format("{envRef: {key: k, default: Good}}")),
        document("NotificationEndpointSlack", f"url: x\ntokn: {CANARY}"),
        document("NotificationEndpointHTTP", HTTP + f"type: none\npasword: {CANARY}"),
    ],
)
def test_there_is_no_fix_if_the_replaced_text_is_uncertain_or_may_be_a_credential(text: str) -> None:
    violations = found(parse_text(text))
    assert violations
    assert [each.fixes for each in violations if each.fixes] == []
    assert CANARY not in str(violations)


def related(violations: Iterable[Violation]) -> list[tuple[str, str]]:
    return [(str(each.location), each.text) for violation in violations for each in violation.related]


def test_a_name_that_is_taken_points_at_the_name_of_the_first_object() -> None:
    text = document("Label", "name: Good", "a1") + "---\n" + document("Label", "name: Good", "b1")
    again = text + "---\n" + document("Label", "name: Else", "a1")
    violations = parse_text(again).violations
    assert related(violations) == [("a.yml:6:9", "root[0] has this name"), ("a.yml:4:9", "root[0] has this name")]
    assert [violation.severity for violation in violations] == [Severity.ERROR] * 2


def test_a_label_by_its_display_name_points_at_the_label() -> None:
    text = document("Bucket", ASSOCIATED.format("Good"), "b0") + "---\n" + document("Label", "name: Good")
    assert related(parse_text(text).violations) == [("a.yml:11:9", "this label is meant")]


def test_objects_have_their_locations_and_display_names() -> None:
    text = "# a comment\n---\n\n" + document("Label", "name: Good", "a1") + "--- {}\n--- # nothing\n"
    text = text.replace("--- {}\n", "---\n# more\n" + document("Bucket", "", "b1"))
    package = parse_text(text).package
    assert package
    assert [str(item.location) for item in package.objects] == ["a.yml:4:1", "a.yml:12:1"]


@pytest.mark.parametrize("space", ["", " ", "\n", "\r\n\t", " \n \n"])
def test_objects_of_json_have_their_locations(space: str) -> None:
    labels = [json.dumps(yaml.safe_load(document("Label", f"name: ü{number}", f"l{number}"))) for number in range(3)]
    text = f"{space}[{space}" + f"{space},{space}".join(labels) + f"{space}]{space}"
    package = parse([Source("a.json", text)], {}).package
    assert package
    lines = text.split("\n")
    for item, label in zip(package.objects, labels, strict=True):
        assert item.location
        assert lines[item.location.line - 1][item.location.column - 1 :].startswith(label)


@pytest.mark.parametrize("name", ["a.json", "a"])
def test_objects_of_generated_text_have_no_lines(name: str) -> None:
    label = document("Label")
    text = json.dumps([yaml.safe_load(label)]) if name == "a.json" else label
    package = parse([Source(name, text, generated=True)], {}).package
    assert package
    assert [str(item.location) for item in package.objects] == [name]
