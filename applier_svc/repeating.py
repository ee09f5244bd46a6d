"""What may be sent twice, and what has to be looked for instead (engine.md 5)."""

from services.core.model import Identity, PlatformTraits, Step, Verb


def is_remembered(step: Step, platform: PlatformTraits) -> bool:
    """
    Whether sending *step* again is the way to find out what became of it.

    That is so for creations that the platform remembers by their idempotency key, and for secrets: nobody can read
    them.
    """
    return step.is_secret or (step.verb is Verb.CREATE and _identity(step, platform) is Identity.NATIVE)


def is_repeatable(step: Step, platform: PlatformTraits) -> bool:
    """Whether sending *step* twice has its effect once."""
    return step.verb is not Verb.CREATE or is_remembered(step, platform)


def is_to_be_searched_for(step: Step, platform: PlatformTraits) -> bool:
    """Whether *step* is a creation that, without an answer, has to be searched for among others of its name."""
    return step.verb is Verb.CREATE and not step.is_secret and _identity(step, platform) is Identity.SEARCH


def _identity(step: Step, platform: PlatformTraits) -> Identity:
    return platform.kinds[step.key.kind].identity
