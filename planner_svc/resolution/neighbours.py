"""
The installed packages that an update of one of them depends on, while all others stay.

A package that stays meets its requirements as before, whatever they are. So only the edges of the package that moves
matter, and those of packages that come new: a resolution of these few is much faster than one of the whole stack, and
has the same answer.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from planner_svc.resolution.sources import NoSource, Sources
from services.packages.installed import InstalledPackage, PackageOrigin
from services.packages.manifest import Requirement


@dataclass(frozen=True, slots=True)
class Neighbours:
    """
    Finds the neighbours of one installed package at a time.

    Attributes:
        installed: The installed packages, by name.
        sources: Where packages come from.
    """

    installed: Mapping[str, InstalledPackage]
    sources: Sources
    _requirers: dict[str, list[str]] = field(init=False, default_factory=dict)
    _present: frozenset[str] = field(init=False)
    _required: dict[str, frozenset[str]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for name, package in self.installed.items():
            for required in package.requires:
                self._requirers.setdefault(required.name, []).append(name)
        roots = [name for name, package in self.installed.items() if _stays(package)]
        graph = {name: [each.name for each in package.requires] for name, package in self.installed.items()}
        object.__setattr__(self, "_present", _reached(graph, roots))

    def of(self, name: str) -> dict[str, InstalledPackage]:
        """
        The package, those that require it, and those that one of its versions leads to, by name.

        Each has only its requirements of the others. What requires the package is there, whatever else requires it. If
        the package may be in a cycle, all packages of the stack: then its requirers may leave because it moves.
        """
        required = self._led_to(name)
        # What is installed may require a package that comes new: then its requirement was broken before.
        new = required - self.installed.keys()
        requirers = {each for to in (name, *new) for each in self._requirers.get(to, ()) if each in self._present}
        above = _reached(self._requirers, [name])
        if not above.isdisjoint(required - {name}):
            return dict(self.installed)
        names = {name, *requirers, *required} & self.installed.keys()
        return {each: self._among(names | new, each, is_there=each in requirers) for each in sorted(names)}

    def _among(self, names: Iterable[str], name: str, is_there: bool) -> InstalledPackage:
        package = self.installed[name]
        requires = tuple(each for each in package.requires if each.name in names)
        origin = PackageOrigin.MANUAL if is_there else package.origin
        return replace(package, requires=requires, origin=origin)

    def _led_to(self, name: str) -> frozenset[str]:
        """The packages that versions of a package require, and those that these require which are not installed."""
        led_to = set(self._required_by(name))
        new = led_to - self.installed.keys()
        while new:
            required = self._required_by(new.pop())
            new |= required - led_to - self.installed.keys()
            led_to |= required
        return frozenset(led_to)

    def _required_by(self, name: str) -> frozenset[str]:
        """The packages that some version of a package requires, the installed one included."""
        if name not in self._required:
            source, requirements = self.sources.of(name), list[Requirement]()
            if name in self.installed:
                requirements += self.installed[name].requires
            if not isinstance(source, NoSource):
                requirements += (each for version in source.package.versions.values() for each in version.requires)
            self._required[name] = frozenset(each.name for each in requirements)
        return self._required[name]


def _stays(package: InstalledPackage) -> bool:
    """Whether a package is there without any that requires it."""
    return package.origin is PackageOrigin.MANUAL or package.is_pinned or package.is_suspended


def _reached(graph: Mapping[str, Iterable[str]], starts: Iterable[str]) -> frozenset[str]:
    """The nodes that *starts* lead to, and these themselves."""
    new = list(starts)
    reached = set(new)
    while new:
        further = set(graph.get(new.pop(), ())) - reached
        reached |= further
        new += further
    return frozenset(reached)
