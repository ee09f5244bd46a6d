"""Reading the JSON values of a definition: each reader returns a value, or None after it has reported a fault."""

import json
import re
from collections.abc import Collection, Iterable
from itertools import islice
from typing import Any, NamedTuple

from services.actions.durations import DAY, Milliseconds, parse_duration
from services.core.masking import masked
from services.kinds.diagnostics import Code
from services.kinds.format.fields import THE_KEY, Elsewhere, Fault, Pointer, Rewrite, described
from services.kinds.format.package_names import is_package_name
from services.kinds.format.shapes import nearest

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SHOWN_NAMES = 20
"""How many names a reason lists at most."""

_COMPARED_NAMES = 200
"""Of more names, none is looked for that is near: each comparison takes microseconds, for each of many faults."""

IDENTIFIER_FORM = "1 to 63 letters, digits or _, with a letter first"


class JsonPlace(NamedTuple):
    """A JSON value of a document, with the pointer that leads to it."""

    value: Any
    pointer: Pointer

    def member(self, key: str) -> "JsonPlace":
        """The value under *key* of a mapping; null where it is missing."""
        return JsonPlace(self.value.get(key) if isinstance(self.value, dict) else None, (*self.pointer, key))

    def items(self) -> list["JsonPlace"]:
        """The items of a list."""
        return [JsonPlace(item, (*self.pointer, position)) for position, item in enumerate(self.value)]

    def entries(self) -> dict[str, "JsonPlace"]:
        """The values of a mapping by key."""
        return {key: JsonPlace(item, (*self.pointer, key)) for key, item in self.value.items()}

    @property
    def key(self) -> "JsonPlace":
        """The last key of the pointer, instead of the value."""
        return JsonPlace(self.pointer[-1], (*self.pointer, THE_KEY))


def path_of(pointer: Pointer) -> str:
    """The path of a value: ``spec.phases[1].args.set["/status"]``."""
    path = ""
    for step in pointer:
        if step == THE_KEY:
            break
        if isinstance(step, int):
            path += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            path += f".{step}" if path else step
        else:
            path += f"[{json.dumps(step, ensure_ascii=False)}]"
    return path


class Report:
    """
    The faults of one document, at most one for each path.

    Attributes:
        position: The position of the document in its source.
    """

    def __init__(self, position: int) -> None:
        """Make an empty report on the document at *position*."""
        self.position = position
        self._faults: dict[str, Fault] = {}

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The faults, in the order in which they were reported."""
        return tuple(self._faults.values())

    def add(
        self,
        place: JsonPlace,
        code: Code,
        reason: str,
        rewrite: Rewrite | None = None,
        related: tuple[Elsewhere, ...] = (),
        first: int | None = None,
    ) -> None:
        """Report a fault, unless its path has one already."""
        path = path_of(place.pointer)
        if path not in self._faults:
            self._faults[path] = Fault(code, path, reason, place.pointer, first, rewrite, related)

    def add_wrong_type(self, place: JsonPlace, expected: str) -> None:
        """Report that a value is not *expected*, such as "a list of phases"."""
        code = Code.LIST_INVALID if expected.startswith("a list") else Code.TYPE_INVALID
        self.add(place, code, f"must be {expected}, found {shown(place.value)}")

    def missing(self, place: JsonPlace, reason: str) -> None:
        """Report that a required field is missing or null."""
        self.add(place, Code.FIELD_MISSING, reason)

    def fields(self, place: JsonPlace, names: Collection[str], what: str) -> dict[str, JsonPlace] | None:
        """
        The fields of a mapping that are not null; fields with other names are reported.

        Args:
            place: The mapping.
            names: The names of all fields that it may have.
            what: What it is, such as "a phase".

        Returns:
            None if it is no mapping.
        """
        if not isinstance(place.value, dict):
            self.add_wrong_type(place, f"a mapping with the fields {', '.join(names)}")
            return None
        fields = {}
        for name, value in place.value.items():
            if name not in names:
                member = place.member(name)
                reason = f"{what} has no field {quoted(name)}; {hint(name, names, 'fields')}"
                self.add(member.key, Code.DEFINITION_FIELD_UNKNOWN, reason, rewrite_to_nearest(name, names))
            elif value is not None:
                fields[name] = JsonPlace(value, (*place.pointer, name))
        return fields

    def text(self, place: JsonPlace | None, most: int = 0) -> str | None:
        """
        A text.

        Args:
            place: Where it is; None: nowhere.
            most: The largest number of characters; 0: any.
        """
        if place is None:
            return None
        if not isinstance(place.value, str):
            is_number = isinstance(place.value, int | float) and not isinstance(place.value, bool)
            remedy = "; put it in quotes" if is_number else ""
            rewrite = Rewrite(None) if is_number else None
            self.add(place, Code.TEXT_INVALID, f"must be a text, found {shown(place.value)}{remedy}", rewrite)
            return None
        if most and len(place.value) > most:
            self.add(place, Code.TEXT_INVALID, f"has {len(place.value):,} characters; at most {most:,} are accepted")
            return None
        return place.value

    def identifier(self, place: JsonPlace, what: str) -> str | None:
        """A name inside a definition, as a value or as a key; *what* it names, such as "a phase"."""
        if isinstance(place.value, str) and _IDENTIFIER.fullmatch(place.value):
            return place.value
        problem = f"found {shown(place.value)}" if place.value is not None else "it is missing"
        self.add(place, Code.IDENTIFIER_INVALID, f"the name of {what} must be {IDENTIFIER_FORM}; {problem}")
        return None

    def definition_name(self, place: JsonPlace, what: str) -> str | None:
        """The ``metadata.name`` of a definition; *what* it is, such as "metadata.name"."""
        if isinstance(place.value, str) and is_package_name(place.value):
            return place.value
        problem = f"found {shown(place.value)}" if place.value is not None else "it is missing"
        form = "1 to 63 lower-case letters, digits or -, with a letter or digit first and last"
        self.add(place, Code.NAME_INVALID, f"{what} must be {form}; {problem}")
        return None

    def boolean(self, place: JsonPlace | None) -> bool | None:
        """True or false."""
        if place is None or isinstance(place.value, bool):
            return None if place is None else place.value
        self.add_wrong_type(place, "a bool")
        return None

    def integer(self, place: JsonPlace, least: int, most: int) -> int | None:
        """A whole number from *least* to *most*."""
        value = place.value
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        reason = f"must be a whole number from {least} to {most}, found {shown(value)}"
        self.add(place, Code.VALUE_OUT_OF_RANGE, reason)
        return None

    def duration(
        self, place: JsonPlace | None, most: Milliseconds | None = DAY, least: Milliseconds = 1
    ) -> Milliseconds | None:
        """A duration; one that is None is any length of at least *least*."""
        if place is None:
            return None
        length = parse_duration(place.value) if isinstance(place.value, str) else None
        if length is None:
            reason = f"must be a duration such as 1m30s (units h, m, s, ms), found {shown(place.value)}"
        elif length < least:
            reason = "must be longer than zero"
        elif most is not None and length > most:
            reason = f"must be at most {most // 3_600_000}h, found {shown(place.value)}"
        else:
            return length
        self.add(place, Code.DURATION_INVALID, reason)
        return None

    def items(self, place: JsonPlace | None, what: str, least: int = 0, most: int = 0) -> list[JsonPlace] | None:
        """
        The items of a list.

        Args:
            place: Where it is; None: nowhere.
            what: What its items are, such as "phases".
            least: How many it has to have.
            most: How many it may have; 0: any number.
        """
        if place is None:
            return None
        if not isinstance(place.value, list):
            self.add_wrong_type(place, f"a list of {what}")
        elif len(place.value) < least:
            self.add(place, Code.LIST_EMPTY, f"has no {what}; write at least one")
        elif most and len(place.value) > most:
            self.add(place, Code.LIST_INVALID, f"has {len(place.value):,} {what}; at most {most} are accepted")
        else:
            return place.items()
        return None

    def entries(self, place: JsonPlace | None, what: str) -> dict[str, JsonPlace] | None:
        """
        The entries of a mapping whose keys are identifiers; keys that are none are reported, and their entries kept.

        Args:
            place: Where it is; None: nowhere.
            what: What one key names, such as "an option".
        """
        if place is None:
            return None
        if not isinstance(place.value, dict):
            self.add_wrong_type(place, f"a mapping with the name of {what} as each key")
            return None
        entries = place.entries()
        for entry in entries.values():
            self.identifier(entry.key, what)
        return entries

    def identifiers(self, place: JsonPlace | None, what: str, noun: str) -> Collection[str] | None:
        """A list of names, each once; *what* one names ("an option"), *noun* what several are ("options")."""
        items = self.items(place, f"names of {noun}")
        if items is None:
            return None
        names: dict[str, JsonPlace] = {}
        for item in items:
            name = self.identifier(item, what)
            if name is not None:
                self.once(item, name, names, "is listed twice; remove one of them")
        return names

    def once(self, place: JsonPlace, name: str, names: dict[str, JsonPlace], problem: str) -> None:
        """Add *name* to *names*, or report with the words of *problem* that it is there already."""
        if name in names:
            related = (Elsewhere(self.position, names[name].pointer, "it is here, too"),)
            self.add(place, Code.NAME_REPEATED, f"{quoted(name)} {problem}", related=related)
        else:
            names[name] = place

    def text_map(self, place: JsonPlace | None, what: str) -> dict[str, str] | None:
        """The texts of a mapping whose keys are identifiers, without those that have faults; *what* one key names."""
        entries = self.entries(place, what)
        if entries is None:
            return None
        return {key: text for key, entry in entries.items() if (text := self.text(entry)) is not None}


def quoted(text: str) -> str:
    """A text of a source in a reason: in quotes, and cut."""
    return json.dumps(text[:80], ensure_ascii=False)


def shown(value: Any) -> str:
    """A value of a source, as the end of a reason: ``the text "yes"``, ``a list``."""
    return f"the text {quoted(masked(value)[:40])}" if isinstance(value, str) else described(value)


def listed(names: Iterable[str]) -> str:
    """Names in a reason, with commas, the first ones of many."""
    first = [*islice(names, _SHOWN_NAMES + 1)]
    return ", ".join(first[:_SHOWN_NAMES]) + (", …" if first[_SHOWN_NAMES:] else "")


def near(word: str, names: Collection[str]) -> str:
    """The name that *word* was probably meant to be; empty when none is near, or there are too many to tell."""
    return nearest(word, names) if len(names) <= _COMPARED_NAMES else ""


def hint(word: str, names: Collection[str], noun: str) -> str:
    """The end of a reason: the name that was probably meant, else all names; *noun* says what they name."""
    meant = near(word, names)
    if meant:
        return f"did you mean {quoted(meant)}?"
    return f"{noun}: {listed(names)}" if names else f"there are no {noun}"


def declared_hint(name: str, names: Collection[str]) -> str:
    """The end of a reason about a name that is not declared: the one that was probably meant, else all."""
    meant = near(name, names)
    return f"did you mean {quoted(meant)}?" if meant else f"it declares {listed(names) or 'none'}"


def rewrite_to_nearest(word: str, names: Collection[str]) -> Rewrite | None:
    """The correction of *word* to the name that was probably meant; None: none is near."""
    meant = near(word, names)
    return Rewrite(meant) if meant else None


def named_choice(place: JsonPlace, choices: Collection[str], report: Report) -> str | None:
    """One of a few texts; None after a fault."""
    if isinstance(place.value, str) and place.value in choices:
        return place.value
    word = place.value if isinstance(place.value, str) else ""
    meant = near(word, choices)
    end = f"; did you mean {quoted(meant)}?" if meant else ""
    first = "one of " if len(choices) > 1 else ""
    reason = f"must be {first}{listed(choices)}, found {shown(place.value)}{end}"
    report.add(place, Code.VALUE_NOT_ALLOWED, reason, Rewrite(meant) if meant else None)
    return None
