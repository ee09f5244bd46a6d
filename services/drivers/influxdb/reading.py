"""Reads resources of an InfluxDB server: whole lists in few requests, and single resources reliably."""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from services.core.model import Organization, Reference
from services.drivers.influxdb.client import Client, NotSent, Query, Response, Unanswered
from services.drivers.influxdb.codecs.codec import Body
from services.drivers.influxdb.codecs.endpoint import TYPES
from services.drivers.influxdb.codecs.registry import CODECS, kind_of
from services.drivers.influxdb.codecs.rule import ENDPOINT
from services.drivers.influxdb.write_outcomes import OUT_OF_REACH, is_gone, is_out_of_reach, is_unreadable
from services.drivers.mutation import ResourceId, StoredResource
from services.engine.outcome import RejectionReason
from services.kinds.format.canonical import canonical_text

DASHBOARDS, ENDPOINTS, RULES, LABELS = "dashboards", "notificationEndpoints", "notificationRules", "labels"

_ID = re.compile("(?!0{16})[0-9a-f]{16}")

_PAGE, _TASK_PAGE = 100, 500
"""Largest pages of the server; a larger limit is an error."""

_BY_OFFSET = frozenset(("checks", ENDPOINTS, RULES))
_BY_LAST_ID = {"buckets": _PAGE, "tasks": _TASK_PAGE}
"""How a list is paged; other lists are complete in one answer, even if it has a link to a next page."""

_LIST_KEYS = {"telegrafs": "configurations"}

_RESTARTS = 5
"""How often a list is read again because resources are deleted while it is read."""

_FEW = 2
"""Up to this number, resources of a kind are read one by one; more are read by a list."""


class CannotRead(Exception):
    """
    A read failed.

    Attributes:
        reason: Why a write that needs it is rejected; None: the write may be retried.
        answered: Whether the server answered.
    """

    def __init__(self, message: str, reason: RejectionReason | None = None, answered: bool = True) -> None:
        super().__init__(message)
        self.reason = reason
        self.answered = answered


class OrgMissing(Exception):
    """The server has no organization with this name, or does not show it to this token."""


class ResourceReader:
    """Reads resources in the form of the API and in the form of the driver contract."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._org_ids: dict[str, str] = {}

    async def version(self) -> str:
        """
        The version of the server.

        Raises:
            CannotRead: The server does not answer, or is no InfluxDB 2.x.
        """
        answer = await self._get("/health")
        if not answer.version:
            raise CannotRead(f"this is no InfluxDB 2.x: /health answers {answer.description}, without a version")
        return answer.version

    async def orgs(self) -> list[Organization]:
        """
        The organizations that the token can read.

        Raises:
            CannotRead: The read failed.
        """
        orgs: dict[str, Organization] = {}
        offset = 0
        # A page leaves out organizations that the token may not read, so only an empty page is the last.
        while page := await self._page("orgs", [("limit", str(_PAGE)), ("offset", str(offset))]):
            orgs |= {org["id"]: Organization(org["name"], org["name"], org["id"]) for org in page}
            offset += _PAGE
        return list(orgs.values())

    async def org_id(self, name: str) -> str:
        """
        The id of the organization *name*, which the token can read. So an empty list of its resources is reliable.

        Raises:
            OrgMissing: There is no such organization.
            CannotRead: The read failed, or the token is unknown or inactive.
        """
        if cached_id := self._org_ids.pop(name, None):
            answer = await self._get(f"/api/v2/orgs/{cached_id}")
            if answer.status == 200 and answer.body.get("name") == name:
                self._org_ids[name] = cached_id
                return cached_id
            if answer.status not in {200, 404}:
                raise _unreadable(f"organization {name!r}", answer)
        answer = await self._get("/api/v2/orgs", [("org", name)])
        if answer.status not in {200, 404}:
            raise _unreadable(f"organization {name!r}", answer)
        # The server ignores white space around a name. It lists only organizations that an active token can read.
        shown = answer.body.get("orgs") or () if answer.status == 200 else ()
        ids = [org["id"] for org in shown if org["name"] == name]
        if not ids:
            # For an inactive token the list is empty, without an error.
            await self.prove_token()
            raise OrgMissing("there is none with exactly that name, or the token may not read it")
        self._org_ids[name] = ids[0]
        return str(ids[0])

    async def prove_token(self) -> None:
        """
        Check that the server knows the token and that it is active, whatever its rights.

        Raises:
            CannotRead: The token is unknown or inactive, or the read failed.
        """
        answer = await self._get("/api/v2/me")
        is_refused_otherwise = answer.status == 401 and not _is_no_token(answer)
        # Most tokens may not read users; the server refuses an active token with another message than an inactive one.
        if answer.status != 200 and not is_refused_otherwise:
            raise _unreadable("the user of the token", answer)

    async def shows_any(self, org_id: str, collection: str) -> bool:
        """
        Whether the server lists any resource of a *collection* besides its own, in one request.

        Raises:
            CannotRead: The read failed.
        """
        # Every organization has system buckets, which the server shows to any token.
        limit = _PAGE if collection == "buckets" else 1
        page = await self._page(collection, [("orgID", org_id), ("limit", str(limit))])
        return any(body.get("type") != "system" for body in page)

    async def secret_keys(self, org_id: str) -> list[str]:
        """
        The keys of all secrets.

        Raises:
            CannotRead: The read failed.
        """
        answer = await self._get(f"/api/v2/orgs/{org_id}/secrets")
        if answer.status != 200:
            raise _unreadable("the secrets", answer)
        return list(answer.body.get("secrets") or ())

    async def listed(self, org_id: str, collection: str) -> list[Body]:
        """
        All resources of a *collection*; dashboards without the content of their cells.

        Raises:
            CannotRead: The read failed, or the list changed during each attempt.
        """
        query = [("orgID", org_id)]
        if collection in _BY_LAST_ID:
            return await self._listed_by_last_id(collection, query)
        if collection not in _BY_OFFSET:
            return await self._page(collection, query)
        for _ in range(_RESTARTS):
            bodies = await self._listed_by_offset(collection, query)
            if bodies is not None:
                return bodies
        raise CannotRead(f"the list of {collection} changed during each of {_RESTARTS} reads")

    async def body(self, org_id: str, collection: str, id_: str) -> Body | None:
        """
        The resource with an id, a dashboard with the content of its cells; None: certainly not in this organization.

        Raises:
            CannotRead: The read failed.
        """
        if not _ID.fullmatch(id_):
            return None
        query = [("include", "properties")] if collection == DASHBOARDS else []
        answer = await self._get(f"/api/v2/{collection}/{id_}", query)
        if collection == DASHBOARDS and answer.status == 404 and "view" in answer.message:
            return await self._dashboard_with_lost_views(org_id, id_)
        return _in_org(org_id, collection, id_, answer)

    async def resources(self, org_id: str, kinds: Iterable[str]) -> list[StoredResource]:
        """
        All resources of *kinds*.

        Raises:
            CannotRead: The read failed.
        """
        requested_kinds = frozenset(kinds)
        collections = sorted({CODECS[kind].collection for kind in requested_kinds})
        needed = sorted({*collections, *([ENDPOINTS] if RULES in collections else [])})
        lists = await asyncio.gather(*(self.listed(org_id, collection) for collection in needed))
        bodies = dict(zip(needed, lists, strict=True))
        if DASHBOARDS in collections:
            bodies[DASHBOARDS] = await self._existing_bodies(
                org_id, DASHBOARDS, [each["id"] for each in bodies[DASHBOARDS]]
            )
        endpoints = {each["id"]: kind_of(ENDPOINTS, each) for each in bodies.get(ENDPOINTS, ())}
        # A list leaves out the endpoints that the token may not read; a read by id is then an error.
        used = {rule["endpointID"] for rule in bodies.get(RULES, ())}
        endpoints |= await self.endpoint_kinds(org_id, used - endpoints.keys())
        return [
            stored(kind, body, endpoints)
            for collection in collections
            for body in bodies[collection]
            if (kind := kind_of(collection, body)) in requested_kinds
        ]

    async def read(self, org_id: str, ids: Sequence[ResourceId]) -> dict[ResourceId, StoredResource]:
        """
        The resources with these ids; an id that is missing in the result certainly does not exist.

        Raises:
            CannotRead: A read failed.
        """
        bodies = await self.bodies(org_id, ids)
        rules = {body["endpointID"] for id_, body in bodies.items() if CODECS[id_.kind].collection == RULES}
        endpoints = await self.endpoint_kinds(org_id, rules)
        requested_ids = set(ids)
        return {id_: stored(id_.kind, body, endpoints) for id_, body in bodies.items() if id_ in requested_ids}

    async def bodies(self, org_id: str, ids: Iterable[ResourceId]) -> dict[ResourceId, Body]:
        """
        The existing resources of these ids in the form of the API.

        Raises:
            CannotRead: A read failed.
        """
        by_collection: dict[str, set[str]] = {}
        for id_ in ids:
            by_collection.setdefault(CODECS[id_.kind].collection, set()).add(id_.id)
        lists = await asyncio.gather(
            *(
                self._many(org_id, collection, sorted(collection_ids))
                for collection, collection_ids in by_collection.items()
            )
        )
        return {
            ResourceId(kind, body["id"]): body
            for collection, bodies in zip(by_collection, lists, strict=True)
            for body in bodies
            if (kind := kind_of(collection, body))
        }

    async def endpoint_kinds(self, org_id: str, ids: Iterable[str]) -> dict[str, str]:
        """
        The kind of each existing endpoint.

        Raises:
            CannotRead: The read failed.
        """
        endpoints = await self._many(org_id, ENDPOINTS, sorted(ids))
        return {each["id"]: kind_of(ENDPOINTS, each) for each in endpoints}

    async def _many(self, org_id: str, collection: str, ids: Sequence[str]) -> list[Body]:
        """The existing resources of these ids: many from one list, and those missing in it one by one."""
        if collection == DASHBOARDS or len(ids) <= _FEW:
            return await self._existing_bodies(org_id, collection, ids)
        requested_ids = set(ids)
        listed = [body for body in await self.listed(org_id, collection) if body["id"] in requested_ids]
        lacking = requested_ids - {body["id"] for body in listed}
        return listed + await self._existing_bodies(org_id, collection, sorted(lacking))

    async def _existing_bodies(self, org_id: str, collection: str, ids: Iterable[str]) -> list[Body]:
        bodies = await asyncio.gather(*(self.body(org_id, collection, id_) for id_ in ids))
        return [body for body in bodies if body is not None]

    async def _dashboard_with_lost_views(self, org_id: str, id_: str) -> Body | None:
        """A dashboard with a cell that lost its view: the server answers only requests for single cells then."""
        body = _in_org(org_id, DASHBOARDS, id_, await self._get(f"/api/v2/dashboards/{id_}"))
        if body is None:
            return None
        paths = [f"/api/v2/dashboards/{id_}/cells/{cell['id']}/view" for cell in body.get("cells") or ()]
        views = await asyncio.gather(*map(self._get, paths))
        cells = []
        for cell, view in zip(body.get("cells") or (), views, strict=True):
            if view.status not in (200, 404):
                raise _unreadable(f"cell {cell['id']} of dashboard {id_!r}", view)
            shown = {key: view.body[key] for key in ("name", "properties") if key in view.body}
            cells.append({**cell, **(shown if view.status == 200 else {})})
        return {**body, "cells": cells}

    async def _listed_by_last_id(self, collection: str, query: Query) -> list[Body]:
        limit, bodies = _BY_LAST_ID[collection], list[Body]()
        further: Query = ()
        # Pages leave out resources that the token may not read, so only an empty page is the last.
        while page := await self._page(collection, [*query, ("limit", str(limit)), *further]):
            bodies += page
            further = [("after", page[-1]["id"])]
        return bodies

    async def _listed_by_offset(self, collection: str, query: Query) -> list[Body] | None:
        """All pages; None: a deletion meanwhile shifted later resources to a page that was already read."""
        bodies: dict[str, Body] = {}
        offset, last = 0, ""
        while page := await self._page(collection, [*query, ("limit", str(_PAGE)), ("offset", str(offset))]):
            # Pages overlap by one resource, which has to be the same on both.
            if last and page[0]["id"] != last:
                return None
            if last and len(page) == 1:
                break
            bodies |= {body["id"]: body for body in page}
            last = page[-1]["id"] if len(page) == _PAGE else ""
            offset += _PAGE - 1 if last else _PAGE
        else:
            if last:
                return None
        return list(bodies.values())

    async def _page(self, collection: str, query: Query) -> list[Body]:
        answer = await self._get(f"/api/v2/{collection}", query)
        if answer.status != 200:
            raise _unreadable(f"the list of {collection}", answer)
        return list(answer.body.get(_LIST_KEYS.get(collection, collection)) or ())

    async def _get(self, path: str, query: Query = ()) -> Response:
        try:
            answer = await self._client.get(path, query)
        except NotSent as error:
            raise CannotRead(str(error), answered=False) from None
        except Unanswered as error:
            raise CannotRead(str(error), answered=bool(error.status)) from None
        if answer.status == 200 and not (answer.is_whole and isinstance(answer.body, dict)):
            raise CannotRead(f"the answer to {path} is not a JSON object")
        return answer


def stored(kind: str, body: Body, endpoints: Mapping[str, str], labels: Body | None = None) -> StoredResource:
    """
    A resource in the form of the driver contract.

    Args:
        kind: Its kind.
        body: The resource in the form of the API.
        endpoints: Kinds of the existing endpoints, by id.
        labels: The body that has the labels, if not *body*.
    """
    codec = CODECS[kind]
    spec = codec.read(body)
    label_ids = {label["id"] for label in (body if labels is None else labels).get("labels") or ()}
    used = body.get("endpointID", "") if codec.collection == RULES else ""
    # A rule cannot refer to an endpoint of a kind that packages do not have.
    references = (Reference(ENDPOINT, endpoints[used], used),) if endpoints.get(used) in TYPES else ()
    return StoredResource(
        ResourceId(kind, body["id"]),
        canonical_text(spec),
        spec["name"],
        tuple(sorted(label_ids)),
        references,
        tuple(codec.unexpressed(body)) if codec.unexpressed else (),
    )


def unwrapped(collection: str, body: Mapping[str, Any]) -> Body:
    """The resource in an answer; the API wraps labels in an object."""
    return body["label"] if collection == LABELS else body


def _in_org(org_id: str, collection: str, id_: str, answer: Response) -> Body | None:
    if answer.status == 200:
        body = unwrapped(collection, answer.body)
        # The server finds an id in every organization that the token can read.
        return body if body.get("orgID") == org_id else None
    if is_gone(collection, answer):
        return None
    if is_out_of_reach(collection, answer):
        raise CannotRead(f"{id_!r} of {collection}: {OUT_OF_REACH}", RejectionReason.CONTENT_REFUSED)
    raise _unreadable(f"{id_!r} of {collection}", answer)


def _unreadable(what: str, answer: Response) -> CannotRead:
    if _is_no_token(answer):
        return CannotRead(f"the token is unknown or inactive: {answer.description}", RejectionReason.NOT_PERMITTED)
    if is_unreadable("tasks", answer):
        return CannotRead(f"the token may not read {what}: {answer.description}", RejectionReason.NOT_PERMITTED)
    return CannotRead(f"{what} cannot be read: {answer.description}")


def _is_no_token(answer: Response) -> bool:
    """Whether the token is unknown to the server or inactive."""
    return answer.status == 401 and answer.message in {"unauthorized access", "token is inactive"}
