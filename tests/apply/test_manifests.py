"""Plans and applies of sources with a manifest, through real servers: as before, with a warning."""

import pytest
from pkger.model.v1 import operation_pb2

from tests.apply.packages import an_object, text
from tests.cluster import Cluster, InvalidPackage
from tests.parser.test_manifest import manifest
from tests.parser.test_package_references import REQUIRING, bucket

LABEL = text(an_object("Label", "l1", "Fleet"))
WARNING = "version and requirements of package team are not looked at; install it with `pkger install`"


async def test_a_manifest_adds_only_a_warning(services: Cluster) -> None:
    plain = await services.plan(LABEL, stack="s")
    plan = await services.plan(LABEL, manifest("requires: [{name: base}]"), stack="s")
    assert (plain.warnings, plan.warnings) == ([], [WARNING])
    assert plan.steps == plain.steps
    assert plan.summary == plain.summary
    assert plan.resource_diffs == plain.resource_diffs


async def test_an_apply_with_a_manifest_records_the_objects_alone(services: Cluster) -> None:
    plan = await services.plan_that_ran(manifest(), LABEL, stack="s")
    assert plan.warnings == [WARNING]
    assert [entry.key.kind for entry in (await services.record("s")).resources] == ["Label"]
    assert (await services.plan(LABEL, stack="s")).no_change


async def test_a_manifest_without_objects_is_an_empty_package(services: Cluster) -> None:
    plan = await services.plan(manifest(), stack="s")
    assert (plan.no_change, plan.warnings) == (True, [WARNING, "the package has no objects"])


async def test_a_plan_refuses_names_of_other_packages(services: Cluster) -> None:
    package = REQUIRING + bucket("base-labels.env")
    with pytest.raises(InvalidPackage) as planned:
        await services.plan(package, stack="s")
    with pytest.raises(InvalidPackage) as applied:
        await services.apply(package, stack="s")
    assert planned.value.paths == applied.value.paths == ["root[1].associations[0]"]
    assert str(planned.value) == str(applied.value)
    for part in (
        'code: "package-not-resolved"',
        "an object of the package \\'base-labels\\', which an apply of files does not resolve;"
        " install this package with `pkger install`",
        "line: 14\n  column: 38",
    ):
        assert part in str(planned.value)
    assert await services.resources() == []


async def test_a_standalone_package_may_have_a_manifest(services: Cluster) -> None:
    assert (await services.plan(manifest(), LABEL, standalone=True)).warnings == [WARNING]
    finished = await services.apply(manifest(), LABEL, stack="s")
    assert finished.state == operation_pb2.OPERATION_STATE_SUCCEEDED
