"""The query builder's state that charts and checks carry beside their query; packages have none of it."""

from typing import Any


def builder_config() -> dict[str, Any]:
    """The state of an unused builder (docs/reference/package-format.md, "Nested chart values")."""
    return {"buckets": [], "tags": [], "functions": [], "aggregateWindow": {"period": "", "fillValues": False}}
