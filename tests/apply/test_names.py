"""Names that a platform treats as equal (docs/reference/driver-contract.md, "Names"), through real servers."""

import pytest
from pkger.model.v1 import operation_pb2

from services.core.errors import NameTaken
from tests.apply.packages import an_object, text
from tests.cluster import Cluster

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
