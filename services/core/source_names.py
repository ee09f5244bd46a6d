"""Names of sources that have none of their own (docs/reference/package-format.md, "Sources")."""

TEXT = "string"
"""A text in a request to the parser."""

STREAM = "byte stream"
"""A template in a request to the gateway, as InfluxDB names it."""

UNNAMED = frozenset({TEXT, STREAM})
"""An equal name of these does not make two sources the same."""
