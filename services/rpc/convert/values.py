"""Environment values as messages carry them: JSON texts by key."""

import json
from collections.abc import Mapping
from typing import Any


def env_texts(values: Mapping[str, Any]) -> dict[str, str]:
    """
    The environment values of a package as JSON texts.

    Raises:
        ValueError: A value cannot be sent; the text names its key.
    """
    return {key: _json_text(key, value) for key, value in values.items()}


def _json_text(key: str, value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        # A half of a surrogate pair is no character and has no UTF-8.
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the environment value {key!r} cannot be sent: {error}") from error
    return text
