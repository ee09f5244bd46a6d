"""How much one package may ask of this process."""

from services.core.limits import MAX_PACKAGE_BYTES

MAX_DEPTH = 100
"""Lists and mappings inside each other, aliases followed; a dashboard needs about ten."""

MAX_NODES = 1_000_000
"""Values in one source, aliases followed; 8 MiB of real packages hold some 300,000."""

MAX_VIOLATIONS = 10_000
"""Violations in one answer; nobody reads more, and an answer must fit into a message."""

MAX_ALIASED_CHARACTERS = MAX_PACKAGE_BYTES
"""Text that aliases repeat, together in one source."""
