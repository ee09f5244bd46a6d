"""Compares JSON documents as corpora of recorded answers do: keys and order of lists exactly, numbers by value."""

import json
from collections.abc import Iterator
from typing import Any


def differences(expected: Any, actual: Any, path: str = "") -> Iterator[str]:
    """One text for each difference, with its JSON pointer; a boolean is no number."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted(expected.keys() | actual.keys()):
            if key not in expected or key not in actual:
                yield f"{path}/{key} is {'missing' if key in expected else 'unexpected'}"
            else:
                yield from differences(expected[key], actual[key], f"{path}/{key}")
    elif isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            yield f"{path} has {len(actual)} items instead of {len(expected)}: {_short(actual)}"
        for place, (left, right) in enumerate(zip(expected, actual, strict=False)):
            yield from differences(left, right, f"{path}/{place}")
    elif isinstance(expected, bool) != isinstance(actual, bool) or expected != actual:
        yield f"{path or '/'} is {_short(actual)} instead of {_short(expected)}"


def _short(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:200]
