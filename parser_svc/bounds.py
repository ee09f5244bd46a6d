"""How much one package may ask of this process."""

MAX_BYTES = 16 * 1024 * 1024
"""UTF-8 of all sources together."""

MAX_DEPTH = 100
"""Lists and mappings inside each other, aliases followed; a dashboard needs about ten."""

MAX_NODES = 1_000_000
"""Values in one source, aliases followed; 16 MiB of real packages hold some 600,000."""

MAX_VIOLATIONS = 10_000
"""Violations in one answer; nobody reads more, and an answer must fit into a message."""

MAX_ALIASED_CHARACTERS = 16 * 1024 * 1024
"""Text that aliases repeat, together in one source."""
