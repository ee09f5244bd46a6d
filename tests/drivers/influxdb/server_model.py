"""Models how an InfluxDB server changes a body, as far as the laws of the codecs need it."""

import json
from typing import Any

from services.kinds.influxdb.flux.script import first_options, read_statements


def held(kind: str, body: dict[str, Any]) -> dict[str, Any]:
    """The resource that a server would return for a *body* that created it."""
    answer: dict[str, Any] = json.loads(json.dumps(body))
    if kind == "Dashboard":
        answer["cells"] = [{**cell, "id": "1", **cell.pop("properties")} for cell in answer["cells"]]
        return answer
    if kind == "Task":
        return {**_options(answer["flux"]), **answer}
    if kind == "Label":
        answer["name"] = answer["name"].strip()
    for threshold in answer.get("thresholds", ()):
        for key in ("min", "max"):
            if threshold.get(key) == 0:
                del threshold[key]
    for rule in answer.get("retentionRules", ()):
        rule["shardGroupDurationSeconds"] = 3600
    # The server leaves out most empty texts and lists.
    kept = {"name", "arguments", "url"}
    return {key: value for key, value in answer.items() if key in kept or value not in ("", [], None)}


def _options(script: str) -> dict[str, str]:
    option = first_options(read_statements(script), ("task",))["task"]
    assert option.record
    found = {}
    for entry in option.record.properties:
        assert entry.value_start
        text = script[entry.value_start : entry.end]
        found[entry.key] = str(entry.literal.value) if entry.literal.value_type == "string" else text
    return found
