"""The values of a composition: the packages that go in, and why there is no package of the stack."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner_svc.composition.full_names import package_of
from services.core.diff import shown_fields
from services.core.model import FieldChange, Key, Package, PackageReference, Violation
from services.packages.package_text import Declaration


@dataclass(frozen=True, slots=True)
class Component:
    """
    One of the packages of a stack.

    Attributes:
        name: Its name.
        package: Its objects, by the names of their sources or by full names, and the names of its sources, as
            ``source_name`` writes them.
        requires: The names of the packages that it requires directly.
        references: The places of the names of objects of other packages. A name whose place is unknown is reported at
            the place of its object.
    """

    name: str
    package: Package
    requires: frozenset[str] = frozenset()
    references: tuple[PackageReference, ...] = ()


@dataclass(frozen=True, slots=True)
class SharedDifference:
    """
    Two objects of different packages that the platform can only have as one resource, and that are not equal.

    Attributes:
        first: The object whose key the resource would have, by its full name.
        second: The other one.
        fields: The fields that differ, each with the value of *first* and that of *second*; empty: the kinds differ.
    """

    first: Key
    second: Key
    fields: tuple[FieldChange, ...]

    @property
    def packages(self) -> tuple[str, str]:
        """The names of the two packages."""
        return package_of(self.first.name), package_of(self.second.name)

    def __str__(self) -> str:
        if not self.fields:
            return f"{self.second} shares its name with {self.first}, which is of another kind"
        return f"{self.second} shares its name with {self.first}, where {shown_fields(self.fields)}"


@dataclass(frozen=True, slots=True)
class Composition:
    """
    The packages of a stack as one package.

    Attributes:
        package: The package.
        declarations: The declarations of objects that several packages declare, by their key in *package*.
    """

    package: Package
    declarations: Mapping[Key, tuple[Declaration, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CompositionProblems:
    """
    All reasons why packages make no package of a stack.

    Attributes:
        violations_of: The names of objects that a package may not name, or that are not there, by package; in the order
            of the packages and of their objects.
        differing: The objects that would have to be equal, in the order of those that come first.
    """

    violations_of: Mapping[str, tuple[Violation, ...]] = field(default_factory=dict)
    differing: tuple[SharedDifference, ...] = ()

    @property
    def violations(self) -> tuple[Violation, ...]:
        """All violations, in order."""
        return tuple(violation for each in self.violations_of.values() for violation in each)
