"""Policies of stacks, packages and objects: their fields, and how they are resolved (docs/policies.md)."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson

from services.core.model import Key
from services.kinds.format.canonical import canonical_text
from services.kinds.registry import kinds_meant

NO_POLICY: Mapping[str, Any] = MappingProxyType({})
"""An empty policy: all defaults apply."""

HISTORY = 20
"""Number of revisions that a stack retains by default."""


@dataclass(frozen=True, slots=True)
class Policy:
    """
    The policy of one object, with the defaults.

    Attributes:
        drift: Whether drift of the resource is ignored, reported or reverted.
        recreate_deleted: Whether the resource is created again after it was deleted outside the stack.
        on_remove: Whether the resource is deleted or orphaned when its object leaves the package.
        on_delete: Whether the resource is deleted or orphaned when the stack is uninstalled.
        adopted_on_delete: The same for an adopted resource.
        adopt: Whether an unowned resource is adopted.
        protect: Whether the resource is never deleted or replaced.
        ignore: RFC 6901 pointers to fields that are left as the platform has them, sorted; ``*`` matches any segment.
    """

    drift: str = "report"
    recreate_deleted: bool = False
    on_remove: str = "delete"
    on_delete: str = "cleanup"
    adopted_on_delete: str = "orphan"
    adopt: str = "if_unmanaged"
    protect: bool = False
    ignore: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The fields that differ from the default, as canonical JSON; empty when none does."""
        if self == DEFAULT:
            return ""
        return canonical_text({name: value for name, value in asdict(self).items() if value != getattr(DEFAULT, name)})


DEFAULT = Policy()
"""The policy without any setting."""


class OwnPolicy(NamedTuple):
    """
    What a package and one of its objects say themselves, below and above the policy of the stack.

    Attributes:
        of_package: The fields of the ``Lifecycle`` document of the package; in ``ignore`` only pointers, those for this
            object.
        of_object: The fields of ``metadata.lifecycle``.
    """

    of_package: Mapping[str, Any] = NO_POLICY
    of_object: Mapping[str, Any] = NO_POLICY

    @property
    def text(self) -> str:
        """Both layers as canonical JSON, without an empty one; empty when both are."""
        layers = {name: layer for name, layer in zip(_OWN_LAYERS, self, strict=True) if layer}
        return canonical_text(layers) if layers else ""


_OWN_LAYERS = ("package", "object")
"""The names of the layers in the text of an ``OwnPolicy``."""

NO_OWN_POLICY = OwnPolicy()
"""Neither the package nor the object says anything."""


class ExplainedField(NamedTuple):
    """
    One value of a resolved policy; of ignored fields, one pointer.

    Attributes:
        field: The field.
        value: Its value.
        layers: The layers that say it: ``default``, ``package``, ``stack``, ``overrides[0]`` or ``object``; ``last
            apply`` for a protection that only the next apply lifts.
    """

    field: str
    value: Any
    layers: tuple[str, ...]


def read(text: str) -> Policy:
    """Read what ``Policy.text`` wrote; a newer version may have written more."""
    if not text:
        return DEFAULT
    value = {name: item for name, item in orjson.loads(text).items() if name in Policy.__slots__}
    return Policy(**{**value, "ignore": tuple(value.get("ignore", ()))})


def read_own(text: str) -> OwnPolicy:
    """Read what ``OwnPolicy.text`` wrote."""
    if not text:
        return NO_OWN_POLICY
    value = orjson.loads(text)
    return OwnPolicy(*(value.get(name, NO_POLICY) for name in _OWN_LAYERS))


def resolved(stack: Mapping[str, Any], key: Key, own: OwnPolicy = NO_OWN_POLICY) -> Policy:
    """
    The policy of the object *key*: for each field the last value in defaults, package, stack, overrides and object.

    ``protect`` is true if any of them sets it, and ignored paths are combined.

    Args:
        stack: The policy of the stack, as ``policy_reading.checked`` accepts it.
        key: The object.
        own: What its package and the object itself say.
    """
    if not stack and own == NO_OWN_POLICY:
        return DEFAULT
    fields = combined([layer for _, layer in _layers(stack, key, own)], key)
    return Policy(**{**fields, "ignore": tuple(fields.get("ignore", ()))})


def combined(layers: Iterable[Mapping[str, Any]], key: Key) -> dict[str, Any]:
    """
    The fields of objects that *layers* set for the object *key*.

    A later layer wins; ``protect`` is true if any layer sets it, and ignored paths are combined.

    Returns:
        Only fields that a layer sets; the ignored paths are sorted pointers.
    """
    fields: dict[str, Any] = {}
    ignored: set[str] = set()
    is_protected = False
    for layer in layers:
        fields |= {name: layer[name] for name in layer if name in Policy.__slots__}
        ignored.update(_paths(layer.get("ignore", ()), key))
        is_protected = is_protected or layer.get("protect", False)
    if "protect" in fields:
        fields["protect"] = is_protected
    fields.pop("ignore", None)
    return fields | ({"ignore": sorted(ignored)} if ignored else {})


def explained(stack: Mapping[str, Any], key: Key, own: OwnPolicy, recorded: Policy = DEFAULT) -> list[ExplainedField]:
    """
    The policy that ``resolved`` returns, field by field, with the layers that say each value.

    Args:
        stack: As for ``resolved``.
        key: As for ``resolved``.
        own: As for ``resolved``.
        recorded: The policy of the last apply, whose protection still holds.
    """
    layers = _layers(stack, key, own)
    policy = resolved(stack, key, own)
    rows = []
    for name in Policy.__slots__:
        if name == "ignore":
            continue
        value = getattr(policy, name)
        if name == "protect" and recorded.protect and not value:
            rows.append(ExplainedField(name, True, ("last apply",)))
            continue
        saying = [layer for layer, fields in layers if fields.get(name) == value and name in fields]
        # Of layers that override each other, the last one counts.
        rows.append(ExplainedField(name, value, tuple(saying if name == "protect" else saying[-1:]) or ("default",)))
    for path in policy.ignore:
        saying = [layer for layer, fields in layers if path in _paths(fields.get("ignore", ()), key)]
        rows.append(ExplainedField("ignore", path, tuple(saying)))
    return rows


def _layers(stack: Mapping[str, Any], key: Key, own: OwnPolicy) -> list[tuple[str, Mapping[str, Any]]]:
    """The layers that hold for the object *key*, each with its name; a later one overrides."""
    overrides = [
        (f"overrides[{number}]", each)
        for number, each in enumerate(stack.get("overrides", ()))
        if _matches(each.get("match", {}), key)
    ]
    return [("package", own.of_package), ("stack", stack), *overrides, ("object", own.of_object)]


def protecting_override(stack: Mapping[str, Any], key: Key) -> str:
    """The first override that protects the object *key*, such as ``overrides[0]``; empty: none does."""
    numbered = enumerate(stack.get("overrides", ()))
    protecting = (number for number, each in numbered if each.get("protect") and _matches(each.get("match", {}), key))
    return next((f"overrides[{number}]" for number in protecting), "")


def max_deletes(stack: Mapping[str, Any]) -> int | None:
    """
    The limit that the policy of a stack sets on the deletions and updates that lose data in one plan; None: no limit.
    """
    return stack.get("max_deletes")


def ignores(pattern: str, pointer: str) -> bool:
    """Whether the ignored *pattern* covers the field at *pointer*: it is that field, or contains it."""
    globs, keys = pattern.split("/")[1:], pointer.split("/")[1:]
    return len(globs) <= len(keys) and all(a in ("*", b) for a, b in zip(globs, keys, strict=False))


def _matches(match: Mapping[str, Any], key: Key) -> bool:
    kind, names = match.get("kind", "*"), match.get("names")
    is_of_kind = kind == "*" or key.kind in kinds_meant(kind)
    return is_of_kind and (names is None or any(_glob(name)(key.name) for name in names))


@cache
def _glob(pattern: str) -> Callable[[str], Any]:
    """Matches names; only ``*`` and ``?`` are special."""
    escaped = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.compile(escaped, re.DOTALL).fullmatch


def _paths(rules: Sequence[Any], key: Key) -> Iterator[str]:
    for rule in rules:
        if isinstance(rule, str):
            yield rule
        elif _matches(rule, key):
            yield from rule.get("paths", ())
