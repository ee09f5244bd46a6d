"""The packages of the six steps (issue 2)."""

import json
from collections.abc import Sequence
from typing import Any


def an_object(kind: str, name: str, display_name: str, labels: Sequence[str] = (), **spec: Any) -> dict[str, Any]:
    """One object of a package."""
    associations = [{"kind": "Label", "name": label} for label in labels]
    return {
        "apiVersion": "influxdata.com/v2alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"name": display_name, **({"associations": associations} if labels else {}), **spec},
    }


def text(*objects: dict[str, Any]) -> str:
    """A JSON package."""
    return json.dumps(objects)


LABEL = an_object("Label", "lucid_einstein", "label_1")
RENAMED = an_object("Label", "lucid_einstein", "cool label name")
BUCKET = an_object("Bucket", "pristine_noir", "bucket_1", ["lucid_einstein"])
DASHBOARD = an_object("Dashboard", "charmed_saratoba", "dash_1", ["lucid_einstein"])
TASK = an_object("Task", "alcord_mumphries", "task_1", ["lucid_einstein"], every="1h", query="buckets()")
BARE = (an_object("Bucket", "pristine_noir", "bucket_1"), an_object("Dashboard", "charmed_saratoba", "dash_1"))

STEPS = {
    1: text(LABEL, BUCKET, DASHBOARD),
    2: text(LABEL, BUCKET, DASHBOARD),
    3: text(RENAMED, BUCKET, DASHBOARD),
    4: text(RENAMED, BUCKET, DASHBOARD, TASK),
    5: text(RENAMED, BUCKET, DASHBOARD),
    6: text(*BARE),
}
"""The package of each step."""
