"""Keeps credentials out of plans: what stands in one is shown, stored and logged."""

from services.core.errors import RequestInvalid
from services.core.model import Desired, PlatformTraits

_SHOWN = 10


def refuse_written_secrets(desired: Desired, platform: PlatformTraits) -> None:
    """
    Refuse a package that holds credentials themselves.

    Raises:
        RequestInvalid: Names objects and fields, never what stands there.
    """
    found = [
        f"{path.lstrip('/')} of {item.key}"
        for item in desired.package.objects
        if item.key.kind in platform.kinds and not desired.skips(item.key)
        for path in platform.kinds[item.key.kind].written_secrets(item.spec)
    ]
    if found:
        shown = ", ".join(found[:_SHOWN]) + (f" and {len(found) - _SHOWN} more" if found[_SHOWN:] else "")
        way_out = "a plan is shown and kept, so write {secretRef: {key: KEY}} instead of a credential itself as"
        raise RequestInvalid("package", f"{way_out} {shown}")
