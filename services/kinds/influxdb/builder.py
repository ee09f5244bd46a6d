"""The state of the query builder that charts and checks have beside their query; packages do not have it."""

from typing import Any


def builder_config() -> dict[str, Any]:
    """The state of an unused builder (docs/reference/package-format.md, "Nested chart values")."""
    return {"buckets": [], "tags": [], "functions": [], "aggregateWindow": {"period": "", "fillValues": False}}
