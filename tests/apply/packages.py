"""The packages of the six steps in the life of a stack."""

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


def an_endpoint(kind: str, name: str, display_name: str, labels: Sequence[str] = (), **spec: Any) -> dict[str, Any]:
    """A notification endpoint; its credentials are keys of secrets."""
    credentials: dict[str, dict[str, Any]] = {
        "HTTP": {"method": "post", "type": "bearer", "token": {"secretRef": {"key": "http-token"}}},
        "PagerDuty": {"routingKey": {"secretRef": {"key": "routing-key"}}},
        "Slack": {"token": {"secretRef": {"key": "slack-token"}}},
    }
    fields = {"url": "https://example.com", **credentials[kind], **spec}
    return an_object(f"NotificationEndpoint{kind}", name, display_name, labels, **fields)


def a_rule(
    name: str, endpoint: str, display_name: str = "rule", labels: Sequence[str] = (), **spec: Any
) -> dict[str, Any]:
    """A notification rule that sends to the endpoint object *endpoint*."""
    fields = {"endpointName": endpoint, "every": "10m", "statusRules": [{"currentLevel": "CRIT"}], **spec}
    return an_object("NotificationRule", name, display_name, labels, **fields)


def a_check(kind: str, name: str, display_name: str, labels: Sequence[str] = (), **spec: Any) -> dict[str, Any]:
    """A check, of kind "Deadman" or "Threshold"."""
    fields = {"every": "1m", "query": "buckets()", "statusMessageTemplate": "it is ${ r._level }", **spec}
    if kind == "Threshold":
        fields["thresholds"] = [{"type": "greater", "level": "CRIT", "value": 90}]
    return an_object(f"Check{kind}", name, display_name, labels, **fields)


LABEL = an_object("Label", "lucid_einstein", "label_1")
RENAMED = an_object("Label", "lucid_einstein", "cool label name")
BUCKET = an_object("Bucket", "pristine_noir", "bucket_1", ["lucid_einstein"])
DASHBOARD = an_object("Dashboard", "charmed_saratoba", "dash_1", ["lucid_einstein"])
TASK = an_object("Task", "alcord_mumphries", "task_1", ["lucid_einstein"], every="1h", query="buckets()")
BARE = (an_object("Bucket", "pristine_noir", "bucket_1"), an_object("Dashboard", "charmed_saratoba", "dash_1"))

EVERY_KIND = (
    LABEL,
    BUCKET,
    DASHBOARD,
    TASK,
    an_object("Variable", "region", "region", ["lucid_einstein"], type="constant", values=["eu", "us"]),
    an_object("Telegraf", "agent", "agent", ["lucid_einstein"], config="[agent]"),
    a_check("Deadman", "silent", "silent", ["lucid_einstein"], timeSince="90s", level="CRIT"),
    a_check("Threshold", "hot", "hot", ["lucid_einstein"]),
    an_endpoint("HTTP", "hook", "hook", ["lucid_einstein"]),
    an_endpoint("PagerDuty", "pager", "pager", ["lucid_einstein"]),
    an_endpoint("Slack", "chat", "chat", ["lucid_einstein"]),
    a_rule("to_hook", "hook", labels=["lucid_einstein"]),
    a_rule("to_pager", "pager", labels=["lucid_einstein"]),
)

STEPS = {
    1: text(LABEL, BUCKET, DASHBOARD),
    2: text(LABEL, BUCKET, DASHBOARD),
    3: text(RENAMED, BUCKET, DASHBOARD),
    4: text(RENAMED, BUCKET, DASHBOARD, TASK),
    5: text(RENAMED, BUCKET, DASHBOARD),
    6: text(*BARE),
}
"""The package of each step."""
