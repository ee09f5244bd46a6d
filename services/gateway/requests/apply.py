"""``POST /api/v2/templates/apply``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from services.core.model import Key
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
"""Levels of lists and objects in an environment value: messages of the services take no more than a hundred."""


@dataclass(frozen=True, slots=True)
class Apply:
    """
    What somebody asks for.

    Attributes:
        is_dry: Whether it is only planned.
        org_id: Organisation.
        stack_id: Stack; empty: a nameless one.
        templates: Sources, in order.
        env: Environment values, by key.
        secrets: Values of secrets, by key; not shown.
        skips: Kinds and objects to leave out; without a name, all of the kind.
        allow_empty: Whether nothing may take all from the stack.
        plan_digest: The plan that the client agreed to; empty: any.
    """

    is_dry: bool
    org_id: str
    stack_id: str = ""
    templates: Sequence[Template] = ()
    env: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    skips: Sequence[Key] = ()
    allow_empty: bool = False
    plan_digest: str = ""


def read_apply(body: bytes, media_type: str) -> Apply:
    """
    What a body asks for; its checks come in the order in which InfluxDB makes them.

    Args:
        body: The body.
        media_type: Its media type, without parameters.

    Raises:
        Problem: It asks for nothing that can be.
    """
    if media_type == JSONNET_TYPE:
        told = "a body of Jsonnet is not evaluated; send JSON, with the program as the contents of a template"
        raise Problem(Code.UNPROCESSABLE_ENTITY, told)
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
    skips = tuple(map(_skip, actions))
    return Apply(is_dry, org_id, stack_id, templates, env, secrets, skips, allow_empty, digest)


def _skip(action: Members) -> Key:
    word = action.text("action")
    if word not in ("skipKind", "skipResource"):
        raise Problem(Code.INVALID, f"{action.place('action')}: {word[:60]!r} is none; write skipKind or skipResource")
    properties = action.object("properties") or Members({}, action.place("properties."))
    kind, name = properties.text("kind"), properties.text("resourceTemplateName")
    if kind not in ACCEPTED:
        raise Problem(Code.INVALID, f"{properties.place('kind')}: {unknown_kind(kind)}")
    if word == "skipResource" and not name:
        told = "name the object, by its metadata.name; skipKind leaves out all of a kind"
        raise Problem(Code.INVALID, f"{properties.place('resourceTemplateName')}: {told}")
    return Key(kind, name if word == "skipResource" else "")


def _refuse_deep(env: Mapping[str, Any]) -> None:
    for key, value in env.items():
        if _depth(value, DEEPEST_VALUE) < 0:
            raise Problem(Code.INVALID, f"envRefs.{key[:60]}: lists and objects inside each other, too many")


def _depth(value: Any, left: int) -> int:
    """What is left of *left* levels below *value*; negative: it has more."""
    if left < 0 or not isinstance(value, dict | list):
        return left
    inner = value.values() if isinstance(value, dict) else value
    return min((_depth(each, left - 1) for each in inner), default=left)
