"""Keeps credentials out of plans, as plans are shown, stored and logged."""

import copy
from collections.abc import Iterable
from dataclasses import replace

from planner_svc.desired import Desired
from services.core.errors import RequestInvalid
from services.core.listing import fitting, listed
from services.core.model import Credential, Key, Location, Object, PlatformTraits
from services.kinds.format.canonical import spec_of

_SHOWN = 10
"""How many locations an error lists at most."""

_SHOWN_LENGTH = 1400
"""How long the list may be, as ASCII with escapes: trailers of 8 KiB hold the text of an error four times."""

_SOURCE_WIDTH = 80
"""The longest name of a source that is shown whole; of a longer one, the end is shown."""


def refuse_written_secrets(desired: Desired, platform: PlatformTraits, credentials: Iterable[Credential] = ()) -> None:
    """
    Refuse a package that holds credentials; the platform says at which paths a spec holds one (``sensitive_paths``).

    Args:
        desired: The package.
        platform: The platform.
        credentials: The credentials whose location the parser knows.

    Raises:
        RequestInvalid: Names locations, fields and objects, but no credential.
    """
    locations = {(each.key, each.pointer): each.location for each in credentials}
    found = [
        _described(item.key, path, locations.get((item.key, path)))
        for item in desired.package.objects
        if item.key.kind in platform.kinds and not desired.skips(item.key)
        for path in platform.kinds[item.key.kind].written_secrets(item.spec)
    ]
    if found:
        remedy = "a plan is shown and stored, so write {secretRef: {key: KEY}} instead of the credential in"
        raise RequestInvalid("package", f"{remedy} {_named(found)}")


def without_credentials(item: Object, platform: PlatformTraits) -> Object:
    """The skipped object *item* without its credentials: it is stored with the plan, as others may refer to it."""
    traits = platform.kinds.get(item.key.kind)
    paths = traits.written_secrets(item.spec) if traits else []
    if not paths:
        return item
    value = copy.deepcopy(dict(item.spec.value))
    for path in paths:
        *parents, last = path.split("/")[1:]
        holder = value
        for parent in parents:
            holder = holder[parent]
        holder[last] = ""
    return item._replace(spec=spec_of(value), written=())


def _described(key: Key, path: str, location: Location | None) -> str:
    """The field that holds a credential, with its location if that is known."""
    field = f"{path.lstrip('/')} of {key}"
    if location is None:
        return field
    source = location.source
    shortened = source if len(source) <= _SOURCE_WIDTH else f"…{source[-_SOURCE_WIDTH:]}"
    return f"{replace(location, source=shortened)} ({field})"


def _named(found: list[str]) -> str:
    """The first of *found*, and the number of the others."""
    shown = fitting(found[:_SHOWN], _SHOWN_LENGTH, ", ")
    return listed(found, len(shown))
