"""The content of a plan that the store retains for later reads of its diffs and summary (journal.proto)."""

import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import object_pb2, plan_pb2

from planner_svc.views import Planned
from services.core.model import ResourceDiff, Spec
from services.rpc.convert.objects import key_fields
from services.rpc.convert.plans import diff_fields, mapping_fields
from services.rpc.parts import parts

_LEVEL = 1
"""The fastest level of compression; it finds most repetitions of specs (docs/reference/engine.md, "Tables")."""


def compressed_content(planned: Planned, objects: Iterable[object_pb2.Object]) -> bytes:
    """The content of a plan that was made from *objects*."""
    compressor = zlib.compressobj(_LEVEL)
    return b"".join(
        [*(compressor.compress(part.SerializeToString()) for part in _parts(planned, objects)), compressor.flush()]
    )


def _parts(planned: Planned, objects: Iterable[object_pb2.Object]) -> Iterator[journal_pb2.PlanContent]:
    """The content in parts: serialised messages, one after the other, parse as one merged message."""
    for some in parts(objects, object_pb2.Object.ByteSize):
        yield journal_pb2.PlanContent(objects=some)
    diffs, package = planned.diffs(), {item.key: item.spec for item in planned.desired.package.objects}
    referred: Any = [{"key": key_fields(key), "resource_id": id_} for key, id_ in sorted(planned.referred().items())]
    yield journal_pb2.PlanContent(
        skipped=map(key_fields, sorted(planned.skipped())),
        diffs=plan_pb2.PlanDiffs(
            resources=[_kept_fields(diff, package.get(diff.key)) for diff in diffs.resources],
            label_mappings=map(mapping_fields, diffs.label_mappings),
        ),
        referred=referred,
    )


def _kept_fields(diff: ResourceDiff, declared: Spec | None) -> Any:
    """
    A diff without the specs that objects and steps hold already; *declared* is the spec of the package.

    The spec that the platform holds, or would hold, may be spelled otherwise than the spec of the package. Only then is
    it part of the content.
    """
    fields = diff_fields(diff, has_specs=False)
    if diff.old_spec and diff.new_spec and diff.old_spec != diff.new_spec and not diff.changes:
        fields["old_spec_json"] = diff.old_spec.text
    if diff.new_spec and diff.new_spec != declared:
        fields["new_spec_json"] = diff.new_spec.text
    return fields
