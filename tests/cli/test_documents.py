"""Messages as documents: the JSON that ``-o json`` prints."""

from pkger.stack.v1 import stack_pb2

from services.rpc.convert.policies import checked_policy, policy_to_pb
from services.rpc.message_json import document_of

POLICY = {"history": 5, "protect": True, "overrides": [{"match": {"kind": "*"}, "ignore": ["/a"]}], "share": "always"}


def test_a_policy_is_printed_with_the_fields_that_are_set_and_can_be_set_again() -> None:
    document = document_of(stack_pb2.Stack(name="s", policy=policy_to_pb(POLICY)))["policy"]

    assert document == {
        **POLICY,
        "ignore": [],
        "overrides": [{"match": {"kind": "*", "names": []}, "ignore": ["/a"]}],
    }
    assert checked_policy(document) == checked_policy({**POLICY, "ignore": []})


def test_a_stack_without_a_policy_has_no_policy_field() -> None:
    assert "policy" not in document_of(stack_pb2.Stack(name="s"))
