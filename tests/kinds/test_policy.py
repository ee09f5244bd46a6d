"""Policies: the resolved policy of an object, and invalid policies (docs/reference/engine.md, "Policies")."""

import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.core.model import Key
from services.kinds.policy import (
    DEFAULT,
    NO_OWN_POLICY,
    ExplainedField,
    OwnPolicy,
    Policy,
    explained,
    ignores,
    read,
    read_own,
    resolved,
)
from services.kinds.policy_reading import PolicyInvalidError, checked, checked_own, read_policy
from tests.corpora import FIXTURES, RECORDED, cases_in, parameters
from tests.differences import differences

OWN_CASES = FIXTURES / "policy.yml"


@pytest.mark.parametrize("path", parameters([OWN_CASES], [RECORDED / "lifecycle" / "policy.jsonl"]))
def test_the_policy_of_an_object_is_resolved_as_expected(path: Path) -> None:
    cases = own_cases() if path == OWN_CASES else cases_in(path)
    assert [
        f"{case['about']}: {text}" for case in cases for text in differences(case["expect"], policy(case["input"]))
    ] == []
    assert len(cases) > 15


def policy(case: Mapping[str, Any]) -> dict[str, Any]:
    """The policy of the object ``kind`` and ``name``, by those of ``stack``, ``package`` and ``lifecycle``."""
    own = OwnPolicy(case.get("package", {}), case.get("lifecycle", {}))
    found = resolved(case["stack"], Key(case["kind"], case["name"]), own)
    return asdict(found) | {"ignore": list(found.ignore)}


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
        ({"drift": "accept"}, "drift", "accept is not accepted yet"),
        ({"approval": "manual"}, "approval", "is not accepted yet, as plans are not approved by others"),
        ({"service_account": "a"}, "service_account", "is not accepted yet"),
        ({"on_crash": "resume"}, "on_crash", "is not accepted yet"),
        ({"recreate_deleted": "yes"}, "recreate_deleted", "'yes' is neither true nor false"),
        ({"heal_interval": "9s"}, "heal_interval", "'9s' is no interval from 10s to 24h"),
        ({"heal_interval": "25h"}, "heal_interval", "'25h' is no interval"),
        ({"heal_interval": "1 h"}, "heal_interval", "'1 h' is no interval"),
        ({"heal_interval": "-1m"}, "heal_interval", "'-1m' is no interval"),
        ({"heal_interval": ""}, "heal_interval", "'' is no interval"),
        ({"heal_interval": 600}, "heal_interval", "600 is no interval"),
        ({"heal_interval": False}, "heal_interval", "false is no interval"),
        ({"overrides": [{"match": {}, "heal_interval": "1h"}]}, "overrides[0].heal_interval", "belongs to the policy"),
        ({"protect": {"envRef": {"key": "a"}}}, "protect", "is a reference, and a policy has none"),
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
        ({"history": True}, "history", "true is no number"),
        ({"ignore": "/x"}, "ignore", "is no list"),
        ({"ignore": ["x"]}, "ignore[0]", "'x' is no pointer to a field"),
        ({"ignore": ["/a~2"]}, "ignore[0]", "is no pointer"),
        ({"ignore": [{"kind": "Taks", "paths": ["/x"]}]}, "ignore[0].kind", "did you mean Task?"),
        ({"ignore": [{"kind": "Task"}]}, "ignore[0].paths", "is no list"),
        ({"ignore": [{"kind": "Task", "paths": []}]}, "ignore[0].paths", "is empty: list the pointers"),
        ({"ignore": [{"kinds": "Task", "paths": []}]}, "ignore[0].kinds", "is not known here"),
        ({"overrides": {}}, "overrides", "is no list"),
        ({"overrides": [{"protect": True}]}, "overrides[0]", "is a mapping with match"),
        ({"overrides": [{"match": {"kind": ["Task"]}}]}, "overrides[0].match.kind", "['Task'] is no kind"),
        ({"protect": None}, "protect", "null is neither true nor false"),
        ({1: True}, "1", "is no field of a policy"),
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
def test_an_invalid_policy_is_refused_with_its_field(invalid: dict[Any, Any], field: str, problem: str) -> None:
    with pytest.raises(PolicyInvalidError) as caught:
        checked(invalid)
    assert caught.value.field == field
    assert problem in str(caught.value)


def test_a_policy_is_kept_as_it_is_written() -> None:
    written = {
        "drift": "revert",
        "recreate_deleted": True,
        "heal_interval": "1h30m",
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


@pytest.mark.parametrize("interval", ["0", "0s", "10s", "10m", "24h", "1d"])
def test_an_interval_is_none_or_from_ten_seconds_to_a_day(interval: str) -> None:
    assert checked({"heal_interval": interval}) == {"heal_interval": interval}


def test_an_interval_of_zero_may_be_a_number() -> None:
    assert checked({"heal_interval": 0}) == {"heal_interval": "0"}


KEY = Key("Task", "t")


def test_each_value_is_explained_by_the_layers_that_say_it() -> None:
    stack = {
        "drift": "report",
        "ignore": ["/every"],
        "overrides": [{"match": {"kind": "Bucket"}, "adopt": "never"}, {"match": {"kind": "Task"}, "protect": True}],
    }
    own = OwnPolicy(
        {"drift": "revert", "on_remove": "orphan", "ignore": ["/every"]}, {"protect": True, "ignore": ["/cron"]}
    )
    assert explained(stack, KEY, own) == [
        ExplainedField("drift", "report", ("stack",)),
        ExplainedField("recreate_deleted", False, ("default",)),
        ExplainedField("on_remove", "orphan", ("package",)),
        ExplainedField("on_delete", "cleanup", ("default",)),
        ExplainedField("adopted_on_delete", "orphan", ("default",)),
        ExplainedField("adopt", "if_unmanaged", ("default",)),
        ExplainedField("protect", True, ("overrides[1]", "object")),
        ExplainedField("ignore", "/cron", ("object",)),
        ExplainedField("ignore", "/every", ("package", "stack")),
    ]


def test_a_protection_of_the_last_apply_is_explained() -> None:
    recorded = Policy(protect=True)
    assert ExplainedField("protect", True, ("last apply",)) in explained({}, KEY, NO_OWN_POLICY, recorded)
    assert ExplainedField("protect", True, ("stack",)) in explained({"protect": True}, KEY, NO_OWN_POLICY, recorded)


def test_what_package_and_object_say_is_stored_as_text() -> None:
    own = OwnPolicy({"drift": "revert"}, {"protect": True})
    assert own.text == '{"object":{"protect":true},"package":{"drift":"revert"}}'
    assert (read_own(own.text), read_own(""), NO_OWN_POLICY.text) == (own, NO_OWN_POLICY, "")
    assert checked_own(own.text) == own
    assert checked_own("") == NO_OWN_POLICY


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "is no mapping with package and object"),
        ('{"stack":{}}', "is no mapping with package and object"),
        ('{"package":{"drift":"no"}}', "package.drift: drift: 'no' is none of"),
        ('{"object":{"ignore":[{"kind":"Task","paths":["/a"]}]}}', "is no pointer"),
        ("{", "line 1 column"),
    ],
)
def test_what_a_client_says_of_package_and_object_is_checked(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        checked_own(text)


def test_all_that_is_wrong_with_the_policy_of_an_object_is_listed() -> None:
    written = {"protct": True, "drift": "fix", "history": 3, "ignore": ["a", {"paths": ["/a"]}], "adopt": "never"}
    reading = read_policy(written, "metadata.lifecycle", ("metadata", "lifecycle"), has_rules=False)
    assert [(fault.path.removeprefix("metadata.lifecycle."), fault.code.value) for fault in reading.faults] == [
        ("protct", "lifecycle-field-unknown"),
        ("drift", "policy-value-invalid"),
        ("history", "field-not-accepted"),
        ("ignore[0]", "policy-value-invalid"),
        ("ignore[1]", "policy-value-invalid"),
    ]
    assert reading.policy == {"ignore": [], "adopt": "never"}


def test_only_the_policy_of_a_package_names_the_objects_whose_fields_it_ignores() -> None:
    written = {"ignore": [{"kind": "Task", "names": ["t*"], "paths": ["/every"]}]}
    assert read_policy(written, "policy", (), has_rules=True).policy == written
    assert read_policy(written, "policy", (), has_rules=False).faults


def test_a_key_is_not_rewritten_to_one_that_is_there() -> None:
    reading = read_policy({"protct": True, "protect": True}, "policy", (), has_rules=False)
    assert [fault.rewrite for fault in reading.faults] == [None]
