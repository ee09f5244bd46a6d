"""The package of a snapshot, as plans desire it."""

from dataclasses import replace

import pytest
from pkger.stack.v1 import snapshot_pb2

from planner_svc.snapshots import package_of
from services.actions.snapshots import PACKAGE, LeftOutObject, Manifest, SnapshotContent
from services.core.errors import RequestInvalid
from services.core.model import Key
from services.kinds.attachment import text_digest
from services.packages.package_text import KeptPackage, package_text
from services.rpc.snapshot_reading import VerifiedSnapshot
from tests.planner.world import an_object

OBJECTS = (an_object("Bucket", "data", ["red"]), an_object("Label", "blue"), an_object("Label", "red"))
TEXT = package_text(KeptPackage(OBJECTS, frozenset({Key("Label", "blue")})))
DIGEST = text_digest(TEXT)
CONTENT = SnapshotContent(DIGEST, len(TEXT.encode()))
LEFT_OUT = (LeftOutObject("Task", "t", "it cannot be read"),)
MANIFEST = Manifest("0" * 16, "backup", 0, "export", "2026-01-01T00:00:00Z", PACKAGE, (CONTENT,), None, 2, (), LEFT_OUT)
SNAPSHOT = VerifiedSnapshot(snapshot_pb2.Snapshot(id="sha256:1"), MANIFEST, {DIGEST: TEXT}, 1)


def test_a_snapshot_is_a_package_as_a_revision_has_it_and_skips_what_was_left_out() -> None:
    stored = package_of(SNAPSHOT)
    assert stored.sources == ("snapshot sha256:1",)
    assert stored.kept().objects == OBJECTS
    assert stored.untouched == {Key("Label", "blue"), Key("Task", "t")}


def test_a_snapshot_of_something_else_is_refused() -> None:
    with pytest.raises(RequestInvalid, match="1 has contents of type 'text/plain'; name a snapshot of a stack"):
        package_of(replace(SNAPSHOT, manifest=replace(MANIFEST, media_type="text/plain")))
