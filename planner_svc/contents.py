"""What a store keeps of a plan so that somebody can ask for its diffs and its summary later (journal.proto)."""

import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import object_pb2, plan_pb2

from planner_svc.views import Planned
from services.core.model import ResourceDiff
from services.rpc.convert.objects import key_fields
from services.rpc.convert.plans import diff_fields, mapping_fields
from services.rpc.parts import parts

_LEVEL = 1
"""Of the compression: the fastest, which finds most of what repeats in specs (scale.md 3)."""


def compressed_content(planned: Planned, objects: Iterable[object_pb2.Object]) -> bytes:
    """The content of a plan that was made from *objects*."""
    compressor = zlib.compressobj(_LEVEL)
    return b"".join(
        [*(compressor.compress(part.SerializeToString()) for part in _parts(planned, objects)), compressor.flush()]
    )


def _parts(planned: Planned, objects: Iterable[object_pb2.Object]) -> Iterator[journal_pb2.PlanContent]:
    """The content in parts: the texts of messages, one behind the other, are the text of the whole message."""
    for some in parts(objects, object_pb2.Object.ByteSize):
        yield journal_pb2.PlanContent(objects=some)
    diffs = planned.diffs()
    referred: Any = [{"key": key_fields(key), "resource_id": id_} for key, id_ in sorted(planned.referred().items())]
    yield journal_pb2.PlanContent(
        skipped=map(key_fields, sorted(planned.skipped())),
        diffs=plan_pb2.PlanDiffs(
            resources=map(_kept_fields, diffs.resources), label_mappings=map(mapping_fields, diffs.label_mappings)
        ),
        referred=referred,
    )


def _kept_fields(diff: ResourceDiff) -> Any:
    """A diff without the specs that stand in objects and steps: a platform may write a spec otherwise that it holds."""
    fields = diff_fields(diff, has_specs=False)
    if diff.old_spec and diff.new_spec and diff.old_spec != diff.new_spec and not diff.changes:
        fields["old_spec_json"] = diff.old_spec.text
    return fields
