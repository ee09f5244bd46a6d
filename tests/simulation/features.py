"""The features that a seed may switch on, and combinations of them that today's engine is known to fail with."""

from collections.abc import Mapping
from dataclasses import dataclass

FEATURES: Mapping[str, str] = {
    "kills": "appliers are killed, at any callback and at failpoints",
    "peer_kills": "the stack service, the platform, the planner and the parser are killed",
    "stops": "nodes stand still for 5 to 70 s",
    "net": "requests and answers are lost",
    "slow": "messages take up to 8 s, writes to the platform up to settle",
    "late": "a request arrives after its caller got the error that the connection is lost",
    "very_late": "a late write, or one of a killed applier, arrives up to a minute later; the platform fences",
    "codes": "something between the services answers in place of a peer",
    "cancel": "operations are cancelled",
    "leave": "clients leave, and ask again with the same request id",
    "plans": "plans are stored, and applied later, also twice",
    "skip": "objects are skipped",
    "secrets": "secrets are written",
    "replace": "immutable fields and kinds change, with and without the display name",
    "reject": "the platform refuses creations and updates",
    "keep": "the platform refuses to delete some resources",
    "doubt": "the platform does not vouch for what took effect",
    "busy": "the platform asks to wait",
    "natural_key": "the platform drops idempotency keys; a created resource is found by its unique name",
    "search": "the platform drops idempotency keys; a created resource is found by a search only",
    "no_fence": "the platform does not fence",
    "stacks": "several stacks",
    "rivals": "two clients on one stack",
    "same_names": "stacks use the same display names",
    "share": "stacks use the same display names, mostly with equal content",
    "person": "a person works on the platform",
    "bad_lists": "listings lack or repeat an item, or are old; none lacks what the one before it lacked",
    "bad_answers": "answers of the platform are short, long, permuted, of another kind, or say nothing",
    "bad_describe": "Describe lacks a kind, or returns a wrong trait",
    "clock": "wall clocks jump by up to an hour",
    "backup": "the store is restored from a backup without a call of MarkRestored; the platform fences",
    "install": "packages are installed, updated, uninstalled and rolled back in a stack of their own",
}


@dataclass(frozen=True, slots=True)
class Known:
    """
    A defect of today's engine that the simulation finds.

    Attributes:
        features: Features that are never switched on together until the defect is fixed.
        kinds: Kinds of violation that it shows as.
        defect: What it is; names as in docs/simulation.md.
        until: The issue that fixes it.
        found: Name of a scenario in ``found/`` that shows it.
    """

    features: frozenset[str]
    kinds: frozenset[str]
    defect: str
    until: str
    found: str


KNOWN: tuple[Known, ...] = ()
"""Nothing today. This list shrinks only."""


def holds(features: frozenset[str]) -> bool:
    """Whether no known defect shows with *features* on."""
    return not any(known.features <= features for known in KNOWN)
