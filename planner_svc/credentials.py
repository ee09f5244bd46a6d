"""Keeps credentials out of plans: what stands in one is shown, stored and logged."""

import copy
from collections.abc import Iterable
from dataclasses import replace

from services.core.errors import RequestInvalid
from services.core.listing import fitting, listed
from services.core.model import Credential, Desired, Key, Location, Object, PlatformTraits
from services.kinds.format.canonical import spec_of

_SHOWN = 10
"""So many places are named, where their names are short."""

_SHOWN_LENGTH = 1400
"""So much text, as ASCII with escapes, names places: trailers of 8 KiB hold the text of an error four times."""

_SOURCE_WIDTH = 80
"""Of a longer name of a source, its end is shown."""


def refuse_written_secrets(desired: Desired, platform: PlatformTraits, credentials: Iterable[Credential] = ()) -> None:
    """
    Refuse a package that holds credentials themselves; where, is for the platform to say (``sensitive_paths``).

    Args:
        desired: The package.
        platform: The platform.
        credentials: The places that the parser knows.

    Raises:
        RequestInvalid: Names places, fields and objects, never what stands there.
    """
    places = {(each.key, each.pointer): each.location for each in credentials}
    found = [
        _told(item.key, path, places.get((item.key, path)))
        for item in desired.package.objects
        if item.key.kind in platform.kinds and not desired.skips(item.key)
        for path in platform.kinds[item.key.kind].written_secrets(item.spec)
    ]
    if found:
        way_out = "a plan is shown and kept, so write {secretRef: {key: KEY}} instead of a credential itself as"
        raise RequestInvalid("package", f"{way_out} {_named(found)}")


def without_credentials(item: Object, platform: PlatformTraits) -> Object:
    """*item*, which is skipped, without the credentials that it holds: it is kept with what refers to it."""
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


def _told(key: Key, path: str, location: Location | None) -> str:
    """One credential, in the words of its source where that is known."""
    field = f"{path.lstrip('/')} of {key}"
    if location is None:
        return field
    source = location.source
    shortened = source if len(source) <= _SOURCE_WIDTH else f"…{source[-_SOURCE_WIDTH:]}"
    return f"{replace(location, source=shortened)} ({field})"


def _named(found: list[str]) -> str:
    """The first of them, and how many more there are."""
    shown = fitting(found[:_SHOWN], _SHOWN_LENGTH, ", ")
    return listed(found, len(shown))
