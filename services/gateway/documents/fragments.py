"""Parts of a JSON document that are text already."""

from typing import Any

import orjson


def json_fragment(value: Any) -> orjson.Fragment:
    """*value* as text, to stand in a larger document."""
    return orjson.Fragment(orjson.dumps(value))
