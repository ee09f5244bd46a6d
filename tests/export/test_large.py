"""Ten thousand resources in one export."""

import pytest
from pkger.model.v1 import operation_pb2
from pkger.parser.v1 import parser_pb2

from bench.package import Mix, package_text
from tests.cluster import Cluster
from tests.export.test_export import ALL

OBJECTS = 10_000


@pytest.mark.faults
@pytest.mark.timeout(600)
async def test_ten_thousand_resources_come_back(services: Cluster) -> None:
    finished = await services.apply(package_text(OBJECTS, Mix.MIXED), stack="s")
    assert finished.state == operation_pb2.OPERATION_STATE_SUCCEEDED, finished.cause
    export = await services.export(stack="s")
    assert (export.header.object_count, export.warning_texts) == (OBJECTS, [])
    assert (await services.plan(export.text, stack="s")).no_change
    everything = await services.export(everything=ALL, encoding=parser_pb2.ENCODING_JSON)
    assert everything.header == export.header
