"""Exports of a platform with kinds that packages lack, specs that cannot be read, and costly listings."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from pkger.driver.v1 import driver_pb2
from pkger.planner.v1 import planner_pb2

from services.core.errors import KindUnsupported, RequestInvalid, ResourceNotFound, ServiceUnavailable
from services.core.model import PlatformTraits, Spec
from services.drivers.embedded.driver import EmbeddedDriver
from services.drivers.embedded.kinds import EMBEDDED
from services.drivers.mutation import ResourceId, StoredResource
from services.drivers.servicer import SERVICES, register
from services.kinds.format.canonical import spec_of
from services.rpc.process import Service
from services.settings import Settings
from services.system import MachineIds
from tests.apply.packages import LABEL, a_rule, an_endpoint, an_object, text
from tests.cluster import Calls, Cluster, cluster
from tests.export.test_export import ALL, keys, shown, the
from tests.transport import InMemory

CANARY = "canary-8a1f"
ROCKET = replace(EMBEDDED.kinds["Task"], kind="Rocket")
COSTLY = replace(EMBEDDED.kinds["Dashboard"], costly_listing=True)


class Odd(EmbeddedDriver):
    """
    Has rockets and no tasks; lists dashboards only if *lists_dashboards* is set.

    Attributes:
        more: Resources that it has beside those of its database.
        lists_dashboards: Whether a listing of dashboards succeeds.
    """

    more: tuple[StoredResource, ...] = ()
    lists_dashboards = True

    async def describe(self) -> PlatformTraits:
        kinds = {**EMBEDDED.kinds, "Dashboard": COSTLY, "Rocket": ROCKET}
        del kinds["Task"]
        return replace(EMBEDDED, kinds=kinds)

    async def list_resources(self, org: str, kinds: Sequence[str]) -> list[StoredResource]:
        if "Dashboard" in kinds and not self.lists_dashboards:
            raise ServiceUnavailable("platform", "here", "dashboards take too long")
        stored = await super().list_resources(org, [kind for kind in kinds if kind != "Rocket"])
        found = [*stored, *(each for each in self.more if each.id.kind in kinds)]
        return sorted(found, key=lambda each: each.id)


@pytest.fixture
def driver(tmp_path: Path) -> Odd:
    return Odd(tmp_path / "platform.db", MachineIds())


@pytest.fixture
async def odd(tmp_path: Path, driver: Odd) -> AsyncIterator[Cluster]:
    @asynccontextmanager
    async def opened(settings: Settings) -> AsyncIterator[Service]:
        yield Service([register(driver)], SERVICES)
        await driver.close()

    async with cluster(tmp_path, {"platform": opened}, transport=InMemory()) as running:
        yield running


def stored(kind: str, number: int, spec: Spec) -> StoredResource:
    return StoredResource(ResourceId(kind, f"{number:016x}"), spec.text, spec.display_name)


async def test_resources_that_cannot_be_exported_are_named_and_all_others_exported(odd: Cluster, driver: Odd) -> None:
    await odd.apply(text(LABEL))
    driver.more = (
        stored("Rocket", 1, spec_of({"name": "Saturn"})),
        stored("Bucket", 2, Spec('{"name": "torn', "torn")),
        stored("Label", 6, Spec("null", "")),
        stored("Dashboard", 7, Spec("[1]", "listed")),
        stored("NotificationEndpointSlack", 3, spec_of({"name": "chat", "url": "x", "token": CANARY})),
        stored("Variable", 4, spec_of({"name": "twice", "type": ""})),
        stored("Variable", 5, spec_of({"name": "twice", "type": ""})),
    )
    export = await odd.export(everything=ALL)
    assert shown(export) == [("Label", "label_1"), ("Variable", "twice")]
    assert CANARY not in export.text + str(export.warnings)
    bucket, dashboard, label, endpoint, rocket, variable, *_ = export.warning_texts
    assert dashboard == "Dashboard 'listed': it cannot be read: a spec is a JSON object with a name, so it is left out"
    assert label == f"Label '{6:016x}': it cannot be read: a spec is a JSON object with a name, so it is left out"
    assert bucket.startswith("Bucket 'torn': it cannot be read: ")
    assert bucket.endswith(", so it is left out")
    assert endpoint == (
        "NotificationEndpointSlack 'chat': it holds a credential at token instead of naming a secret, so it is left out"
    )
    assert rocket == "Rocket 'Saturn': packages have no such kind, so it is left out"
    assert "has the name 'twice', which only one object of a package can have, so it is left out" in "".join(
        export.warning_texts
    )
    assert [warning.resource.kind for warning in export.warnings[:5]] == [
        "Bucket",
        "Dashboard",
        "Label",
        "NotificationEndpointSlack",
        "Rocket",
    ]
    assert variable.startswith("Variable 'twice'")


async def test_kinds_that_only_one_side_has_cannot_be_named(odd: Cluster) -> None:
    with pytest.raises(RequestInvalid, match="packages have no kind 'Rocket', so it cannot be exported"):
        await odd.export(resources=[the("Rocket", name="Saturn")])
    with pytest.raises(RequestInvalid, match=r"everything.kinds\[0\]: packages have no kind 'Rocket'"):
        await odd.export(everything=planner_pb2.ExportFilter(kinds=["Rocket"]))
    with pytest.raises(KindUnsupported, match="does not support kind 'Task'"):
        await odd.export(resources=[the("Task", name="t")])


async def test_a_rule_whose_endpoint_is_left_out_is_left_out_too(odd: Cluster) -> None:
    await odd.apply(text(an_endpoint("Slack", "chat", "chat"), a_rule("r", "chat")), stack="s")
    [chat] = await odd.resources(kinds=["NotificationEndpointSlack"])
    update = driver_pb2.UpdateResource(kind=chat.kind, id=chat.id, spec_json='{"name":"chat"}')
    await odd.mutate(driver_pb2.Mutation(update=update))
    export = await odd.export(resources=[the("NotificationRule", name="rule")])
    assert (export.text, export.header.object_count) == ("", 0)
    endpoint, rule = export.warning_texts
    assert endpoint.startswith("NotificationEndpointSlack 'chat': it breaks a rule of packages (spec.url: ")
    assert rule == "NotificationRule 'rule': the resource of its endpointName is left out, so it is left out"


async def test_kinds_whose_listing_is_costly_are_read_by_ids_where_those_are_known(
    odd: Cluster, driver: Odd, calls: Calls
) -> None:
    boards = [an_object("Dashboard", f"d{number}", f"board {number}", ["lucid_einstein"]) for number in range(3)]
    await odd.apply(text(LABEL, *boards), stack="s")
    ids = (await odd.record("s")).ids
    driver.lists_dashboards = False
    calls.methods.clear()
    assert len(keys(await odd.export(stack="s"))) == 4
    by_id = await odd.export(resources=[the("Dashboard", id=ids["Dashboard", "d1"])])
    assert keys(by_id) == [("Label", "lucid_einstein"), ("Dashboard", "d1")]
    assert calls.count("ReadResources") == 2
    with pytest.raises(ResourceNotFound):
        await odd.export(resources=[the("Dashboard", id="0000000000000009")])
    with pytest.raises(ServiceUnavailable, match="dashboards take too long"):
        await odd.export(resources=[the("Dashboard", name="board 1")])
    driver.lists_dashboards = True
    by_name = await odd.export(resources=[the("Dashboard", name="board 1")])
    assert by_name.text == by_id.text
