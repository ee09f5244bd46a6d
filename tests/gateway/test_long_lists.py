"""Lists and mappings of bodies have the bounds of the requests that the services accept; a refused one is freed."""

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from services.core.limits import MOST_ENTRIES
from services.gateway.answers import Code
from services.gateway.errors import Problem
from services.gateway.requests import members as request_members
from services.gateway.requests.apply import read_apply
from services.gateway.requests.export import read_export
from services.gateway.requests.stacks import read_creation, read_update
from services.gateway.threads import OFF_LOOP_FROM
from tests.cluster import Cluster
from tests.gateway.gateway import client, gateway, settings

ID = "00000000deadbeef"
MANY = MOST_ENTRIES + 1
REFUSED = "has 10,001 entries; at most 10,000 are accepted"


def read_as_json(body: bytes) -> Any:
    return read_apply(body, "application/json")


SKIP = {"action": "skipKind", "properties": {"kind": "Label"}}

BODIES: list[tuple[Callable[[bytes], Any], dict[str, Any], str]] = [
    (read_as_json, {"envRefs": {str(number): 1 for number in range(MANY)}}, "envRefs"),
    (read_as_json, {"secrets": {str(number): "1" for number in range(MANY)}}, "secrets"),
    (read_as_json, {"actions": [SKIP] * MANY}, "actions"),
    (read_as_json, {"remotes": [{"url": "http://a"}] * MANY}, "remotes"),
    (read_as_json, {"templates": [{"contents": []}] * MANY}, "templates"),
    (read_as_json, {"template": {"contents": [], "sources": ["a"] * MANY}}, "template.sources"),
    (read_export, {"orgIDs": [{"orgID": ID}] * MANY}, "orgIDs"),
    (
        read_export,
        {"orgIDs": [{"orgID": ID, "resourceFilters": {"byLabel": ["a"] * MANY}}]},
        "orgIDs[0].resourceFilters.byLabel",
    ),
    (read_export, {"resources": [{"kind": "Label", "id": ID}] * MANY}, "resources"),
    (read_creation, {"urls": ["http://a"] * MANY}, "urls"),
    (read_update, {"templateURLs": ["http://a"] * MANY}, "templateURLs"),
    (read_update, {"additionalResources": [{"kind": "Label", "resourceID": ID}] * MANY}, "additionalResources"),
]


@pytest.mark.parametrize(("read", "members", "name"), BODIES, ids=[name for _, _, name in BODIES])
def test_a_list_with_too_many_entries_is_refused(
    read: Callable[[bytes], Any], members: dict[str, Any], name: str
) -> None:
    with pytest.raises(Problem) as raised:
        read(orjson.dumps({"orgID": ID, **members}))
    assert (raised.value.status, raised.value.message) == (400, f"{name}: {REFUSED}")


def test_the_objects_of_a_package_are_counted_by_the_parser() -> None:
    apply = read_as_json(orjson.dumps({"orgID": ID, "template": {"contents": [{"kind": "Label"}] * MANY}}))
    assert len(apply.templates) == 1


@pytest.mark.parametrize("source", ["short", "x" * OFF_LOOP_FROM], ids=["on the event loop", "in the thread"])
async def test_a_refused_body_is_not_kept(
    module_services: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    """Without a collection of cyclic garbage, which runs seldom: a few large bodies would take gigabytes."""

    class Large:
        pass

    documents = list[weakref.ref[Large]]()

    def refuse(*_: object) -> None:
        large = Large()
        documents.append(weakref.ref(large))
        raise Problem(Code.INVALID, "refused")

    monkeypatch.setattr(request_members, "_refuse_many", refuse)
    gc.collect()
    gc.disable()
    try:
        async with gateway(settings(tmp_path), module_services) as address, client(address) as http:
            for _ in range(3):
                body = {"orgID": ID, "template": {"contents": [], "sources": [source]}}
                async with http.post("/api/v2/templates/apply", json=body) as response:
                    assert response.status == 400
            assert [document() for document in documents] == [None] * 3
    finally:
        gc.enable()
