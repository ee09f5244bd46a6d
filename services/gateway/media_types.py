"""Media types and codings that clients send and accept."""

import re

YAML_TYPES = ("text/yml", "text/yaml", "application/x-yaml", "application/yaml")
"""Media types of YAML."""

_QUALITY = re.compile(r"[01](\.[0-9]*)?")


def wants_yaml(accept: str) -> bool:
    """Whether a client that sends that ``Accept`` prefers YAML to JSON; without a preference, it gets JSON."""
    yaml = max((weight for kind, weight in weights(accept) if kind in YAML_TYPES), default=0.0)
    json = max((weight for kind, weight in weights(accept) if kind == "application/json"), default=0.0)
    return yaml > json


def weights(accept: str) -> list[tuple[str, float]]:
    """The media types or codings of an ``Accept`` or ``Accept-Encoding`` in lower case, with their weights."""
    ranges = []
    for each in accept.lower().split(","):
        kind, *parameters = (piece.strip() for piece in each.split(";"))
        quality = next((text[2:] for text in parameters if text.startswith("q=")), "1")
        ranges.append((kind, float(quality) if _QUALITY.fullmatch(quality) else 1.0))
    return ranges
