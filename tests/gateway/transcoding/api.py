"""A client of ``/api/pkger/v1`` that checks each answer against its OpenAPI schema."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import aiohttp
import jsonschema
import orjson
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012
from yarl import URL

from services.gateway.transcoding.bindings import Binding, bindings
from services.gateway.transcoding.openapi import PROBLEM
from services.gateway.transcoding.route_table import api_components

BASE = "/api/pkger/v1"

LABEL = "apiVersion: influxdata.com/v2alpha1\nkind: Label\nmetadata: {name: fleet}\nspec: {name: fleet}\n"


def a_source(text: str = LABEL) -> dict[str, Any]:
    """The ``package`` of a request, with one source."""
    return {"sources": [{"name": "fleet.yml", "text": text}]}


@dataclass(frozen=True)
class Answered:
    """
    An answer.

    Attributes:
        status: Its status.
        headers: Its headers.
        documents: Its messages; one message if the RPC does not stream.
    """

    status: int
    headers: Mapping[str, str]
    documents: Sequence[Any]

    @property
    def document(self) -> Any:
        """The one message."""
        [document] = self.documents
        return document


class Api:
    """A client."""

    def __init__(self, session: aiohttp.ClientSession, address: str) -> None:
        self.session, self.address = session, address
        document = {"components": {"schemas": api_components()}}
        resource = Resource.from_contents(document, default_specification=DRAFT202012)
        self._registry: Registry[Any] = Registry().with_resource("urn:openapi", resource)
        self._bindings = {binding.name: binding for binding in bindings()}

    async def call(
        self,
        name: str,
        *path: str,
        query: Sequence[tuple[str, str]] = (),
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        """
        Call a route and read its whole answer, which has to conform to its schema.

        Args:
            name: Name of the binding, such as ``StackService_GetStack``.
            path: Values of the parameters of the path, percent-encoded.
            query: Parameters of the query.
            body: JSON data of the body; None for no body.
            headers: Headers in addition to the token.
        """
        binding = self._bindings[name]
        asked = f"{target_of(binding, *path)}?{urlencode(list(query))}"
        # Already encoded: otherwise the client would decode the escape of a slash in a name.
        target = URL(f"http://{self.address}{asked}", encoded=True)
        async with self.session.request(binding.method, target, json=body, headers=headers) as response:
            text = await response.read()
            documents = self._documents(binding, response, text)
        return Answered(response.status, response.headers, documents)

    def _documents(self, binding: Binding, response: aiohttp.ClientResponse, text: bytes) -> list[Any]:
        if response.status in (204, 304):
            assert text == b""
            return []
        if response.status != 200:
            problem = orjson.loads(text)
            self._check(PROBLEM, problem)
            assert problem["request_id"] == response.headers["X-Request-Id"]
            assert problem["code"] == response.headers["X-Platform-Error-Code"]
            return [problem]
        if response.content_type == "text/event-stream":
            documents = [json.loads(data) for _, data in events_of(text)]
        elif response.content_type == "application/x-ndjson":
            documents = [orjson.loads(line) for line in text.splitlines()]
        else:
            documents = [orjson.loads(text)]
        for document in documents:
            self._check(binding.rpc.output_type.full_name, document)
        return documents

    def _check(self, name: str, document: Any) -> None:
        schema = {"$ref": f"urn:openapi#/components/schemas/{name}"}
        jsonschema.Draft202012Validator(schema, registry=self._registry).validate(document)


def target_of(binding: Binding, *path: str) -> str:
    """The address of a route with values for the parameters of its path."""
    target = binding.path
    for parameter, value in zip(binding.parameters, path, strict=True):
        target = target.replace(f"{{{parameter.name}}}", value)
    return target


def events_of(text: bytes) -> list[tuple[str, str]]:
    """The id and the data of each message of an event stream, by the rules of browsers."""
    events = []
    for block in text.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "data" in fields:
            events.append((fields.get("id", ""), fields["data"]))
    return events
