"""Normalised specs of each kind that an InfluxDB server holds unchanged."""

from typing import Any

_CHECK = {
    "every": "1m0s",
    "offset": "5s",
    "query": 'from(bucket: "b")\n  |> range(start: -1h)\n  |> filter(fn: (r) => r._field == "usage")',
    "status": "active",
    "statusMessageTemplate": "${r._check_name} is ${r._level}",
    "tags": [{"key": "team", "value": "a b"}],
}

_CONTENT: dict[str, dict[str, Any]] = {
    "Label": {"color": "#326BBA"},
    "Bucket": {
        "retentionRules": [{"type": "expire", "everySeconds": 3600}],
        "schemaType": "",
        "measurementSchemas": [],
    },
    "Variable": {"type": "constant", "values": ["eu", "us"], "selected": ["us"]},
    "Task": {
        "every": "1h0m0s",
        "cron": "",
        "offset": "5m0s",
        "query": '// option task = {}\nimport "x"\n\nfrom(bucket: "b")\n  |> range(start: -1h)',
        "status": "active",
    },
    "Dashboard": {
        "charts": [
            {
                "kind": "single_stat",
                "name": "CPU ☂",
                "xPos": 1,
                "yPos": 2,
                "width": 4,
                "height": 3,
                "note": "",
                "noteOnEmpty": True,
                "prefix": "",
                "suffix": " %",
                "tickPrefix": "",
                "tickSuffix": "",
                "decimalPlaces": 1,
                "colors": [{"id": "base", "name": "laser", "type": "text", "hex": "#00C9FF", "value": 0.5}],
                "queries": [{"query": 'from(bucket: "b")'}],
            }
        ]
    },
    "CheckDeadman": {**_CHECK, "level": "CRIT", "timeSince": "1m30s", "staleTime": "", "reportZero": False},
    "CheckThreshold": {
        **_CHECK,
        "thresholds": [
            {"type": "greater", "value": 0.5, "level": "CRIT", "allValues": False},
            {"type": "inside_range", "min": 0, "max": 5, "level": "WARN", "allValues": True},
        ],
    },
    "NotificationEndpointHTTP": {
        "url": "https://example.com",
        "status": "active",
        "method": "POST",
        "type": "basic",
        "token": "",
        "username": {"secretRef": {"key": "user"}},
        "password": {"secretRef": {"key": "password"}},
    },
    "NotificationEndpointPagerDuty": {
        "url": "https://example.com",
        "status": "active",
        "routingKey": {"secretRef": {"key": "routing-key"}},
    },
    "NotificationEndpointSlack": {"url": "https://example.com", "status": "active", "token": ""},
    "NotificationRule": {
        "endpointName": "",
        "every": "10m0s",
        "offset": "",
        "status": "active",
        "channel": "",
        "messageTemplate": "${r._message}",
        "statusRules": [{"currentLevel": "CRIT", "previousLevel": ""}],
        "tagRules": [{"key": "team", "value": "a", "operator": "equal"}],
    },
    "Telegraf": {"config": "[agent]\n  interval = '10s'\n"},
}


def influxdb_sample(kind: str, name: str, description: str) -> dict[str, Any]:
    """A spec of each kind; rules are for Slack or PagerDuty."""
    return {"name": name, "description": description, **_CONTENT[kind]}
