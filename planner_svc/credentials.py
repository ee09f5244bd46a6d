"""Keeps credentials out of plans, as plans are shown, stored and logged."""

import copy
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from planner_svc.matching.desired import Desired
from services.core.errors import RequestInvalid
from services.core.model import Credential, Key, Location, Object, PlatformTraits, Spec
from services.core.text_lists import fitting, listed
from services.kinds.format.canonical import spec_of

_SHOWN = 10
"""How many locations an error lists at most."""

_SHOWN_LENGTH = 1400
"""How long the list may be, as ASCII with escapes: trailers of 8 KiB hold the text of an error four times."""

_SOURCE_WIDTH = 80
"""The longest name of a source that is shown whole; of a longer one, the end is shown."""

_WORDS = re.compile("(?<=[a-z])(?=[A-Z])")


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
    fields = [
        _described(item.key, path, locations.get((item.key, path)))
        for item in desired.package.objects
        if item.key.kind in platform.kinds and not desired.skips(item.key)
        for path in platform.kinds[item.key.kind].written_secrets(item.spec)
    ]
    if fields:
        remedy = "a plan is shown and stored, so write {secretRef: {key: KEY}} instead of the credential in"
        raise RequestInvalid("package", f"{remedy} {_named(fields)}")


def without_credentials(item: Object, platform: PlatformTraits) -> Object:
    """The skipped object *item* without its credentials: it is stored with the plan, as others may refer to it."""
    traits = platform.kinds.get(item.key.kind)
    paths = traits.written_secrets(item.spec) if traits else []
    return item._replace(spec=_with_values(item.spec, dict.fromkeys(paths, "")), written=()) if paths else item


def with_references(desired: Desired, platform: PlatformTraits, stack_id: str) -> tuple[Desired, dict[str, str]]:
    """
    Replace the credentials of a package by references to secrets; skipped objects stay as they are.

    Args:
        desired: The package.
        platform: The platform.
        stack_id: The stack; empty for an apply without one.

    Returns:
        The package, whose references are secrets that the apply supplies, and the credentials by the keys of the
        references.
    """
    secrets: dict[str, str] = {}

    def changed(item: Object) -> Object:
        traits = None if desired.skips(item.key) else platform.kinds.get(item.key.kind)
        keys = {}
        for path in traits.written_secrets(item.spec) if traits else ():
            if isinstance(text := item.spec.at(path), str):
                keys[path] = secret_key(stack_id, item, path)
                secrets[keys[path]] = text
        return _with_secret_keys(item, keys) if keys else item

    package = replace(desired.package, objects=tuple(map(changed, desired.package.objects)))
    return replace(desired, package=package, secret_keys=desired.secret_keys | secrets.keys()), secrets


def secret_key(stack_id: str, item: Object, path: str) -> str:
    """
    The key for the credential of *item* at *path*; the same in each apply of the same object to the same stack.

    Without a stack, packages may have different objects of one key. Their display names differ, because display names
    of endpoints are unique.
    """
    place = f"{stack_id or item.spec.display_name}/{item.key.kind}/{item.key.name}"
    field = _WORDS.sub("-", path.rpartition("/")[2]).lower()
    return f"{hashlib.sha256(place.encode()).hexdigest()[:16]}-{field}"


def _with_secret_keys(item: Object, keys: Mapping[str, str]) -> Object:
    """*item* with references to the secrets *keys* at their paths, in place of texts and environment references."""
    fields = {"spec" + path.replace("/", ".") for path in keys}
    return item._replace(
        spec=_with_values(item.spec, {path: {"secretRef": {"key": key}} for path, key in keys.items()}),
        env_references=tuple(each for each in item.env_references if each.resource_field not in fields),
        written=tuple(each for each in item.written if each.pointer.removeprefix("/spec") not in keys),
    )


def _with_values(spec: Spec, values: Mapping[str, Any]) -> Spec:
    """*spec* with other *values* at paths that it has."""
    value = copy.deepcopy(dict(spec.value))
    for path, new_value in values.items():
        *parents, last = path.split("/")[1:]
        holder = value
        for parent in parents:
            holder = holder[parent]
        holder[last] = new_value
    return spec_of(value)


def _described(key: Key, path: str, location: Location | None) -> str:
    """The field that holds a credential, with its location if that is known."""
    field = f"{path.lstrip('/')} of {key}"
    if location is None:
        return field
    source = location.source
    shortened = source if len(source) <= _SOURCE_WIDTH else f"…{source[-_SOURCE_WIDTH:]}"
    return f"{replace(location, source=shortened)} ({field})"


def _named(fields: list[str]) -> str:
    """The first of *fields*, and the number of the others."""
    shown = fitting(fields[:_SHOWN], _SHOWN_LENGTH, ", ")
    return listed(fields, len(shown))
