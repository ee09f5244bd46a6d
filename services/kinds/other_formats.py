"""Objects of other formats that people take for packages, and the way from each to a package."""

from collections.abc import Mapping
from typing import Any

_EXPORTED = ("dashboard", "task", "variable")
"""What the user interface of InfluxDB exports."""

_OF_GRAFANA = ("panels", "schemaVersion", "__inputs", "__requires")
"""Keys of a dashboard of Grafana: each has one of them."""


def other_format(root: Any) -> str:
    """What *root* is instead of an object of a package, and what to do, in one sentence; empty if that is not known."""
    if not isinstance(root, Mapping) or "kind" in root:
        return ""
    content = root.get("content")
    data = content.get("data") if isinstance(content, Mapping) else None
    if isinstance(data, Mapping) and data.get("type") in _EXPORTED:
        return (
            f"this is a {data['type']} as the user interface of InfluxDB exports it, and no package;"
            " `pkger convert FILE` makes a package of it, and `pkger export` and `influx export` write packages"
        )
    if _is_of_grafana(root) or _is_of_grafana(root.get("dashboard")):
        return (
            "this is a dashboard of Grafana, and no package; build the dashboard in InfluxDB, of which `pkger export`"
            " and `influx export` write packages"
        )
    return ""


def _is_of_grafana(value: Any) -> bool:
    return isinstance(value, Mapping) and any(key in value for key in _OF_GRAFANA)
