"""Media types that clients send and accept."""

YAML_TYPES = ("text/yml", "text/yaml", "application/x-yaml", "application/yaml")
"""Media types of YAML."""


def wants_yaml(accept: str) -> bool:
    """Whether a client that sends that ``Accept`` prefers YAML to JSON; without a preference, it gets JSON."""
    yaml = max((weight for kind, weight in _ranges(accept) if kind in YAML_TYPES), default=0.0)
    json = max((weight for kind, weight in _ranges(accept) if kind == "application/json"), default=0.0)
    return yaml > json


def _ranges(accept: str) -> list[tuple[str, float]]:
    """The media types of an ``Accept``, with their weights."""
    ranges = []
    for each in accept.lower().split(","):
        kind, *parameters = (piece.strip() for piece in each.split(";"))
        ranges.append((kind, min((_weight(parameter) for parameter in parameters), default=1.0)))
    return ranges


def _weight(parameter: str) -> float:
    name, _, value = parameter.partition("=")
    try:
        return float(value) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0
