"""
Resolves small worlds by looking at every combination of versions.

It follows the specification sentence by sentence, shares nothing with the code of the product but versions and ranges,
and is slow.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from services.packages.ranges import Range
from services.packages.versions import Version

Json = Mapping[str, Any]
Present = dict[str, Version]
"""The packages that are there, with their versions."""


@dataclass(frozen=True)
class Row:
    """A version of a package that can be chosen."""

    version: Version
    requires: Mapping[str, Range | None]
    yanked: bool = False


@dataclass
class BruteForce:
    """
    A case, read.

    Attributes:
        case: The case as the recorded ones have it.
        published: What each package is published as where it comes from.
        latest: Its recommended version; None: there is none.
    """

    case: Json
    published: dict[str, list[Row]] = field(init=False)
    latest: dict[str, Version | None] = field(init=False)

    def __post_init__(self) -> None:
        self.options = self.case.get("options") or {}
        self.request = self.case["request"]
        self.installed: dict[str, Json] = {each["name"]: each for each in self.case["installed"]}
        self.own = {name: Version.parse(each["version"]) for name, each in self.installed.items()}
        self.named = {
            each["name"]: (verb, each) for verb in ("install", "update") for each in self.request.get(verb, ())
        }
        self.gone = self._gone()
        self.published, self.latest = {}, {}
        for name in self._names():
            package = self._source(name)
            self.published[name] = [_row(each) for each in package["versions"]] if package else []
            releases = [
                each.version for each in self.published[name] if not each.version.prerelease and not each.yanked
            ]
            self.latest[name] = (
                Version.parse(package["latest"]) if package and "latest" in package else max(releases, default=None)
            )

    # Reading

    def _names(self) -> list[str]:
        names = {*self.installed, *self.named}
        packages = [each for each in self.case["repositories"] for each in each.get("packages", {}).items()]
        requirers: list[Json] = [*self.case["installed"]]
        for name, package in packages:
            names.add(name)
            requirers += package["versions"]
        names.update(required["name"] for each in requirers for required in each.get("requires", ()))
        return sorted(names)

    def _gone(self) -> set[str]:
        gone = set(self.request.get("uninstall", ()))
        while self.options.get("cascade"):
            more = {
                each["name"]
                for each in self.case["installed"]
                if each["name"] not in self.named and any(r["name"] in gone for r in each.get("requires", ()))
            }
            if more <= gone:
                break
            gone |= more
        return gone

    def _source(self, name: str) -> Json | None:
        """Section 4.2."""
        repositories = self.case["repositories"]
        serving = [each for each in repositories if each.get("enabled", True) and _serves(each, name)]
        chosen = self.named[name][1].get("repository") if name in self.named else None
        if chosen or name in self.installed:
            chosen = chosen or self.installed[name].get("repository")
            serving = [each for each in serving if each["name"] == chosen]
        away = [each for each in serving if each.get("unreachable")]
        listing = [each for each in serving if not each.get("unreachable") and name in each.get("packages", {})]
        top = max((each.get("priority", 0) for each in listing), default=None)
        if any(top is None or each.get("priority", 0) >= top for each in away):
            return None
        best = [each for each in listing if each.get("priority", 0) == top]
        return best[0]["packages"][name] if len(best) == 1 else None

    # What can be chosen

    def allows(self, name: str) -> bool:
        return name in self.options.get("prerelease", ())

    def fits(self, name: str, versions: Range | Version | None, version: Version) -> bool:
        if versions is None:
            return True
        if isinstance(versions, Version):
            return versions == version
        return versions.matches(version, self.allows(name))

    def rows(self, name: str) -> list[Row]:
        """All versions of a package; the installed one as it is recorded."""
        own = [_row(self.installed[name])] if name in self.installed else []
        return [*own, *(each for each in self.published[name] if not own or each.version != own[0].version)]

    def row(self, name: str, version: Version) -> Row:
        return next(each for each in self.rows(name) if each.version == version)

    def blocked(self, name: str) -> bool:
        each = self.installed.get(name, {})
        return bool(each.get("pinned") or each.get("suspended"))

    def all_move(self, name: str) -> bool:
        return bool(self.request.get("update_all")) and name in self.installed and not self.blocked(name)

    def is_manual(self, name: str) -> bool:
        return self.installed.get(name, {}).get("origin", "manual") == "manual" and name in self.installed

    def new(self, name: str) -> list[Version]:
        """What can be chosen newly, leaving prereleases aside; highest first."""
        versions = [each.version for each in self.published[name] if not each.yanked]
        return sorted((each for each in versions if each != self.own.get(name)), reverse=True)

    def requested(self, name: str) -> list[Version] | None:
        """Section 5.2, best first; None: the package is not asked for."""
        own = self.own.get(name)
        if name in self.named:
            verb, each = self.named[name]
            versions = _versions(each.get("version"))
        elif self.all_move(name) and self.is_manual(name):
            verb, versions = "update", None
        else:
            return None
        if self.blocked(name):
            return [own] if own and self.fits(name, versions, own) else []
        new = [each for each in self.new(name) if self.fits(name, versions, each)]
        if verb == "install" and own is None:
            if versions is not None:
                return new
            latest = self.latest[name]
            if latest is None:
                return new[:1] if self.allows(name) else []
            return [each for each in new if each == latest]
        if verb == "install" and own and self.fits(name, versions, own):
            return [own]
        if own is None:
            return []
        higher = [each for each in new if each > own]
        lower = [each for each in new if each < own and self.options.get("allow_downgrade")]
        if verb == "install":
            return [*higher, *lower]
        if versions is not None:
            return [*higher, *([own] if self.fits(name, versions, own) else []), *lower]
        recorded = _versions(self.installed[name].get("requested"))
        if recorded is not None:
            return [*(each for each in higher if self.fits(name, recorded, each)), own]
        latest = self.latest[name]
        bound = [each for each in higher if latest is None or each <= latest]
        return [*(each for each in bound if self.allows(name) or not each.prerelease), own]

    def possible(self, name: str, level: int) -> list[Version]:
        """The versions that a package can have where it is there."""
        if name in self.gone:
            return []
        requested = self.requested(name)
        if requested is not None:
            return requested
        own = self.own.get(name)
        if own is None:
            return self.new(name)
        if self.blocked(name) or (level == 0 and not self.all_move(name)):
            return [own]
        return [own, *(each for each in self.new(name) if level == 2 or each > own)]

    def roots(self) -> set[str]:
        options = self.options
        return {
            *self.named,
            *(
                name
                for name in self.installed
                if self.blocked(name)
                or (
                    name not in self.gone
                    and (self.is_manual(name) or options.get("keep_unused") or name in options.get("keep", ()))
                )
            ),
        }

    # Solutions

    def solutions(self, level: int) -> Iterator[Present]:
        """Section 5.1, each combination in turn."""
        roots = self.roots()
        choices = [
            (name, [*([] if name in roots else [None]), *self.possible(name, level)]) for name in sorted(self.published)
        ]
        for versions in itertools.product(*(each for _, each in choices)):
            present = {
                name: version for (name, _), version in zip(choices, versions, strict=True) if version is not None
            }
            if self.holds(present):
                yield present

    def holds(self, present: Present) -> bool:
        """Whether the versions go together, apart from the levels."""
        pulled: dict[str, list[str]] = {name: [] for name in present}
        for name, version in present.items():
            for required, versions in self.row(name, version).requires.items():
                stays = self.own.get(name) == version
                if stays and required not in self.own and required not in present:
                    continue
                if not (stays and required not in self.own):
                    pulled[name].append(required)
                if required not in present:
                    return False
                if stays and self.own.get(required) == present[required]:
                    continue
                if not self.fits(required, versions, present[required]):
                    return False
        if present.keys() != reach(pulled, self.roots()):
            return False
        return self._has_no_new_cycle(present) and all(self._is_admitted(name, present) for name in present)

    def _has_no_new_cycle(self, present: Present) -> bool:
        graph = {
            name: [each for each in self.row(name, version).requires if each in present]
            for name, version in present.items()
        }
        new = [name for name in present if self.own.get(name) != present[name]]
        return not any(name in reach(graph, graph[name]) for name in new)

    def _is_admitted(self, name: str, present: Present) -> bool:
        """Whether a prerelease is the installed version, asked for, allowed, or in a range that names one."""
        version = present[name]
        if not version.prerelease or version == self.own.get(name) or self.allows(name):
            return True
        if self.requested(name) is not None:
            return True
        return any(self.row(other, each).requires.get(name) for other, each in present.items())

    def moves(self, present: Present) -> int:
        """The packages that move without being asked for."""
        return sum(
            1
            for name, version in present.items()
            if name in self.own
            and self.own[name] != version
            and self.requested(name) is None
            and not self.all_move(name)
        )

    def answer(self) -> Present | None:
        """Sections 5.3 and 5.4."""
        levels = (
            [0, 1, 2]
            if self.options.get("allow_downgrade")
            else [0, 1]
            if self.options.get("update_dependencies")
            else [0]
        )
        for level in levels:
            solutions = list(self.solutions(level))
            if solutions:
                fewest = min(map(self.moves, solutions))
                return self._first([each for each in solutions if self.moves(each) == fewest], level)
        return None

    def _first(self, solutions: Sequence[Present], level: int) -> Present:
        roots = self.roots()
        queue = sorted(roots, key=lambda name: (self.requested(name) is None, name))
        decisions: Present = {}
        for name in queue:
            if name in decisions:
                continue
            version = next(
                each
                for each in self._order(name, level, decisions)
                if any(solution[name] == each for solution in solutions)
            )
            decisions[name] = version
            solutions = [each for each in solutions if each[name] == version]
            requires = self.row(name, version).requires
            excused = {each for each in requires if self.own.get(name) == version and each not in self.own}
            queue += sorted(requires.keys() - excused)
        return decisions

    def _order(self, name: str, level: int, decisions: Present) -> list[Version]:
        requested = self.requested(name)
        if requested is not None:
            return requested
        own, latest = self.own.get(name), self.latest[name]
        possible = sorted(self.possible(name, level), reverse=True)
        ranged = any(self.row(other, version).requires.get(name) for other, version in decisions.items())
        bound = [each for each in possible if ranged or latest is None or each <= latest]
        if own is None:
            return [*bound, *(each for each in possible if each not in bound)]
        higher, lower = [each for each in possible if each > own], [each for each in possible if each < own]
        if self.all_move(name):
            first = [each for each in higher if each in bound]
            return [*first, own, *(each for each in higher if each not in first), *lower]
        return [own, *higher, *lower]


def reach(graph: Mapping[str, Sequence[str]], starts: Any) -> set[str]:
    """What *starts* lead to, themselves included."""
    reached: set[str] = set()
    names = list(starts)
    while names:
        name = names.pop()
        if name not in reached:
            reached.add(name)
            names += graph.get(name, ())
    return reached


def _serves(repository: Json, name: str) -> bool:
    patterns = repository.get("only", ())
    return not patterns or any(name.startswith(each[:-1]) if each.endswith("*") else name == each for each in patterns)


def _row(written: Json) -> Row:
    requires = {
        each["name"]: Range.parse(each["version"]) if "version" in each else None
        for each in written.get("requires", ())
    }
    return Row(Version.parse(written["version"]), requires, "yanked" in written)


def _versions(written: str | None) -> Range | Version | None:
    if written is None:
        return None
    return Version.parse(written) if "+" in written else Range.parse(written)
