"""Manifests of snapshots, and their ids."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.actions.snapshots import (
    PACKAGE,
    LeftOutObject,
    Manifest,
    SnapshotContent,
    SnapshotStack,
    manifest_text,
    read_manifest,
    snapshot_id,
    snapshot_ids,
)
from services.core.errors import SnapshotCorrupt
from services.core.model import Target
from tests.strategies import json_values, targets, words

STACK = SnapshotStack("prod", Target(), 7, "Production", ("https://example.com/a.yml",), {"protect": True})
MANIFEST = Manifest(
    "0123456789abcdef",
    "backup",
    2,
    "export",
    "2026-11-22T10:05:09Z",
    PACKAGE,
    (SnapshotContent("sha256:ab", 1_000),),
    STACK,
    12,
    ("slack-token",),
    (LeftOutObject("Dashboard", "fleet", "it has cells of an unknown type"),),
)
DOCUMENT = {
    "format": 1,
    "operation": "0123456789abcdef",
    "action": "backup",
    "index": 2,
    "phase": "export",
    "time": "2026-11-22T10:05:09Z",
    "mediaType": "application/vnd.pkger.package+json",
    "contents": [{"digest": "sha256:ab", "bytes": 1_000}],
    "stack": {
        "name": "prod",
        "target": {"platform": "embedded", "org": "default"},
        "generation": 7,
        "description": "Production",
        "urls": ["https://example.com/a.yml"],
        "policy": {"protect": True},
    },
    "objects": 12,
    "secrets": ["slack-token"],
    "leftOut": [{"kind": "Dashboard", "name": "fleet", "problem": "it has cells of an unknown type"}],
}

sizes = st.integers(0, 2**40)
manifests = st.builds(
    Manifest,
    words,
    words,
    sizes,
    words,
    words,
    words,
    st.lists(st.builds(SnapshotContent, words, sizes), max_size=2).map(tuple),
    st.none()
    | st.builds(
        SnapshotStack,
        words,
        targets,
        sizes,
        words,
        st.lists(words, max_size=2).map(tuple),
        st.dictionaries(words, json_values, max_size=2),
    ),
    sizes,
    st.lists(words, max_size=2).map(tuple),
    st.lists(st.builds(LeftOutObject, words, words, words), max_size=2).map(tuple),
)


def test_a_manifest_as_text() -> None:
    assert json.loads(manifest_text(MANIFEST)) == DOCUMENT
    assert read_manifest(manifest_text(MANIFEST)) == MANIFEST


@given(manifests)
def test_a_text_reads_as_the_same_manifest(manifest: Manifest) -> None:
    text = manifest_text(manifest)
    assert read_manifest(text) == manifest
    assert manifest_text(read_manifest(text)) == text


def test_another_format_is_told_with_both_numbers() -> None:
    text = json.dumps({**DOCUMENT, "format": 2, "chunks": []})
    problem = f"snapshot {snapshot_id(text)} cannot be used: its format is 2, and this version reads format 1"
    with pytest.raises(SnapshotCorrupt, match=re.escape(problem)):
        read_manifest(text)


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        "x",
        {},
        {"format": 1},
        {**DOCUMENT, "objects": "12"},
        {**DOCUMENT, "contents": {}},
        {**DOCUMENT, "x": 1},
    ],
)
def test_a_text_that_is_no_manifest_is_corrupt(document: Any) -> None:
    with pytest.raises(SnapshotCorrupt, match="its manifest cannot be read"):
        read_manifest(json.dumps(document))


def test_a_text_that_is_no_json_is_corrupt() -> None:
    with pytest.raises(SnapshotCorrupt, match="its manifest cannot be read"):
        read_manifest("{")


def test_two_phases_never_make_the_same_snapshot() -> None:
    assert snapshot_id(json.dumps(DOCUMENT)) != snapshot_id(json.dumps({**DOCUMENT, "phase": "again"}))


def test_an_id_of_a_snapshot_is_a_whole_text() -> None:
    snapshot = snapshot_id("x")
    others = ["", "sha256:", snapshot.upper(), f"{snapshot}0", f"{snapshot}\n", f" {snapshot}", snapshot[:-1]]
    assert snapshot_ids([*others, snapshot, snapshot]) == (snapshot,)
