"""Performs a batch on an InfluxDB server: each write is sent once, updates and deletions after a read."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from services.core.model import LABEL
from services.drivers.expectations import held_to
from services.drivers.influxdb.client import Client, NotSent, Response, Unanswered
from services.drivers.influxdb.codecs.codec import Body, Codec, Refused
from services.drivers.influxdb.codecs.dashboard import shown_charts
from services.drivers.influxdb.codecs.endpoint import changes_scripts
from services.drivers.influxdb.codecs.registry import CODECS, kind_of
from services.drivers.influxdb.codecs.rule import endpoint_of
from services.drivers.influxdb.kinds import TRAITS
from services.drivers.influxdb.prepared_specs import prepared
from services.drivers.influxdb.reading import (
    DASHBOARDS,
    ENDPOINTS,
    LABELS,
    RULES,
    CannotRead,
    ResourceReader,
    stored,
    unwrapped,
)
from services.drivers.influxdb.rule_scripts import RuleScripts
from services.drivers.influxdb.write_outcomes import WriteRequest, refusal
from services.drivers.mutation import (
    Ambiguous,
    Attach,
    Create,
    Delete,
    DeleteSecret,
    Detach,
    Done,
    Mutation,
    PutSecret,
    Rejected,
    ResourceId,
    Result,
    StoredResource,
    Update,
)
from services.engine.outcome import RejectionReason
from services.system import Clock

IN_FLIGHT = 4
"""Most concurrent mutations of one batch."""

_TAKEN_UNSEEN = (
    "The server lists no check of that name: the token may not read it, or somebody deleted the task that the server"
    " runs for it, and then its name stays taken for ever. Give the check another name"
)

_CHECKED_BY_SERVER = frozenset(("buckets", DASHBOARDS))
"""Collections where the server refuses a label on a missing resource; elsewhere it would store the association."""


@dataclass(frozen=True, slots=True)
class LiveResource:
    """A resource before a write, in the form of the API and in the form of the driver contract."""

    body: Body
    resource: StoredResource


class Stopped(Exception):
    """A mutation ended early; *result* is its outcome."""

    def __init__(self, result: Result) -> None:
        super().__init__(str(result))
        self.result = result


class BatchWriter:
    """One batch in one organization."""

    def __init__(self, client: Client, reader: ResourceReader, scripts: RuleScripts, org_id: str, clock: Clock) -> None:
        self._client = client
        self._reader = reader
        self._scripts = scripts
        self._org_id = org_id
        self._clock = clock
        self._slots = asyncio.Semaphore(IN_FLIGHT)
        self._lists: dict[str, asyncio.Future[frozenset[str]]] = {}

    async def perform(self, batch: Sequence[Mutation]) -> list[Result]:
        """The outcome of each item of *batch*, in order; secrets are written together, other items one by one."""
        secrets = [item for item in batch if isinstance(item, PutSecret | DeleteSecret)]
        resources = [item for item in batch if not isinstance(item, PutSecret | DeleteSecret)]
        ends, results = await asyncio.gather(self._secrets(secrets), asyncio.gather(*map(self._ended, resources)))
        by_secret, by_resource = iter(ends), iter(results)
        return [next(by_secret if isinstance(item, PutSecret | DeleteSecret) else by_resource) for item in batch]

    async def _ended(self, item: Mutation) -> Result:
        async with self._slots:
            return await _result_of(lambda: self._perform(item))

    async def _perform(self, item: Mutation) -> Result:
        match item:
            case Create(kind, spec):
                return await self._create(replace(item, spec=prepared(kind, spec, item.references)))
            case Update(id_, spec):
                return await self._update(replace(item, spec=prepared(id_.kind, spec, item.references)))
            case Delete():
                return await self._delete(item)
            case Attach():
                return await self._attach(item)
            case Detach(id_, label_id):
                path = f"{_path(id_)}/labels/{label_id}"
                await self._write(WriteRequest("DELETE", CODECS[id_.kind].collection, deletes=True), path)
                return Done()
            case _:
                raise TypeError(f"{type(item).__name__} is no mutation of a resource")

    async def _create(self, item: Create) -> Done:
        codec = CODECS[item.kind]
        endpoints = await self._endpoints(item, codec)
        body = codec.write(item.spec.value, item.references, None) | {"orgID": self._org_id}
        try:
            created = await self._written(WriteRequest("POST", codec.collection), f"/api/v2/{codec.collection}", body)
        except Stopped as stopped:
            if codec.collection == "checks":
                await self._explain_name(stopped.result, item.spec.display_name)
            raise
        if codec.collection == DASHBOARDS and shown_charts(created) != item.spec.value["charts"]:
            await self._write(
                WriteRequest("DELETE", DASHBOARDS, deletes=True), f"/api/v2/{DASHBOARDS}/{created['id']}", unsure=True
            )
            raise Stopped(_views_lost())
        return Done(stored(item.kind, created, endpoints))

    async def _explain_name(self, result: Result, name: str) -> None:
        """Stop with the reason why the *name* of a new check is taken, if the server lists no check with it."""
        if not isinstance(result, Rejected) or result.reason is not RejectionReason.NAME_TAKEN:
            return
        with contextlib.suppress(CannotRead):
            if all(body["name"] != name for body in await self._reader.listed(self._org_id, "checks")):
                raise Stopped(Rejected(RejectionReason.NAME_TAKEN, f"{result.message}. {_TAKEN_UNSEEN}"))

    async def _update(self, item: Update) -> Result:
        codec = CODECS[item.id.kind]
        live = await self._live_resource(item.id)
        if live is None:
            return Rejected(RejectionReason.NOT_FOUND, f"there is no {item.id}")
        if (ended := held_to(item, live.resource, TRAITS[item.id.kind])) is not None:
            # An earlier attempt of this mutation may have stopped between the endpoint and its rules.
            await self._scripts_written(item.id)
            return ended
        endpoints = await self._endpoints(item, codec)
        body = self._body(codec, codec.write(item.spec.value, item.references, live.body))
        request = WriteRequest("PUT" if codec.replaces else "PATCH", codec.collection)
        if codec.collection == "checks":
            written = await self._written_check(item, live, body)
        elif codec.collection == ENDPOINTS and changes_scripts(codec.read(live.body), item.spec.value):
            written = await self._written_endpoint(item, body)
        else:
            written = await self._written(request, _path(item.id), body)
        if codec.collection == DASHBOARDS and shown_charts(written) != item.spec.value["charts"]:
            await self._restored(codec, live, request)
            return _views_lost()
        # Some answers to updates lack the labels.
        return Done(stored(item.id.kind, written, endpoints, labels=live.body))

    async def _delete(self, item: Delete) -> Result:
        live = await self._live_resource(item.id)
        if live is None:
            return Done()
        if (ended := held_to(item, live.resource, TRAITS[item.id.kind])) is not None:
            return ended
        await self._write(WriteRequest("DELETE", CODECS[item.id.kind].collection, deletes=True), _path(item.id))
        return Done()

    async def _attach(self, item: Attach) -> Done:
        collection = CODECS[item.id.kind].collection
        await self._refuse_missing(LABELS, ResourceId(LABEL, item.label_id))
        if collection not in _CHECKED_BY_SERVER:
            await self._refuse_missing(collection, item.id)
        request = WriteRequest("POST", collection, attaches=True)
        await self._write(request, f"{_path(item.id)}/labels", {"labelID": item.label_id})
        return Done()

    async def _refuse_missing(self, collection: str, id_: ResourceId) -> None:
        """Stop if the resource certainly does not exist; it is looked up in one list for the whole batch."""
        if (
            id_.id not in await self._listed(collection)
            and await self._reader.body(self._org_id, collection, id_.id) is None
        ):
            raise Stopped(Rejected(RejectionReason.NOT_FOUND, f"there is no {id_}"))

    async def _listed(self, collection: str) -> frozenset[str]:
        if collection not in self._lists:
            self._lists[collection] = asyncio.ensure_future(self._ids(collection))
        return await asyncio.shield(self._lists[collection])

    async def _ids(self, collection: str) -> frozenset[str]:
        return frozenset(body["id"] for body in await self._reader.listed(self._org_id, collection))

    async def _live_resource(self, id_: ResourceId) -> LiveResource | None:
        collection = CODECS[id_.kind].collection
        body = await self._reader.body(self._org_id, collection, id_.id)
        # A system bucket has no kind. The server would erase its data and then refuse to delete it.
        if body is None or kind_of(collection, body) != id_.kind:
            return None
        used = [body["endpointID"]] if collection == RULES else []
        endpoints = await self._reader.endpoint_kinds(self._org_id, used) if used else {}
        return LiveResource(body, stored(id_.kind, body, endpoints))

    async def _endpoints(self, item: Create | Update, codec: Codec) -> Mapping[str, str]:
        """The kind of the endpoint of a rule by its id; stop if it does not exist with that kind."""
        if codec.collection != RULES:
            return {}
        endpoint = endpoint_of(item.references)
        if endpoint is None:
            raise Stopped(Rejected(RejectionReason.NOT_FOUND, "a rule needs a reference to an endpoint, and has none"))
        kinds = await self._reader.endpoint_kinds(self._org_id, [endpoint.id])
        if kinds.get(endpoint.id) != endpoint.kind:
            raise Stopped(Rejected(RejectionReason.NOT_FOUND, f"there is no {ResourceId(endpoint.kind, endpoint.id)}"))
        return kinds

    async def _written_check(self, item: Update, live: LiveResource, body: Body) -> Body:
        """
        Update a check. The server stores a check before it makes its script, so a refused update has to be undone.

        The update failed even if the check reads as wanted: the script before the update still runs.
        """
        try:
            return await self._written(WriteRequest("PUT", "checks"), _path(item.id), body)
        except Stopped as stopped:
            answer = stopped.__cause__
            if not isinstance(answer, _Answered) or answer.status not in {400, 500}:
                raise
            message = f"the server answered {answer}"
        codec = CODECS[item.id.kind]
        unsure = Stopped(Ambiguous(f"{message}, and the state of the check is unknown"))
        try:
            now = await self._reader.body(self._org_id, "checks", item.id.id)
        except CannotRead:
            raise unsure from None
        if now is None:
            raise unsure
        if kind_of("checks", now) != item.id.kind or codec.read(now) != codec.read(live.body):
            await self._restored(codec, live, WriteRequest("PUT", "checks"))
        raise Stopped(Rejected(RejectionReason.CONTENT_REFUSED, message))

    async def _restored(self, codec: Codec, live: LiveResource, request: WriteRequest) -> None:
        """Write *live* back, as it was before the write; if that may have failed, its state is unknown."""
        unsure = Stopped(Ambiguous("a write was refused after it had an effect, and could not be undone"))
        before = codec.read(live.body)
        body = self._body(codec, codec.write(before, live.resource.references, live.body))
        path = _path(live.resource.id)
        try:
            await self._write(request, path, body)
            now = await self._reader.body(self._org_id, codec.collection, live.resource.id.id)
        except (Stopped, CannotRead):
            raise unsure from None
        if now is None or codec.read(now) != before:
            raise unsure

    async def _written_endpoint(self, item: Update, body: Body) -> Body:
        """Update an endpoint with fields that its rules have in their scripts, and then the scripts."""
        self._scripts.record(self._org_id, item.id.id)
        try:
            written = await self._written(WriteRequest("PUT", ENDPOINTS), _path(item.id), body)
        except Stopped as stopped:
            if isinstance(stopped.result, Rejected):
                self._scripts.forget(self._org_id, item.id.id)
            raise
        await self._scripts_written(item.id)
        return written

    async def _scripts_written(self, endpoint: ResourceId) -> None:
        """
        Update the scripts of the rules with a changed endpoint; if this fails, the next read of the endpoint updates
        them.
        """
        try:
            await self._scripts.catch_up(self._org_id, [endpoint.id])
        except CannotRead as error:
            problem = f"{endpoint} is written, but the scripts of its rules are not: {error}"
            raise Stopped(Ambiguous(problem)) from None

    async def _secrets(self, batch: Sequence[PutSecret | DeleteSecret]) -> list[Result]:
        """Write secrets; consecutive items of one type are one request. No result contains a value."""
        results: list[Result] = []
        path = f"/api/v2/orgs/{self._org_id}/secrets"
        for verb, group in groupby(batch, key=type):
            items = list(group)
            if verb is PutSecret:
                values = {item.key: item.value for item in items if isinstance(item, PutSecret)}
                result = await self._secrets_written(WriteRequest("PATCH", "secrets"), path, values)
            else:
                # The form with the key in the path has no effect for a key with a slash.
                keys = {"secrets": [item.key for item in items]}
                result = await self._secrets_written(WriteRequest("POST", "secrets"), f"{path}/delete", keys)
            results += [result] * len(items)
        return results

    async def _secrets_written(self, request: WriteRequest, path: str, body: Mapping[str, Any]) -> Result:
        async def written() -> Result:
            await self._write(request, path, body)
            return Done()

        return await _result_of(written)

    def _body(self, codec: Codec, body: dict[str, Any]) -> dict[str, Any]:
        """The body of an update, with the further fields that its kind requires."""
        if not codec.replaces:
            return body
        # The id of another organization would move an endpoint there, and show a variable in both.
        further = {"orgID": self._org_id}
        if codec.collection == "variables":
            further["updatedAt"] = _rfc3339(self._clock())
        return body | further

    async def _written(self, request: WriteRequest, path: str, body: Mapping[str, Any]) -> Body:
        """The resource in the answer to a write."""
        answer = await self._write(request, path, body)
        if not isinstance(answer.body, dict):
            raise Stopped(Ambiguous("the server answered without the resource"))
        return unwrapped(request.collection, answer.body)

    async def _write(
        self, request: WriteRequest, path: str, body: Mapping[str, Any] | None = None, unsure: bool = False
    ) -> Response:
        """
        Send a write.

        *unsure*: an earlier write of the same mutation had an effect, so a failure of this one is ambiguous.

        Raises:
            Stopped: The write had no effect, or may have had none.
        """
        try:
            answer = await self._client.send(request.method, path, body)
        except NotSent as error:
            ended: Rejected | Ambiguous = Rejected(None, f"the request was not sent: {error}")
            cause: Exception = error
        except Unanswered as error:
            ended, cause = Ambiguous(str(error)), error
        else:
            refused = refusal(request, answer)
            if refused is None:
                return answer
            ended, cause = refused, _Answered(answer)
        raise Stopped(Ambiguous(ended.message) if unsure else ended) from cause


class _Answered(Exception):
    """The answer that ended a mutation."""

    def __init__(self, answer: Response) -> None:
        super().__init__(answer.description)
        self.status = answer.status


async def _result_of(work: Callable[[], Awaitable[Result]]) -> Result:
    try:
        return await work()
    except Stopped as stopped:
        return stopped.result
    except Refused as refused:
        return Rejected(RejectionReason.CONTENT_REFUSED, str(refused))
    except CannotRead as error:
        # The write was not sent.
        return Rejected(error.reason, str(error))


def _views_lost() -> Rejected:
    return Rejected(RejectionReason.CONTENT_REFUSED, "the server cannot store a chart, and would show an empty one")


def _path(id_: ResourceId) -> str:
    return f"/api/v2/{CODECS[id_.kind].collection}/{id_.id}"


def _rfc3339(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds / 1e6, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
