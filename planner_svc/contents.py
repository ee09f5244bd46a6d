"""What a store keeps of a plan so that somebody can ask for its diffs and its summary later (journal.proto)."""

import zlib
from collections.abc import Iterable
from typing import Any

from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import object_pb2, plan_pb2

from planner_svc.views import Planned
from services.core.model import ResourceDiff
from services.rpc.convert.objects import key_fields
from services.rpc.convert.plans import diff_fields, mapping_fields

_LEVEL = 1
"""Of the compression: the fastest, which finds most of what repeats in specs (scale.md 3)."""


def compressed_content(planned: Planned, objects: Iterable[object_pb2.Object]) -> bytes:
    """The content of a plan that was made from *objects*; empty for one that changes nothing."""
    if planned.plan.no_change:
        return b""
    diffs = planned.diffs()
    referred: Any = [{"key": key_fields(key), "resource_id": id_} for key, id_ in sorted(planned.referred().items())]
    content = journal_pb2.PlanContent(
        objects=objects,
        skipped=map(key_fields, sorted(planned.skipped())),
        diffs=plan_pb2.PlanDiffs(
            resources=map(_kept_fields, diffs.resources), label_mappings=map(mapping_fields, diffs.label_mappings)
        ),
        referred=referred,
    )
    return zlib.compress(content.SerializeToString(), _LEVEL)


def _kept_fields(diff: ResourceDiff) -> Any:
    """A diff without the specs that stand in objects and steps: a platform may write a spec otherwise that it holds."""
    fields = diff_fields(diff, has_specs=False)
    if diff.old_spec and diff.new_spec and diff.old_spec != diff.new_spec and not diff.changes:
        fields["old_spec_json"] = diff.old_spec.text
    return fields
