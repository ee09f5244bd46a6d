"""``/api/v2/orgs``: the organizations. Clients look up the id of theirs here first."""

import re
from typing import Any

from services.gateway.answers import Answer, Code, json_answer
from services.gateway.errors import Problem
from services.gateway.http_request import HttpRequest
from services.gateway.ids import id_of
from services.gateway.organizations import Organization, Organizations

MOST_ON_A_PAGE = 100

_SINCE = "1970-01-01T00:00:00Z"
"""Creation time of every organization: the services do not store it, and clients expect one."""


class OrgRoutes:
    """The handlers."""

    def __init__(self, orgs: Organizations) -> None:
        self._orgs = orgs

    async def listing(self, request: HttpRequest) -> Answer:
        """List all organizations, or the one that the query names."""
        query = request.query
        limit = _number(query.get("limit"), "limit", 1, MOST_ON_A_PAGE)
        offset = _number(query.get("offset"), "offset", 0, 10**9) or 0
        if "org" in query:
            orgs = [await self._orgs.of_name(query["org"])]
        elif "orgID" in query:
            orgs = [await self._orgs.of_id(id_of(query["orgID"], "orgID"))]
        else:
            orgs = await self._orgs.all()
            orgs = orgs[offset : None if limit is None else offset + limit]
        return json_answer({"links": {"self": "/api/v2/orgs"}, "orgs": list(map(_document, orgs))})

    async def read(self, request: HttpRequest) -> Answer:
        """Read one organization."""
        org = await self._orgs.of_id(id_of(request.parameters["orgID"], "orgID"))
        return json_answer(_document(org))


def _document(org: Organization) -> dict[str, Any]:
    return {
        "links": {"self": f"/api/v2/orgs/{org.id}", "stacks": f"/api/v2/stacks?orgID={org.id}"},
        "id": org.id,
        "name": org.name,
        "description": f"organization {org.target.org} of platform {org.target.platform}",
        "createdAt": _SINCE,
        "updatedAt": _SINCE,
    }


def _number(text: str | None, name: str, least: int, most: int) -> int | None:
    if text is None:
        return None
    if not re.fullmatch("[0-9]{1,10}", text) or not least <= int(text) <= most:
        raise Problem(Code.INVALID, f"{name}: {text[:60]!r}; write a whole number from {least} to {most:,}")
    return int(text)
