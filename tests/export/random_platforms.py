"""Platforms with resources of every kind and of odd names, as packages that make them."""

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from parser_svc.sources import Encoding
from services.core.model import LABEL
from services.kinds.registry import KINDS
from tests.apply.packages import an_object
from tests.parser.parsing import parse_text
from tests.parser.written import specs

ODD_NAMES = (
    *(
        "plain",
        "Übergröße & Söhne",
        "数据桶",
        "😀 smile",
        "yes",
        "1e3",
        "012",
        "~",
        "2020-01-01",
        "a: b # c",
        "- x",
        "{curly}",
    ),
    *(
        "'single'",
        '"double"',
        "back\\slash",
        "tab\there",
        " space ",
        "line\nbreak",
        "a" * 200,
        "x-" * 100,
        "null",
        "%41",
    ),
)
"""Display names that are hard to write, to read, or to make a name of."""

_SECRET = {"secretRef": {"key": "a key"}}
_CREDENTIALS = ("token", "username", "password", "routingKey")
_LABEL_KEYS = ("red", "green", "blue")


@dataclass(frozen=True)
class Drawn:
    """
    The packages and attachments that make a platform.

    Attributes:
        stacks: Packages by the name of the stack that they are applied to; an empty name: to none.
        attached: Labels attached outside the stacks: positions of a resource and of a label among all of the platform.
    """

    stacks: dict[str, str]
    attached: tuple[tuple[int, int], ...]


@st.composite
def platforms(draw: st.DrawFn) -> Drawn:
    """Two stacks, one of which may share the labels of the other, and resources that were made without a stack."""
    names = draw(st.permutations(ODD_NAMES))
    stacks: dict[str, str] = {}
    position = 0
    for stack in ("one", "two", ""):
        objects, position = _objects(draw, stack, names, position)
        stacks[stack] = json.dumps(objects)
    attached = draw(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=2))
    return Drawn(stacks, tuple(attached))


def _objects(draw: st.DrawFn, stack: str, names: list[str], position: int) -> tuple[list[dict[str, Any]], int]:
    """The objects of one package, none of which breaks a rule; names are taken from *position* on."""
    # The second stack uses the labels of the first, under the same display names.
    labels = [
        an_object(LABEL, f"{key}-{stack or 'none'}", f"{key} {'none' if not stack else 'shared'}")
        for key in _LABEL_KEYS
    ]
    found = list(labels)
    endpoints: list[str] = []
    for kind in draw(st.lists(st.sampled_from(sorted(KINDS.keys() - {LABEL})), max_size=5)):
        key, name = f"{kind.lower()}-{position}", f"{names[position % len(names)]} {position // len(names) or ''}"
        position += 1
        spec = draw(specs(kind)) | {"name": name}
        spec |= {field: _SECRET for field in _CREDENTIALS if spec.get(field)}
        carried = draw(st.sets(st.sampled_from(range(len(labels)))))
        spec["associations"] = [{"kind": LABEL, "name": labels[number]["metadata"]["name"]} for number in carried]
        if "endpointName" in spec:
            if not endpoints:
                continue
            spec["endpointName"] = draw(st.sampled_from(endpoints))
        item = {"apiVersion": "influxdata.com/v2alpha1", "kind": kind, "metadata": {"name": key}, "spec": spec}
        if _is_valid([*found, item]):
            found.append(item)
            if kind.startswith("NotificationEndpoint"):
                endpoints.append(key)
    return found, position


def _is_valid(objects: list[dict[str, Any]]) -> bool:
    return parse_text(json.dumps(objects), {}, Encoding.JSON).package is not None
