"""Parts of a JSON document that are encoded already."""

from typing import Any

import orjson


def json_fragment(value: Any) -> orjson.Fragment:
    """*value* as encoded JSON, to embed in a larger document."""
    return orjson.Fragment(orjson.dumps(value))
