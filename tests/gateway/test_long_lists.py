"""Lists and mappings of bodies have the bounds of the requests that the services accept."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from services.core.limits import MOST_ENTRIES
from services.gateway.errors import Problem
from services.gateway.requests.apply import read_apply
from services.gateway.requests.export import read_export
from services.gateway.requests.stacks import read_creation, read_update

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
