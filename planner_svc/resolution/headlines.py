"""A conflict in one sentence, which is about what its code says."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from planner_svc.resolution.codes import Classified
from planner_svc.resolution.facts import Reason
from planner_svc.resolution.model import ConflictCode, FactKind
from planner_svc.resolution.outcomes import Solved
from planner_svc.resolution.published import Published, is_empty
from planner_svc.resolution.situation import fits
from planner_svc.resolution.sources import UNAVAILABLE, NoSource
from planner_svc.resolution.texts import Narration
from services.core.text_lists import enumerated
from services.packages.ranges import Range
from services.packages.versions import Version

_MAX_NAMES = 10
"""The number of packages that a text names, before it counts them."""


class Headline(NamedTuple):
    """
    The first line of a conflict.

    Attributes:
        package: The package that it is about; empty: it is about no one package.
        text: The sentence.
    """

    package: str
    text: str


def headline_of(narration: Narration, classified: Classified, resolvable: bool) -> Headline:
    """The first line of a conflict that is not a cycle."""
    lines = _Headlines(narration, classified, resolvable).lines()
    return next(lines, None) or Headline("", _general_text(narration))


@dataclass(frozen=True, slots=True)
class _Headlines:
    narration: Narration
    classified: Classified
    resolvable: bool

    def lines(self) -> Iterator[Headline]:
        """The sentences that say why the code is the one that it is, best first."""
        code, solution = self.classified.code, self.classified.solution
        if code in (ConflictCode.PINNED, ConflictCode.SUSPENDED):
            yield from self._pinned(code)
        elif code is ConflictCode.REQUIRED_BY:
            yield from self._required()
        elif code is ConflictCode.VERSION_CONFLICT:
            yield from self._installed()
        elif self.classified.package:
            yield self._unmatched_request(self.classified.package)
        elif solution and code is ConflictCode.NO_MATCHING_VERSION:
            yield from self._unmatched(solution)
        elif solution and code is ConflictCode.DOWNGRADE:
            yield from self._downgrades(solution)
        elif solution and code in UNAVAILABLE:
            yield from self._unavailable(code, solution)
        elif solution:
            yield from self._unusable(code, solution)

    def _names(self, solution: Solved | None = None) -> list[str]:
        """The packages of the facts in their order, those that *solution* has; all of these if a bound was reached."""
        names = dict.fromkeys(name for each in self.narration.reasons for name in (each.package, each.required) if name)
        if solution is None:
            return list(names)
        return [
            *(name for name in names if name in solution.solution),
            *sorted(solution.solution.keys() - names.keys()),
        ]

    def _requirer(self, solution: Solved, name: str) -> Reason | None:
        """A fact that *name* is required, by a version of *solution*."""
        for reason in self.narration.requirers.get(name, ()):
            if reason.package in solution.solution and reason in _requirements(solution, reason.package):
                return reason
        return None

    def _unmatched_request(self, name: str) -> Headline:
        situation = self.narration.world.situation
        versions = (situation.installs.get(name) or situation.updates[name]).versions
        if is_empty(versions):
            return Headline(name, f"{name} {versions} was asked for, and no version can be in that range")
        published = self.narration.published(name)
        return Headline(name, published.none_in([versions]) if versions else published.text())

    def _unmatched(self, solution: Solved) -> Iterator[Headline]:
        world, facts = self.narration.world, set(self.narration.reasons)
        reasons = [reason for name in self._names(solution) for reason in _requirements(solution, name)]
        # Of several such ranges, the facts may be about some only.
        for reason in sorted(reasons, key=lambda reason: reason not in facts):
            if reason.range is None or world.mask(reason.required, reason.range):
                continue
            text = self.narration.requirement(reason)
            if not is_empty(reason.range):
                text += f", and {self.narration.published(reason.required).none_in([reason.range])}"
            yield Headline(reason.required, text)

    def _unusable(self, code: ConflictCode, solution: Solved) -> Iterator[Headline]:
        """A version of *solution* that is yanked, a prerelease or for another platform."""
        situation = self.narration.world.situation
        ranges: dict[str, list[Range | Version]] = {}
        for each in (*situation.installs.values(), *situation.updates.values()):
            ranges[each.name] = [each.versions] if each.versions else []
        for name in solution.solution:
            for reason in _requirements(solution, name):
                if reason.range is not None:
                    ranges.setdefault(reason.required, []).append(reason.range)
        for name in self._names(solution):
            value, published = solution.solution[name], Published(self.narration.world, name, ranges.get(name, []))
            if published.is_unusable(code, value):
                requirer = self._requirer(solution, name)
                request = situation.installs.get(name) or situation.updates.get(name)
                versions = requirer.range if requirer else request.versions if request else None
                text = published.unusable(code, versions, value)
                yield Headline(name, f"{self.narration.requirement(requirer)}, and {text}" if requirer else text)

    def _unavailable(self, code: ConflictCode, solution: Solved) -> Iterator[Headline]:
        narration = self.narration
        for name in self._names(solution):
            source = narration.world.situation.sources.of(name)
            edition = solution.world.choice(name).edition(solution.solution[name])
            if edition.version is not None or not isinstance(source, NoSource) or source.code is not code:
                continue
            requirer = self._requirer(solution, name)
            who = narration.requirer(requirer, "requires", "require") if requirer else ""
            if not who:
                yield Headline(name, source.text)
            elif code is ConflictCode.PACKAGE_NOT_FOUND and name not in narration.world.situation.installed:
                yield Headline(name, f"nothing has {name}, which {who}")
            else:
                yield Headline(name, f"{name}, which {who}, cannot be had: {source.text}")

    def _downgrades(self, solution: Solved) -> Iterator[Headline]:
        situation = self.narration.world.situation
        for name in self._names(solution):
            own = solution.world.choice(name).own
            if own is not None and solution.solution[name] < own:
                text = f"{name} {situation.installed[name].version} is installed"
                yield Headline(name, f"{text}, and only lower versions are in what was asked for")

    def _required(self) -> Iterator[Headline]:
        for name in self._names():
            for reason in self.narration.requirers.get(name, ()):
                if name in self.narration.world.situation.uninstalls:
                    who = self.narration.requirer(reason, "requires", "require")
                    yield Headline(name, f"{name} cannot be uninstalled: {who} it")

    def _installed(self) -> Iterator[Headline]:
        """An installed package in another version than what requires it needs."""
        situation = self.narration.world.situation
        for reason in self.narration.reasons:
            if reason.kind is not FactKind.INSTALLED:
                continue
            name = reason.package
            requirer = self._unmet(name)
            if requirer and self.resolvable:
                who = self.narration.requirer(requirer, "needs", "need")
                yield Headline(name, f"{who} another {name} than the one installed")
            elif requirer and self.narration.is_below(name):
                who = self.narration.requirer(requirer, "goes", "go")
                yield Headline(
                    name,
                    f"{who} with no version of {name} that is not lower than {situation.installed[name].version}:"
                    " it does not support it yet",
                )

    def _unmet(self, name: str) -> Reason | None:
        """A fact that requires another version of *name* than the installed one."""
        own = self.narration.world.situation.installed[name].version
        allowed = self.narration.world.allows_prereleases(name)
        requirers = self.narration.requirers.get(name, ())
        return next((each for each in requirers if not fits(each.range, own, allowed)), None)

    def _pinned(self, code: ConflictCode) -> Iterator[Headline]:
        narration, situation = self.narration, self.narration.world.situation
        kind = FactKind.PINNED if code is ConflictCode.PINNED else FactKind.SUSPENDED
        solution = self.classified.solution.solution if self.classified.solution else {}
        names = [each.package for each in narration.reasons if each.kind is kind]
        for name in sorted(names, key=lambda name: solution.get(name) == narration.world.choice(name).own):
            text = f"{name} is {kind.value} at {situation.installed[name].version}"
            requirer = self._unmet(name) or next(iter(narration.requirers.get(name, ())), None)
            own = next((each for each in narration.reasons if each.required and each.package == name), None)
            if name in situation.uninstalls:
                text += ", and cannot be uninstalled"
            elif requirer:
                who = narration.requirer(requirer, "requires", "require")
                text += f", and {who} {requirer.range or name}"
            elif own:
                text += f", and requires {own.required if own.range is None else f'{own.required} {own.range}'}"
            yield Headline(name, text)


def _requirements(solution: Solved, name: str) -> list[Reason]:
    """What a version of *solution* requires."""
    requires = solution.world.choice(name).edition(solution.solution[name]).requires
    return [Reason(FactKind.REQUIRES, name, each.name, each.range) for each in requires]


def cycle_headline(cycle: Sequence[str]) -> Headline:
    """The first line of a cycle, whose last package requires the first."""
    more = len(cycle) - _MAX_NAMES
    ways = " -> ".join([*cycle[:_MAX_NAMES], *([f"{more} more packages"] if more > 0 else []), cycle[0]])
    if len(cycle) == 2:
        return Headline(cycle[0], f"{cycle[0]} and {cycle[1]} require each other: {ways}")
    return Headline(cycle[0], f"{cycle[0]} requires itself: {ways}")


def _general_text(narration: Narration) -> str:
    names = sorted({name for reason in narration.reasons for name in (reason.package, reason.required) if name})
    if len(names) == 1:
        return ", and ".join(each.text for each in narration.facts)
    more = len(names) - _MAX_NAMES
    listed = enumerated([*names[:_MAX_NAMES], *([f"{more} more packages"] if more > 0 else [])])
    return f"no versions of {listed} go together"
