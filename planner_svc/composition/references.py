"""Names of objects of other packages that lead nowhere, or to a package that is not required."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from planner_svc.composition.full_names import full_key, full_name, named
from planner_svc.composition.model import Component
from services.core.model import Location, Object, PackageReference, Violation
from services.core.text_lists import listed
from services.kinds.diagnostics import DIAGNOSTICS, Code
from services.kinds.registry import KINDS, family_named

_SHOWN_NAMES = 5
"""How many names a reason lists at most."""

_Names = Mapping[tuple[str, str], Collection[str]]
"""The names of the objects of packages, without those of the packages, by package and family."""


def broken_references(components: Sequence[Component]) -> dict[str, tuple[Violation, ...]]:
    """A violation for each name of an object that its package may not name, or that is not there, by package."""
    names: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for component in components:
        for item in component.package.objects:
            package, _, name = full_name(component.name, item.key.name).partition(".")
            names[package, KINDS[item.key.kind].family].add(name)
    broken = {component.name: tuple(_of_package(component, names)) for component in components}
    return {name: violations for name, violations in broken.items() if violations}


def _of_package(component: Component, names: _Names) -> Iterator[Violation]:
    places = {
        (
            full_key(component.name, each.key),
            family_named(each.key.kind, each.path),
            f"{each.package}.{each.name}",
        ): each
        for each in component.references
    }
    for item in component.package.objects:
        for field, family, written in named(item):
            full = full_name(component.name, written)
            problem = _problem(component, family, full, names)
            if problem:
                place = places.get((full_key(component.name, item.key), family, full))
                yield _violation(item, field, place, *problem)


def _problem(component: Component, family: str, full: str, names: _Names) -> tuple[Code, str] | None:
    """What is wrong with the name *full* in an object of *component*; None: nothing is."""
    package, _, name = full.partition(".")
    if package != component.name and package not in component.requires:
        reason = (
            f"{full!r} is an object of the package {package!r}, which {component.name!r} does not require;"
            " add it to spec.requires of the manifest"
        )
        return Code.PACKAGE_NOT_REQUIRED, reason
    if name in names.get((package, family), ()):
        return None
    present = sorted(names.get((package, family), ()))
    has = listed(present, _SHOWN_NAMES) or "none"
    reason = f"the package {package!r} has no {family} with the metadata.name {name!r}; it has {has}"
    return Code.PACKAGE_LACKS_OBJECT, reason


def _violation(item: Object, field: str, place: PackageReference | None, code: Code, reason: str) -> Violation:
    severity = DIAGNOSTICS[code].severity
    if place is None:
        return Violation(item.key.kind, field, reason, item.location or Location(""), code, severity)
    return Violation(item.key.kind, place.path, reason, place.location, code, severity, place.end)
