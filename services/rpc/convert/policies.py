"""Translates policies of stacks between messages and JSON data."""

from collections.abc import Mapping
from typing import Any

from google.protobuf.message import Message
from pkger.stack.v1 import policy_pb2

from services.core.errors import RequestInvalid
from services.kinds.policy_reading import PolicyInvalidError, checked


def policy_to_pb(policy: Mapping[str, Any]) -> policy_pb2.Policy:
    """Translate a policy that ``checked_policy`` returned."""
    rules = [{"paths": [rule]} if isinstance(rule, str) else rule for rule in policy.get("ignore", ())]
    overrides: list[Any] = [
        {**override, "match": policy_pb2.ObjectMatch(**override["match"])} for override in policy.get("overrides", ())
    ]
    return policy_pb2.Policy(**{**policy, "ignore": rules, "overrides": overrides})


def policy_from_pb(message: policy_pb2.Policy) -> dict[str, Any]:
    """Translate a policy, which is not checked; fields are sorted by name, and those that are not set are left out."""
    policy = _set_fields(message)
    if message.ignore:
        policy["ignore"] = [_rule(rule) for rule in message.ignore]
    if message.overrides:
        policy["overrides"] = [_override(override) for override in message.overrides]
    return dict(sorted(policy.items()))


def checked_policy(policy: Mapping[str, Any]) -> dict[str, Any]:
    """
    Check a policy, and return it in normal form.

    Raises:
        RequestInvalid: A field or value is not valid; the error names the field.
    """
    try:
        return checked(policy)
    except PolicyInvalidError as error:
        raise RequestInvalid(f"policy.{error.field}", str(error)) from None


def _rule(rule: policy_pb2.IgnoreRule) -> Any:
    fields = _set_fields(rule)
    if fields.keys() == {"paths"} and len(rule.paths) == 1:
        # The short form of a rule.
        return rule.paths[0]
    return {**fields, "paths": list(rule.paths)}


def _override(override: policy_pb2.PolicyOverride) -> dict[str, Any]:
    match = {"match": _set_fields(override.match)} if override.HasField("match") else {}
    return {**match, **_set_fields(override)}


def _set_fields(message: Message) -> dict[str, Any]:
    """The fields that are set, except messages; fields without presence are set when they are not empty."""
    return {
        field.name: list(value) if field.is_repeated else value
        for field, value in message.ListFields()
        if not field.message_type
    }
