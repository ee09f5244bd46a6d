"""Policies: the resolved policy of an object, and invalid policies (docs/reference/engine.md, "Policies")."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.core.model import Key
from services.kinds.policy import DEFAULT, PolicyInvalidError, checked, ignores, read, resolved
from tests.corpora import FIXTURES, RECORDED, cases_in, parameters
from tests.differences import differences

OWN_CASES = FIXTURES / "policy.yml"


@pytest.mark.parametrize("path", parameters([OWN_CASES], [RECORDED / "lifecycle" / "policy.jsonl"]))
def test_the_policy_of_an_object_is_resolved_as_expected(path: Path) -> None:
    cases = own_cases() if path == OWN_CASES else recorded_cases(path)
    assert [
        f"{case['about']}: {text}" for case in cases for text in differences(case["expect"], policy(case["input"]))
    ] == []
    assert len(cases) > 15


def policy(case: Mapping[str, Any]) -> dict[str, Any]:
    """The policy of the object ``kind`` and ``name``, by the policy of ``stack``."""
    found = resolved(case["stack"], Key(case["kind"], case["name"]))
    return asdict(found) | {"ignore": list(found.ignore)}


def recorded_cases(path: Path) -> list[dict[str, Any]]:
    """The recorded cases without policies of objects and automatic creation, which pkger does not have."""
    return [
        {**case, "expect": {name: value for name, value in case["expect"].items() if name != "recreate_deleted"}}
        for case in cases_in(path)
        if not case["input"]["lifecycle"] and not case["expect"]["recreate_deleted"]
    ]


def own_cases() -> list[dict[str, Any]]:
    """Our own cases in the form of the recorded ones; the first one expects the defaults."""
    rows = yaml.safe_load(OWN_CASES.read_text())
    defaults = rows[0]["expect"]
    return [
        {
            "about": row["about"],
            "input": {"stack": {}} | row,
            "expect": defaults | row.get("expect", {}),
        }
        for row in rows
    ]


@pytest.mark.parametrize(
    ("invalid", "field", "problem"),
    [
        ({"protcet": True}, "protcet", "is no field of a policy; did you mean protect?"),
        ({"nothing": 1}, "nothing", "is no field of a policy; the fields are"),
        ({"protect": "yes"}, "protect", "'yes' is neither true nor false"),
        ({"on_remove": "orphn"}, "on_remove", "'orphn' is none of delete, orphan; did you mean orphan?"),
        ({"drift": "revert"}, "drift", "drift is not healed yet"),
        ({"max_deletes": "5%"}, "max_deletes", "'5%' is no number of deletions from 0 to 1,000,000"),
        ({"max_deletes": -1}, "max_deletes", "-1 is no number"),
        (
            {"overrides": [{"match": {}, "max_deletes": 1}]},
            "overrides[0].max_deletes",
            "belongs to the policy of a stack",
        ),
        ({"history": 0}, "history", "0 is no number of revisions from 1 to 1,000"),
        ({"history": 20.0}, "history", "20.0 is no number of revisions from 1 to 1,000"),
        ({"history": 2.5}, "history", "2.5 is no number"),
        ({"history": True}, "history", "True is no number"),
        ({"ignore": "/x"}, "ignore", "is no list"),
        ({"ignore": ["x"]}, "ignore[0]", "'x' is no pointer to a field"),
        ({"ignore": ["/a~2"]}, "ignore[0]", "is no pointer"),
        ({"ignore": [{"kind": "Taks", "paths": ["/x"]}]}, "ignore[0].kind", "did you mean Task?"),
        ({"ignore": [{"kind": "Task"}]}, "ignore[0].paths", "is no list"),
        ({"ignore": [{"kind": "Task", "paths": []}]}, "ignore[0].paths", "is empty: list the pointers"),
        ({"ignore": [{"kinds": "Task", "paths": []}]}, "ignore[0].kinds", "is not known here"),
        ({"overrides": {}}, "overrides", "is no list"),
        ({"overrides": [{"protect": True}]}, "overrides[0]", "is a mapping with match"),
        ({"overrides": [{"match": {"kind": 3}}]}, "overrides[0].match.kind", "3 is no kind"),
        ({"overrides": [{"match": {"names": [""]}}]}, "overrides[0].match.names", "texts that are not empty"),
        ({"overrides": [{"match": {"kind": "Task"}}]}, "overrides[0]", "sets nothing"),
        (
            {
                "overrides": [
                    {"match": {"kind": "Task"}, "protect": True},
                    {"match": {"kind": "Task"}, "protect": False},
                ]
            },
            "overrides[1].protect",
            "contradicts overrides[0]",
        ),
        (
            {"overrides": [{"match": {"names": [f"n{number}"]}, "protect": True} for number in range(101)]},
            "overrides",
            "at most 100 overrides, not 101",
        ),
        ({"ignore": ["/a"] * 201}, "ignore", "at most 200 paths, not 201"),
        ({"ignore": [{"kind": "Task", "paths": ["/a"] * 201}]}, "ignore", "at most 200 paths, not 201"),
        (
            {"overrides": [{"match": {"names": ["*" * 300]}, "protect": True}]},
            "overrides[0].match.names",
            "at most 200 characters, not 300",
        ),
        ({"overrides": [{"match": {}, "history": 3}]}, "overrides[0].history", "belongs to the policy of a stack"),
        ({"overrides": [{"match": {}, "ignore": [{"paths": []}]}]}, "overrides[0].ignore[0]", "is no pointer"),
    ],
)
def test_an_invalid_policy_is_refused_with_its_field(invalid: dict[str, Any], field: str, problem: str) -> None:
    with pytest.raises(PolicyInvalidError) as caught:
        checked(invalid)
    assert caught.value.field == field
    assert problem in str(caught.value)


def test_a_policy_is_kept_as_it_is_written() -> None:
    written = {
        "on_remove": "orphan",
        "share": "always",
        "allow_empty": True,
        "history": 5,
        "max_deletes": 0,
        "ignore": ["/a/*/b", {"kind": "Check", "names": ["a*"], "paths": ["/every"]}],
        "overrides": [{"match": {"kind": "*"}, "drift": "ignore"}, {"match": {"names": ["?"]}, "protect": False}],
    }
    assert checked(written) == written


def test_no_kind_and_no_names_are_all() -> None:
    written = {
        "ignore": [{"kind": "", "names": [], "paths": ["/a"]}],
        "overrides": [{"match": {"kind": "", "names": []}, "protect": True}],
    }
    assert checked(written) == {"ignore": [{"paths": ["/a"]}], "overrides": [{"match": {}, "protect": True}]}


def test_only_values_that_differ_from_the_default_are_stored() -> None:
    assert DEFAULT.text == ""
    found = resolved({"protect": True, "ignore": ["/b", "/a"]}, Key("Task", "t"))
    assert found.text == '{"ignore":["/a","/b"],"protect":true}'
    assert (read(found.text), read("")) == (found, DEFAULT)
    assert read('{"newer":1,"protect":true}').protect


@pytest.mark.parametrize(
    ("pattern", "pointer", "is_ignored"),
    [
        ("/a", "/a", True),
        ("/a", "/a/b", True),
        ("/a/b", "/a", False),
        ("/a", "/ab", False),
        ("/*/b", "/a/b/c", True),
        ("/a/*", "/a", False),
        ("/a*", "/ab", False),
        ("", "/a", True),
    ],
)
def test_an_ignored_field_is_ignored_with_all_below_it(pattern: str, pointer: str, is_ignored: bool) -> None:
    assert ignores(pattern, pointer) is is_ignored
