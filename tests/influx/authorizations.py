"""Tokens and their permissions."""

import base64
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from tests.influx import gojson
from tests.influx.access import TYPES, Caller, Permission
from tests.influx.call import Answer, Call, answer, nothing
from tests.influx.problem import Problem
from tests.influx.routing import Route
from tests.influx.state import Authorization, Resource, State, now

_RESOURCE = gojson.struct(type=gojson.text, id=gojson.identifier, orgID=gojson.identifier)
_NEW = gojson.struct(
    orgID=gojson.identifier,
    userID=gojson.identifier,
    description=gojson.text,
    status=gojson.text,
    permissions=gojson.listing(gojson.struct(action=gojson.text, resource=_RESOURCE)),
)
_CHANGE = gojson.struct(status=gojson.optional(gojson.text), description=gojson.optional(gojson.text))


class Authorizations:
    """A new token has only permissions of its creator; its value is returned once."""

    def __init__(self, state: State) -> None:
        self._state = state

    def routes(self) -> Sequence[Route]:
        return (
            ("POST", "/api/v2/authorizations", self._create),
            ("GET", "/api/v2/authorizations", self._list),
            ("GET", "/api/v2/authorizations/{id}", self._read),
            ("PATCH", "/api/v2/authorizations/{id}", self._change),
            ("DELETE", "/api/v2/authorizations/{id}", self._delete),
            ("GET", "/api/v2/me", self._me),
        )

    def caller(self, token: str) -> Caller | None:
        """The caller with this token."""
        for found in self._state.authorizations.values():
            if secrets.compare_digest(found.token.encode(), token.encode()):
                return Caller(found.user, found.permissions, found.status == "active")
        return None

    def _create(self, call: Call) -> Answer:
        sent = call.read(_NEW)
        permissions = [_permission(each) for each in sent["permissions"] or ()]
        if not permissions:
            raise Problem("invalid", "authorization must include permissions")
        org = sent["orgID"]
        if not org:
            raise Problem("invalid", "org id required: invalid ID")
        if sent["status"] not in {"", "active", "inactive"}:
            raise Problem("invalid", "invalid status: must be active or inactive")
        for each in permissions:
            if each.org and each.org != org:
                raise Problem("invalid", f"permission {each} is not for org id {org}")
        user = sent["userID"] or call.caller.user
        if user not in self._state.users:
            raise Problem("not found", "user not found")
        call.caller.require("write", "authorizations", org)
        call.caller.require("write", "users", "", user)
        for each in permissions:
            if not call.caller.may(each.action, each.type, each.org, each.id):
                raise Problem("forbidden", f"permission {each} is not allowed: {each} is unauthorized")
        if org not in self._state.orgs:
            raise Problem("not found", "organization not found")
        made = add_authorization(
            self._state, org, user, permissions, sent["description"], status=sent["status"] or "active"
        )
        return answer(201, {**self._shown(made), "token": made.token})

    def _list(self, call: Call) -> Answer:
        org, id_, user = call.query_id("orgID"), call.query_id("id"), call.query_id("userID")
        if not org and call.query.get("org"):
            org = self._state.named_org(call.query["org"])
        found = [
            self._shown(each)
            for each in self._state.authorizations.values()
            if org in {"", each.org} and id_ in {"", each.id} and user in {"", each.user} and _may_read(call, each)
        ]
        return answer(200, {"links": {"self": "/api/v2/authorizations"}, "authorizations": found})

    def _read(self, call: Call) -> Answer:
        found = self._found(call, "read")
        return answer(200, self._shown(found))

    def _change(self, call: Call) -> Answer:
        sent = call.read(_CHANGE)
        if sent["status"] not in {None, "active", "inactive"}:
            raise Problem("invalid", "invalid status: must be active or inactive")
        found = self._found(call, "write")
        found.status = found.status if sent["status"] is None else sent["status"]
        found.description = found.description if sent["description"] is None else sent["description"]
        found.updated = now()
        return answer(200, self._shown(found))

    def _delete(self, call: Call) -> Answer:
        del self._state.authorizations[self._found(call, "write").id]
        return nothing()

    def _me(self, call: Call) -> Answer:
        user = call.caller.user
        call.caller.require("read", "users", "", user)
        return answer(200, {**shown_user(self._state, user), "links": {"self": f"/api/v2/users/{user}"}})

    def _found(self, call: Call, action: str) -> Authorization:
        found = self._state.authorizations.get(call.id())
        if found is None:
            raise Problem("not found", "authorization not found")
        call.caller.require(action, "authorizations", found.org, found.id)
        call.caller.require(action, "users", "", found.user)
        return found

    def _shown(self, found: Authorization) -> Resource:
        return {
            "links": {"self": f"/api/v2/authorizations/{found.id}", "user": f"/api/v2/users/{found.user}"},
            **shown_authorization(self._state, found),
        }


def add_authorization(
    state: State,
    org: str,
    user: str,
    permissions: Sequence[Permission],
    description: str = "",
    status: str = "active",
    token: str = "",
) -> Authorization:
    """A new token; *token* fixes its value."""
    value = token or base64.urlsafe_b64encode(secrets.token_bytes(64)).decode()
    time = now()
    made = Authorization(state.new_id(), value, org, user, list(permissions), description, status, time, time)
    state.authorizations[made.id] = made
    return made


def shown_authorization(state: State, found: Authorization) -> Resource:
    """An authorization without its token, which the server has only a hash of."""
    return {
        "id": found.id,
        "token": "",
        "status": found.status,
        "description": found.description,
        "orgID": found.org,
        "org": state.org_name(found.org),
        "userID": found.user,
        "user": state.users[found.user],
        "permissions": [
            {"action": each.action, "resource": _shown_resource(state, each)} for each in found.permissions
        ],
        "createdAt": found.created,
        "updatedAt": found.updated,
    }


def hashed(token: str) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha512(token.encode()).digest()).decode()
    return f"$influxdb2-sha512${digest}"


def shown_user(state: State, user: str) -> Resource:
    return {"id": user, "name": state.users[user], "status": "active"}


def _permission(sent: Mapping[str, Any]) -> Permission:
    resource = sent["resource"]
    if resource["type"] not in TYPES:
        raise Problem("invalid", "invalid resource type for permission: unknown resource type for permission")
    if sent["action"] not in {"read", "write"}:
        raise Problem("invalid", "invalid action type for permission: unknown action for permission")
    return Permission(sent["action"], resource["type"], resource["id"], resource["orgID"])


def _may_read(call: Call, found: Authorization) -> bool:
    may = call.caller.may
    return may("read", "authorizations", found.org, found.id) and may("read", "users", "", found.user)


def _shown_resource(state: State, permission: Permission) -> Resource:
    """The resource of a permission, with the names of what exists."""
    shown: Resource = {"type": permission.type}
    if permission.id:
        shown["id"] = permission.id
        if permission.type == "orgs":
            known = state.orgs.get(permission.id)
        else:
            known = state.kinds.get(permission.type, state.labels).get(permission.id)
        if known:
            shown["name"] = known["name"]
    if permission.org:
        shown["orgID"] = permission.org
        if permission.org in state.orgs:
            shown["org"] = state.org_name(permission.org)
    return shown
