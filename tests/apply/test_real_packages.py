"""Packages: applied, applied again without a change, uninstalled."""

from pathlib import Path

import pytest
from pkger.model.v1 import operation_pb2

from tests.cluster import Calls, Cluster
from tests.corpora import package_parameters, package_text


@pytest.mark.parametrize("path", package_parameters())
async def test_a_package_lives_its_whole_life(path: Path, services: Cluster, calls: Calls) -> None:
    package = package_text(path)
    applied = await services.apply(package, stack="s")
    assert applied.state == operation_pb2.OPERATION_STATE_SUCCEEDED, applied.cause
    held = await services.resources()
    assert len(held) == applied.counts.creates > 0

    writes = calls.count("Mutate")
    assert (await services.apply(package, stack="s")).no_change
    assert calls.count("Mutate") == writes

    removed = await services.uninstall("s")
    assert removed.state == operation_pb2.OPERATION_STATE_SUCCEEDED
    assert await services.resources() == []
    assert await services.stack_names() == []
