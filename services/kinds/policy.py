"""Policies of stacks and objects: their fields, values, defaults and checks (docs/reference/engine.md, "Policies")."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import orjson

from services.core.model import Key
from services.kinds.format.canonical import canonical_text
from services.kinds.format.shapes import nearest
from services.kinds.registry import ACCEPTED, kinds_meant

NO_POLICY: Mapping[str, Any] = MappingProxyType({})
"""An empty policy: all defaults apply."""

HISTORY = 20
"""Number of revisions that a stack retains by default."""

_LONGEST_HISTORY = 1000

_MOST_DELETES = 1_000_000

_MOST_OVERRIDES = 100
_MOST_IGNORED = 200
"""
Number of ignored paths in one policy; a rule with several paths counts for each (docs/reference/engine.md, "Policies").
"""

_LONGEST_GLOB = 200


class PolicyInvalidError(ValueError):
    """
    A policy is invalid.

    Attributes:
        field: The field, such as ``overrides[0].drift``; empty: the policy as a whole.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(problem)
        self.field = field


@dataclass(frozen=True, slots=True)
class Policy:
    """
    The policy of one object, with the defaults.

    Attributes:
        drift: Whether drift of the resource is reported or ignored.
        on_remove: Whether the resource is deleted or orphaned when its object leaves the package.
        on_delete: Whether the resource is deleted or orphaned when the stack is uninstalled.
        adopted_on_delete: The same for an adopted resource.
        adopt: Whether an unowned resource is adopted.
        protect: Whether the resource is never deleted or replaced.
        ignore: RFC 6901 pointers to fields that are left as the platform has them, sorted; ``*`` matches any segment.
    """

    drift: str = "report"
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

_WORDS: Mapping[str, tuple[str, ...]] = {
    "drift": ("ignore", "report"),
    "on_remove": ("delete", "orphan"),
    "on_delete": ("cleanup", "orphan"),
    "adopted_on_delete": ("delete", "orphan"),
    "adopt": ("never", "if_unmanaged"),
    "share": ("never", "equal", "always"),
}
"""The accepted values of each field."""

_OF_OBJECTS = frozenset({"drift", "on_remove", "on_delete", "adopted_on_delete", "adopt", "protect", "ignore"})
_OF_STACKS = frozenset({"share", "allow_empty", "history", "max_deletes", "overrides"})


def read(text: str) -> Policy:
    """Read what ``Policy.text`` wrote; a newer version may have written more."""
    if not text:
        return DEFAULT
    value = {name: item for name, item in orjson.loads(text).items() if name in Policy.__slots__}
    return Policy(**{**value, "ignore": tuple(value.get("ignore", ()))})


def resolved(stack: Mapping[str, Any], key: Key) -> Policy:
    """
    The policy of the object *key*: for each field the last value in defaults, stack and overrides.

    ``protect`` is true if any of them sets it, and ignored paths are combined.

    Args:
        stack: The policy of the stack, as ``checked`` accepts it.
        key: The object.
    """
    if not stack:
        return DEFAULT
    overrides = [each for each in stack.get("overrides", ()) if _matches(each.get("match", {}), key)]
    layers = [stack, *overrides]
    fields: dict[str, Any] = {}
    for layer in layers:
        fields |= {name: layer[name] for name in layer if name in Policy.__slots__}
    fields["protect"] = any(layer.get("protect", False) for layer in layers)
    fields["ignore"] = tuple(sorted({path for layer in layers for path in _paths(layer.get("ignore", ()), key)}))
    return Policy(**fields)


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


def checked(policy: Mapping[str, Any]) -> dict[str, Any]:
    """
    Check the policy of a stack, and return it in normal form.

    Raises:
        PolicyInvalidError: It has an unknown field or value, contradicts itself, or exceeds a limit.
    """
    accepted = dict(_checked(policy, _OF_OBJECTS | _OF_STACKS, ""))
    _refuse_contradictions(accepted.get("overrides", ()))
    ignored = sum(map(_rule_count, (accepted, *accepted.get("overrides", ()))))
    if ignored > _MOST_IGNORED:
        raise PolicyInvalidError("ignore", f"a policy ignores at most {_MOST_IGNORED} paths, not {ignored:,}")
    return accepted


def _rule_count(layer: Mapping[str, Any]) -> int:
    return sum(len(rule["paths"]) if isinstance(rule, Mapping) else 1 for rule in layer.get("ignore", ()))


def _refuse_contradictions(overrides: Sequence[Mapping[str, Any]]) -> None:
    """
    Refuse overrides with equal matches and different values; where matches only overlap, the last override counts.

    Raises:
        PolicyInvalidError: Two overrides contradict each other; names the second one.
    """
    values: dict[tuple[str, str], tuple[int, Any]] = {}
    for number, override in enumerate(overrides):
        for field in override.keys() - {"match", "ignore"}:
            first, value = values.setdefault((canonical_text(override["match"]), field), (number, override[field]))
            if value != override[field]:
                problem = f"contradicts overrides[{first}], which matches the same objects: keep one of them"
                raise PolicyInvalidError(f"overrides[{number}].{field}", problem)


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


def _paths(rules: Iterable[Any], key: Key) -> Iterator[str]:
    for rule in rules:
        if isinstance(rule, str):
            yield rule
        elif _matches(rule, key):
            yield from rule.get("paths", ())


def _checked(policy: Mapping[str, Any], field_names: frozenset[str], field: str) -> Iterator[tuple[str, Any]]:
    for name, value in policy.items():
        place = f"{field}.{name}" if field else name
        if name not in field_names:
            raise PolicyInvalidError(place, _unknown(name, field_names))
        match name:
            case "protect" | "allow_empty":
                if not isinstance(value, bool):
                    raise PolicyInvalidError(place, f"{_shown(value)} is neither true nor false")
                yield name, value
            case "history":
                yield name, _number(value, 1, _LONGEST_HISTORY, "number of revisions", place)
            case "max_deletes":
                yield name, _number(value, 0, _MOST_DELETES, "number of deletions", place)
            case "ignore":
                rules = [
                    _ignore_rule(rule, f"{place}[{at}]", field_names) for at, rule in enumerate(_listed(value, place))
                ]
                yield name, rules
            case "overrides":
                overrides = _listed(value, place)
                if len(overrides) > _MOST_OVERRIDES:
                    problem = f"a policy has at most {_MOST_OVERRIDES} overrides, not {len(overrides):,}"
                    raise PolicyInvalidError(place, problem)
                yield name, [_override(each, f"{place}[{at}]") for at, each in enumerate(overrides)]
            case _:
                yield name, _word(value, _WORDS[name], place)


def _unknown(name: str, field_names: frozenset[str]) -> str:
    if name in _OF_STACKS:
        return "belongs to the policy of a stack, not to an override"
    alike = nearest(name, sorted(field_names))
    return f"is no field of a policy{_meant(alike) or '; the fields are ' + ', '.join(sorted(field_names))}"


def _word(value: Any, words: Sequence[str], place: str) -> str:
    if isinstance(value, str) and value in words:
        return value
    alike = nearest(value, words) if isinstance(value, str) else ""
    if value in ("revert", "accept") and "report" in words:
        raise PolicyInvalidError(place, f"{value} is not accepted: drift is not healed yet; write ignore or report")
    raise PolicyInvalidError(place, f"{_shown(value)} is none of {', '.join(words)}{_meant(alike)}")


def _number(value: Any, least: int, most: int, what: str, place: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise PolicyInvalidError(place, f"{_shown(value)} is no {what} from {least} to {most:,}")
    return value


def _override(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, Mapping) or "match" not in value:
        raise PolicyInvalidError(place, "an override is a mapping with match, and the fields that hold there")
    match = _match(value["match"], f"{place}.match", ())
    fields = {name: item for name, item in value.items() if name != "match"}
    if not fields:
        raise PolicyInvalidError(place, "sets nothing: write a field beside match, such as protect: true")
    return {"match": match, **dict(_checked(fields, _OF_OBJECTS, place))}


def _ignore_rule(value: Any, place: str, field_names: frozenset[str]) -> Any:
    if isinstance(value, Mapping) and "overrides" in field_names:
        rule = _match(value, place, ("paths",))
        paths = [
            _pointer(each, f"{place}.paths[{at}]")
            for at, each in enumerate(_listed(value.get("paths"), f"{place}.paths"))
        ]
        if not paths:
            raise PolicyInvalidError(f"{place}.paths", "is empty: list the pointers to fields, such as /description")
        return {**rule, "paths": paths}
    return _pointer(value, place)


def _match(value: Any, place: str, more: Sequence[str]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise PolicyInvalidError(place, "is no mapping with kind and names")
    for name in value:
        if name not in ("kind", "names", *more):
            raise PolicyInvalidError(
                f"{place}.{name}", f"is not known here; known are {', '.join(('kind', 'names', *more))}"
            )
    selector: dict[str, Any] = {}
    # An empty kind and an empty list of names are the same as absent ones, as in a message.
    if (kind := value.get("kind", "")) != "":
        if kind != "*" and kind not in ACCEPTED:
            alike = nearest(kind, sorted(ACCEPTED)) if isinstance(kind, str) else ""
            raise PolicyInvalidError(f"{place}.kind", f"{_shown(kind)} is no kind, and not *{_meant(alike)}")
        selector["kind"] = kind
    if names := _listed(value.get("names", ()), f"{place}.names"):
        if not all(isinstance(name, str) and name for name in names):
            raise PolicyInvalidError(f"{place}.names", "names are texts that are not empty")
        if (longest := max(map(len, names), default=0)) > _LONGEST_GLOB:
            problem = f"a name has at most {_LONGEST_GLOB} characters, not {longest:,}"
            raise PolicyInvalidError(f"{place}.names", problem)
        selector["names"] = list(names)
    return selector


def _pointer(value: Any, place: str) -> str:
    if not isinstance(value, str) or not value.startswith("/") or re.search("~(?![01])", value):
        raise PolicyInvalidError(place, f"{_shown(value)} is no pointer to a field, such as /description")
    return value


def _listed(value: Any, place: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise PolicyInvalidError(place, "is no list")
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _meant(word: str) -> str:
    return f"; did you mean {word}?" if word else ""
