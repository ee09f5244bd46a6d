"""The description of one kind of object."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from services.core.model import DataLoss, Key
from services.kinds.diagnostics import Code
from services.kinds.format.field_table import Table
from services.kinds.format.fields import Fault, Fields, Remark
from services.kinds.format.references import UsedReference


class Scope(NamedTuple):
    """
    The context in which an object is read.

    A named tuple, as each object has one: it is made several times as fast as a frozen dataclass.

    Attributes:
        name: Its resolved ``metadata.name``.
        display_name: Its resolved ``spec.name``, else ``name``.
        api_version: As written.
        env: Supplied environment values by key; any tree.
        objects: The objects of the package that others may refer to, by family and ``metadata.name``.
        values: Its field values as its table reads them, if known to break no rule of the table; None: not checked.
        required: The packages whose objects it may name, which the manifest requires; None: there is no manifest.
    """

    name: str
    display_name: str
    api_version: str = ""
    env: Mapping[str, Any] = MappingProxyType({})
    objects: Mapping[str, Mapping[str, Key]] = MappingProxyType({})
    values: Mapping[str, Any] | None = None
    required: Collection[str] | None = None


class ReadResult(NamedTuple):
    """
    The result of reading an object; a named tuple, as ``Scope`` is.

    Attributes:
        spec: Normalised content, its display name under "name". In an object with faults, the readable part.
        faults: Broken rules in the order of docs/reference/package-format.md, "Kinds".
        references: References in the spec besides its name.
        written: Source values that the spec has in resolved form, by RFC 6901 pointer into the spec; any tree.
        remarks: Remarks that the table of the kind cannot find.
        named_by: The reference that names the object instead of ``spec.name``, if any
            (docs/reference/package-format.md, "Task options").
    """

    spec: dict[str, Any]
    faults: Iterable[Fault] = ()
    references: tuple[UsedReference, ...] = ()
    written: Mapping[str, Any] = MappingProxyType({})
    remarks: tuple[Remark, ...] = ()
    named_by: UsedReference | None = None


Read = Callable[[Fields, Scope], ReadResult]
"""Reads the fields of a spec."""

Write = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Returns the spec that a person would write for a normalised one, without its name; ``Read`` reverses it."""

Summarise = Callable[[Mapping[str, Any], int], dict[str, Any]]
"""
Returns the part of a summary entry that only this kind has (docs/reference/package-format.md, "Summary entries"), from
spec and id (0: unknown).
"""


LossOf = Callable[[Mapping[str, Any], Mapping[str, Any]], DataLoss | None]
"""
Returns the data that a resource loses when its spec changes from the first to the second; None: it loses none. The
first one may be of any form, as a driver returns it.
"""


class Referred(NamedTuple):
    """
    The object that a field names, for the summary entry of the object that refers to it.

    Attributes:
        key: Its key.
        number: Its id on the platform; 0: unknown.
        entry: The part of its summary entry that only its kind has.
    """

    key: Key
    number: int
    entry: Mapping[str, Any]


SummariseUses = Callable[[Mapping[str, Referred]], dict[str, Any]]
"""Returns the part of a summary entry about referenced objects, given by field; missing objects are left out."""


@dataclass(frozen=True, slots=True)
class Kind:
    """
    One kind of object.

    Attributes:
        name: As packages spell it.
        family: The family that the kind belongs to; the kinds of a family share a name space.
        family_kind: The name of the whole family as a kind, whose objects are ignored; empty where there is none.
        resource_type: As label mappings spell it.
        summary_key: The list of the summary that holds it.
        unique_display_name: Whether display names must differ within the family in one package.
        min_name_bytes: Shortest display name, in bytes of UTF-8.
        about: One sentence for people.
        fields: The fields of its spec besides its name and associations.
        read: Validates and normalises a spec.
        summarise: Returns the summary entry.
        summarise_uses: Returns the part of the summary entry about the objects in ``uses``; None: there is none.
        labelled: Whether labels can be attached.
        references_by_key: Whether a summary lists environment references by key instead of by field
            (docs/reference/package-format.md, "Reporting of references").
        uses: Required fields of the spec that name another object of the package, with the family of that object. Its
            kind must have no uses: the planner follows references one step far.
        listed_by_kind: Whether the summary of a parsed package lists the family kind by kind, and not by name alone.
        default_words: Fields of the spec, each with the word that means the same as an empty text.
        write: Writes a normalised spec as a person would; None: the table of fields does.
        loss_of: Returns the data that an update deletes; None: no update of the kind deletes any.
        effect: What a resource does by itself, as a verb, such as "runs"; empty: nothing.
    """

    name: str
    family: str
    resource_type: str
    summary_key: str
    unique_display_name: bool
    min_name_bytes: int
    about: str
    fields: Table
    read: Read
    summarise: Summarise
    family_kind: str = ""
    summarise_uses: SummariseUses | None = None
    labelled: bool = True
    references_by_key: bool = False
    uses: Mapping[str, str] = field(default_factory=dict)
    listed_by_kind: bool = False
    default_words: Mapping[str, str] = field(default_factory=dict)
    write: Write | None = None
    loss_of: LossOf | None = None
    effect: str = ""

    @property
    def holds_credentials(self) -> bool:
        """Whether a field of its spec takes a secret."""
        return self.fields.holds_secrets

    def written(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """The spec that a person would write for a normalised one, without its name and without default values."""
        return (self.write or self.fields.written)(spec)


def read_plainly(fields: Fields, scope: Scope, table: Table, min_name_bytes: int) -> ReadResult:
    """Read an object whose rules are all in the table of its kind."""
    faults = short_name(fields, scope.display_name, min_name_bytes)
    if scope.values is not None:
        return ReadResult({**scope.values, "name": scope.display_name}, faults)
    values = table.read(fields.value)
    return ReadResult({**values, "name": scope.display_name}, [*faults, *table.faults(fields, values)])


def short_name(fields: Fields, name: str, minimum: int) -> list[Fault]:
    """The fault of a display name with fewer than *minimum* bytes."""
    if len(name.encode()) >= minimum:
        return []
    reason = f"the name {name!r} is too short; it needs at least {minimum} bytes"
    return [fields.fault(Code.NAME_TOO_SHORT, "name", reason)]
