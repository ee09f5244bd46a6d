"""The OpenAPI document is complete, and answers conform to it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import jsonschema

from services.gateway.answers import Code
from services.gateway.schemas import schemas
from tests.cluster import Cluster
from tests.gateway.cases import Scenario, in_one_piece, read_cases
from tests.gateway.gateway import TOKEN, client, gateway, settings


async def document(session: aiohttp.ClientSession) -> dict[str, Any]:
    async with session.get("/api/v2/swagger.json") as answer:
        found: dict[str, Any] = await answer.json()
    return found


def references(value: Any) -> Iterator[str]:
    """All references in a document."""
    if isinstance(value, dict):
        yield from (each for key, each in value.items() if key == "$ref")
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


def test_schemas_are_valid_and_their_examples_conform() -> None:
    made = schemas()
    for name, schema in made.items():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["examples"], name
        for example in schema["examples"]:
            assert wrong(made, name, example) == []
    assert set(made["Error"]["properties"]["code"]["enum"]) == set(map(str, Code))


def wrong(schemas: dict[str, Any], name: str, value: Any) -> list[str]:
    """The violations of a schema by a value."""
    whole = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}}
    validator = jsonschema.Draft202012Validator(whole)
    return [f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(value)]


async def test_every_reference_of_the_document_exists(services: Cluster, tmp_path: Path) -> None:
    async with gateway(settings(tmp_path), services) as address, client(address) as session:
        found = await document(session)
    assert found["openapi"] == "3.1.0"
    for reference in set(references(found)):
        at: Any = found
        for step in reference.removeprefix("#/").split("/"):
            at = at[step]
    names = [row["operationId"] for path in found["paths"].values() for row in path.values()]
    assert len(names) == len(set(names))
    for path in ("/health", "/api/v2/templates/apply", "/api/v2/stacks/{stackID}"):
        assert path in found["paths"]


async def test_answers_conform_to_their_schemas(services: Cluster, tmp_path: Path) -> None:
    """All answers to the recorded requests, by the schemas of their routes."""
    unfit: dict[str, list[str]] = {}
    async with gateway(settings(tmp_path), services) as address, client(address, headers={}) as session:
        found = await document(session)
        scenario = Scenario(session, {"token": TOKEN, "unknown": "00000000deadbeef"}, in_one_piece)
        for case in read_cases():
            await scenario.play(case)
            answers = responses_of(found, case["request"]["method"].lower(), scenario.path)
            if answers is None or not scenario.text.startswith(("{", "[")):
                continue
            answer = answers.get(str(scenario.status), {})
            answer = found["components"]["responses"]["Error"] if "$ref" in answer else answer
            schema = answer.get("content", {}).get("application/json", {}).get("schema")
            if schema is None:
                unfit[case["id"]] = [f"no schema for {scenario.status}"]
                continue
            every = {**found["components"]["schemas"], "Asked": schema}
            if problems := wrong(every, "Asked", json.loads(scenario.text)):
                unfit[case["id"]] = problems[:3]
    assert not unfit


def responses_of(found: dict[str, Any], method: str, path: str) -> dict[str, Any] | None:
    """The responses of a route; None when there is no such route."""
    steps = path.strip("/").split("/")
    for template, methods in found["paths"].items():
        wanted = template.strip("/").split("/")
        is_it = len(wanted) == len(steps) and all(
            want == step or want.startswith("{") for want, step in zip(wanted, steps, strict=True)
        )
        if is_it and method in methods:
            responses: dict[str, Any] = methods[method]["responses"]
            return responses
    return None
