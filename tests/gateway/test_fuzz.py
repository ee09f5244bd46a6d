"""Generated requests, valid and invalid by the OpenAPI document: none causes a defect, and each answer is valid."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as hypothesis_settings
from hypothesis.errors import Unsatisfiable
from schemathesis import APIOperation, Case, DeserializationContext, GenerationMode, Response
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.cluster import Cluster
from tests.gateway.gateway import TOKEN, gateway, settings

Operation = APIOperation[Any, Any, Any, Any]

CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]

HEADERS = {"Authorization": f"Token {TOKEN}", "Content-Type": "application/json"}

SECONDS = 20
"""Timeout of an answer."""

MALFORMED = b"this is not a request of HTTP"
"""Part of the error for an invalid header, which the server sends before it looks up the route."""

LINES = "application/x-ndjson"

LABEL = "apiVersion: influxdata.com/v2alpha1\nkind: Label\nmetadata: {name: red}\nspec: {color: '#ff0000'}\n"

PACKAGES = [
    LABEL,
    "apiVersion: influxdata.com/v2alpha1\nkind: Bucket\nmetadata: {name: {envRef: {key: wide}}}\n",
    "kind: Labl",
    "[{apiVersion: influxdata.com/v2alpha1, kind: NotificationEndpointSlack, metadata: {name: a}, spec: {url: 'x'}}",
]


@schemathesis.deserializer(LINES)
def lines(_: DeserializationContext, response: Response) -> list[Any]:
    """The messages of a stream."""
    return [json.loads(line) for line in response.content.splitlines()]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("examples", "part", "is_whole"),
    [
        (1, slice(0, None, 24), False),
        pytest.param(1, slice(None), False, marks=pytest.mark.slow),
        pytest.param(50, slice(None), True, marks=pytest.mark.faults),
    ],
    ids=str,
)
async def test_no_request_causes_a_defect(
    services: Cluster, tmp_path: Path, examples: int, part: slice, is_whole: bool
) -> None:
    """
    Each operation gets valid and invalid requests.

    Half of the values in both exist, so that some requests pass the look-up.
    """
    async with gateway(settings(tmp_path), services) as address:
        await asyncio.to_thread(fuzz, f"http://{address}", examples, part, is_whole)


def fuzz(url: str, examples: int, part: slice, is_whole: bool) -> None:
    """Test a part of the operations; destructive ones come last."""
    with requests.Session() as session:
        session.headers.update(HEADERS)
        document = session.get(f"{url}/api/v2/swagger.json", timeout=SECONDS).json()
        adapt(document, known(url, session))
        operations = list(operations_of(document))
        assert len(operations) > 60
        for operation in sorted(operations[part], key=is_destructive):
            if not is_whole and operation.definition.raw["operationId"].endswith("_2"):
                # The same RPC by another path.
                continue
            for mode in GenerationMode:
                fuzz_operation(operation, mode, url, session, examples)


def operations_of(document: dict[str, Any]) -> Iterator[Operation]:
    for found in schemathesis.openapi.from_dict(document).get_all_operations():
        assert isinstance(found, Ok), found
        yield found.ok()


def is_destructive(operation: Operation) -> bool:
    return operation.method == "delete" or operation.path.endswith((":uninstall", "/uninstall"))


def fuzz_operation(
    operation: Operation, mode: GenerationMode, url: str, session: requests.Session, examples: int
) -> None:
    @hypothesis_settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def trial(case: Case[Any]) -> None:
        response = case.call(base_url=url, session=session, headers=HEADERS, timeout=SECONDS)
        if response.status_code != 400 or MALFORMED not in response.content:
            case.validate_response(response, checks=CHECKS)

    try:
        trial()
    except Unsatisfiable:
        # An operation without parameters and body has no invalid requests.
        assert not list(operation.iter_parameters())
        assert not operation.body


def known(url: str, session: requests.Session) -> dict[str, list[Any]]:
    """Values that exist in this gateway, by names of parameters and members."""

    def post(path: str, body: Any) -> requests.Response:
        answer = session.post(f"{url}{path}", json=body, timeout=SECONDS)
        answer.raise_for_status()
        return answer

    org = session.get(f"{url}/api/v2/orgs", timeout=SECONDS).json()["orgs"][0]["id"]
    stack = post("/api/v2/stacks", {"orgID": org, "name": "fleet"}).json()["id"]
    template = {"sources": ["red.yml"], "contents": LABEL}
    post("/api/v2/templates/apply", {"orgID": org, "stackID": stack, "template": template})
    at = "/api/pkger/v1"
    (label,) = session.get(f"{url}{at}/stacks/{stack}/resources", timeout=SECONDS).json()["resources"]
    plan = post(f"{at}/plans", {"stack": {"id": stack}, "package": {"sources": [{"text": LABEL}]}}).text
    (operation,) = session.get(f"{url}{at}/operations", timeout=SECONDS).json()["operations"]
    return {
        "orgID": [org],
        "stackID": [stack],
        "stack_id": [stack],
        "stack.id": [stack],
        "stack_name": ["fleet"],
        "stack.name": ["fleet"],
        "target_platform": ["embedded"],
        "stack_target_platform": ["embedded"],
        "stack.target.platform": ["embedded"],
        "target.platform": ["embedded"],
        "platform": ["embedded"],
        "target_org": ["example"],
        "stack_target_org": ["example"],
        "stack.target.org": ["example"],
        "target.org": ["example"],
        "org": ["example"],
        "resource_id": [label["resource_id"]],
        "resourceID": [label["resource_id"]],
        "id": [label["resource_id"], stack],
        "kind": ["Label", "Bucket"],
        "key_kind": ["Label", "Bucket"],
        "key_name": ["red"],
        "name": ["red", "fleet"],
        "text": PACKAGES,
        "contents": PACKAGES,
        "plan_id": [json.loads(plan.splitlines()[0])["part"]["header"]["id"]],
        "operation_id": [operation["id"]],
    }


def adapt(document: dict[str, Any], values: dict[str, list[Any]]) -> None:
    """Make half of the values known ones, and a stream a list of messages, as ``lines`` returns them."""
    for path, operations in document["paths"].items():
        for operation in operations.values():
            for parameter in operation.get("parameters", []):
                # A watch of an existing stack never ends.
                if "schema" in parameter and not path.endswith(":watch"):
                    in_path = values.get(parameter["name"], [])
                    parameter["schema"] = either(parameter["schema"], in_path)
            for answer in operation["responses"].values():
                stream = answer.get("content", {}).get(LINES)
                if stream:
                    last = {"type": "object", "required": ["error"], "maxProperties": 1}
                    stream["schema"] = {"type": "array", "items": {"anyOf": [stream["schema"], last]}}
    for schema in document["components"]["schemas"].values():
        for name, member in schema.get("properties", {}).items():
            schema["properties"][name] = either(member, values.get(name, []))


def either(schema: dict[str, Any], values: list[Any]) -> dict[str, Any]:
    return {"anyOf": [{"enum": values}, schema]} if values else schema
