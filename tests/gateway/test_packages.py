"""For every package, a dry run over HTTP shows the plan that gRPC returns."""

import json
from pathlib import Path

import pytest
from pkger.journal.v1 import planning_pb2
from pkger.journal.v1.planning_pb2_grpc import PlanningServiceStub
from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import planner_pb2

from services.gateway.documents.answer import answer_json
from services.rpc.plan_parts import JoinedPlan, joined
from tests.cluster import ALL_VIEWS, Cluster
from tests.corpora import corpus_parameters, package_objects, package_text, packages_in
from tests.gateway.gateway import client, gateway, settings

ENCODINGS = {"json": parser_pb2.ENCODING_JSON, "yaml": parser_pb2.ENCODING_YAML}


@pytest.mark.parametrize("folder", corpus_parameters(pytest.mark.slow))
async def test_a_dry_run_is_the_plan(services: Cluster, tmp_path: Path, folder: Path) -> None:
    stub = PlanningServiceStub(services.peers["planner"].channel)
    async with gateway(settings(tmp_path), services) as address, client(address) as http:
        async with http.get("/api/v2/orgs") as answer:
            org = (await answer.json())["orgs"][0]["id"]
        for path in packages_in(folder):
            text = package_text(path)
            encoding = "json" if text.startswith("[") else "yaml"
            template = {"contentType": encoding, "sources": [path.name], "contents": text}
            async with http.post(
                "/api/v2/templates/apply", json={"dryRun": True, "orgID": org, "template": template}
            ) as answer:
                document = await answer.json()
            request = planner_pb2.CreatePlanRequest(validate_only=True, view=ALL_VIEWS)
            request.target.org = "example"
            request.package.sources.add(name=path.name, text=text, encoding=ENCODINGS[encoding])
            message = planning_pb2.PlanStandalonePackageRequest(request=request)
            answers = services.peers["planner"].stream(stub.PlanStandalonePackage, message)
            made = await joined(each.part async for each in answers if each.HasField("part"))
            assert isinstance(made, JoinedPlan), path.name
            assert answer.status == 200, path.name
            assert document == json.loads(answer_json(made, "", org, is_applied=False)), path.name
            objects = package_objects(path)
            rows = [row for name, rows in document["diff"].items() if name != "labelMappings" for row in rows]
            assert len(rows) == len(objects), path.name
