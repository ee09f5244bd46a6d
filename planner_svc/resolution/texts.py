"""Facts and conflicts as sentences."""

from collections.abc import Iterable, Iterator, Sequence

from planner_svc.resolution.catalogue import Edition
from planner_svc.resolution.facts import Reason, is_below, versions_that_require
from planner_svc.resolution.model import ConflictCode, Fact, FactKind
from planner_svc.resolution.paths import Ways
from planner_svc.resolution.search import FIRST
from planner_svc.resolution.situation import fits
from planner_svc.resolution.sources import UNAVAILABLE, NoSource
from planner_svc.resolution.world import World
from services.core.text_lists import enumerated
from services.packages.ranges import Range
from services.packages.versions import Version

_MAX_VERSIONS = 2
"""The number of versions that a text names, before it counts them."""

MAX_CHARACTERS = 2**20
"""The size of all facts without their ways: more than anyone reads, and a message of gRPC has 4 MiB at most."""

_PRESENT = (FactKind.INSTALLED, FactKind.PINNED, FactKind.SUSPENDED)
_ORDER = (FactKind.REQUESTED, *_PRESENT, FactKind.PUBLISHED, FactKind.REQUIRES)


class Narration:
    """
    Tells of a set of facts.

    Attributes:
        world: The world in which they count.
        reasons: The facts in the order in which they are met from the requested packages on.
        facts: The same facts as texts, as many as there is space for.
        is_whole: Whether all of them are there.
    """

    def __init__(self, world: World, reasons: Iterable[Reason]) -> None:
        """Tell of *reasons*."""
        self.world = world
        self.reasons = in_order(reasons)
        self._ranges: dict[str, dict[str, Range | Version]] = {}
        self._requirers: dict[str, list[Reason]] = {}
        self._versions_of: dict[str, dict[Reason, list[Version]]] = {}
        self._ways = Ways(self.reasons)
        for reason in self.reasons:
            self._read(reason)
        self.facts = tuple(self._within_bounds())
        self.is_whole = len(self.facts) == len(self.reasons)

    def _read(self, reason: Reason) -> None:
        situation = self.world.situation
        ranges = self._ranges.setdefault(reason.required or reason.package, {})
        if reason.kind is FactKind.REQUIRES:
            self._requirers.setdefault(reason.required, []).append(reason)
            if reason.range is not None:
                ranges[str(reason.range)] = reason.range
        request = situation.installs.get(reason.package) or situation.updates.get(reason.package)
        if reason.kind is FactKind.REQUESTED and request and request.versions is not None:
            ranges[str(request.versions)] = request.versions

    # Facts

    def _within_bounds(self) -> Iterator[Fact]:
        characters = 0
        for reason in self.reasons:
            fact = self._fact(reason)
            characters += len(fact.text) + sum(map(len, fact.packages))
            if characters > MAX_CHARACTERS:
                return
            yield fact

    def _fact(self, reason: Reason) -> Fact:
        kind, name = reason.kind, reason.package
        names: tuple[str, ...] = (name,)
        if kind is FactKind.REQUIRES:
            text = f"{self._versions(reason)} {_require(reason)}"
            names = (name, reason.required)
        elif kind is FactKind.REQUESTED:
            text = self._request(name)
        elif kind is FactKind.PUBLISHED:
            source = self.world.situation.sources.of(name)
            kind = FactKind.NOWHERE if isinstance(source, NoSource) else kind
            text = source.text if isinstance(source, NoSource) else self._published(name)
        elif kind is FactKind.INSTALLED and name in self.world.situation.options.keep and name not in self._requirers:
            kind, text = FactKind.UNUSED, f"{name} is required by nothing, and has data"
        else:
            text = self._installed(reason)
        paths = self._ways.to(name)
        return Fact(kind, names, text, paths.shortest, paths.further)

    def _request(self, name: str) -> str:
        situation = self.world.situation
        if name in self.world.instead:
            return f"{name} {_listed(sorted(self.world.instead[name], reverse=True))} comes first"
        if name in situation.installs:
            text = f"{name} {situation.installs[name].versions or self._own_or_latest(name)}"
            return f"{text.rstrip()} was asked for"
        if name in situation.updates:
            versions = situation.updates[name].versions
            return f"an update of {name}{f' to {versions}' if versions else ''} was asked for"
        if name in situation.request.uninstalls:
            return f"the removal of {name} was asked for"
        return f"the removal of {name} was asked for, as it requires a package that is removed"

    def _own_or_latest(self, name: str) -> str:
        choice = self.world.choice(name)
        value = choice.versions.own or choice.versions.latest
        return "" if value is None else str(choice.edition(value).version)

    def _versions(self, reason: Reason) -> str:
        """The versions that say a fact of the kind REQUIRES."""
        if reason.package not in self._versions_of:
            self._versions_of[reason.package] = versions_that_require(self.world, reason.package)
        versions = self._versions_of[reason.package].get(reason, [])
        if len(versions) == 1:
            return f"{reason.package} {versions[0]}"
        return f"{_listed(versions)} of {reason.package}"

    def _installed(self, reason: Reason) -> str:
        installed = self.world.situation.installed[reason.package]
        if reason.kind is FactKind.PINNED:
            return f"{installed.name} is pinned at {installed.version}"
        if reason.kind is FactKind.SUSPENDED:
            return f"{installed.name} is suspended at {installed.version}"
        text = f"{installed.name} {installed.version} is installed"
        return f"{text}, and only a lower version would do" if self._is_below(reason.package) else text

    def _is_below(self, name: str) -> bool:
        return is_below(self.world, name, self._requirers.get(name, ()))

    def _published(self, name: str) -> str:
        """Which versions there are, and why no other ones will do."""
        choice = self.world.choice(name)
        ranges = [self._ranges[name][text] for text in sorted(self._ranges.get(name, {}))]
        numbered = reversed(list(enumerate(choice.versions.editions, FIRST)))
        editions = [(value, each, each.version) for value, each in numbered if each.version is not None]
        if not editions:
            return f"{name} is published without versions"
        fitting = [
            (value, each, version)
            for value, each, version in editions
            if not ranges or any(fits(one, version, True) for one in ranges)
        ]
        unused = next((text for _, each, version in fitting if (text := self._out_of_use(name, each, version))), "")
        written = enumerated([str(each) for each in ranges])
        allowed = self.world.allows_prereleases(name)
        selectable = [
            version
            for value, _, version in fitting
            if choice.domain >> value & 1 and (not ranges or any(fits(one, version, allowed) for one in ranges))
        ]
        if selectable and len(ranges) <= 1:
            verb = "are" if len(selectable) > 1 else "is"
            where = f"in {written}" if ranges else "published"
            text = f"only {_listed(selectable)} of {name} {verb} {where}"
            return f"{text}, as {unused}" if unused else text
        if unused and not selectable:
            return unused
        text = f"{name} is published as {_listed([version for _, _, version in editions])}"
        unmatched = [str(one) for one in ranges if not any(fits(one, version, True) for _, _, version in editions)]
        if unmatched:
            return f"{text}, none of them in {enumerated(unmatched)}"
        if any(all(fits(one, version, True) for one in ranges) for _, _, version in editions):
            own = self.world.situation.installed.get(name)
            return (
                f"no version of {name} above {own.version} is in {written}" if own else f"{text}, and no other version"
            )
        return f"{text}, none of them in all of {written}"

    def _out_of_use(self, name: str, edition: Edition, version: Version) -> str:
        """Why a version is not chosen newly; empty: it may be."""
        if edition.is_own:
            return ""
        if edition.yanked is not None:
            return f"{name} {version} is yanked{f': {edition.yanked}' if edition.yanked else ''}"
        platform = self.world.situation.options.platform
        if platform is not None and not fits(edition.platform, platform.release, False):
            return f"{name} {version} is for pkger {edition.platform}"
        if version.is_prerelease and not self.world.allows_prereleases(name):
            return f"{name} {version} is a prerelease"
        return ""

    # The conflict

    def subject(self, code: ConflictCode) -> str:
        """The package that the text of a conflict is about; empty: it is about no one package."""
        kind = _SUBJECTS.get(code)
        pairs = zip(self.reasons, self.facts, strict=False)
        reasons = [(reason, fact) for reason, fact in pairs if reason.kind is kind]
        if kind is FactKind.PUBLISHED:
            # Where some version fits, others are to blame.
            reasons.sort(key=lambda each: each[1].text.startswith("only "))
        names = [reason.package for reason, _ in reasons]
        if code is ConflictCode.REQUIRED_BY:
            names = [name for name in names if name in self.world.situation.uninstalls]
        if code is ConflictCode.VERSION_CONFLICT:
            names = [name for name in names if name in self._requirers] or names
        return names[0] if names else ""

    def text(self, code: ConflictCode, subject: str, resolvable: bool) -> str:
        """The conflict in one sentence."""
        requirer = next(iter(self._requirers.get(subject, ())), None)
        who = self._versions(requirer) if requirer else ""
        installed = self.world.situation.installed.get(subject)
        version = installed.version if installed else ""
        text = ""
        if code in (ConflictCode.PINNED, ConflictCode.SUSPENDED):
            text = self._pinned_text(code, subject)
        elif code is ConflictCode.REQUIRED_BY and requirer:
            text = f"{subject} cannot be uninstalled: {who} requires it"
        elif code is ConflictCode.DOWNGRADE and subject:
            text = f"{subject} {version} is installed, and only lower versions are in what was asked for"
        elif code in UNAVAILABLE and subject:
            text = self._nowhere_text(code, subject, who)
        elif code is not ConflictCode.VERSION_CONFLICT and subject:
            published = self._published(subject)
            text = f"{who} {_require(requirer)}, and {published}" if requirer else published
        elif requirer and resolvable:
            text = f"{who} needs another {subject} than the one installed"
        elif requirer and self._is_below(subject):
            text = (
                f"{who} goes with no version of {subject} that is not lower than {version}: it does not support it yet"
            )
        return text or self._general_text()

    def _pinned_text(self, code: ConflictCode, subject: str) -> str:
        installed = self.world.situation.installed.get(subject)
        if installed is None:
            return ""
        state = "pinned" if code is ConflictCode.PINNED else "suspended"
        text = f"{subject} is {state} at {installed.version}"
        if subject in self.world.situation.uninstalls:
            return f"{text}, and cannot be uninstalled"
        for requirer in self._requirers.get(subject, ()):
            return f"{text}, and {self._versions(requirer)} requires {requirer.range or subject}"
        own = next((each for each in self.reasons if each.kind is FactKind.REQUIRES and each.package == subject), None)
        return f"{text}, and {_require(own)}" if own else text

    def _nowhere_text(self, code: ConflictCode, subject: str, who: str) -> str:
        source = self.world.situation.sources.of(subject)
        reason = source.text if isinstance(source, NoSource) else ""
        if not who:
            return reason
        if code is ConflictCode.PACKAGE_NOT_FOUND:
            return f"nothing has {subject}, which {who} requires"
        return f"{subject}, which {who} requires, cannot be had: {reason}"

    def _general_text(self) -> str:
        names = sorted({name for reason in self.reasons for name in (reason.package, reason.required) if name})
        if len(names) == 1:
            return ", and ".join(each.text for each in self.facts)
        return f"no versions of {_listed_names(names)} go together"


def in_order(reasons: Iterable[Reason]) -> list[Reason]:
    """The facts about a package before those about what it requires, requested packages first."""
    about: dict[str, list[Reason]] = {}
    for reason in sorted(reasons, key=_by_kind):
        about.setdefault(reason.package, []).append(reason)
    required = {each.required for group in about.values() for each in group}

    def rank(name: str) -> tuple[bool, bool, bool, str]:
        kinds = {each.kind for each in about[name]}
        # Installed packages that are required come after what requires them.
        return FactKind.REQUESTED not in kinds, kinds.isdisjoint(_PRESENT), name in required, name

    order: list[Reason] = []
    done: set[str] = set()
    for start in sorted(about, key=rank):
        queue = [start]
        for name in queue:
            if name not in done:
                done.add(name)
                order += about.get(name, ())
                queue += [each.required for each in about.get(name, ()) if each.kind is FactKind.REQUIRES]
    return order


def _by_kind(reason: Reason) -> tuple[str, int, str, str]:
    return reason.package, _ORDER.index(reason.kind), reason.required, str(reason.range)


def _require(reason: Reason) -> str:
    return f"requires {reason.required if reason.range is None else f'{reason.required} {reason.range}'}"


def _listed(versions: Sequence[Version]) -> str:
    """The first versions, and the number of the others."""
    names = [str(each) for each in versions[:_MAX_VERSIONS]]
    more = len(versions) - len(names)
    if more:
        names.append(f"{more} more version{'s' if more > 1 else ''}")
    return enumerated(names)


_MAX_NAMES = 10
"""The number of packages that a text names, before it counts them."""


def _listed_names(names: Sequence[str]) -> str:
    if len(names) <= _MAX_NAMES:
        return enumerated(names)
    return enumerated([*names[:_MAX_NAMES], f"{len(names) - _MAX_NAMES} more packages"])


_SUBJECTS = {
    ConflictCode.PINNED: FactKind.PINNED,
    ConflictCode.SUSPENDED: FactKind.SUSPENDED,
    ConflictCode.YANKED_ONLY: FactKind.PUBLISHED,
    ConflictCode.PRERELEASE_ONLY: FactKind.PUBLISHED,
    ConflictCode.REPOSITORY_UNAVAILABLE: FactKind.PUBLISHED,
    ConflictCode.AMBIGUOUS_REPOSITORY: FactKind.PUBLISHED,
    ConflictCode.REPOSITORY_UNKNOWN: FactKind.PUBLISHED,
    ConflictCode.PACKAGE_NOT_FOUND: FactKind.PUBLISHED,
    ConflictCode.NO_MATCHING_VERSION: FactKind.PUBLISHED,
    ConflictCode.PLATFORM: FactKind.PUBLISHED,
    ConflictCode.DOWNGRADE: FactKind.REQUESTED,
    ConflictCode.REQUIRED_BY: FactKind.REQUESTED,
    ConflictCode.VERSION_CONFLICT: FactKind.INSTALLED,
}
"""The facts one of which a conflict is about."""


def cycle_text(cycle: Sequence[str]) -> str:
    """The conflict of a cycle, whose last package requires the first."""
    more = len(cycle) - _MAX_NAMES
    ways = " -> ".join([*cycle[:_MAX_NAMES], *([f"{more} more packages"] if more > 0 else []), cycle[0]])
    if len(cycle) == 2:
        return f"{cycle[0]} and {cycle[1]} require each other: {ways}"
    return f"{cycle[0]} requires itself: {ways}"
