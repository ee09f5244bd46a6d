"""Tables of fields: one description reads a mapping, checks it, warns about it and returns its JSON Schema."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from services.kinds.diagnostics import Code
from services.kinds.format.fields import Fault, Fields, Note, Numbering, Remark, Rewrite, found_text, text_of
from services.kinds.format.references import Referable
from services.kinds.format.shapes import (
    UNKNOWN_FIELD,
    Duration,
    Integer,
    Schema,
    Shape,
    Text,
    items_ignored,
    nearest,
    object_schema,
)

Check = Callable[[Fields, Mapping[str, Any]], list[Fault]]
"""Finds the faults of one mapping, from it and its values as read, in the order of docs/reference/package-format.md."""


@dataclass(frozen=True, slots=True)
class Field:
    """One row: a key, the shape of its values, and its description."""

    key: str
    shape: Shape
    about: str


class Variants(NamedTuple):
    """
    Tables that replace another one by the value of one field, with the same or stricter rules.

    Attributes:
        key: The field; its table reads it.
        tables: The table for each value of the field.
    """

    key: str
    tables: Mapping[str, "Table"]


class Table:
    """The fields of one kind of mapping, in the order in which their faults are reported."""

    def __init__(
        self,
        *fields: Field,
        check: Check | None = None,
        required: Sequence[str] = (),
        more: Schema | None = None,
        variants: "Variants | None" = None,
        repeated: str = "",
    ) -> None:
        """
        Describe a mapping.

        Args:
            fields: Its fields.
            check: Finds all faults of a mapping; None: each field is checked by itself, in order.
            required: Keys that the schema requires.
            more: Further keywords of the schema, for rules that concern several fields.
            variants: The tables to read a mapping with, by the value of one of its fields; None: this one.
            repeated: The key of a field that is a mapping, whose fields may be repeated beside it: with the same values
                they get no remark. Empty: none.
        """
        self.variants = variants
        self._fields = {field.key: field for field in fields}
        self._shapes = {field.key: field.shape for field in fields}
        self._absent = {field.key: field.shape.absent for field in fields}
        self._holding = {key: shape for key, shape in self._shapes.items() if isinstance(shape, Mappings | Nested)}
        # Most values of most packages are texts of these fields, which get no remarks.
        self._any_text = frozenset(
            key
            for key, shape in self._shapes.items()
            if (isinstance(shape, Referable) and not shape.secret) or (isinstance(shape, Text) and not shape.vocabulary)
        )
        self._secrets = {
            key: shape for key, shape in self._shapes.items() if isinstance(shape, Referable) and shape.secret
        }
        self._plain = {
            key: shape for key, shape in self._shapes.items() if not isinstance(shape, Mappings | Nested | Text)
        }
        self._check = check
        self._required = tuple(required)
        self._more = more or {}
        shape = self._shapes.get(repeated)
        self._repeated = repeated
        self._repeatable = shape.table.fields if isinstance(shape, Nested) else {}

    @property
    def fields(self) -> Mapping[str, Field]:
        """Its rows by key, in order."""
        return self._fields

    @property
    def holds_secrets(self) -> bool:
        """Whether one of its fields takes a secret."""
        return bool(self._secrets)

    @property
    def has_own_check(self) -> bool:
        """Whether it has a check besides the rules of its fields."""
        return self._check is not None

    def read(self, mapping: Mapping[str, Any]) -> dict[str, Any]:
        """The normalised value of every field of the table."""
        values = self._absent.copy()
        shapes = self._shapes
        for key, value in mapping.items():
            if key in shapes:
                values[key] = shapes[key].read(value)
        return values

    def written(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """
        The mapping that a person would write for normalised *values*: ``read`` returns the same values for it.

        Fields with the default value are left out unless they are required.
        """
        written: dict[str, Any] = {}
        absent, holding = self._absent, self._holding
        for key, value in values.items():
            if key not in absent:
                continue
            shown = holding[key].written(value) if key in holding else value
            if not _is_default(shown, absent[key]) or key in self._required:
                written[key] = shown
        return written

    def faults(self, fields: Fields, values: Mapping[str, Any]) -> list[Fault]:
        """
        The faults of a mapping.

        Args:
            fields: The mapping.
            values: Its values, as ``read`` returns them.
        """
        if self._check:
            return self._check(fields, values)
        return [fault for key in self._suspects(values) for fault in self.field_faults(fields, values, key)]

    def is_sound(self, values: Mapping[str, Any]) -> bool:
        """Whether ``faults`` certainly finds none. Called first: it needs no positions, and most mappings are sound."""
        return not self._check and not self._suspects(values)

    def field_faults(self, fields: Fields, values: Mapping[str, Any], key: str) -> list[Fault]:
        """The faults of one field by itself."""
        shape = self._shapes[key]
        if problem := shape.problem(values[key]):
            value = fields.value.get(key)
            rewrite = nearest_word(value, getattr(shape, "words", ()))
            return [
                fields.fault(_code(shape, value), key, f"{key} must be {problem}; {found_text(fields, key)}", rewrite)
            ]
        holding = self._holding.get(key)
        return holding.faults(fields, key, values[key]) if holding else []

    def remarks(self, fields: Fields) -> Iterator[Remark]:
        """The remarks on a mapping, in the order of its keys."""
        for key, value in fields.value.items():
            if type(value) is str and key in self._any_text:
                continue
            shape = self._shapes.get(key)
            if shape is None:
                if not self._repeats(fields.value, key):
                    yield self._unknown(fields, key)
            elif value is not None:
                yield from _field_remarks(shape, fields, key, value)

    def is_unremarkable(self, mapping: Mapping[str, Any]) -> bool:
        """Whether ``remarks`` certainly finds none. Called first: it needs no positions, and most mappings get none."""
        for key, value in mapping.items():
            if type(value) is str and key in self._any_text:
                continue
            shape = self._plain.get(key)
            if shape is None or shape.remark(value):
                return False
        return True

    def written_out(self, mapping: Mapping[str, Any]) -> list[str]:
        """The keys of fields for secrets that hold a secret itself, or take it from an environment value; in order."""
        return [key for key, shape in self._secrets.items() if shape.is_written_out(mapping.get(key))]

    def schema(self) -> Schema:
        """JSON Schema of the mapping."""
        properties = {
            field.key: {"description": field.about, **field.shape.schema()} for field in self._fields.values()
        }
        for key in self._repeatable:
            properties.setdefault(key, {"description": f"Ignored here: it may repeat {self._repeated}.{key}."})
        return object_schema(properties, self._required, **{"additionalProperties": UNKNOWN_FIELD, **self._more})

    def with_fields(self, *fields: Field) -> "Table":
        """This table with *fields* before its own, and without variants, which lack these fields."""
        return Table(*fields, *self._fields.values(), check=self._check, required=self._required, more=self._more)

    def _suspects(self, values: Mapping[str, Any]) -> list[str]:
        """The keys of the fields that break a rule, or hold mappings that may."""
        return [
            key
            for key, shape in self._shapes.items()
            if shape.problem(values[key]) or (key in self._holding and values[key])
        ]

    def _repeats(self, mapping: Mapping[str, Any], key: str) -> bool:
        """Whether a field that is none of the table repeats one of the mapping in the field ``repeated``."""
        inner = mapping.get(self._repeated) if key in self._repeatable else None
        return isinstance(inner, dict) and key in inner and bool(inner[key] == mapping[key])

    def _unknown(self, fields: Fields, key: str) -> Remark:
        alike = nearest(key, self._fields)
        if not alike:
            text = f"there is no field {key[:60]!r} here, so it will be ignored"
            return fields.remark(Code.UNKNOWN_FIELD, key, text, of_key=True)
        text = f"there is no field {key[:60]!r}, so it will be ignored; did you mean {alike!r}?"
        # The rewrite must not repeat a key, nor turn the value into a credential that is written out.
        is_free = alike not in fields.value and alike not in self._secrets
        return fields.remark(Code.UNKNOWN_FIELD, key, text, of_key=True, rewrite=Rewrite(alike) if is_free else None)


@dataclass(frozen=True, slots=True)
class Mappings:
    """
    A list of mappings; other items are dropped.

    Attributes:
        table: The fields of each mapping.
        required: The name of an element, at least one of which is required; empty where the list may be empty.
        numbering: Where the paths of their fields have the position.
    """

    table: Table
    required: str = ""
    numbering: Numbering = Numbering.ELEMENT
    absent: ClassVar[Sequence[Any]] = ()

    def read(self, value: Any) -> list[dict[str, Any]]:
        if not isinstance(value, list):
            return []
        read = self.table.read
        return [read(item) for item in value if isinstance(item, dict)]

    def written(self, values: Any) -> list[dict[str, Any]]:
        """The list that a person would write, with items of ``Table.written``; empty for a value that is no list."""
        items = values if isinstance(values, list | tuple) else ()
        return [self.table.written(item) for item in items if isinstance(item, dict)]

    def problem(self, value: Sequence[Any]) -> str:
        return f"a list of at least one {self.required}" if self.required and not value else ""

    def faults(self, fields: Fields, key: str, values: Sequence[Mapping[str, Any]]) -> list[Fault]:
        """The faults of the elements."""
        if all(map(self.table.is_sound, values)):
            return []
        elements = fields.mappings(key, self.numbering)
        return [
            fault
            for element, value in zip(elements, values, strict=True)
            for fault in self.table.faults(element, value)
        ]

    def remark(self, value: Any) -> Note | None:
        if not isinstance(value, list):
            return Note(Code.VALUE_IGNORED, "this will be ignored; write a list of mappings")
        dropped = len([item for item in value if not isinstance(item, dict)])
        return items_ignored(dropped, "a mapping") if dropped else None

    def schema(self) -> Schema:
        few = {"type": "array", "minItems": 1} if self.required else {"type": ["array", "null"]}
        return {**few, "items": self.table.schema()}


class Nested:
    """A mapping inside another."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.absent: Mapping[str, Any] = table.read({})

    def read(self, value: Any) -> Mapping[str, Any]:
        """The normalised mapping."""
        return self.table.read(value) if isinstance(value, dict) else self.absent

    def written(self, values: Any) -> dict[str, Any]:
        """The mapping that a person would write; empty for a value that is no mapping."""
        return self.table.written(values) if isinstance(values, dict) else {}

    def problem(self, value: Mapping[str, Any]) -> str:
        """Empty: only its fields have faults."""
        return ""

    def faults(self, fields: Fields, key: str, values: Mapping[str, Any]) -> list[Fault]:
        """The faults of its fields."""
        return self.table.faults(fields.mapping(key), values)

    def remark(self, value: Any) -> Note | None:
        """The remark on a value that is no mapping."""
        if isinstance(value, dict):
            return None
        return Note(Code.VALUE_IGNORED, "this will be ignored; write a mapping")

    def schema(self) -> Schema:
        """The schema of the mapping; null counts as absent."""
        schema = self.table.schema()
        return {**schema, "type": ["object", "null"]}


def _is_default(written: Any, absent: Any) -> bool:
    """Whether a field with the value *written* means the same as one that is left out."""
    if isinstance(written, str):
        return bool(written == absent)
    if written is None or isinstance(written, list | dict):
        # The default list or mapping is written as an empty one, too.
        return not written
    return type(written) is type(absent) and bool(written == absent)


def nearest_word(value: Any, words: Sequence[str]) -> Rewrite | None:
    """The rewrite to the word of *words* that was probably meant; None when none is near."""
    word = nearest(value.strip(), filter(None, words)) if isinstance(value, str) and words else ""
    return Rewrite(word) if word else None


def text_code(value: Any) -> Code:
    """The code for a faulty value that should be one of some words, or a text that is not empty."""
    if value is None:
        return Code.FIELD_MISSING
    return Code.VALUE_NOT_ALLOWED if (text_of(value) or "").strip() else Code.VALUE_EMPTY


def _code(shape: Shape, value: Any) -> Code:
    """The code for a value that breaks the rule of its shape."""
    if value is None:
        return Code.FIELD_MISSING
    match shape:
        case Integer():
            return Code.VALUE_OUT_OF_RANGE
        case Duration():
            return Code.DURATION_INVALID
        case Mappings():
            return Code.LIST_EMPTY
        case _:
            return text_code(value)


def _field_remarks(shape: Shape, fields: Fields, key: str, value: Any) -> Iterator[Remark]:
    if note := shape.remark(value):
        yield fields.remark(note.code, key, note.text, rewrite=Rewrite(note.word) if note.word else None)
    elif isinstance(shape, Text) and not isinstance(value, str):
        yield _number_as_text(fields, key, value)
    elif isinstance(shape, Mappings):
        if not all(isinstance(item, dict) and shape.table.is_unremarkable(item) for item in value):
            for element in fields.mappings(key, shape.numbering):
                yield from shape.table.remarks(element)
    elif isinstance(shape, Nested):
        yield from shape.table.remarks(fields.mapping(key))


def _number_as_text(fields: Fields, key: str, value: Any) -> Remark:
    """The remark on a number in place of a text, which may differ from the source, as ``000000`` does."""
    text = text_of(value) or ""
    reason = f"this is a number, which becomes the text {text!r}; put it in quotes"
    return fields.remark(Code.NUMBER_AS_TEXT, key, reason, unless_written=text, rewrite=Rewrite(None))


DESCRIPTION = Field("description", Text(), "What it is for.")
"""The field that every kind has."""
