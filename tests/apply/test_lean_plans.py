"""The costs of a plan through all services, in counts that no host changes."""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pkger.model.v1 import plan_pb2

from bench.package import Mix, package_text
from services.core import model
from services.kinds.format import canonical
from tests.cluster import Cluster, cluster
from tests.transport import InMemory

OBJECTS = 300


@pytest.fixture
async def services(tmp_path: Path) -> AsyncIterator[Cluster]:
    """Services with an empty store and an empty cache of documents, as the tests count what they write and read."""
    async with cluster(tmp_path, transport=InMemory()) as running:
        yield running


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often specs are read as JSON and written, in all services of this process."""
    counts: Counter[str] = Counter()
    read_object, checked_spec, canonical_text = model.read_object, canonical.checked_spec, canonical.canonical_text

    def reads(text: str) -> object:
        counts["read"] += 1
        return read_object(text)

    def checks(text: str) -> model.Spec:
        counts["read"] += 1
        return checked_spec(text)

    def writes(value: object) -> str:
        counts["written"] += 1
        return canonical_text(value)

    monkeypatch.setattr(model, "read_object", reads)
    for module in ("services.kinds.format.canonical", "services.drivers.wire"):
        monkeypatch.setattr(f"{module}.checked_spec", checks)
    # This module uses it to write specs, and to check how deep they are nested.
    monkeypatch.setattr(canonical, "canonical_text", writes)
    return counts


async def test_a_spec_is_read_and_written_as_seldom_as_can_be(services: Cluster, counted: Counter[str]) -> None:
    package = package_text(OBJECTS, Mix.MIXED)
    assert (await services.apply(package, stack="s")).counts.creates == OBJECTS
    # The parser writes it; the driver reads it for the plan and for the write, as it does not trust its callers; the
    # planner reads it for the summary.
    assert (counted["read"], counted["written"]) == (3 * OBJECTS, OBJECTS)

    counted.clear()
    assert (await services.apply(package, stack="s")).no_change
    # The parser has all documents.
    assert (counted["read"], counted["written"]) == (0, 0)

    counted.clear()
    new_texts = "# again\n" + package.replace("---\n", "---\n# again\n")
    assert (await services.apply(new_texts, stack="s")).no_change
    assert (counted["read"], counted["written"]) == (0, OBJECTS)


async def test_a_plan_is_hardly_larger_than_the_specs_that_it_writes(services: Cluster) -> None:
    view = [plan_pb2.PLAN_VIEW_STEPS, plan_pb2.PLAN_VIEW_RECORD]
    made = (await services.plan(package_text(OBJECTS, Mix.MIXED), stack="s", view=view)).parts
    written = sum(len(step.create.spec_json.encode()) for step in made.steps)
    assert made.body.ByteSize() <= 1.4 * written


async def test_a_plan_has_nothing_of_what_is_unchanged(services: Cluster) -> None:
    await services.apply(package_text(OBJECTS, Mix.MIXED), stack="s")
    made = (await services.plan(package_text(OBJECTS, Mix.MIXED), stack="s")).parts
    assert (made.body.ByteSize(), list(made.body.record.entries)) == (0, [])
