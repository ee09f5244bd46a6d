"""Which versions of a package are published, and why they will not do, as texts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from planner_svc.resolution.conditions import Level
from planner_svc.resolution.model import ConflictCode
from planner_svc.resolution.search import Values, values_of
from planner_svc.resolution.situation import fits
from planner_svc.resolution.sources import NoSource
from planner_svc.resolution.world import Choice, World
from services.core.text_lists import enumerated
from services.packages.ranges import Group, Range
from services.packages.versions import Version

_MAX_VERSIONS = 2
"""The number of versions, or of reasons, that a text names, before it counts them."""

_MAX_RANGES = 10
"""The number of ranges that a text names, before it counts them."""

_LOWEST = Version.parse("0.0.0-0")


def is_empty(versions: Range | Version | None) -> bool:
    """Whether there can be no version in *versions*, whatever is published."""
    return isinstance(versions, Range) and all(map(_is_empty, versions.groups))


def _is_empty(group: Group) -> bool:
    named = [each.interval for each in group.comparators if not each.excludes]
    low = max([_LOWEST.precedence, *(each.low for each in named)])
    for interval in sorted((each.interval for each in group.comparators if each.excludes), key=lambda each: each.low):
        if interval.low <= low:
            low = max(low, interval.high)
    return any(each.high <= low for each in named) or low >= (math.inf,)


def listed_versions(versions: Sequence[Version]) -> str:
    """The first versions, and the number of the others."""
    return _counted(list(map(str, versions)), _MAX_VERSIONS, "version")


def _counted(parts: Sequence[str], most: int, noun: str) -> str:
    """The first parts, and the number of the others."""
    more = len(parts) - most
    return enumerated([*parts[:most], *([f"{more} more {noun}{'s' if more > 1 else ''}"] if more > 0 else [])])


@dataclass(frozen=True, slots=True)
class Published:
    """
    Tells of the published versions of one package.

    Attributes:
        world: The world in which it is chosen.
        name: The package.
        ranges: The ranges that are required or requested of it.
    """

    world: World
    name: str
    ranges: Sequence[Range | Version] = ()
    _choice: Choice = field(init=False)
    _published: Values = field(init=False)

    def __post_init__(self) -> None:
        choice, source = self.world.choice(self.name), self.world.situation.sources.of(self.name)
        listed = {} if isinstance(source, NoSource) else source.package.versions
        object.__setattr__(self, "_choice", choice)
        object.__setattr__(self, "_published", choice.versions.where(lambda each: each.version in listed))

    def text(self) -> str:
        """Which versions there are, and why no other ones will do."""
        source = self.world.situation.sources.of(self.name)
        if isinstance(source, NoSource):
            return source.text
        if not self._published:
            return f"{self.name} is published without versions"
        if not (unmatched := self._unmatched()):
            return self._latest() or self._fitting()
        matched = _any([self._choice.versions.within(each, True) for each in self.ranges], 0) & self._published
        unusable = self._unusable_text(self._reasons(), matched)
        return f"{self.none_in(unmatched)}, and {unusable}" if unusable else self.none_in(unmatched)

    def none_in(self, ranges: Sequence[Range | Version]) -> str:
        """That no version is in any of *ranges*."""
        source, own = self.world.situation.sources.of(self.name), self.world.situation.installed.get(self.name)
        if isinstance(source, NoSource) and own:
            return f"{self.name} {own.version} is installed, and no other version can be had: {source.text}"
        return f"{self._all()}, none of them in {_written(ranges)}" if self._published else self.text()

    def is_unusable(self, code: ConflictCode, value: int) -> bool:
        """Whether *value* will not do for the reason of *code*."""
        version = self._choice.edition(value).version
        if code is ConflictCode.PRERELEASE_ONLY and value == self._choice.own and version is not None:
            # The installed prerelease stays without a range, and is in none that names no prerelease.
            return version.is_prerelease and not all(fits(each, version, False) for each in self.ranges)
        return bool(self._reasons()[code] >> value & 1)

    def unusable(self, code: ConflictCode, versions: Range | Version | None, value: int) -> str:
        """That *value*, and what else is in *versions*, will not do for the reason of *code*."""
        reasons = self._reasons()
        others = 0
        for each, values in reasons.items():
            others |= 0 if each is code else values
        request = self.world.situation.installs.get(self.name)
        is_one = versions is None and request is not None
        fitting = 0 if is_one else self._choice.versions.within(versions, True) & self._published
        return self._reason(code, fitting & reasons[code] & ~others | 1 << value)

    def _unmatched(self) -> list[Range | Version]:
        values = self._published | self._choice.own_values
        return [each for each in self.ranges if not self._choice.versions.within(each, True) & values]

    def _latest(self) -> str:
        """The latest version, if no other one is asked for; empty: others may do."""
        situation, versions = self.world.situation, self._choice.versions
        request = situation.installs.get(self.name) or situation.updates.get(self.name)
        latest = versions.latest
        if latest is None or self.name in self.world.instead or request is None or request.versions is not None:
            return ""
        installed = situation.installed.get(self.name)
        if installed:
            is_bounded = self.name in situation.updates and installed.requested is None
            is_last = not self._usable() & versions.above(latest)
            return "" if not is_bounded or is_last else self._latest_text(latest)
        reasons = self._reasons()
        return self._unusable_text(reasons, 1 << latest) or self._latest_text(latest)

    def _latest_text(self, latest: int) -> str:
        return f"the latest version of {self.name} is {self._choice.edition(latest).version}"

    def _fitting(self) -> str:
        """Which versions are in the ranges."""
        versions, own = self._choice.versions, self._choice.own
        masks = [versions.within(each, True) for each in self.ranges]
        is_limited = own is not None and not self._may_go_down()
        above = f" above {versions.edition(own).version}" if is_limited and own is not None else ""
        fitting = self._published & (versions.above(own) if is_limited else versions.all) & _any(masks, versions.all)
        usable = fitting & self._usable()
        unusable = self._unusable_text(self._reasons(), fitting & ~usable)
        where = f"in {_written(self.ranges)}" if self.ranges else "published"
        if not usable:
            return unusable or f"no version of {self.name}{above} is {where}"
        if len(self.ranges) > 1:
            if not _all(masks, self._published | self._choice.own_values):
                return f"{self._all()}, none of them in all of {_written(self.ranges)}"
            return f"{self._all()}, and {unusable or 'no other version'}"
        are = "are" if usable & (usable - 1) else "is"
        text = f"only {listed_versions(self._versions(usable))} of {self.name}{above} {are} {where}"
        return f"{text}, as {unusable}" if unusable else text

    def _may_go_down(self) -> bool:
        """Whether the installed package may be at a lower version."""
        situation, world = self.world.situation, self.world
        request = situation.installs.get(self.name) or situation.updates.get(self.name)
        if self.name in world.instead:
            return True
        if request:
            return request.versions is not None and (situation.options.allow_downgrade or world.lifted.downgrade)
        return world.level is Level.ANY and not world.moves_all(self.name)

    def _usable(self) -> Values:
        """The values that can be chosen newly."""
        values = self._choice.versions.all
        for unusable in self._reasons().values():
            values &= ~unusable
        return values

    def _reasons(self) -> dict[ConflictCode, Values]:
        """For each code, the values that it keeps from being chosen newly."""
        versions, world = self._choice.versions, self.world
        platform = world.situation.options.platform
        admitted = _any([versions.within(each, False) for each in self.ranges], 0)
        allowed = versions.all if world.allows_prereleases(self.name) else admitted
        foreign = (
            versions.where(lambda each: not fits(each.platform, platform.release, False)) if platform is not None else 0
        )
        return {
            ConflictCode.YANKED_ONLY: versions.yanked & ~self._choice.own_values,
            ConflictCode.PLATFORM: foreign & ~self._choice.own_values,
            ConflictCode.PRERELEASE_ONLY: versions.prereleases & ~allowed & ~self._choice.own_values,
        }

    def _unusable_text(self, reasons: dict[ConflictCode, Values], values: Values) -> str:
        """Why *values* will not do, each for the first of its reasons; empty: they will."""
        texts = []
        for code, unusable in reasons.items():
            if values & unusable:
                texts.append(self._reason(code, values & unusable))
            values &= ~unusable
        return enumerated(texts)

    def _reason(self, code: ConflictCode, values: Values) -> str:
        versions = self._versions(values)
        text = f"{self.name} {listed_versions(versions)} {'are' if len(versions) > 1 else 'is'}"
        editions = [self._choice.edition(each) for each in reversed(values_of(values))]
        if code is ConflictCode.PRERELEASE_ONLY:
            return f"{text} {'prereleases' if len(versions) > 1 else 'a prerelease'}"
        if code is ConflictCode.YANKED_ONLY:
            why = _counted(
                list(dict.fromkeys(each.yanked for each in editions if each.yanked)), _MAX_VERSIONS, "reason"
            )
            return f"{text} yanked: {why}" if why else f"{text} yanked"
        platforms = list(dict.fromkeys(str(each.platform) for each in editions))
        return f"{text} for pkger {_counted(platforms, _MAX_VERSIONS, 'range')}"

    def _all(self) -> str:
        return f"{self.name} is published as {listed_versions(self._versions(self._published))}"

    def _versions(self, values: Values) -> list[Version]:
        """Highest first."""
        versions = [self._choice.edition(value).version for value in reversed(values_of(values))]
        return [each for each in versions if each is not None]


def _any(masks: Sequence[Values], default: Values) -> Values:
    values = 0
    for each in masks:
        values |= each
    return values if masks else default


def _all(masks: Sequence[Values], values: Values) -> Values:
    for each in masks:
        values &= each
    return values


def _written(ranges: Sequence[Range | Version]) -> str:
    return _counted(list(map(str, ranges)), _MAX_RANGES, "range")
