"""
Answers cases about the policy of one object, and about the drift of one resource.

The recorded cases can also be compared by the program beside them:
``../shared/golden/lifecycle/compare.py --only policy -- python tests/lifecycle_adapter.py``, and
``--only drift --keys status,fields``.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from planner_svc.drift.three_way import Presence, Side, fields_of, status_of
from services.core.drift import DriftStatus
from services.core.model import Key
from services.kinds.comparing import comparable
from services.kinds.format.canonical import spec_of
from services.kinds.policy import OwnPolicy, resolved

_FOUND = {"present": Presence.THERE, "gone": Presence.GONE, "unreadable": Presence.UNREADABLE}

_COMPARED = (DriftStatus.CONFLICT, DriftStatus.DRIFTED, DriftStatus.PENDING, DriftStatus.IN_SYNC)


def _side(spec: Mapping[str, Any] | None, labels: list[str], set_paths: list[str]) -> Side:
    # Without a kind, as the cases do not use the field names that packages have for some kinds.
    value = None if spec is None else comparable("", spec_of(dict(spec)), set_paths).value
    return Side(value, frozenset(labels))


def policy(case: Mapping[str, Any]) -> dict[str, Any]:
    """The policy of an object, in the form of the recorded cases."""
    own = OwnPolicy(case.get("package", {}), case["lifecycle"])
    found = resolved(case["stack"], Key(case["kind"], case["name"]), own)
    return asdict(found) | {"ignore": list(found.ignore)}


def drift(case: Mapping[str, Any]) -> dict[str, Any]:
    """The status of a resource, and its fields in order; in the form of the recorded cases."""
    live, labels, sets = case["live"], case["labels"], case["set_paths"]
    package = _side(case["package"], labels["package"], sets)
    applied = package if case["applied"] is None else _side(case["applied"], labels["applied"], sets)
    fields = fields_of(package, applied, _side(live.get("spec"), labels["live"], sets), case["policy"]["ignore"])
    is_pending_delete = case["entry"]["state"] == "PENDING_DELETE"
    status = status_of(_FOUND[live["is"]], fields, is_pending_delete=is_pending_delete)
    compared = fields if status in _COMPARED else ()
    return {
        "status": status.value,
        "fields": [{"path": each.path, "class": each.field_class.value} for each in compared],
    }


_ANSWERS = {"policy": policy, "drift": drift}

if __name__ == "__main__":
    for line in iter(sys.stdin.readline, ""):
        asked = json.loads(line)
        answer = _ANSWERS.get(asked["suite"])
        print(json.dumps(answer(asked["input"]) if answer else {"skip": True}), flush=True)
