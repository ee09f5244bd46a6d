"""
A fast path for plainly valid mappings, in one pass: known keys only, each with a value of the type of its field.

Nearly all mappings of nearly all packages are plainly valid. Other mappings are left to the methods of ``Table``, which
find their faults and remarks. A property test checks that both ways return the same values.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from services.kinds.format.field_table import Mappings, Nested, Table, Variants
from services.kinds.format.references import Referable
from services.kinds.format.shapes import Boolean, Fold, Integer, Shape, Text

PlainReader = Callable[[Mapping[str, Any]], dict[str, Any] | None]
"""
Returns the values of ``Table.read`` for a mapping that certainly has no ``Table.faults`` and no ``Table.remarks``.

None: the methods of ``Table`` have to be called.
"""


class _Unsure:
    """The type of ``_UNSURE``."""


_UNSURE: Final = _Unsure()
"""The result for a value that the methods of its shape have to check."""

_Reader = Callable[[Any], Any]
"""Returns the normalised value of a plainly valid field, else ``_UNSURE``."""


def plain_reader(table: Table) -> PlainReader:
    """The fast reader for mappings of *table*, or of one of its variants."""
    if table.variants:
        return _variant_reader(table.variants, table.fields[table.variants.key].shape)
    shapes = {key: field.shape for key, field in table.fields.items()}
    absent = {key: shape.absent for key, shape in shapes.items()}
    needed = {key for key, shape in shapes.items() if shape.problem(shape.absent)}
    any_text = frozenset(key for key, shape in shapes.items() if _takes_any_text(shape))
    readers = {key: _reader(shape) for key, shape in shapes.items()}

    def read(mapping: Mapping[str, Any]) -> dict[str, Any] | None:
        values = absent.copy()
        for key, value in mapping.items():
            if key in any_text and type(value) is str:
                values[key] = value
            elif key not in readers or (plain_value := readers[key](value)) is _UNSURE:
                return None
            else:
                values[key] = plain_value
        return values if needed <= mapping.keys() else None

    return _never_plain if table.has_own_check else read


def _variant_reader(variants: Variants, shape: Shape) -> PlainReader:
    key, readers = variants.key, {word: plain_reader(table) for word, table in variants.tables.items()}

    def read(mapping: Mapping[str, Any]) -> dict[str, Any] | None:
        reader = readers.get(shape.read(mapping.get(key)))
        return reader(mapping) if reader else None

    return read


def _never_plain(mapping: Mapping[str, Any]) -> None:
    """The reader of tables with a check of their own: always None."""


def _takes_any_text(shape: Shape) -> bool:
    """Whether every text is valid for *shape*, and read unchanged."""
    match shape:
        case Text(absent="", words=(), fold=Fold.KEEP, required=False, vocabulary=()):
            return True
        case Referable(secret=False, absent=""):
            return True
        case _:
            return False


def _reader(shape: Shape) -> _Reader:
    match shape:
        case Text(vocabulary=()):
            return _text_reader(shape)
        case Integer():
            return _integer_reader(shape)
        case Boolean():
            return lambda value: value if type(value) is bool else _UNSURE
        case Mappings():
            return _list_reader(shape)
        case Nested():
            read = plain_reader(shape.table)
            return lambda value: _or_unsure(read(value)) if type(value) is dict else _UNSURE
        case Text():
            return lambda value: _UNSURE
        case _:
            return lambda value: _UNSURE if value is None or shape.remark(value) else _without_problem(shape, value)


def _or_unsure(values: dict[str, Any] | None) -> Any:
    return _UNSURE if values is None else values


def _without_problem(shape: Shape, value: Any) -> Any:
    read = shape.read(value)
    return _UNSURE if shape.problem(read) else read


def _text_reader(shape: Text) -> _Reader:
    fold, absent, words, required = shape.fold, shape.absent, frozenset(shape.words), shape.required

    def read(value: Any) -> Any:
        if type(value) is not str:
            return _UNSURE
        text = value if fold is Fold.KEEP else fold(value)
        text = text or absent
        return _UNSURE if (required and not text) or (words and text not in words) else text

    return read


def _integer_reader(shape: Integer) -> _Reader:
    least = -(2**63) if shape.minimum is None else shape.minimum
    most = 2**63 - 1 if shape.maximum is None else shape.maximum
    return lambda value: value if type(value) is int and least <= value <= most else _UNSURE


def _list_reader(shape: Mappings) -> _Reader:
    read_item, required = plain_reader(shape.table), shape.required

    def read(value: Any) -> Any:
        if type(value) is not list or (required and not value):
            return _UNSURE
        values = []
        for item in value:
            if type(item) is not dict or (mapping := read_item(item)) is None:
                return _UNSURE
            values.append(mapping)
        return values

    return read
