"""Fields that name another object of the package."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.kinds.diagnostics import Code
from services.kinds.format.field_table import Field
from services.kinds.format.fields import Fault, Fields
from services.kinds.format.kind import Scope
from services.kinds.format.package_names import OF_OTHERS, fault_elsewhere, name_elsewhere
from services.kinds.format.references import Referable, ReferenceSpec, UsedReference, read_reference

_SHOWN_NAMES = 5
"""Number of names that a reason lists at most."""


@dataclass(frozen=True, slots=True)
class NamedObject:
    """
    A required field of a spec that names another object of the package by its ``metadata.name``.

    Attributes:
        key: The field.
        family: The family that the object must be of.
        what: The name of such an object for people: "notification endpoint".
        needed: Why the field is required: "a rule needs an endpoint".
        not_found: Code of the fault of a name that no such object of the package has.
    """

    key: str
    family: str
    what: str
    needed: str
    not_found: Code = Code.VALUE_NOT_ALLOWED

    def field(self) -> Field:
        """The row of the table."""
        return Field(self.key, Referable(), f"metadata.name of a {self.what} of the same package, {OF_OTHERS}.")

    def reference(self, fields: Fields) -> ReferenceSpec:
        """The field of a spec, which may take the name from an environment value."""
        return read_reference(fields.value.get(self.key))

    def use(self, fields: Fields) -> UsedReference:
        """The reference to an environment value, for the list of the object's references."""
        return UsedReference(self.reference(fields), f"{fields.path}.{self.key}")

    def written(self, fields: Fields) -> dict[str, Any]:
        """The reference in the source, by pointer into the spec; empty where the source has the name itself."""
        reference = self.reference(fields)
        return {f"/{self.key}": reference.written()} if reference.is_one else {}

    def name(self, fields: Fields, scope: Scope) -> str:
        """The name, with the supplied values."""
        return self.reference(fields).resolved(scope.env)

    def faults(self, fields: Fields, scope: Scope) -> list[Fault]:
        """The fault of a name that is missing, or that no object has."""
        if fields.value.get(self.key) is None:
            reason = f"{self.needed}; write the metadata.name of one of the package as {self.key}"
            return [fields.fault(Code.FIELD_MISSING, self.key, reason)]
        objects: Mapping[str, Any] = scope.objects.get(self.family, {})
        name = self.name(fields, scope)
        if name in objects:
            return []
        if scope.required is not None and (elsewhere := name_elsewhere(name)):
            is_literal = not self.reference(fields).is_one
            pointer = (*fields.pointer, self.key)
            fault = fault_elsewhere(elsewhere, is_literal, scope.required, f"{fields.path}.{self.key}", pointer)
            return [fault] if fault else []
        names = sorted(objects)
        has = ", ".join(names[:_SHOWN_NAMES]) + (" ..." if names[_SHOWN_NAMES:] else "") or "none"
        reason = f"the package has no {self.what} with the metadata.name {name[:80]!r}; it has {has}"
        return [fields.fault(self.not_found, self.key, reason)]
