"""Reads policies as people write them, of stacks, packages and objects: all that is wrong with one, and its schema."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from services.kinds.diagnostics import Code
from services.kinds.format.canonical import canonical_text
from services.kinds.format.durations import parse_duration
from services.kinds.format.fields import THE_KEY, Fault, Pointer, Rewrite
from services.kinds.format.shapes import Schema, nearest
from services.kinds.policy import OwnPolicy
from services.kinds.registry import ACCEPTED

_LONGEST_HISTORY = 1000
_MOST_DELETES = 1_000_000
_MOST_OVERRIDES = 100
_MOST_IGNORED = 200
"""Number of ignored paths in one policy; a rule with several paths counts for each (docs/policies.md)."""

_LONGEST_GLOB = 200
_POINTER_FORM = "^/([^~]|~[01])*$"

_SECOND = 1_000_000_000
_SHORTEST_INTERVAL, _LONGEST_INTERVAL = 10 * _SECOND, 24 * 3600 * _SECOND

_WORDS: Mapping[str, tuple[str, ...]] = {
    "drift": ("ignore", "report", "revert"),
    "on_remove": ("delete", "orphan"),
    "on_delete": ("cleanup", "orphan"),
    "adopted_on_delete": ("delete", "orphan"),
    "adopt": ("never", "if_unmanaged"),
    "share": ("never", "equal", "always"),
}
"""The accepted values of each field."""

_FLAGS = frozenset({"protect", "recreate_deleted", "allow_empty"})

_OF_OBJECTS: Mapping[str, str] = {
    "drift": "What happens when the resource is changed outside the stack.",
    "recreate_deleted": "Whether the resource is created again after it was deleted outside the stack.",
    "on_remove": "What happens to the resource when the object leaves the package.",
    "on_delete": "What happens to the resource when the stack is uninstalled.",
    "adopted_on_delete": "The same for a resource that the stack adopted.",
    "adopt": "Whether a resource that no stack owns is adopted by its name.",
    "protect": "Whether the resource is never deleted or replaced.",
    "ignore": "Pointers to fields that are left as the platform has them.",
}
"""The fields that every layer may set, each with its description."""

_OF_STACKS = frozenset({"share", "allow_empty", "history", "max_deletes", "heal_interval", "overrides"})

_RESERVED: Mapping[str, str] = {
    "service_account": "stacks are applied as their caller",
    "approval": "plans are not approved by others",
    "approvals": "plans are not approved by others",
    "four_eyes": "plans are not approved by others",
    "approval_ttl": "plans are not approved by others",
    "on_failure": "an operation that fails is rolled back",
    "on_crash": "an operation that is interrupted is resumed",
}
"""Fields that are not accepted yet, each with what holds instead."""

_RESERVED_WORDS: Mapping[tuple[str, str], str] = {
    ("drift", "accept"): "changes on the platform are not taken over into the stack",
}
"""Values that are not accepted yet, each with what holds instead."""


class PolicyInvalidError(ValueError):
    """
    A policy is invalid.

    Attributes:
        field: The field, such as ``overrides[0].drift``; empty: the policy as a whole.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(problem)
        self.field = field


class PolicyProblem(NamedTuple):
    """
    What is wrong with one field of a policy.

    Attributes:
        pointer: The keys and positions that lead to the field; empty: the policy as a whole.
        text: What is wrong, and what to write instead, after the path of the field and a colon.
        code: The rule.
        word: The word that was probably meant; empty when none is near.
        is_of_key: Whether the key is wrong, not its value.
    """

    pointer: Pointer
    text: str
    code: Code = Code.POLICY_VALUE_INVALID
    word: str = ""
    is_of_key: bool = False

    @property
    def field(self) -> str:
        """The path of the field, such as ``overrides[0].drift``."""
        return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.pointer).removeprefix(".")


class PolicyReading(NamedTuple):
    """
    The result of reading the policy of a package or an object.

    Attributes:
        policy: Its valid fields.
        faults: All that is wrong, in the order of its fields.
    """

    policy: dict[str, Any]
    faults: tuple[Fault, ...]


def checked(policy: Mapping[str, Any]) -> dict[str, Any]:
    """
    Check the policy of a stack, and return it in normal form.

    Raises:
        PolicyInvalidError: It has an unknown field or value, contradicts itself, or exceeds a limit; names the first.
    """
    reader = _Reader(_OF_OBJECTS.keys() | _OF_STACKS, has_rules=True)
    accepted = reader.policy(policy, ())
    for problem in reader.problems or _contradictions(accepted.get("overrides", ())) or _excess(accepted):
        raise PolicyInvalidError(problem.field, problem.text)
    return accepted


def read_policy(value: Any, path: str, pointer: Pointer, *, has_rules: bool) -> PolicyReading:
    """
    Read the policy of a package or an object.

    Args:
        value: As written; None: there is none.
        path: The path of the field that has it.
        pointer: The pointer to it in its document.
        has_rules: Whether the fields to ignore may name the kinds and names of their objects.
    """
    if value is None:
        return PolicyReading({}, ())
    reader = _Reader(frozenset(_OF_OBJECTS), has_rules)
    policy = reader.policy(value, ())
    problems = [*reader.problems, *_excess(policy)]
    return PolicyReading(policy, tuple(_fault(problem, path, pointer) for problem in problems))


def checked_own(text: str) -> OwnPolicy:
    """
    Read what ``OwnPolicy.text`` wrote, from a client: nothing of it is trusted.

    Raises:
        ValueError: It is not valid; the message says why.
    """
    layers = orjson.loads(text) if text else {}
    if not isinstance(layers, dict) or not layers.keys() <= {"package", "object"}:
        raise ValueError("is no mapping with package and object, each with fields of a policy")
    readings = [read_policy(layers.get(name), name, (name,), has_rules=False) for name in ("package", "object")]
    for fault in (fault for reading in readings for fault in reading.faults):
        raise ValueError(f"{fault.path}: {fault.reason}")
    return OwnPolicy(*(reading.policy for reading in readings))


def policy_schema(*, has_rules: bool) -> Schema:
    """JSON Schema of the policy of a package or an object; *has_rules*: as for ``read_policy``."""
    pointers = {"type": "string", "pattern": _POINTER_FORM}
    rule = {
        "type": "object",
        "properties": {
            "kind": {"description": "Kind of the objects, or a family.", "enum": sorted([*ACCEPTED, "*"])},
            "names": {
                "description": "Patterns for metadata.name, with * and ?.",
                "type": "array",
                "items": {"type": "string", "minLength": 1, "maxLength": _LONGEST_GLOB},
            },
            "paths": {"description": "Pointers to the fields.", "type": "array", "items": pointers, "minItems": 1},
        },
        "required": ["paths"],
        "additionalProperties": False,
    }
    ignored: Schema = {
        "type": "array",
        "items": {"anyOf": [pointers, rule]} if has_rules else pointers,
        "maxItems": _MOST_IGNORED,
    }
    shapes = {
        name: ignored if name == "ignore" else {"type": "boolean"} if name in _FLAGS else {"enum": list(_WORDS[name])}
        for name in _OF_OBJECTS
    }
    return {
        "type": ["object", "null"],
        "properties": {name: {"description": about, **shapes[name]} for name, about in _OF_OBJECTS.items()},
        "additionalProperties": False,
    }


def _fault(problem: PolicyProblem, path: str, pointer: Pointer) -> Fault:
    place = (*pointer, *problem.pointer)
    field = f"{path}.{problem.field}" if problem.pointer else path
    shown = problem.field or path.rpartition(".")[2]
    return Fault(
        problem.code,
        field,
        f"{shown}: {problem.text}",
        (*place, THE_KEY) if problem.is_of_key else place,
        rewrite=Rewrite(problem.word) if problem.word else None,
    )


def _excess(policy: Mapping[str, Any]) -> list[PolicyProblem]:
    """The problem of too many ignored paths in all layers of *policy*."""
    count = sum(map(_rule_count, (policy, *policy.get("overrides", ()))))
    if count <= _MOST_IGNORED:
        return []
    return [PolicyProblem(("ignore",), f"a policy ignores at most {_MOST_IGNORED} paths, not {count:,}")]


def _rule_count(layer: Mapping[str, Any]) -> int:
    return sum(len(rule["paths"]) if isinstance(rule, Mapping) else 1 for rule in layer.get("ignore", ()))


def _contradictions(overrides: Sequence[Mapping[str, Any]]) -> list[PolicyProblem]:
    """
    The problems of overrides with equal matches and different values, each at the second one; where matches only
    overlap, the last override counts.
    """
    values: dict[tuple[str, str], tuple[int, Any]] = {}
    problems = []
    for number, override in enumerate(overrides):
        for field in override.keys() - {"match", "ignore"}:
            first, value = values.setdefault((canonical_text(override["match"]), field), (number, override[field]))
            if value != override[field]:
                text = f"contradicts overrides[{first}], which matches the same objects: keep one of them"
                problems.append(PolicyProblem(("overrides", number, field), text))
    return problems


@dataclass(frozen=True, slots=True)
class _Field:
    """A value of a policy, and the pointer to it."""

    value: Any
    pointer: Pointer

    def at(self, step: str | int, value: Any) -> "_Field":
        """The *value* at *step* within this one."""
        return _Field(value, (*self.pointer, step))


class _Reader:
    """Reads one policy, and collects its problems."""

    def __init__(self, field_names: frozenset[str] | set[str], has_rules: bool) -> None:
        """
        Args:
            field_names: The fields that the policy may have.
            has_rules: Whether items of ``ignore`` may be rules with kind and names.
        """
        self._field_names = frozenset(field_names)
        self._has_rules = has_rules
        self.problems: list[PolicyProblem] = []

    def policy(self, value: Any, pointer: Pointer) -> dict[str, Any]:
        """The valid fields of a policy, in normal form."""
        whole = _Field(value, pointer)
        if not isinstance(value, Mapping):
            self._add(whole, f"{_shown(value)} is no mapping with the fields of a policy, such as protect: true")
            return {}
        if _is_reference(value):
            self._add(whole, _NO_REFERENCES)
            return {}
        return dict(self._fields(whole))

    def _add(self, field: _Field, text: str, word: str = "") -> None:
        self.problems.append(PolicyProblem(field.pointer, text, word=word))

    def _fields(self, whole: _Field) -> Iterator[tuple[str, Any]]:
        for name, value in whole.value.items():
            field = whole.at(str(name), value)
            if name not in self._field_names:
                problem = _unknown(name, field.pointer, self._field_names)
                # The rewrite must not repeat a key.
                self.problems.append(problem._replace(word="") if problem.word in whole.value else problem)
            elif _is_reference(value):
                self._add(field, _NO_REFERENCES)
            elif (read := self._read(name, field)) is not None:
                yield name, read

    def _read(self, name: str, field: _Field) -> Any:
        """The value of a known field; None, with a problem, if it is invalid."""
        match name:
            case "history":
                return self._number(field, 1, _LONGEST_HISTORY, "number of revisions")
            case "max_deletes":
                return self._number(field, 0, _MOST_DELETES, "number of deletions")
            case "heal_interval":
                return self._interval(field)
            case "ignore":
                rules = [self._ignore_rule(field.at(place, each)) for place, each in enumerate(self._listed(field))]
                return [rule for rule in rules if rule is not None]
            case "overrides":
                overrides = self._listed(field)
                if len(overrides) > _MOST_OVERRIDES:
                    self._add(field, f"a policy has at most {_MOST_OVERRIDES} overrides, not {len(overrides):,}")
                    return None
                return [self._override(field.at(place, each)) for place, each in enumerate(overrides)]
            case _:
                return self._flag(field) if name in _FLAGS else self._word(name, field)

    def _flag(self, field: _Field) -> bool | None:
        if isinstance(field.value, bool):
            return field.value
        self._add(field, f"{_shown(field.value)} is neither true nor false")
        return None

    def _word(self, name: str, field: _Field) -> str | None:
        words, value = _WORDS[name], field.value
        if isinstance(value, str) and value in words:
            return value
        if isinstance(value, str) and (reason := _RESERVED_WORDS.get((name, value))):
            text = f"{value} is not accepted yet, as {reason}; write one of {', '.join(words)}"
            self.problems.append(PolicyProblem(field.pointer, text, Code.FIELD_NOT_ACCEPTED))
            return None
        alike = nearest(value, words) if isinstance(value, str) else ""
        self._add(field, f"{_shown(value)} is none of {', '.join(words)}{_meant(alike)}", alike)
        return None

    def _number(self, field: _Field, least: int, most: int, what: str) -> int | None:
        value = field.value
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self._add(field, f"{_shown(value)} is no {what} from {least} to {most:,}")
        return None

    def _interval(self, field: _Field) -> str | None:
        value = "0" if field.value == 0 and not isinstance(field.value, bool) else field.value
        length = 0 if value == "0" else parse_duration(value) if isinstance(value, str) and value else None
        if length is not None and (length == 0 or _SHORTEST_INTERVAL <= length <= _LONGEST_INTERVAL):
            return str(value)
        self._add(field, f"{_shown(field.value)} is no interval from 10s to 24h, such as 10m, and not 0, which is none")
        return None

    def _override(self, field: _Field) -> dict[str, Any]:
        value = field.value
        if not isinstance(value, Mapping) or "match" not in value:
            self._add(field, "an override is a mapping with match, and the fields that hold there")
            return {}
        match = self._match(field.at("match", value["match"]), ())
        fields = {name: item for name, item in value.items() if name != "match"}
        if not fields:
            self._add(field, "sets nothing: write a field beside match, such as protect: true")
        reader = _Reader(frozenset(_OF_OBJECTS), has_rules=False)
        read = {"match": match, **reader.policy(fields, field.pointer)}
        self.problems += reader.problems
        return read

    def _ignore_rule(self, field: _Field) -> Any:
        """A pointer, or a rule with paths; None, with a problem, for anything else."""
        if not (isinstance(field.value, Mapping) and self._has_rules):
            return self._pointer(field)
        rule, listed = self._match(field, ("paths",)), field.at("paths", field.value.get("paths"))
        before = len(self.problems)
        paths = [self._pointer(listed.at(place, each)) for place, each in enumerate(self._listed(listed))]
        if not paths and len(self.problems) == before:
            self._add(listed, "is empty: list the pointers to fields, such as /description")
        return {**rule, "paths": [path for path in paths if path is not None]}

    def _match(self, field: _Field, more: Sequence[str]) -> dict[str, Any]:
        value = field.value
        if not isinstance(value, Mapping):
            self._add(field, "is no mapping with kind and names")
            return {}
        accepted = ("kind", "names", *more)
        for name in value:
            if name not in accepted:
                alike = nearest(str(name), accepted)
                text = f"is not known here; known are {', '.join(accepted)}{_meant(alike)}"
                word = "" if alike in value else alike
                self.problems.append(
                    PolicyProblem((*field.pointer, str(name)), text, Code.LIFECYCLE_FIELD_UNKNOWN, word, is_of_key=True)
                )
        selector: dict[str, Any] = {}
        # An empty kind and an empty list of names are the same as absent ones, as in a message.
        if (kind := value.get("kind", "")) != "":
            if not (isinstance(kind, str) and (kind == "*" or kind in ACCEPTED)):
                alike = nearest(kind, sorted(ACCEPTED)) if isinstance(kind, str) else ""
                self._add(field.at("kind", kind), f"{_shown(kind)} is no kind, and not *{_meant(alike)}", alike)
            selector["kind"] = kind
        listed = field.at("names", value.get("names", ()))
        if names := self._listed(listed):
            if not all(isinstance(name, str) and name for name in names):
                self._add(listed, "names are texts that are not empty")
            elif (longest := max(map(len, names), default=0)) > _LONGEST_GLOB:
                self._add(listed, f"a name has at most {_LONGEST_GLOB} characters, not {longest:,}")
            selector["names"] = list(names)
        return selector

    def _pointer(self, field: _Field) -> str | None:
        value = field.value
        if isinstance(value, str) and re.fullmatch(_POINTER_FORM, value, re.DOTALL):
            return value
        self._add(field, f"{_shown(value)} is no pointer to a field, such as /description")
        return None

    def _listed(self, field: _Field) -> Sequence[Any]:
        if isinstance(field.value, list | tuple):
            return field.value
        self._add(field, "is no list")
        return ()


_NO_REFERENCES = "is a reference, and a policy has none; write the value itself"


def _is_reference(value: Any) -> bool:
    return isinstance(value, Mapping) and not value.keys().isdisjoint(("envRef", "secretRef"))


def _unknown(name: Any, pointer: Pointer, field_names: frozenset[str]) -> PolicyProblem:
    if name in _RESERVED:
        text = f"is not accepted yet, as {_RESERVED[name]}; remove it"
        return PolicyProblem(pointer, text, Code.FIELD_NOT_ACCEPTED, is_of_key=True)
    if name in _OF_STACKS:
        text = "belongs to the policy of a stack, not to that of a package, an object or an override; remove it"
        return PolicyProblem(pointer, text, Code.FIELD_NOT_ACCEPTED, is_of_key=True)
    alike = nearest(name, sorted(field_names)) if isinstance(name, str) else ""
    text = f"is no field of a policy{_meant(alike) or '; the fields are ' + ', '.join(sorted(field_names))}"
    return PolicyProblem(pointer, text, Code.LIFECYCLE_FIELD_UNKNOWN, alike, is_of_key=True)


def _shown(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _meant(word: str) -> str:
    return f"; did you mean {word}?" if word else ""
