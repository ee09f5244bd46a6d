"""Names that a platform treats as equal (docs/reference/driver-contract.md, "Names"), through real servers."""

import json
import sqlite3
from pathlib import Path

import pytest
from pkger.model.v1 import operation_pb2

from services.core.errors import NameTaken
from services.drivers.embedded.kinds import unique_name
from services.kinds.format.canonical import spec_of
from tests import older_platform
from tests.apply.packages import an_object, text
from tests.cluster import Cluster, cluster
from tests.drivers.older_file import older_file

SUCCEEDED = operation_pb2.OPERATION_STATE_SUCCEEDED
FOLDED = [("Variable", "abc", "ABC"), ("Label", "sensors", " sensors ")]


def named(kind: str, key: str, name: str, description: str = "") -> dict[str, object]:
    spec = {"type": "constant", "values": ["a"]} if kind == "Variable" else {}
    return an_object(kind, key, name, description=description, **spec)


@pytest.mark.parametrize("stack", ["s", ""])
@pytest.mark.parametrize(("kind", "first", "second"), FOLDED)
async def test_two_objects_with_one_name_are_refused_before_anything_is_written(
    services: Cluster, kind: str, first: str, second: str, stack: str
) -> None:
    package = text(named(kind, "one", first), named(kind, "two", second))
    for refused in (services.plan, services.apply):
        with pytest.raises(NameTaken, match=f"{kind} 'two' cannot have the name {second!r}: {kind} 'one'"):
            await refused(package, stack=stack)
    assert await services.resources() == []


@pytest.mark.parametrize(("kind", "first", "second"), FOLDED)
async def test_resources_of_an_earlier_version_with_one_name_stay_and_are_both_named(
    tmp_path: Path, kind: str, first: str, second: str
) -> None:
    ids = older_file(tmp_path, kind, first, second, org="default")
    async with cluster(tmp_path) as services:
        before = await services.resources()
        assert [resource.id for resource in before] == ids
        for stack in ("s", ""):
            with pytest.raises(NameTaken) as caught:
                await services.apply(text(named(kind, "x", second)), stack=stack)
            assert all(id_ in str(caught.value) for id_ in ids)
        assert await services.resources() == before


@pytest.mark.parametrize(("kind", "first", "second"), FOLDED)
async def test_a_stack_of_an_earlier_version_with_one_name_twice_lives_on(
    tmp_path: Path, kind: str, first: str, second: str
) -> None:
    """Recorded resources are found by id, so each can be updated, renamed and deleted, and undone."""
    async with cluster(tmp_path) as services:
        await services.apply(text(named(kind, "one", first), named(kind, "two", "other")), stack="s")
        recorded = {entry.key.name: entry.resource_id for entry in (await services.record("s")).resources}
    _rename(tmp_path, recorded["two"], kind, second)
    async with cluster(tmp_path, {"platform": older_platform.opened}) as services:
        with pytest.raises(NameTaken, match=f"{kind} 'one' of the same package"):
            await services.apply(text(named(kind, "one", first), named(kind, "two", second)), stack="s")
        before = await services.resources()
        wanted = named(kind, "one", first, "new")
        undone = await services.apply(text(wanted, an_object("Bucket", "b", "_refused")), stack="s")
        assert undone.state == operation_pb2.OPERATION_STATE_ROLLED_BACK
        assert await services.resources() == before
        plan = await services.plan(text(wanted), stack="s", store=True)
        events = [event async for event in services.apply_plan(plan.name, plan.digest)]
        assert events[-1].finished.state == SUCCEEDED
        assert [resource.id for resource in await services.resources()] == [recorded["one"]]
        assert (await services.plan(text(wanted), stack="s")).no_change


def _rename(folder: Path, id_: str, kind: str, name: str) -> None:
    """Give a resource a name that an earlier version allowed."""
    with sqlite3.connect(folder / "platform.db") as file:
        [[text]] = file.execute("SELECT spec FROM resources WHERE id = ?", [id_]).fetchall()
        spec = spec_of({**json.loads(text), "name": name})
        values = [spec.text, unique_name(kind, spec.display_name), id_]
        file.execute("UPDATE resources SET spec = ?, unique_name = ? WHERE id = ?", values)
    file.close()
