"""Reads requests of ``POST /api/v2/templates/apply``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from msgspec import Struct
from pkger.planner.v1 import planner_pb2

from services.gateway.answers import Code
from services.gateway.errors import Problem
from services.gateway.ids import id_of
from services.gateway.requests.members import ID, NEEDED_KIND, Text, about, read_body, refuse_bad_escapes
from services.gateway.requests.templates import (
    Remote,
    Template,
    TemplateBody,
    templates_of_bodies,
    templates_of_remotes,
)
from services.kinds.kind_words import unknown_kind
from services.kinds.registry import ACCEPTED

JSONNET_TYPE = "application/x-jsonnet"

DEEPEST_VALUE = 40
"""Most levels of lists and objects in an environment value; the parser allows 99."""


class SkipProperties(Struct):
    """All of a kind, or one object."""

    kind: Annotated[Text, NEEDED_KIND] = None
    resourceTemplateName: Annotated[Text, about("metadata.name of the object")] = None


class SkipAction(Struct):
    """Objects to leave out."""

    action: Annotated[Text, about("the rule", enum=["skipKind", "skipResource"], needed=True)] = None
    properties: Annotated[SkipProperties | None, about("the objects", needed=True)] = None


class ApplyRequest(Struct):
    """A package to plan, or to apply."""

    orgID: Annotated[Text, ID] = None
    dryRun: bool | None = None
    stackID: Annotated[Text, about("16 hex digits", pattern="^[0-9a-fA-F]{16}$")] = None
    template: TemplateBody | None = None
    templates: list[TemplateBody] | None = None
    remotes: list[Remote] | None = None
    envRefs: Annotated[dict[str, Any] | None, about("environment values, by key")] = None
    secrets: Annotated[dict[str, str] | None, about("values, by key")] = None
    actions: list[SkipAction] | None = None
    allowEmpty: bool | None = None
    planDigest: Annotated[Text, about("planDigest of a dry run; if the plan has another digest, it is refused")] = None


@dataclass(frozen=True, slots=True)
class Apply:
    """
    The request to plan or apply a package.

    Attributes:
        is_dry: Whether it is a dry run.
        org_id: Id of the organization.
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
    request = read_body(body, ApplyRequest, media_type)
    env, remotes = request.envRefs or {}, request.remotes or []
    _refuse_deep(env)
    org_id = id_of(request.orgID or "", "orgID")
    for place, remote in enumerate(remotes):
        refuse_bad_escapes(remote.url or "", f"remotes[{place}].url")
    stack_id = id_of(request.stackID, "stackID") if request.stackID is not None else ""
    templates = (*templates_of_remotes(remotes), *templates_of_bodies(request.templates or [], request.template))
    skips = [_skip(action, f"actions[{place}]") for place, action in enumerate(request.actions or [])]
    options = planner_pb2.PlanOptions(skip=skips, allow_empty=request.allowEmpty or False)
    secrets, digest = request.secrets or {}, request.planDigest or ""
    return Apply(request.dryRun or False, org_id, stack_id, templates, env, secrets, options, digest)


def _skip(action: SkipAction, place: str) -> planner_pb2.Skip:
    rule = action.action or ""
    if rule not in ("skipKind", "skipResource"):
        raise Problem(Code.INVALID, f"{place}.action: {rule[:60]!r} is not an action; write skipKind or skipResource")
    properties = action.properties or SkipProperties()
    kind, name = properties.kind or "", properties.resourceTemplateName or ""
    if kind not in ACCEPTED:
        raise Problem(Code.INVALID, f"{place}.properties.kind: {unknown_kind(kind)}")
    if rule == "skipResource" and not name:
        remedy = "write the metadata.name of the object; to leave out all objects of the kind, use skipKind"
        raise Problem(Code.INVALID, f"{place}.properties.resourceTemplateName: {remedy}")
    return planner_pb2.Skip(kind=kind, name=name if rule == "skipResource" else "")


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
