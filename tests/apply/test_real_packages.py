"""Real packages: applied, applied again without a change, uninstalled."""

from pathlib import Path

import pytest
from pkger.model.v1 import operation_pb2

from tests import needs
from tests.cluster import Calls, Cluster

FOLDER = needs.SHARED / "golden" / "parse" / "packages"


PATHS = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if number % 8 else [])
    for number, path in enumerate(sorted(FOLDER.glob("*.yml")))
]
"""All packages; one in eight is not slow."""


@needs.shared(FOLDER)
@pytest.mark.parametrize("path", PATHS)
async def test_a_real_package_lives_its_whole_life(path: Path, services: Cluster, calls: Calls) -> None:
    package = path.read_text()
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
