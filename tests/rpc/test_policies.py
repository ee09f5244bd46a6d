"""Policies of stacks as messages."""

from typing import Any

import pytest
from pkger.stack.v1.policy_pb2 import IgnoreRule, ObjectMatch, Policy, PolicyOverride

from services.core.errors import RequestInvalid
from services.kinds.policy_reading import PolicyInvalidError, checked
from services.rpc.convert.policies import checked_policy, policy_from_pb, policy_to_pb

WRITTEN: dict[str, Any] = {
    "adopt": "never",
    "adopted_on_delete": "delete",
    "allow_empty": False,
    "drift": "ignore",
    "heal_interval": "10m",
    "history": 5,
    "ignore": ["/a/*/b", {"kind": "Check", "names": ["a*"], "paths": ["/every"]}, {"paths": ["/c", "/d"]}],
    "max_deletes": 0,
    "on_delete": "orphan",
    "on_remove": "orphan",
    "overrides": [
        {"match": {}, "drift": "report", "ignore": ["/x"]},
        {"match": {"kind": "*"}, "protect": False, "recreate_deleted": False},
        {"match": {"names": ["?"]}, "adopt": "never", "adopted_on_delete": "delete"},
        {"match": {"kind": "Task"}, "on_delete": "cleanup", "on_remove": "delete"},
    ],
    "protect": False,
    "recreate_deleted": True,
    "share": "always",
}
"""A policy with every field."""


def test_a_policy_survives_its_message() -> None:
    message = Policy.FromString(policy_to_pb(WRITTEN).SerializeToString())
    assert policy_from_pb(message) == checked_policy(WRITTEN) == WRITTEN
    assert list(policy_from_pb(message)) == sorted(WRITTEN)
    assert policy_from_pb(policy_to_pb({})) == {}


def test_the_message_has_the_fields_that_are_accepted() -> None:
    assert {field.name for field in Policy.DESCRIPTOR.fields} == WRITTEN.keys()
    overridden = {name for override in WRITTEN["overrides"] for name in override}
    assert {field.name for field in PolicyOverride.DESCRIPTOR.fields} == overridden
    with pytest.raises(PolicyInvalidError, match="the fields are " + ", ".join(sorted(WRITTEN))):
        checked({"nothing": 1})


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (Policy(drift="no"), "policy.drift: 'no' is none of ignore, report, revert"),
        (Policy(drift=""), "policy.drift: '' is none of ignore, report, revert"),
        (Policy(drift="accept"), "policy.drift: accept is not accepted yet"),
        (Policy(heal_interval="9s"), "policy.heal_interval: '9s' is no interval from 10s to 24h"),
        (Policy(history=0), "policy.history: 0 is no number of revisions from 1 to 1,000"),
        (Policy(max_deletes=-1), "policy.max_deletes: -1 is no number of deletions from 0 to 1,000,000"),
        (Policy(ignore=[IgnoreRule(paths=["/a"]), IgnoreRule(paths=["b"])]), "policy.ignore[1]: 'b' is no pointer"),
        (Policy(ignore=[IgnoreRule(paths=["/a", "b"])]), "policy.ignore[0].paths[1]: 'b' is no pointer"),
        (Policy(ignore=[IgnoreRule(kind="Task")]), "policy.ignore[0].paths: is empty"),
        (Policy(ignore=[IgnoreRule(kind="Taks", paths=["/a"])]), "policy.ignore[0].kind: 'Taks' is no kind"),
        (Policy(overrides=[PolicyOverride(protect=True)]), "policy.overrides[0]: an override is a mapping with match"),
        (Policy(overrides=[PolicyOverride(match=ObjectMatch())]), "policy.overrides[0]: sets nothing"),
        (
            Policy(overrides=[PolicyOverride(match=ObjectMatch(names=["a", ""]), protect=True)]),
            "policy.overrides[0].match.names: names are texts that are not empty",
        ),
        (
            Policy(overrides=[PolicyOverride(match=ObjectMatch(), ignore=["/a", "b"])]),
            "policy.overrides[0].ignore[1]: 'b' is no pointer",
        ),
    ],
    ids=lambda each: each[:40] if isinstance(each, str) else "",
)
def test_an_invalid_message_is_refused_with_its_field(message: Policy, error: str) -> None:
    with pytest.raises(RequestInvalid) as caught:
        checked_policy(policy_from_pb(message))
    assert str(caught.value).startswith(error)
