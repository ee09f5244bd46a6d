"""Makes the index files of a repository from the contents of its folder (docs/dependencies.md, "Publish a package")."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from services.core.text_lists import listed
from services.packages.index_files import (
    PACKAGE_FILE,
    ListedPackage,
    PackageVersions,
    PublishedVersion,
    RepositoryIndex,
    highest_release,
    version_folder,
    versions_file,
)
from services.packages.manifest import Manifest, Requirement
from services.packages.versions import Version

_SHOWN_VERSIONS = 5


class ObjectName(NamedTuple):
    """The family of kinds of an object, such as ``endpoint``, and its ``metadata.name``."""

    family: str
    name: str


class Reference(NamedTuple):
    """
    A field that names an object of another package.

    Attributes:
        place: Source, line and column of the name.
        package: The other package.
        target: The object.
    """

    place: str
    package: str
    target: ObjectName


@dataclass(frozen=True, slots=True)
class VersionContent:
    """
    A version in the folder of a repository, which has no violations.

    Attributes:
        manifest: Its manifest.
        digest: The digest of its files.
        objects: Its objects.
        references: Its fields that name objects of other packages.
    """

    manifest: Manifest
    digest: str
    objects: frozenset[ObjectName] = frozenset()
    references: tuple[Reference, ...] = ()

    @property
    def file(self) -> str:
        """The path of the file with the manifest."""
        return f"{version_folder(self.manifest.name, self.manifest.version)}/{PACKAGE_FILE}"


Contents = Mapping[str, Mapping[Version, VersionContent]]
"""The versions in a folder, by name of the package, then by version."""


class Finding(NamedTuple):
    """
    What is wrong in a repository.

    Attributes:
        place: The file, with line and column where they are known.
        text: What is wrong and what to do, without a full stop.
        is_error: Whether it keeps the index files from being written.
    """

    place: str
    text: str
    is_error: bool = True


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """
    What the publisher sets.

    Attributes:
        latest: By package the version that is its latest; None: from now on the highest release.
        yanks: By package and version why nobody should install it any more; None: it is no longer yanked.
    """

    latest: Mapping[str, Version | None]
    yanks: Mapping[tuple[str, Version], str | None]


@dataclass(frozen=True, slots=True)
class IndexFiles:
    """The index files of a repository, and what is wrong in it."""

    index: RepositoryIndex
    versions: Mapping[str, PackageVersions]
    findings: tuple[Finding, ...]


def index_files(
    contents: Contents, before: Mapping[str, PackageVersions], settings: IndexSettings, now: datetime
) -> IndexFiles:
    """
    Make the index files of a repository.

    Args:
        contents: All its packages.
        before: The versions as they are listed now, by package; what was set there is kept.
        settings: What the publisher sets.
        now: When a version that is not listed yet is listed first.
    """
    findings = [*_unknown_settings(contents, settings)]
    packages = {}
    for name in sorted(contents):
        listed_before = before.get(name, PackageVersions(name, {}))
        packages[name] = _package(name, contents[name], listed_before, settings, now, findings)
    listing = {name: _listing(package, contents[name]) for name, package in packages.items()}
    findings += _requirement_findings(contents, packages)
    return IndexFiles(RepositoryIndex(listing), packages, tuple(findings))


def _unknown_settings(contents: Contents, settings: IndexSettings) -> Iterator[Finding]:
    named = [*((name, version) for name, version in settings.latest.items()), *settings.yanks]
    for name, version in named:
        if name not in contents:
            yield Finding(versions_file(name), f"the repository has no package {name!r}; check the name")
        elif version is not None and version not in contents[name]:
            there = _shown(contents[name])
            yield Finding(versions_file(name), f"{name} has no version {version}, but {there}; check the version")


def _package(
    name: str,
    contents: Mapping[Version, VersionContent],
    before: PackageVersions,
    settings: IndexSettings,
    now: datetime,
    findings: list[Finding],
) -> PackageVersions:
    gone = before.versions.keys() - contents.keys()
    if gone:
        text = f"{_shown(gone)} of {name} had been listed, and no folder has them; they are not listed any more"
        findings.append(Finding(versions_file(name), text, is_error=False))
    # What is put back is what was published, and as yanked as it was.
    published_before = {**before.removed_versions, **before.versions}
    versions = {}
    for version, content in sorted(contents.items()):
        earlier = published_before.get(version)
        if earlier and earlier.digest != content.digest:
            findings.append(Finding(content.file, _changed(version)))
        published = _published(content, earlier, now)
        yanked = settings.yanks.get((name, version), published.yanked)
        versions[version] = replace(published, yanked=yanked)
    latest, is_set = _latest(name, versions, before, settings, findings)
    removed_versions = {each: published_before[each] for each in published_before.keys() - contents.keys()}
    return PackageVersions(name, versions, latest, is_set, removed_versions)


def _changed(version: Version) -> str:
    following = f"{version.text.partition('+')[0]}+{(version.revision or 0) + 1}"
    return (
        f"the content of {version} is not what was published under this version; restore it, and publish the new"
        f" content as another version, or as the revision {following}"
    )


def _published(content: VersionContent, earlier: PublishedVersion | None, now: datetime) -> PublishedVersion:
    manifest = content.manifest
    return PublishedVersion(
        version=manifest.version,
        digest=content.digest,
        files=(PACKAGE_FILE, *manifest.files),
        requires=manifest.requires,
        platform=manifest.platform,
        created=earlier.created if earlier else now,
        yanked=earlier.yanked if earlier else None,
    )


def _latest(
    name: str,
    versions: Mapping[Version, PublishedVersion],
    before: PackageVersions,
    settings: IndexSettings,
    findings: list[Finding],
) -> tuple[Version | None, bool]:
    """The latest version, and whether the publisher chose it, now or earlier."""
    highest = highest_release(versions)
    if name in settings.latest:
        latest = settings.latest[name]
        if latest is None or latest not in versions:
            return highest, False
        if latest.is_prerelease:
            text = f"{latest} is a prerelease, which no installation takes by itself; choose a release as latest"
            findings.append(Finding(versions_file(name), text))
        elif versions[latest].yanked is not None:
            findings.append(Finding(versions_file(name), f"{latest} is yanked; choose another one as latest"))
        return latest, True
    # A file that was not made by this program may have no mark.
    was_set = before.is_latest_set or before.latest != highest_release(before.versions)
    chosen = before.latest
    if was_set and chosen is not None:
        if chosen in versions and versions[chosen].yanked is None:
            return chosen, True
        text = f"{chosen}, which was set as latest, is yanked or gone; latest is {highest or 'none'} now"
        findings.append(Finding(versions_file(name), text, is_error=False))
    return highest, False


def _listing(package: PackageVersions, contents: Mapping[Version, VersionContent]) -> ListedPackage:
    described = package.latest or max(contents)
    return ListedPackage(package.name, package.latest, contents[described].manifest.description)


def _requirement_findings(contents: Contents, packages: Mapping[str, PackageVersions]) -> Iterator[Finding]:
    """What is wrong between packages."""
    for name in sorted(contents):
        for _, content in sorted(contents[name].items()):
            for requirement in content.manifest.requires:
                yield from _unmet(content, requirement, contents, packages)
            for reference in content.references:
                yield from _broken(content, reference, contents, packages)
    yield from _cycles(contents, packages)


def _unmet(
    content: VersionContent, requirement: Requirement, contents: Contents, packages: Mapping[str, PackageVersions]
) -> Iterator[Finding]:
    """Another repository may have what is missing here, so these are warnings."""
    matching = _matching(requirement, contents)
    if requirement.name not in contents:
        text = f"{_subject(content)} requires {requirement.name}, which this repository does not have"
        yield Finding(content.file, text, is_error=False)
    elif not matching:
        there = _shown(contents[requirement.name])
        text = f"{_subject(content)} requires {requirement.name} {requirement.range}, and this repository has {there}"
        yield Finding(content.file, text, is_error=False)
    elif not _is_yanked(content, packages) and not any(_is_available(each, requirement, packages) for each in matching):
        what = f"{requirement.name} {requirement.range or ''}".rstrip()
        text = f"{_subject(content)} requires {what}, and no installation chooses the versions that this repository has"
        remedy = f"publish another version of {requirement.name}, or yank {_subject(content)} as well"
        yield Finding(content.file, f"{text}: {_shown(matching)} (yanked, or a prerelease); {remedy}", is_error=False)


def _is_yanked(content: VersionContent, packages: Mapping[str, PackageVersions]) -> bool:
    return packages[content.manifest.name].versions[content.manifest.version].yanked is not None


def _is_available(version: Version, requirement: Requirement, packages: Mapping[str, PackageVersions]) -> bool:
    """Whether an installation may choose *version*, which meets a requirement: a range may name prereleases."""
    is_yanked = packages[requirement.name].versions[version].yanked is not None
    return not is_yanked and not (requirement.range is None and version.is_prerelease)


def _matching(requirement: Requirement, contents: Contents) -> list[Version]:
    """The versions in a folder that meet a requirement, lowest first."""
    versions = sorted(contents.get(requirement.name, ()))
    return [each for each in versions if requirement.range is None or requirement.range.matches(each)]


def _best(requirement: Requirement, contents: Contents, packages: Mapping[str, PackageVersions]) -> Version | None:
    """The version that an installation chooses if nothing else is required; None: none meets the requirement."""
    matching = _matching(requirement, contents)
    if not matching:
        return None
    package = packages[requirement.name]
    if requirement.range is None and package.latest is not None:
        return package.latest
    available = [each for each in matching if package.versions[each].yanked is None]
    return max(available or matching)


def _broken(
    content: VersionContent, reference: Reference, contents: Contents, packages: Mapping[str, PackageVersions]
) -> Iterator[Finding]:
    """A reference to an object that the other package does not have; an error if its best version lacks it."""
    requirement = next((each for each in content.manifest.requires if each.name == reference.package), None)
    if requirement is None:
        return
    theirs = contents.get(reference.package, {})
    lacking = [each for each in _matching(requirement, contents) if reference.target not in theirs[each].objects]
    if lacking:
        text = f"{reference.package} has no {reference.target.family} {reference.target.name!r} in {_shown(lacking)}"
        is_error = _best(requirement, contents, packages) in lacking
        remedy = "publish a version that has it, name another object, or narrow the range of the requirement"
        yield Finding(reference.place, f"{text}; {remedy}", is_error)


_Edge = tuple[str, Version]


def _cycles(contents: Contents, packages: Mapping[str, PackageVersions]) -> Iterator[Finding]:
    """The circles of requirements, each once, where each is met by the version that an installation chooses."""
    done: set[_Edge] = set()
    for name in sorted(contents):
        for version in sorted(contents[name]):
            path: list[_Edge] = []
            places: dict[_Edge, int] = {}
            left = [iter([(name, version)])]
            while left:
                node = next(left[-1], None)
                if node is None:
                    left.pop()
                    if path:
                        last = path.pop()
                        del places[last]
                        done.add(last)
                elif node in places:
                    yield _cycle(path[places[node] :], contents)
                elif node not in done:
                    places[node] = len(path)
                    path.append(node)
                    left.append(iter(_edges(node, contents, packages)))


def _edges(node: _Edge, contents: Contents, packages: Mapping[str, PackageVersions]) -> list[_Edge]:
    name, version = node
    best = [
        (each.name, _best(each, contents, packages))
        for each in sorted(contents[name][version].manifest.requires, key=lambda each: each.name)
    ]
    return [(required, chosen) for required, chosen in best if chosen is not None]


def _cycle(circle: list[_Edge], contents: Contents) -> Finding:
    name, version = circle[0]
    way = " -> ".join(f"{each} {of}" for each, of in [*circle, circle[0]])
    text = f"packages require each other: {way}; remove one of these requirements"
    return Finding(contents[name][version].file, text)


def _subject(content: VersionContent) -> str:
    return f"{content.manifest.name} {content.manifest.version}"


def _shown(versions: "Mapping[Version, object] | set[Version] | list[Version]") -> str:
    """Versions for a text, the highest first."""
    return listed([each.text for each in sorted(versions)[::-1]], _SHOWN_VERSIONS)
