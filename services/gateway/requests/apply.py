"""Reads requests of ``POST /api/v2/templates/apply``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pkger.planner.v1 import planner_pb2

from services.gateway.answers import Code
from services.gateway.errors import Problem
from services.gateway.ids import id_of
from services.gateway.requests.members import Members
from services.gateway.requests.templates import Template, read_remotes, read_templates
from services.gateway.requests.urls import refuse_bad_escapes
from services.gateway.requests.yaml_bodies import decoded_as
from services.kinds.kind_words import unknown_kind
from services.kinds.registry import ACCEPTED

JSONNET_TYPE = "application/x-jsonnet"

DEEPEST_VALUE = 40
"""Most levels of lists and objects in an environment value; the parser allows 99."""


@dataclass(frozen=True, slots=True)
class Apply:
    """
    The request to plan or apply a package.

    Attributes:
        is_dry: Whether it is a dry run.
        org_id: Id of the organisation.
        stack_id: Id of the stack; empty for a nameless stack.
        templates: Sources, in order.
        env: Environment values, by key.
        secrets: Values of secrets, by key; not part of the repr.
        options: Options of the plan.
        plan_digest: Digest of the plan that the client approved; empty: any plan.
    """

    is_dry: bool
    org_id: str
    stack_id: str = ""
    templates: Sequence[Template] = ()
    env: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    options: planner_pb2.PlanOptions = field(default_factory=planner_pb2.PlanOptions)
    plan_digest: str = ""


def read_apply(body: bytes, media_type: str) -> Apply:
    """
    Read the body of an apply; the checks are in the order of InfluxDB's.

    Args:
        body: The body.
        media_type: Its media type, without parameters.

    Raises:
        Problem: The body is invalid.
    """
    if media_type == JSONNET_TYPE:
        message = "a body of Jsonnet is not evaluated; send JSON, with the program as the contents of a template"
        raise Problem(Code.UNPROCESSABLE_ENTITY, message)
    members = decoded_as(media_type, body)
    is_dry, org, stack = members.flag("dryRun"), members.text("orgID"), members.any("stackID")
    env, secrets = members.mapping("envRefs"), members.text_mapping("secrets")
    allow_empty, digest = members.flag("allowEmpty"), members.text("planDigest")
    remotes, actions = read_remotes(members), list(members.objects("actions"))
    _refuse_deep(env)
    org_id = id_of(org, "orgID")
    for place, remote in enumerate(remotes):
        refuse_bad_escapes(remote.url, f"remotes[{place}].url")
    stack_id = id_of(members.text("stackID"), "stackID") if stack is not None else ""
    templates = (*remotes, *read_templates(members))
    options = planner_pb2.PlanOptions(skip=map(_skip, actions), allow_empty=allow_empty)
    return Apply(is_dry, org_id, stack_id, templates, env, secrets, options, digest)


def _skip(action: Members) -> planner_pb2.Skip:
    action_name = action.text("action")
    if action_name not in ("skipKind", "skipResource"):
        raise Problem(
            Code.INVALID,
            f"{action.place('action')}: {action_name[:60]!r} is not an action; write skipKind or skipResource",
        )
    properties = action.object("properties") or Members({}, action.place("properties."))
    kind, name = properties.text("kind"), properties.text("resourceTemplateName")
    if kind not in ACCEPTED:
        raise Problem(Code.INVALID, f"{properties.place('kind')}: {unknown_kind(kind)}")
    if action_name == "skipResource" and not name:
        remedy = "write the metadata.name of the object; to leave out all objects of the kind, use skipKind"
        raise Problem(Code.INVALID, f"{properties.place('resourceTemplateName')}: {remedy}")
    return planner_pb2.Skip(kind=kind, name=name if action_name == "skipResource" else "")


def _refuse_deep(env: Mapping[str, Any]) -> None:
    for key, value in env.items():
        if _depth(value, DEEPEST_VALUE) < 0:
            raise Problem(
                Code.INVALID, f"envRefs.{key[:60]}: lists and objects are nested more than {DEEPEST_VALUE} levels deep"
            )


def _depth(value: Any, left: int) -> int:
    """The levels of *left* that *value* does not use; negative: it has more levels."""
    if left < 0 or not isinstance(value, dict | list):
        return left
    inner = value.values() if isinstance(value, dict) else value
    return min((_depth(each, left - 1) for each in inner), default=left)
