"""Secrets that are given with an apply: the planner gets their keys and no value."""

from collections.abc import Collection, Iterable, Set

from planner_svc.matching.desired import Desired
from services.core.errors import RequestInvalid
from services.core.model import SECRET, Key, PlatformTraits, Step, Undo, Verb

MOST_SECRETS = 100
MOST_CHARACTERS = 200
"""The length of a key (planner.proto)."""

_FIELD = "secret_keys"


def refuse_unusable_keys(desired: Desired, platform: PlatformTraits) -> None:
    """
    Refuse secrets that cannot be written.

    Raises:
        RequestInvalid: Names the key, and why it cannot be written.
    """
    keys = sorted(desired.secret_keys)
    if not keys:
        return
    if desired.is_end:
        raise RequestInvalid(_FIELD, "an uninstall writes no secrets, so give none")
    if not platform.holds_secrets:
        raise RequestInvalid(_FIELD, f"platform {platform.platform!r} holds no secrets, so give none")
    if len(keys) > MOST_SECRETS:
        raise RequestInvalid(_FIELD, f"{len(keys)} are more than the {MOST_SECRETS} that one apply may write")
    for key in keys:
        if not 0 < len(key) <= MOST_CHARACTERS or not key.isprintable():
            shown = repr(key[:MOST_CHARACTERS])
            raise RequestInvalid(
                _FIELD, f"{shown}: a key is 1 to {MOST_CHARACTERS} characters, none a control character"
            )


def secret_steps(secret_keys: Iterable[str], held_secrets: Set[str]) -> tuple[Step, ...]:
    """
    The steps that write the secrets of *secret_keys*, sorted by key.

    Args:
        secret_keys: Keys of the secrets that are given with the apply.
        held_secrets: Keys of the secrets that the platform holds.

    Returns:
        For each secret a step without specs. No value can be read, so a secret that the platform holds is always
        overwritten, and its old value cannot be restored.
    """
    return tuple(_overwriting(key) if key in held_secrets else _creating(key) for key in sorted(secret_keys))


def all_secrets_of(desired: Desired, platform: PlatformTraits) -> list[str]:
    """Keys of the secrets that the objects of a package refer to, sorted."""
    objects = [item for item in desired.package.objects if item.key.kind in platform.kinds]
    return sorted({key for item in objects for key in platform.kinds[item.key.kind].secret_keys(item.spec)})


def secrets_of(desired: Desired, platform: PlatformTraits, referred: Iterable[str]) -> tuple[str, ...]:
    """The keys of *referred* without those that only skipped objects refer to, in their order."""
    named: dict[bool, set[str]] = {True: set(), False: set()}
    for item in desired.package.objects:
        if item.key.kind in platform.kinds:
            named[desired.skips(item.key)] |= platform.kinds[item.key.kind].secret_keys(item.spec)
    return tuple(key for key in referred if key not in named[True] - named[False])


def missing_secrets(
    referred: Iterable[str], secret_keys: Collection[str], held_secrets: Collection[str]
) -> tuple[str, ...]:
    """The keys that a package refers to and that are neither given nor on the platform, sorted."""
    return tuple(sorted(key for key in referred if key not in secret_keys and key not in held_secrets))


def _creating(key: str) -> Step:
    return Step(0, 0, Verb.CREATE, Key(SECRET, key), reason="given with the apply; not on the platform")


def _overwriting(key: str) -> Step:
    reason = "given with the apply; the old value cannot be read, so it cannot be restored"
    return Step(0, 0, Verb.UPDATE, Key(SECRET, key), key, undo=Undo.NONE, reason=reason)
