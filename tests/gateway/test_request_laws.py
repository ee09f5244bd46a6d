"""Properties of the readers: any body is read, or refused with a Problem."""

import json
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from services.gateway.errors import Problem
from services.gateway.requests.apply import read_apply
from services.gateway.requests.export import read_export
from services.gateway.requests.stacks import read_creation, read_update
from services.gateway.requests.yaml_bodies import decoded_yaml

MEMBERS = [
    *("dryRun", "orgID", "stackID", "template", "templates", "remotes", "envRefs", "secrets", "actions", "url", "urls"),
    *("contents", "contentType", "sources", "action", "properties", "kind", "resourceTemplateName", "orgIDs", "id"),
    *("resources", "resourceFilters", "byLabel", "byResourceKind", "name", "description", "templateURLs"),
    *("additionalResources", "resourceID", "templateMetaName", "allowEmpty", "planDigest", "metadata", "spec"),
]

WORDS = [
    "",
    "0a1b2c3d4e5f6071",
    "0" * 16,
    "zz",
    "Label",
    "Check",
    "skipKind",
    "skipResource",
    "json",
    "jsonnet",
    "x%zz",
]

SIMPLE = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(max_size=5)

VALUES: st.SearchStrategy[Any] = st.recursive(
    SIMPLE,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(MEMBERS) | st.text(max_size=3), inner, max_size=6)
    ),
    max_leaves=25,
)

READERS: list[Callable[[bytes], Any]] = [
    lambda body: read_apply(body, ""),
    lambda body: read_apply(body, "text/yml"),
    read_export,
    read_creation,
    read_update,
]


def refusal(read: Callable[[bytes], Any], body: bytes) -> Problem | None:
    """The problem of a refused body; None when it is read."""
    try:
        read(body)
    except Problem as problem:
        return problem
    return None


@given(members=st.dictionaries(st.sampled_from(MEMBERS), VALUES, max_size=8))
def test_a_body_is_read_or_refused(members: dict[str, Any]) -> None:
    body = json.dumps({"orgID": "0a1b2c3d4e5f6071", **members}).encode()
    for read in READERS:
        problem = refusal(read, body)
        assert problem is None or (400 <= problem.status < 500 and problem.message)


@given(body=st.binary(max_size=60) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    for read in (*READERS, decoded_yaml):
        problem = refusal(read, body)
        assert problem is None or (400 <= problem.status < 500 and problem.message)
