"""Replaces credentials in the text of a package by references to secrets, under generated keys (docs/http.md)."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson
from pkger.model.v1 import object_pb2

from services.core.model import Key
from services.gateway.requests.templates import Template

_WORDS = re.compile("(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Replaced:
    """
    Templates without credentials.

    Attributes:
        templates: The templates, with references in place of the credentials.
        secrets: The credentials, by the keys of the references; not part of the repr.
    """

    templates: tuple[Template, ...]
    secrets: Mapping[str, str] = field(repr=False)


class Scope(NamedTuple):
    """
    Where the keys of credentials are distinct.

    Attributes:
        org: Id of the organisation.
        stack_id: Id of the stack; empty for an apply without one.
    """

    org: str
    stack_id: str


def with_references(
    templates: Iterable[Template], places: Iterable[tuple[Key, str]], env: Mapping[str, Any], scope: Scope
) -> Replaced:
    """
    Replace credentials by references in templates that are lists of objects; other templates stay as they are.

    Args:
        templates: The templates of a request.
        places: Keys of objects that have credentials, with pointers into their specs.
        env: Environment values; a credential may be one of them.
        scope: The same object of another scope gets other keys.
    """
    pointers: dict[Key, list[str]] = {}
    for key, pointer in places:
        pointers.setdefault(key, []).append(pointer)
    secrets: dict[str, str] = {}

    def changed(item: Any) -> Any:
        if not isinstance(item, dict) or not isinstance(item.get("spec"), dict):
            return item
        key = Key(str(item.get("kind")), _name(item, env))
        spec = item["spec"]
        for pointer in pointers.get(key, ()):
            secret = secret_key(scope, key, _display_name(item, env), pointer)
            spec = _with_reference(spec, pointer.split("/")[1:], env, secrets, secret)
        return item if spec is item["spec"] else {**item, "spec": spec}

    def without(template: Template) -> Template:
        if not template.is_generated:
            return template
        return Template.of_objects(template.name, template.encoding, list(map(changed, orjson.loads(template.text))))

    return Replaced(tuple(map(without, templates)), secrets)


def objects_with_references(
    objects: Iterable[object_pb2.Object], places: Iterable[tuple[Key, str]], scope: Scope
) -> tuple[list[object_pb2.Object], dict[str, str]]:
    """
    Replace credentials by references in parsed objects, for sources of any encoding.

    Args:
        objects: The objects; objects that have credentials are changed in place.
        places: As for ``with_references``.
        scope: As for ``with_references``.

    Returns:
        The objects, and the credentials by the keys of the references.
    """
    pointers: dict[Key, list[str]] = {}
    for key, pointer in places:
        pointers.setdefault(key, []).append(pointer)
    secrets: dict[str, str] = {}
    changed = []
    for item in objects:
        key = Key(item.key.kind, item.key.name)
        if key in pointers:
            spec = orjson.loads(item.spec_json)
            for pointer in pointers[key]:
                secret = secret_key(scope, key, item.display_name, pointer)
                spec = _with_reference(spec, pointer.split("/")[1:], {}, secrets, secret)
            item.spec_json = orjson.dumps(spec, option=orjson.OPT_SORT_KEYS).decode()
            # A credential from an environment value is a secret now, so its environment reference is removed.
            written = [each for each in item.written if each.pointer.removeprefix("/spec") not in pointers[key]]
            del item.written[:]
            item.written.extend(written)
        changed.append(item)
    return changed, secrets


def secret_key(scope: Scope, key: Key, display_name: str, pointer: str) -> str:
    """
    The key for a credential; the same in each apply of the same object to the same stack.

    Without a stack, templates may have different objects of one key. Their display names differ, as those of endpoints
    are unique.
    """
    place = scope.stack_id or display_name
    digest = hashlib.sha256(f"{scope.org}/{place}/{key.kind}/{key.name}".encode()).hexdigest()[:16]
    return f"{digest}-{_WORDS.sub('-', pointer.rpartition('/')[2]).lower()}"


def _with_reference(
    spec: Mapping[str, Any], steps: Sequence[str], env: Mapping[str, Any], secrets: dict[str, str], secret: str
) -> Mapping[str, Any]:
    """*spec* with a reference at the end of *steps*; unchanged if there is no text at that place."""
    step, *further = steps
    value = spec.get(step)
    if further:
        if not isinstance(value, dict):
            return spec
        inner = _with_reference(value, further, env, secrets, secret)
        return spec if inner is value else {**spec, step: inner}
    text = _resolved(value, env)
    if not isinstance(text, str) or not text:
        return spec
    secrets[secret] = text
    return {**spec, step: {"secretRef": {"key": secret}}}


def _name(item: Mapping[str, Any], env: Mapping[str, Any]) -> str:
    metadata = item.get("metadata")
    return str(_resolved(metadata.get("name"), env)) if isinstance(metadata, dict) else ""


def _display_name(item: Mapping[str, Any], env: Mapping[str, Any]) -> str:
    return str(_resolved(item["spec"].get("name"), env) or _name(item, env))


def _resolved(value: Any, env: Mapping[str, Any]) -> Any:
    """The value; if it is an environment reference, the value that the reference names."""
    if not isinstance(value, dict) or not isinstance(reference := value.get("envRef"), dict):
        return value
    key = str(reference.get("key"))
    return env.get(key, reference.get("default", f"env-{key}"))
