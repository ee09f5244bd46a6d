"""Hides the keys of secrets that the gateway makes for credentials, in the answer to a dry run."""

from collections.abc import Collection
from typing import Any


def hide_keys(endpoint: dict[str, Any], keys: Collection[str]) -> None:
    """
    Leave out the keys that an apply would make, as InfluxDB shows no key before it exists.

    Args:
        endpoint: The members of an endpoint; changed in place.
        keys: The keys to leave out.
    """
    if keys:
        references = {f"secret: {key}" for key in keys}
        endpoint.update(
            {name: "" for name, value in endpoint.items() if isinstance(value, str) and value in references}
        )
