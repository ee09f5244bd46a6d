"""
Case 16 of docs/reference/engine.md, "Cases": whole packages are applied side by side in one organization, and
uninstalled in random order.
"""

import asyncio
import random
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest
from pkger.model.v1 import object_pb2, operation_pb2

from services.core.errors import PkgerError, SharedDiffers
from tests.cluster import Cluster
from tests.corpora import corpus_parameters, package_text, packages_in

SUCCEEDED = operation_pb2.OPERATION_STATE_SUCCEEDED


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.faults)])
@pytest.mark.parametrize("folder", corpus_parameters(pytest.mark.slow))
async def test_packages_live_side_by_side(services: Cluster, folder: Path, seed: int) -> None:
    rng = random.Random(seed)
    packages = {path.stem: package_text(path) for path in packages_in(folder)}
    stacks = await _applied(services, packages, rng)
    # A few of them declare the same variable or label with different content.
    assert len(stacks) > 0.8 * len(packages)
    records = [await services.record(stack) for stack in stacks]
    assert any(entry.origin == object_pb2.ORIGIN_SHARED for record in records for entry in record.resources)
    for stack in stacks:
        assert (await services.apply(packages[stack], stack=stack)).no_change, stack

    order = rng.sample(sorted(stacks), len(stacks))
    while order:
        leaving, order = order[:3], order[3:]
        again = leaving
        while again:
            await asyncio.gather(*(services.uninstall(stack) for stack in again), return_exceptions=True)
            there = set(await services.stack_names())
            again = [stack for stack in again if stack in there]
            await lack_nothing(services, order)
    assert await services.resources() == []


async def _applied(services: Cluster, packages: Mapping[str, str], rng: random.Random) -> list[str]:
    """Apply all in random order; returns the packages without a conflict."""
    fitting = []
    for name in rng.sample(sorted(packages), len(packages)):
        try:
            finished = await services.apply(packages[name], stack=name)
        except SharedDiffers:
            continue
        assert finished.state == SUCCEEDED, finished.cause
        fitting.append(name)
    return fitting


async def lack_nothing(services: Cluster, stacks: Collection[str]) -> None:
    """Check that the platform has all resources and labels in the records of *stacks*."""
    live = {(each.kind, each.id): set(each.label_ids) for each in await services.resources()}
    for stack in stacks:
        try:
            entries = {(each.key.kind, each.key.name): each for each in (await services.record(stack)).resources}
        except PkgerError as error:
            raise AssertionError(f"{stack} is gone: {error}") from error
        for entry in entries.values():
            labels = {entries[label.kind, label.name].resource_id for label in entry.associations}
            assert labels <= live[entry.key.kind, entry.resource_id], (stack, entry.key.name)
