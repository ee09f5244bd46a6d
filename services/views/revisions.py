"""The difference of two revisions: an entry for each object and each association that differs."""

import json
from dataclasses import replace

from pkger.model.v1 import plan_pb2

from services.core.model import Key
from services.rpc.convert.objects import key_from_pb
from services.views.entries import Act, PlanEntry

_ACTS = {
    plan_pb2.DIFF_STATUS_NEW: Act.CREATE,
    plan_pb2.DIFF_STATUS_EXISTS: Act.UPDATE,
    plan_pb2.DIFF_STATUS_REMOVE: Act.DELETE,
}


def difference_entries(diffs: plan_pb2.PlanDiffs) -> list[PlanEntry]:
    """The entries for objects and associations that the new revision adds, changes and removes, sorted by object."""
    entries: dict[Key, list[PlanEntry]] = {}
    for diff in diffs.resources:
        key, spec = key_from_pb(diff.key), diff.new_spec_json or diff.old_spec_json
        act = _ACTS[diff.status]
        shown = PlanEntry(act, key, display_name=_name(spec))
        shown = replace(shown, diff=diff) if act is Act.UPDATE else replace(shown, spec=spec)
        entries.setdefault(key, []).append(shown)
    for mapping in diffs.label_mappings:
        key, label = key_from_pb(mapping.resource), key_from_pb(mapping.label)
        act = Act.ATTACH if mapping.status == plan_pb2.DIFF_STATUS_NEW else Act.DETACH
        entries.setdefault(key, []).append(PlanEntry(act, key, label=label))
    return [entry for key in sorted(entries) for entry in entries[key]]


def _name(spec: str) -> str:
    return str(json.loads(spec)["name"])
