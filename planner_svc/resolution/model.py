"""The values that a resolution takes and returns."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from services.packages.index_files import PackageVersions
from services.packages.installed import PackageOrigin
from services.packages.ranges import Range
from services.packages.versions import Version


@dataclass(frozen=True, slots=True)
class Repository:
    """
    A configured repository, with what was read of it.

    Attributes:
        name: Its name.
        priority: The repository with the highest one that lists a package serves it.
        only: Patterns of the packages that it may serve, with ``*`` at the end for any rest; none: all packages.
        is_enabled: Whether it is read at all.
        problem: Why it does not answer; None: it does.
        packages: What it lists, for each name that a resolution may meet.
        faults: Why it lists a package that cannot be used, by name of the package.
    """

    name: str
    priority: int = 0
    only: tuple[str, ...] = ()
    is_enabled: bool = True
    problem: str | None = None
    packages: Mapping[str, PackageVersions] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PackageRequest:
    """
    A package to install or to update.

    Attributes:
        name: The package.
        versions: The versions that will do; None: that of the repository's choice. A version with a revision means that
            one only.
        repository: Where it has to come from; None: from where it is installed, else from the repository with the
            highest priority.
    """

    name: str
    versions: Range | Version | None = None
    repository: str | None = None

    def __str__(self) -> str:
        written = self.name if self.versions is None else f"{self.name}@{self.versions}"
        return f"{self.repository}/{written}" if self.repository else written


@dataclass(frozen=True, slots=True)
class Request:
    """What is to change; each package is named at most once."""

    installs: tuple[PackageRequest, ...] = ()
    updates: tuple[PackageRequest, ...] = ()
    updates_all: bool = False
    uninstalls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Options:
    """
    What the client consents to.

    Attributes:
        update_dependencies: Installed packages that are not requested may move up.
        allow_downgrade: They may move in any direction, and a requested package down.
        cascade: What requires an uninstalled package is uninstalled, too.
        keep_unused: Dependencies that nothing requires stay.
        keep: Dependencies that stay although nothing requires them, as data would be lost with them.
        prereleases: Packages whose prereleases count as releases.
        platform: The version of pkger that has to be in the range of each new version; None: any will do.
    """

    update_dependencies: bool = False
    allow_downgrade: bool = False
    cascade: bool = False
    keep_unused: bool = False
    keep: frozenset[str] = frozenset()
    prereleases: frozenset[str] = frozenset()
    platform: Version | None = None


class ChangeAction(Enum):
    """What happens to a package."""

    INSTALL = "install"
    UPDATE = "update"
    DOWNGRADE = "downgrade"
    REMOVE = "remove"
    MARK = "mark"


@dataclass(frozen=True, slots=True)
class Change:
    """
    What happens to one package.

    Attributes:
        action: What happens.
        name: The package.
        old: Its version before; None: not installed, or only marked.
        new: Its version after; None: removed, or only marked.
        origin: Of an installation or a mark.
        repository: Of an installation.
        required_by: The packages that require it afterwards, sorted.
    """

    action: ChangeAction
    name: str
    old: Version | None = None
    new: Version | None = None
    origin: PackageOrigin | None = None
    repository: str | None = None
    required_by: tuple[str, ...] = ()


class WarningCode(Enum):
    """What is odd, and does not keep a request from being carried out."""

    BROKEN_BEFORE = "BROKEN_BEFORE"
    PLATFORM = "PLATFORM"
    REPOSITORY_UNAVAILABLE = "REPOSITORY_UNAVAILABLE"
    VERSION_CHANGED = "VERSION_CHANGED"
    YANKED = "YANKED"


@dataclass(frozen=True, slots=True)
class ResolutionWarning:
    """
    Something odd.

    Attributes:
        code: What it is.
        package: The package; empty for REPOSITORY_UNAVAILABLE.
        dependency: The end of the broken edge; else empty.
        repository: The repository that does not answer; else empty.
    """

    code: WarningCode
    package: str = ""
    dependency: str = ""
    repository: str = ""


class FactKind(Enum):
    """What a fact is about."""

    REQUESTED = "asked"
    REQUIRES = "requires"
    INSTALLED = "installed"
    PINNED = "pinned"
    SUSPENDED = "suspended"
    PUBLISHED = "published"
    NOWHERE = "nowhere"
    NOT_INSTALLED = "not installed"
    UNUSED = "unused"
    REFERENCE = "reference"


@dataclass(frozen=True, slots=True)
class Fact:
    """
    One of the reasons for which there is no solution.

    Attributes:
        kind: What it is about.
        packages: The packages in its text.
        text: The fact, for people.
        paths: The shortest ways by which a requested or an installed package leads to the first of *packages*; none if
            the facts before have so many long ones that there is no space for more.
        further_paths: The number of ways that *paths* leaves out.
    """

    kind: FactKind
    packages: tuple[str, ...]
    text: str
    paths: tuple[tuple[str, ...], ...] = ()
    further_paths: int = 0


class ConflictCode(Enum):
    """The one kind of change that would have helped, in the order in which they are tried."""

    NOT_INSTALLED = "NOT_INSTALLED"
    CYCLE = "CYCLE"
    PINNED = "PINNED"
    SUSPENDED = "SUSPENDED"
    YANKED_ONLY = "YANKED_ONLY"
    PRERELEASE_ONLY = "PRERELEASE_ONLY"
    REPOSITORY_UNAVAILABLE = "REPOSITORY_UNAVAILABLE"
    AMBIGUOUS_REPOSITORY = "AMBIGUOUS_REPOSITORY"
    REPOSITORY_UNKNOWN = "REPOSITORY_UNKNOWN"
    PACKAGE_NOT_FOUND = "PACKAGE_NOT_FOUND"
    NO_MATCHING_VERSION = "NO_MATCHING_VERSION"
    DOWNGRADE = "DOWNGRADE"
    REQUIRED_BY = "REQUIRED_BY"
    PLATFORM = "PLATFORM"
    VERSION_CONFLICT = "VERSION_CONFLICT"
    BROKEN_REFERENCE = "BROKEN_REFERENCE"
    LIMIT = "LIMIT"


class SuggestionKind(Enum):
    """What to consent to, in the order in which suggestions are shown."""

    UPDATE = "update"
    OTHER_VERSION = "other-version"
    DOWNGRADE = "downgrade"
    UNPIN = "unpin"
    CASCADE = "cascade"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """
    Something that works.

    Attributes:
        kind: What to consent to.
        request: The request that does it.
        options: The options that do it.
        unpins: The packages to unpin before.
        changes: All that it would change.
        command: What to type, word by word, before the request is repeated, or in its place; empty: no one command
            says all of the request.
    """

    kind: SuggestionKind
    request: Request
    options: Options
    changes: tuple[Change, ...]
    command: tuple[str, ...]
    unpins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A package that was to be updated, and is not at the version that comes first; with the facts that hold it."""

    name: str
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Resolution:
    """The versions that go together, as changes of what is installed."""

    changes: tuple[Change, ...]
    held_back: tuple[HeldBack, ...] = ()
    warnings: tuple[ResolutionWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class Conflict:
    """
    Why no versions go together, or LIMIT: whether some do was not found out.

    Attributes:
        code: What would have helped.
        package: The package that the text is about; empty: none.
        text: The conflict in one sentence, for people.
        resolvable: Whether the suggestion UPDATE is there.
        facts: The reasons, none of which can be left out.
        suggestions: What works instead.
        is_explained: False: a bound was reached, so some of the facts may not matter, and facts or suggestions may be
            missing.
    """

    code: ConflictCode
    package: str
    text: str
    resolvable: bool = False
    facts: tuple[Fact, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    is_explained: bool = True
