"""Rules of definitions: what is refused, where, and in which words."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from services.actions.definitions import Blueprint
from services.actions.signatures import (
    FUNCTIONS,
    Argument,
    ArgumentType,
    Effect,
    Excludes,
    Needs,
    Recovery,
    Signature,
    SignatureTable,
)
from services.actions.validation import validate
from services.kinds.diagnostics import Code
from services.kinds.format.fields import THE_KEY, Elsewhere, Rewrite
from tests.actions.documents import ACTION_SET, BLUEPRINT, CONFIG_MAP, REMOVED, SUCCESSOR, changed, reasons, sound
from tests.actions.functions import LATER_FUNCTIONS

RULE_COUNTS = {"E": 4, "B": 7, "R": 3, "O": 3, "A": 5, "X": 2, "T": 11, "S": 8}
MARKS = {f"{letter}{number + 1}" for letter, count in RULE_COUNTS.items() for number in range(count)} | {"F3"}
"""The marks of all rules, as the recorded cases name them."""

DOCUMENTS = {"Blueprint": BLUEPRINT, "ActionSet": ACTION_SET, "Successor": SUCCESSOR, "ConfigMap": CONFIG_MAP}


class Row(NamedTuple):
    """A change of one field, and the faults that it makes."""

    mark: str
    document: str
    path: str
    value: Any
    faults: list[str]


def rows() -> list[Row]:
    text = (Path(__file__).parent / "faults.txt").read_text(encoding="utf-8")
    blocks = re.findall(r"^(\w+) (\w+): (\S+) (?:= (.+)|removed)\n((?:    .+\n)*)", text, re.MULTILINE)
    assert len(blocks) == len(re.findall(r"^\w", text, re.MULTILINE))
    return [
        Row(
            mark,
            document,
            path,
            json.loads(value) if value else REMOVED,
            re.findall("^    (.+)$", faults, re.MULTILINE),
        )
        for mark, document, path, value, faults in blocks
    ]


def faulty(document: dict[str, Any], *others: Any) -> list[str]:
    """The faults of the last of several documents, without its position."""
    return [text.partition(".")[2] for text in reasons(*others, document) if text.startswith(f"root[{len(others)}].")]


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row.mark}-{row.document}-{row.path}")
def test_a_changed_field_has_the_faults_of_the_table(row: Row) -> None:
    document = changed(DOCUMENTS[row.document], row.path, row.value)
    others = [] if row.document == "Blueprint" else [BLUEPRINT]
    assert faulty(document, *others) == row.faults


def test_the_table_has_every_rule() -> None:
    assert {row.mark for row in rows() if row.faults} == MARKS


def test_sound_documents_have_no_faults_in_any_order() -> None:
    assert reasons(BLUEPRINT, ACTION_SET, SUCCESSOR, CONFIG_MAP) == []
    assert reasons(ACTION_SET, CONFIG_MAP, SUCCESSOR, SUCCESSOR, BLUEPRINT) == []


def nap(number: int) -> dict[str, Any]:
    return {"name": f"nap{number}", "func": "Sleep", "args": {"duration": "1s"}}


def test_bounds() -> None:
    phases = "spec.actions.restore.phases"
    assert faulty(changed(BLUEPRINT, phases, [nap(number) for number in range(64)])) == []
    too_many = changed(BLUEPRINT, phases, [nap(number) for number in range(65)])
    assert faulty(too_many) == [f"{phases}: has 65 phases; at most 64 are accepted"]
    [run, _] = ACTION_SET["spec"]["actions"]
    assert faulty(changed(ACTION_SET, "spec.actions", [run] * 100), BLUEPRINT) == []
    too_many = changed(ACTION_SET, "spec.actions", [run] * 101)
    assert faulty(too_many, BLUEPRINT) == ["spec.actions: has 101 actions; at most 100 are accepted"]
    text = "spec.actions[1].artifacts.stackBackup.keyValue.snapshot"
    assert faulty(changed(ACTION_SET, text, "é" * 8_192), BLUEPRINT) == []
    too_large = changed(ACTION_SET, text, "é" * 8_193)
    assert faulty(too_large, BLUEPRINT) == [f"{text}: has 16,386 bytes; at most 16,384 are accepted"]
    items = "spec.actions.dump.phases[2].args.items"
    assert faulty(changed(BLUEPRINT, items, [0] * 1_000)) == []
    too_many = changed(BLUEPRINT, items, [0] * 1_001)
    assert faulty(too_many) == [f"{items}: the number of items must be from 0 to 1,000, and is 1,001"]


def test_size_and_depth_of_a_definition_are_bounded() -> None:
    data = "spec.data.stack"
    rest = len(json.dumps(changed(CONFIG_MAP, data, ""), separators=(",", ":")))
    assert faulty(changed(CONFIG_MAP, data, "x" * (256 * 1024 - rest))) == []
    too_large = faulty(changed(CONFIG_MAP, data, "x" * (256 * 1024 - rest + 1)))
    assert too_large == ["spec: the definition has 262,145 bytes as JSON; at most 262,144 are accepted"]
    deep: Any = "x"
    for _ in range(300):
        deep = [deep]
    too_deep = faulty(changed(BLUEPRINT, "spec.actions.backup.phases[0].args.set", {"/a": deep}))
    assert too_deep == ["spec: the definition has more than 254 levels of lists and mappings; write it with fewer"]


@pytest.mark.parametrize("document", [None, 5, "text", [], [BLUEPRINT]])
def test_a_document_that_is_no_mapping_has_no_kind(document: Any) -> None:
    [fault] = faulty(document, BLUEPRINT)
    assert fault.startswith("kind: a definition is a mapping with apiVersion, kind, metadata, spec, found ")


def test_all_faults_are_found_at_once_and_each_place_has_one() -> None:
    document = changed(BLUEPRINT, "spec.actions.backup.kind", "Pod")
    document = changed(document, "spec.actions.backup.phases[0].func", "Nope")
    document = changed(document, "spec.actions.backup.phases[1].timeout", "-1s")
    document = changed(document, "spec.actions.backup.phases[2].args", {"snap": "{{ oops }}"})
    document = changed(document, "spec.actions.dump.phases[0].args.command[1]", "{{ secrets.a.b + options.c }}")
    assert [fault.partition(":")[0].removeprefix("spec.actions.") for fault in faulty(document)] == [
        "backup.kind",
        "backup.phases[0].func",
        "backup.phases[1].timeout",
        "backup.phases[2].args.snap",
        "backup.phases[2].args.snapshot",
        "dump.phases[0].args.command[1]",
    ]


def test_a_fault_marks_the_key_that_is_wrong_and_has_the_correction() -> None:
    path = "spec.actions.backup.phases[1]"
    phase = {"name": "export", "func": "ExportStak", "timout": "1m", "args": {"a b": 1}}
    [faults] = validate([changed(BLUEPRINT, path, phase)], LATER_FUNCTIONS).faults.values()
    within = ("spec", "actions", "backup", "phases", 1)
    assert [(fault.code, fault.path, fault.pointer, fault.rewrite) for fault in faults] == [
        (
            Code.DEFINITION_FIELD_UNKNOWN,
            f"{path}.timout",
            (*within, "timout", THE_KEY),
            Rewrite("timeout"),
        ),
        (Code.FUNCTION_NOT_FOUND, f"{path}.func", (*within, "func"), Rewrite("ExportStack")),
    ]


@pytest.mark.parametrize(
    ("path", "wrong", "right"),
    [
        ("apiVersion", "pkger/v2", "pkger/v1"),
        ("kind", "blueprint", "Blueprint"),
        ("spec.actions.backup.kind", "Stak", "Stack"),
        ("spec.actions.backup.options.mode.default", "ful", "full"),
        ("spec.actions.dump.phases[2].args.func", "HttpRequest", "HTTPRequest"),
        (
            "spec.actions.backup.phases[2].args.snapshot",
            "exprt: {{ phases['exprt'].output.snapshot }} exprt",
            "exprt: {{ phases['export'].output.snapshot }} exprt",
        ),
        (
            "spec.actions.backup.phases[2].args.snapshot",
            "{{ phases.export.outputs.snapshot }}",
            "{{ phases.export.output.snapshot }}",
        ),
        ("spec.actions.restore.phases[1].args.stack", "{{ options.reasons }}", "{{ options.reason }}"),
    ],
)
def test_a_near_word_is_the_correction(path: str, wrong: str, right: str) -> None:
    document = changed(BLUEPRINT, path, wrong)
    [[fault]] = validate([document], LATER_FUNCTIONS).faults.values()
    assert fault.rewrite == Rewrite(right)
    assert reasons(changed(document, path, right)) == []


def test_of_many_names_none_is_suggested_and_the_first_are_listed() -> None:
    stack = ("spec.actions.backup.phases[1].args", {"stack": "{{ options.optio0 }}"})

    def reason(count: int) -> str:
        options: dict[str, Any] = {f"option{number}": {} for number in range(count)} | {"tag": {}, "mode": {}}
        [fault] = faulty(changed(changed(BLUEPRINT, "spec.actions.backup.options", options), *stack))
        return fault

    assert reason(198).endswith('; did you mean "option0"?')
    listed = ", ".join(f"option{number}" for number in range(20))
    assert reason(199).endswith(f'no option "optio0" in options; it declares {listed}, …')


def test_a_number_in_place_of_a_text_is_to_be_quoted() -> None:
    for path in ("spec.description", "spec.actions.backup.phases[2].args.snapshot"):
        [[fault]] = validate([changed(BLUEPRINT, path, 5)], LATER_FUNCTIONS).faults.values()
        assert fault.rewrite == Rewrite(None)


def test_a_key_that_is_no_word_stands_in_brackets() -> None:
    path = "spec.actions.backup.phases[0].args.set"
    fault = "column 4: there is no phase"
    document = changed(BLUEPRINT, path, {"/status": "{{ phases.x.output }}", 'a"b': "{{ phases.x.output }}"})
    assert [text.partition(fault)[0] for text in faulty(document)] == [f'{path}["/status"]: ', f'{path}["a\\"b"]: ']


def test_a_name_is_taken_among_the_definitions_of_its_kind() -> None:
    config_map = changed(CONFIG_MAP, "metadata.name", "stack-backup")
    assert reasons(BLUEPRINT, config_map) == []
    [[fault]] = validate([BLUEPRINT, config_map, BLUEPRINT], LATER_FUNCTIONS).faults.values()
    assert (fault.code, fault.path, fault.first) == (Code.NAME_TAKEN, "metadata.name", 0)
    assert fault.reason == 'choose another name: "stack-backup" is the name of the Blueprint root[0]'
    assert fault.related == (Elsewhere(0, ("metadata", "name"), "root[0] has this name"),)
    assert reasons(BLUEPRINT, ACTION_SET, ACTION_SET) == [
        'root[2].metadata.name: choose another name: "nightly" is the name of the ActionSet root[1]'
    ]


def test_a_repeated_name_points_at_the_first_one() -> None:
    path = "spec.actions.restore.secretNames"
    [[fault]] = validate([changed(BLUEPRINT, path, ["slack", "slack"])], LATER_FUNCTIONS).faults.values()
    within = ("spec", "actions", "restore", "secretNames")
    assert (fault.pointer, fault.related) == ((*within, 1), (Elsewhere(0, (*within, 0), "it is here, too"),))


def blueprint() -> Blueprint:
    [definition] = sound(BLUEPRINT).definitions
    assert isinstance(definition, Blueprint)
    return definition


def test_an_action_set_may_name_a_stored_blueprint() -> None:
    stored = {"stack-backup": blueprint()}
    assert reasons(ACTION_SET, stored=stored) == []
    wrong = changed(ACTION_SET, "spec.actions[0].options.tga", "x")
    assert reasons(wrong, stored=stored) == [
        'root[0].spec.actions[0].options.tga: the action declares no option "tga"; it declares tag, mode'
    ]
    unknown = changed(ACTION_SET, "spec.actions[0].blueprint", "stack-backups")
    assert len(reasons(unknown)) == 2
    assert reasons(unknown, stored=stored) == [
        'root[0].spec.actions[0].blueprint: there is no blueprint "stack-backups", neither in the request nor stored; '
        'did you mean "stack-backup"?'
    ]


def test_a_blueprint_that_may_be_stored_is_checked_by_its_form_only() -> None:
    assert reasons(ACTION_SET, stored=None) == []
    wrong = changed(changed(ACTION_SET, "spec.actions[1].options", [1]), "spec.actions[0].blueprint", "Stack_Backup")
    assert reasons(wrong, stored=None) == [
        "root[0].spec.actions[0].blueprint: the name of a blueprint must be 1 to 63 lower-case letters, digits or -, "
        'with a letter or digit first and last; found the text "Stack_Backup"',
        "root[0].spec.actions[1].options: must be a mapping with the name of an option as each key, found a list",
    ]
    unknown = changed(SUCCESSOR, "spec.overrides.blueprint", "other")
    assert reasons(unknown, stored=None) == []


def test_a_blueprint_of_the_source_is_checked_although_others_may_be_stored() -> None:
    wrong = changed(ACTION_SET, "spec.actions[0].options.tga", "x")
    assert reasons(BLUEPRINT, wrong, stored=None) == [
        'root[1].spec.actions[0].options.tga: the action declares no option "tga"; it declares tag, mode'
    ]


def test_a_stored_blueprint_that_was_not_read_is_there() -> None:
    stored = {"stack-backup": None, "others": None}
    assert reasons(ACTION_SET, stored=stored) == []
    unknown = changed(ACTION_SET, "spec.actions[0].blueprint", "other")
    assert reasons(unknown, stored=stored) == [
        'root[0].spec.actions[0].blueprint: there is no blueprint "other", neither in the request nor stored; '
        'did you mean "others"?'
    ]


def test_a_blueprint_of_the_source_replaces_the_stored_one() -> None:
    other = changed(BLUEPRINT, "spec.actions.backup.options.size", {"required": True})
    assert reasons(other, ACTION_SET, stored={"stack-backup": blueprint()}) == [
        'root[1].spec.actions[0].options.size: the action needs option "size"'
    ]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "Stack_Backup"),
        ("spec", REMOVED),
        ("spec", []),
        ("spec.actions", []),
        ("spec.actions.backup", []),
        ("spec.actions.backup.kind", "Pod"),
        ("spec.actions.backup.options", []),
        ("spec.actions.restore.secretNames", 5),
        ("spec.actions.restore.inputArtifactNames", {}),
        ("spec.actions.backup.phases", "none"),
        ("spec.actions.backup.phases[1]", "none"),
        ("spec.actions.backup.phases[0].name", REMOVED),
        ("spec.actions.backup.phases[0].func", REMOVED),
        ("spec.actions.backup.phases[0].func", "SetField"),
        ("spec.actions.backup.phases[1].version", "v7"),
    ],
)
def test_what_cannot_be_read_is_reported_once_and_not_where_it_is_used(path: str, value: Any) -> None:
    document = changed(BLUEPRINT, path, value)
    action_set = changed(ACTION_SET, "spec.actions[0].blueprint", document["metadata"]["name"])
    action_set = changed(action_set, "spec.actions[1].blueprint", document["metadata"]["name"])
    assert [text.partition(": ")[0] for text in reasons(document, action_set)] == [f"root[0].{path}"]


def test_outputs_that_an_expression_names_may_have_any_name() -> None:
    outputs = "spec.actions.dump.phases[0].args.outputs"
    key = ("spec.actions.dump.phases[1].args.key", "{{ phases.dump.output.other }}")
    assert len(faulty(changed(BLUEPRINT, *key))) == 1
    for value in ("{{ parseJson(run.name) }}", ["{{ run.name }}"]):
        assert faulty(changed(changed(BLUEPRINT, outputs, value), *key)) == []


def test_no_reason_has_the_text_of_a_secret() -> None:
    canary = "hunter2"
    within = "spec.actions[1].secrets.slack"
    documents = [
        changed(ACTION_SET, path, value)
        for path in (within, f"{within}.token", f"{within}.token.env", f"{within}.token.file", f"{within}.token.given")
        for value in (canary, f"/{canary} ", [canary], {"key": canary}, {"env": f"{canary} "}, {"file": [canary]})
    ]
    documents.append(changed(BLUEPRINT, "spec.actions.restore.phases[1].args.secrets", canary))
    documents.append(changed(BLUEPRINT, "spec.actions.dump.phases[0].args.env.PGPASSWORD", [canary]))
    texts = [faulty(document, BLUEPRINT) for document in documents]
    # Only a word can be the name of a variable.
    assert [document for document, of_one in zip(documents, texts, strict=True) if not of_one] == [
        changed(ACTION_SET, f"{within}.token.env", canary)
    ]
    assert canary not in str(texts)


def test_a_phase_without_a_version_has_the_newest() -> None:
    def signature(version: int, argument: str) -> Signature:
        arguments = (Argument(argument, ArgumentType.STRING),)
        return Signature("Copy", version, arguments, (argument,), Effect.NONE, Recovery.RERUN)

    table = SignatureTable(signature(version, f"of{version}") for version in (10, 2, 9))
    assert (table.names, table.versions("Copy"), table.versions("Move")) == (("Copy",), (2, 9, 10), ())
    phases = [
        {"name": "a", "func": "Copy", "args": {"of10": "x"}},
        {"name": "b", "func": "Copy", "version": "v9", "args": {"of9": "{{ phases.a.output.of10 }}"}},
        {"name": "c", "func": "Copy", "version": "v2", "args": {"of9": "x"}},
        {"name": "d", "func": "Copy", "version": "v3"},
    ]
    document = {**BLUEPRINT, "spec": {"actions": {"copy": {"phases": phases}}}}
    within = "root[0].spec.actions.copy.phases"
    assert reasons(document, table=table) == [
        f"{within}[3].version: Copy has no version v3; versions: v2, v9, v10",
        f'{within}[2].args.of9: Copy has no argument "of9"; arguments: of2',
    ]


def test_arguments_that_need_or_exclude_each_other() -> None:
    arguments = tuple(Argument(name, ArgumentType.STRING) for name in "abc")
    rules = (Needs("a", ("b",)), Excludes("a", ("c",)))
    table = SignatureTable([Signature("Copy", 1, arguments, (), Effect.NONE, Recovery.RERUN, rules)])

    def faults(**passed: str | None) -> list[str]:
        phases = [{"name": "copy", "func": "Copy", "args": passed}]
        document = {**BLUEPRINT, "spec": {"actions": {"copy": {"phases": phases}}}}
        return [text.partition("args.")[2] for text in reasons(document, table=table)]

    assert faults() == faults(c="x") == faults(a="x", b="x") == faults(a="x", b="x", c=None) == []
    assert faults(a="x") == ["b: a needs b, too"]
    assert faults(a="x", b="x", c="x") == ["c: does not go with a; remove one of them"]


def test_the_functions_of_the_product() -> None:
    document = {
        **BLUEPRINT,
        "spec": {
            "actions": {
                "all": {
                    "phases": [
                        {"name": "a", "func": "ExportStack", "args": {"partial": True}},
                        {"name": "b", "func": "RestoreStack", "args": {"snapshot": "{{ phases.a.output.snapshot }}"}},
                        {"name": "c", "func": "VerifySnapshot", "args": {"snapshot": "{{ phases.b.output.created }}"}},
                        {"name": "d", "func": "DeleteSnapshot", "args": {"snapshot": "{{ phases.c.output.parts }}"}},
                        {"name": "e", "func": "Sleep", "args": {"duration": "{{ phases.d.output.deleted }}"}},
                    ]
                }
            }
        },
    }
    assert reasons(document, table=FUNCTIONS) == []
    later = changed(document, "spec.actions.all.phases[0].args.data", True)
    assert reasons(later, table=FUNCTIONS) == [
        'root[0].spec.actions.all.phases[0].args.data: ExportStack has no argument "data"; arguments: stack, partial'
    ]
    unknown = changed(document, "spec.actions.all.phases[4].func", "KubeTask")
    assert reasons(unknown, table=FUNCTIONS) == [
        'root[0].spec.actions.all.phases[4].func: there is no function "KubeTask"; functions: DeleteSnapshot, '
        "ExportStack, RestoreStack, Sleep, VerifySnapshot (pkger functions)"
    ]


def test_an_empty_literal_names_no_stack() -> None:
    phase = {"name": "p", "func": "ExportStack", "args": {"stack": ""}}
    document = {
        "apiVersion": "pkger/v1",
        "kind": "Blueprint",
        "metadata": {"name": "b"},
        "spec": {"actions": {"a": {"phases": [phase]}}},
    }

    [fault] = validate([document], FUNCTIONS).faults[0]

    assert (fault.path, fault.reason) == (
        "spec.actions.a.phases[0].args.stack",
        "is empty; leave it out for the stack of the object",
    )
