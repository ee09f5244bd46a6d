"""OpenAPI 3.1 descriptions of the routes: operations, parameters, bodies, answers and errors."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from services.gateway.transcoding.bindings import Binding
from services.gateway.transcoding.decoding import is_map, is_time
from services.gateway.transcoding.problems import PROBLEM_SCHEMA
from services.gateway.transcoding.schemas import EXAMPLES, REF, Schemas, example_of, example_of_field
from services.gateway.transcoding.streaming import FORMS

PROBLEM = "pkger.Problem"
"""Name of the schema of errors."""

_ERROR = {
    "description": "The request failed; code has the category of the error, message says why.",
    "content": {"application/json": {"schema": {"$ref": f"{REF}{PROBLEM}"}}},
}


class Descriptions:
    """The descriptions of routes; ``components`` returns the schemas that they use."""

    def __init__(self, bindings: Iterable[Binding], comments: Mapping[str, str]) -> None:
        """
        Args:
            bindings: All routes.
            comments: Comments of the contracts, by full name.
        """
        self._comments = comments
        rpcs = {binding.rpc.full_name: binding.rpc for binding in bindings}.values()
        self._messages = [message for rpc in rpcs for message in (rpc.input_type, rpc.output_type)]
        self._schemas = Schemas(comments, [rpc.input_type for rpc in rpcs])

    def components(self) -> dict[str, Any]:
        """All schemas, by name."""
        return {PROBLEM: PROBLEM_SCHEMA, **self._schemas.components(self._messages)}

    def operation(self, binding: Binding) -> dict[str, Any]:
        """The OpenAPI operation of a route."""
        rpc = binding.rpc
        comment = self._comments[rpc.full_name]
        operation: dict[str, Any] = {
            "operationId": binding.name,
            "summary": f"{comment.split('. ')[0].splitlines()[0].rstrip('.')}.",
            "description": comment,
            "tags": [rpc.containing_service.name],
            "parameters": [*self._parameters(binding), *_headers(binding)],
            "responses": self._responses(binding),
        }
        if binding.has_body:
            operation["requestBody"] = {"content": {"application/json": self._body(binding)}}
        return operation

    def _body(self, binding: Binding) -> dict[str, Any]:
        """The body of a request, without the fields of the path; the example has no request id, either."""
        example = example_of(binding.rpc.input_type)
        in_path = sorted({parameter.field.split(".")[0] for parameter in binding.parameters})
        for name in (*in_path, "request_id"):
            example.pop(name, None)
        schema: dict[str, Any] = {"$ref": f"{REF}{binding.rpc.input_type.full_name}"}
        if in_path:
            schema["not"] = {"anyOf": [{"required": [name]} for name in in_path]}
        return {"schema": schema, "example": example}

    def _responses(self, binding: Binding) -> dict[str, Any]:
        answer = binding.rpc.output_type
        schema, example = {"$ref": f"{REF}{answer.full_name}"}, example_of(answer)
        about, types = "The answer.", ["application/json"]
        if binding.rpc.server_streaming:
            # OpenAPI 3.1 cannot describe a stream; its tools read the schema as that of each message.
            about = "A stream: each line, or the data of each event, is one of these."
            types = [form.media_type for form in FORMS]
        content = {media_type: {"schema": schema, "example": example} for media_type in types}
        responses: dict[str, Any] = {"200": {"description": about, "content": content}}
        if binding.is_safe and binding.rpc.server_streaming:
            responses["204"] = {"description": "As server-sent events: the stream has no more events."}
        if binding.is_safe:
            responses["304"] = {"description": "The answer has not changed since the one in If-None-Match."}
        return {**responses, "default": _ERROR}

    def _parameters(self, binding: Binding) -> Iterator[dict[str, Any]]:
        for parameter in binding.parameters:
            field = _field_at(binding.rpc.input_type, parameter.field)
            example = str(EXAMPLES.get(field.name, "fleet"))
            shown = (
                {**self._schemas.field(field), "minLength": 1}
                if field.type == field.TYPE_STRING
                else self._schemas.field(field)
            )
            about = shown.pop("description", "")
            yield {
                "name": parameter.name,
                "in": "path",
                "required": True,
                "description": about,
                "schema": shown,
                "example": int(example) if shown.get("type") == "integer" else example,
            }
        if not binding.has_body:
            in_path = {parameter.field for parameter in binding.parameters}
            yield from self._of_query(binding.rpc.input_type, "", in_path)

    def _of_query(self, message: Descriptor, where: str, in_path: set[str]) -> Iterator[dict[str, Any]]:
        """The parameters of the query for a message, without fields of the path and messages that the path fills."""
        for field in message.fields:
            name = f"{where}{field.name}"
            if any(each == name or each.startswith(f"{name}.") for each in in_path):
                continue
            schema = self._schemas.field(field)
            about = {"name": name, "in": "query", "description": schema.pop("description", "")}
            inner = field.message_type
            if inner is None or is_time(inner):
                yield {**about, "schema": schema, "example": example_of_field(field)}
                continue
            if is_map(field):
                yield {**about, "content": {"application/json": {"schema": schema, "example": example_of_field(field)}}}
                continue
            if field.is_repeated or all(each.is_repeated for each in inner.fields):
                example = example_of(inner)
                shown = {"schema": schema, "example": [example] if field.is_repeated else example}
                yield {**about, "content": {"application/json": shown}}
            if not field.is_repeated:
                yield from self._of_query(inner, f"{name}.", in_path)


def _headers(binding: Binding) -> Iterator[dict[str, Any]]:
    if "request_id" in binding.rpc.input_type.fields_by_name:
        about = "The request_id of the body: a request that is sent again with it has no second effect."
        yield _header("Idempotency-Key", about, f"{binding.name}-2026-11-22")
    if binding.is_safe:
        about = "The ETag of an earlier answer; the answer is 304 without a body if it has not changed."
        yield _header("If-None-Match", about, 'W/"5f70bf18a086007016e948b04aed3b82"')
    if binding.follows:
        about = "Id of the last event that the client received; the stream resumes after it."
        yield _header("Last-Event-ID", about, "1")


def _header(name: str, about: str, example: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "description": about, "schema": {"type": "string"}, "example": example}


def _field_at(message: Descriptor, path: str) -> FieldDescriptor:
    *outer, last = path.split(".")
    for step in outer:
        inner = message.fields_by_name[step].message_type
        assert inner is not None  # noqa: S101 - a step of a path leads to a message
        message = inner
    return message.fields_by_name[last]
