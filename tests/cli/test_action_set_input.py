"""The options of ``pkger perform`` as an action set."""

from typing import Any

import click
import orjson
import pytest
from pkger.model.v1.definition_pb2 import Definition

from services.actions.canonical import definition_document
from services.cli.actions.action_set_input import ActionSetInput, action_set_of, secrets_of_request
from services.cli.actions.perform import blueprint_of, of_action_set, secrets_of_document

FLEET = {"kind": "Stack", "name": "fleet"}


def spec_of(**typed: Any) -> dict[str, Any]:
    action_set = action_set_of(ActionSetInput("backup", **typed))
    document = definition_document(action_set)
    spec: dict[str, Any] = document["spec"]
    return spec


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "no object": (
        {"blueprint": "b"},
        {"actions": [{"name": "backup", "blueprint": "b"}]},
    ),
    "a stack": (
        {"blueprint": "b", "objects": ["stack/fleet"]},
        {"actions": [{"name": "backup", "blueprint": "b", "object": FLEET}]},
    ),
    "a stack whose name has separators": (
        {"blueprint": "b", "objects": ["Stack/a/b@c"]},
        {"actions": [{"name": "backup", "blueprint": "b", "object": {"kind": "Stack", "name": "a/b@c"}}]},
    ),
    "a resource": (
        {"blueprint": "b", "objects": ["Bucket/raw@fleet@2"]},
        {
            "actions": [
                {"name": "backup", "blueprint": "b", "object": {"kind": "Bucket", "name": "raw", "stack": "fleet@2"}}
            ]
        },
    ),
    "two objects in one target": (
        {"blueprint": "b", "objects": ["stack/a", "stack/b"], "platform": "influx", "org": "o", "sequential": True},
        {
            "sequential": True,
            "actions": [
                {
                    "name": "backup",
                    "blueprint": "b",
                    "object": {"kind": "Stack", "name": name, "target": {"platform": "influx", "org": "o"}},
                }
                for name in "ab"
            ],
        },
    ),
    "all inputs": (
        {
            "blueprint": "b",
            "options": ["tag=a=b", "empty="],
            "config_maps": ["db=prod-db"],
            "secrets": ["pg.password", "pg.user=env:PG_USER", "s3.key=file:s3/key"],
            "artifacts": ["backup.snapshot=x=1", "backup.tag=t"],
            "wait": 1.5,
        },
        {
            "wait": "1s500ms",
            "actions": [
                {
                    "name": "backup",
                    "blueprint": "b",
                    "options": {"tag": "a=b", "empty": ""},
                    "configMaps": {"db": {"name": "prod-db"}},
                    "secrets": {
                        "pg": {"password": {"given": True}, "user": {"env": "PG_USER"}},
                        "s3": {"key": {"file": "s3/key"}},
                    },
                    "artifacts": {"backup": {"keyValue": {"snapshot": "x=1", "tag": "t"}}},
                }
            ],
        },
    ),
    "a successor": (
        {"predecessor": "first", "wait": 0},
        {"from": {"actionSet": "first", "action": "backup"}, "wait": "0s"},
    ),
    "a successor with overrides": (
        {"predecessor": "first", "objects": ["stack/fleet"], "options": ["tag=x"]},
        {
            "from": {"actionSet": "first", "action": "backup"},
            "overrides": {"object": FLEET, "options": {"tag": "x"}},
        },
    ),
}


@pytest.mark.parametrize(("typed", "spec"), CASES.values(), ids=CASES)
def test_the_document_of_the_options(typed: dict[str, Any], spec: dict[str, Any]) -> None:
    assert spec_of(**typed) == spec


def test_the_document_is_a_valid_definition_with_name_and_labels() -> None:
    typed = ActionSetInput("backup", "b", name="nightly", labels=("why=a=b",), objects=("stack/fleet",))
    definition = of_action_set(action_set_of(typed))
    document = orjson.loads(definition.json)
    assert (definition.kind, definition.name) == ("ActionSet", "nightly")
    assert document["metadata"] == {"name": "nightly", "labels": {"why": "a=b"}}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no kind": ({"objects": ["fleet"]}, "--object 'fleet': write stack/NAME, or KIND/NAME@STACK for a resource"),
    "no name": ({"objects": ["stack/"]}, "--object 'stack/'"),
    "no stack": ({"objects": ["Bucket/raw"]}, "--object 'Bucket/raw'"),
    "no stack name": ({"objects": ["Bucket/raw@"]}, "--object 'Bucket/raw@'"),
    "twice": ({"objects": ["stack/a", "stack/a"]}, "--object stack/a: given twice"),
    "two for one": ({"predecessor": "x", "objects": ["stack/a", "stack/b"]}, "one object takes the place"),
    "option": ({"options": ["tag"]}, "--option 'tag': write NAME=TEXT"),
    "nameless option": ({"options": ["=x"]}, "--option '=x': write NAME=TEXT"),
    "option twice": ({"options": ["tag=x", "tag=y"]}, "--option tag: given twice"),
    "config map": ({"config_maps": ["db"]}, "--config-map 'db': write NAME=NAME"),
    "artifact": ({"artifacts": ["backup=x"]}, "--artifact 'backup': write NAME.KEY=TEXT"),
    "label": ({"labels": ["x"]}, "--label 'x': write NAME=TEXT"),
    "secret": ({"secrets": ["canary"]}, "--secret: write NAME.KEY, NAME.KEY=env:X or NAME.KEY=file:PATH"),
    "secret with a value": ({"secrets": ["pg.password=canary"]}, "a value is never on the command line"),
    "secret without a variable": ({"secrets": ["pg.password=env:"]}, "--secret pg.password=...: write NAME.KEY"),
    "secret twice": ({"secrets": ["pg.password", "pg.password=env:X"]}, "--secret pg.password: given twice"),
}


@pytest.mark.parametrize(("typed", "problem"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_option_is_refused(typed: dict[str, Any], problem: str) -> None:
    with pytest.raises(click.UsageError) as raised:
        spec_of(**typed)
    assert problem in raised.value.message
    assert "canary" not in raised.value.message


def test_secrets_of_the_request_are_those_without_a_place() -> None:
    typed = ("pg.password", "pg.user=env:X", "b.c")
    assert secrets_of_request(typed) == ["pg.password", "b.c"]


def test_secrets_of_a_document_are_those_that_come_with_the_request() -> None:
    action_sets = [
        action_set_of(ActionSetInput("a", "b", secrets=("pg.password", "pg.user=env:X", "b.c"))),
        action_set_of(ActionSetInput("a", predecessor="p", secrets=("pg.password", "b.c"))),
        action_set_of(ActionSetInput("a", predecessor="p")),
    ]
    found = [secrets_of_document(definition_document(each)) for each in action_sets]
    assert found == [["b.c", "pg.password"], ["b.c", "pg.password"], []]


def blueprint(name: str, *actions: str) -> Definition:
    return Definition(
        kind="Blueprint", name=name, json=orjson.dumps({"spec": {"actions": dict.fromkeys(actions)}}).decode()
    )


ONE, OTHER, THIRD = blueprint("one", "backup"), blueprint("other", "restore"), blueprint("third", "restore")


@pytest.mark.parametrize(
    ("definitions", "named", "action", "name"),
    [
        ([ONE], "", "backup", "one"),
        ([ONE], "", "restore", "one"),
        ([ONE, OTHER], "", "restore", "other"),
        ([ONE, OTHER, THIRD], "third", "restore", "third"),
    ],
)
def test_the_blueprint_of_a_file_is_the_one_with_the_action(
    definitions: list[Definition], named: str, action: str, name: str
) -> None:
    assert blueprint_of(definitions, named, action) == name


@pytest.mark.parametrize(
    ("definitions", "problem"),
    [
        ([], "the files have no blueprint"),
        ([ONE, OTHER, THIRD], "the files have 3 blueprints: name one with --blueprint"),
        ([ONE, Definition(kind="ActionSet")], "`pkger actionsets create` performs that of a file"),
    ],
)
def test_files_without_a_clear_blueprint_are_refused(definitions: list[Definition], problem: str) -> None:
    with pytest.raises(click.UsageError, match=problem):
        blueprint_of(definitions, "", "restore")
