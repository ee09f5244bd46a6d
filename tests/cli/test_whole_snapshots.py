"""``pkger snapshots verify`` and ``save`` accept a snapshot only as it was made."""

import pytest
from pkger.stack.v1 import snapshot_pb2

from services.actions.snapshots import PACKAGE, Manifest, SnapshotContent, manifest_text, snapshot_id
from services.cli.actions.snapshots import WholeSnapshot
from services.core.errors import SnapshotCorrupt
from services.kinds.attachment import text_digest

TEXT = "é\n"
DIGEST = text_digest(TEXT)
MANIFEST = manifest_text(
    Manifest("0123456789abcdef", "backup", 0, "export", "2026-11-28T12:00:00Z", PACKAGE, (SnapshotContent(DIGEST, 3),),
             None, 0, (), ())
)  # fmt: skip


def whole(parts: list[str], manifest: str = MANIFEST, name: str = "") -> WholeSnapshot:
    snapshot = snapshot_pb2.Snapshot(id=name or snapshot_id(manifest), manifest_json=manifest)
    return WholeSnapshot(snapshot, {DIGEST: parts} if parts else {})


def test_the_parts_of_a_content_are_joined() -> None:
    assert whole(["é", "\n"]).verified_texts() == [TEXT]


@pytest.mark.parametrize(
    ("snapshot", "problem"),
    [
        (whole([]), f"the content {DIGEST} is missing"),
        (whole(["e\n"]), f"the content {DIGEST} does not have its digest"),
        (whole(["é\n"], name=f"sha256:{'0' * 64}"), "its manifest does not have the digest that is its id"),
        (whole(["é\n"], MANIFEST.replace('"format":1', '"format":2')), "its format is 2"),
        (whole(["é\n"], MANIFEST.replace('"bytes":3', '"bytes":4')), f"the content {DIGEST} does not have its digest"),
    ],
    ids=["missing", "changed", "another manifest", "a later format", "another size"],
)
def test_a_snapshot_that_is_not_as_it_was_made_is_corrupt(snapshot: WholeSnapshot, problem: str) -> None:
    with pytest.raises(SnapshotCorrupt) as raised:
        snapshot.verified_texts()
    assert problem in str(raised.value)
