"""From a request for changes of packages to the desired state of a plan."""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pkger.model.v1 import object_pb2
from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import package_pb2
from pkger.stack.v1 import stack_pb2

from planner_svc.composition.compose import compose
from planner_svc.composition.decompose import decompose
from planner_svc.composition.full_names import full_name, package_of
from planner_svc.composition.key_moves import key_moves
from planner_svc.composition.model import Component, CompositionProblems
from planner_svc.inputs import PlanInputs
from planner_svc.package_stack.compared import left_out
from planner_svc.package_stack.data import unneeded_with_data
from planner_svc.package_stack.model import PackagesAfter, PlannedPackage
from planner_svc.package_stack.records import (
    PackageContent,
    content_of,
    edited_packages,
    installed_after,
    planned_packages,
    recorded_digest,
)
from planner_svc.package_stack.refusals import refuse_other_stacks
from planner_svc.packages.inputs import PackageInputs
from planner_svc.packages.listings import Listing
from planner_svc.packages.messages import warning_text
from planner_svc.packages.requests import ChangesRequest, changes_request
from planner_svc.packages.resolving import PackageResolver
from planner_svc.repositories.reader import VersionFiles
from planner_svc.resolution.conflicts import not_installed
from planner_svc.resolution.graphs import ordered
from planner_svc.resolution.model import ChangeAction, Conflict, ConflictCode, Fact, FactKind, Resolution
from planner_svc.resolution.situation import read_situation
from services.core.errors import RepositoryUnavailable, SharedDiffers, SourceTooLarge
from services.core.limits import MOST_PACKAGES
from services.core.model import Key, Package, StackRecord
from services.kinds.registry import family_and_name, family_of
from services.packages.installed import InstalledPackage
from services.packages.package_text import NOTHING_KEPT, KeptPackage
from services.packages.versions import Version
from services.rpc.convert.manifests import package_reference_from_pb
from services.rpc.convert.objects import object_from_pb, violation_to_pb
from services.rpc.parsed_package import ParsedPackage

_CHANGING = "the packages that change together (change fewer at once)"
"""What is too large, in errors."""


@dataclass(frozen=True, slots=True)
class DesiredPackages:
    """
    The desired state after a change of packages.

    Attributes:
        stack: The record that it is based on.
        package: All objects of the stack.
        after: The packages afterwards.
        left_out: The keys that the plan leaves as they are.
        previous: The package of the current revision.
        parsed: What the parser says of the packages that change, without their objects.
        warnings: Warnings for people.
    """

    stack: StackRecord
    package: Package
    after: PackagesAfter
    left_out: frozenset[Key]
    previous: KeptPackage
    parsed: ParsedPackage
    warnings: tuple[str, ...] = ()


class PackageStackInputs:
    """Resolves, reads and composes the packages of a stack."""

    def __init__(self, reader: PlanInputs, packages: PackageInputs, resolver: PackageResolver) -> None:
        self._reader = reader
        self._packages = packages
        self._resolver = resolver

    async def desired(
        self, request: package_pb2.PackageChanges, header: stack_pb2.Stack
    ) -> DesiredPackages | Conflict | Sequence[object_pb2.Violation]:
        """
        The desired state after changes of packages.

        Args:
            request: The changes.
            header: The stack, which may not exist yet.

        Returns:
            The desired state; or why no versions go together; or all violations of the packages that change.

        Raises:
            PkgerError: The request is invalid, or something cannot be read (planner.proto).
        """
        changes = changes_request(request, self._packages.bounds, "packages")
        stack, installed = await self._reader.record(header), await self._reader.installed(header)
        refuse_other_stacks(header, stack, installed)
        previous = await self._reader.current_package(stack) if installed else NOTHING_KEPT
        by_name = {each.name: each for each in installed}
        edited = edited_packages(by_name, changes)
        if missing := min(changes.edits.keys() - by_name.keys(), default=None):
            return not_installed(missing, "changed")
        answer = await self._resolved(changes, stack, [*edited.values()], previous)
        if isinstance(answer, Conflict):
            return answer
        resolution, kept_for_data = answer
        files = await self._files(resolution, changes, stack, by_name)
        parsed = await self._parsed(files)
        violations = [violation for each in parsed.values() for violation in each.violations]
        if violations:
            return violations
        contents = {name: content_of(each) for name, each in files.items()}
        planned = planned_packages(by_name, edited, resolution, changes, contents)
        after = installed_after(by_name, planned)
        components = _components(after, files, parsed, previous)
        platform = await self._reader.traits(stack.target)
        recorded = [entry.key for entry in stack.resources]
        composition = compose(components, platform, recorded, previous.applied.values())
        if isinstance(composition, CompositionProblems):
            return _problems(composition, after, files)
        compared = _compared(changes, planned, after)
        objects, declarations = composition.package.objects, composition.declarations
        moves = key_moves(previous, objects, declarations, platform, stack.resources)
        return DesiredPackages(
            stack,
            composition.package,
            PackagesAfter(after, planned, declarations, _texts(planned, contents), resolution.held_back, moves),
            left_out(composition, previous.declarations, stack.resources, after, compared, moves),
            previous,
            _remarks(parsed),
            tuple(_warnings(resolution, kept_for_data, changes, after)),
        )

    async def _resolved(
        self,
        changes: ChangesRequest,
        stack: StackRecord,
        installed: Sequence[InstalledPackage],
        previous: KeptPackage,
    ) -> tuple[Resolution, frozenset[str]] | Conflict:
        """The versions that go together, with the dependencies that stay only for their data."""
        keep: frozenset[str] = frozenset()
        platform = await self._reader.traits(stack.target)
        uninstalled = read_situation((), installed, changes.request, changes.options).uninstalls
        while True:
            answer = await self._resolver.resolved(changes, installed, keep)
            if isinstance(answer, Conflict):
                return answer
            with_data = unneeded_with_data(answer, uninstalled, stack, previous.declarations, platform)
            if with_data <= keep:
                return answer, keep
            keep |= with_data

    async def _files(
        self,
        resolution: Resolution,
        changes: ChangesRequest,
        stack: StackRecord,
        installed: Mapping[str, InstalledPackage],
    ) -> dict[str, VersionFiles]:
        """
        The files of each package that is installed or moves, or comes from a folder, by name.

        Raises:
            SourceTooLarge: They are larger than those of one package may be, or there are too many.
            RepositoryInvalid: A file breaks a rule, or a version is not what the stack had under it.
            RepositoryUnavailable: A repository does not answer.
        """
        count = len({each.name for each in resolution.changes if each.new is not None} | changes.folders.keys())
        if count > MOST_PACKAGES:
            raise SourceTooLarge(_CHANGING, "packages, with those that they require,", MOST_PACKAGES)
        requested = {each.name: each.repository for each in changes.request.installs if each.repository}
        moved = [each for each in resolution.changes if each.new is not None and each.name not in changes.folders]
        listings = {each.name: each for each in await self._packages.configured()} if moved else {}
        versions = {each.name: each.new for each in moved if each.new}
        before = await self._reader.packages_before(stack, versions)
        files = {name: each.files for name, each in changes.folders.items()}

        async def fetch(name: str, version: Version, new_repository: str | None) -> None:
            repository = new_repository or requested.get(name) or installed[name].repository
            digest = recorded_digest(before.get(name), requested.get(name))
            files[name] = await self._packages.files(_listed(listings, repository or ""), name, version, digest)

        await asyncio.gather(*(fetch(each.name, each.new, each.repository) for each in moved if each.new))
        limit = self._packages.bounds.bytes
        if sum(len(data) for each in files.values() for data in each.files.values()) > limit:
            raise SourceTooLarge(_CHANGING, "bytes", limit)
        return dict(sorted(files.items()))

    async def _parsed(self, files: Mapping[str, VersionFiles]) -> dict[str, ParsedPackage]:
        parsed = await asyncio.gather(*(self._packages.parsed(name, each) for name, each in files.items()))
        return dict(zip(files, parsed, strict=True))


def _listed(listings: Mapping[str, Listing], repository: str) -> Listing:
    """
    A repository that the resolution has read.

    Raises:
        RepositoryUnavailable: It is not in the list any more.
    """
    if repository not in listings:
        raise RepositoryUnavailable(repository, "it was removed from the list while the plan was made; plan again")
    return listings[repository]


def _components(
    after: Iterable[InstalledPackage],
    files: Mapping[str, VersionFiles],
    parsed: Mapping[str, ParsedPackage],
    kept: KeptPackage,
) -> list[Component]:
    """The packages, each after those that it requires; those that do not change are as in *kept*, the current one."""
    records = {each.name: each for each in after}
    graph = {
        name: sorted(required.name for required in each.requires if required.name in records)
        for name, each in records.items()
    }
    previous = decompose(kept, _dropped(kept, records, files, parsed))
    components = []
    for name in ordered(graph):
        if name in files:
            package, version = parsed[name], files[name].published
            objects = tuple(map(object_from_pb, package.objects))
            components.append(
                Component(
                    name,
                    Package(objects, tuple(package.header.sources), package.lifecycles),
                    frozenset(each.name for each in version.requires),
                    tuple(map(package_reference_from_pb, package.package_references)),
                )
            )
        elif name in previous:
            components.append(previous[name])
    return components


def _dropped(
    kept: KeptPackage,
    installed: Collection[str],
    files: Mapping[str, VersionFiles],
    parsed: Mapping[str, ParsedPackage],
) -> list[Key]:
    """The declarations of objects of several packages, by their full names, that packages have no more."""
    present = {
        (family_of(each.key.kind), full_name(name, each.key.name)) for name in files for each in parsed[name].objects
    }
    return [
        each.key
        for declarations in kept.declarations.values()
        for each in declarations
        for package in (package_of(each.key.name),)
        if package not in installed or (package in files and family_and_name(each.key) not in present)
    ]


def _problems(
    problems: CompositionProblems, after: Iterable[InstalledPackage], files: Mapping[str, VersionFiles]
) -> Conflict | Sequence[object_pb2.Violation]:
    """
    Why packages make no package of the stack: violations of those that change, else broken references of the others.

    Raises:
        SharedDiffers: Objects of several packages would have to be equal.
    """
    violations = [each for name, some in problems.violations_of.items() if name in files for each in some]
    if violations:
        return [*map(violation_to_pb, violations)]
    versions = {each.name: each.version for each in after}
    facts = tuple(
        Fact(FactKind.REFERENCE, (name,), f"{name} {versions[name]}: {each.reason}", ((name,),))
        for name, some in problems.violations_of.items()
        for each in some
    )
    if facts:
        package = facts[0].packages[0]
        text = f"{package} {versions[package]} refers to an object that is not there after the change"
        return Conflict(ConflictCode.BROKEN_REFERENCE, package, text, facts=facts)
    raise SharedDiffers([*map(str, problems.differing)], is_in_packages=True)


def _compared(
    changes: ChangesRequest, planned: Iterable[PlannedPackage], after: Iterable[InstalledPackage]
) -> frozenset[str]:
    """The packages that change or that the request names; all, if all are to be updated."""
    names = changes.names | {each.change.name for each in planned if each.change.action is not ChangeAction.MARK}
    return names | {each.name for each in after} if changes.request.updates_all else names


def _texts(planned: Iterable[PlannedPackage], contents: Mapping[str, PackageContent]) -> dict[str, str]:
    """The contents of the packages that change, by their digest."""
    names = [each.change.name for each in planned if each.record]
    return {contents[name].digest: contents[name].text for name in names if name in contents}


def _remarks(parsed: Mapping[str, ParsedPackage]) -> ParsedPackage:
    """What the parser says of several packages, without their objects."""
    whole = ParsedPackage(parser_pb2.PackageHeader())
    for name, each in parsed.items():
        whole.missing_env_refs += each.missing_env_refs
        whole.missing_secrets += each.missing_secrets
        whole.warnings += each.warnings
        for credential in each.credentials:
            credential.key.name = full_name(name, credential.key.name)
            whole.credentials.append(credential)
    whole.missing_env_refs = sorted(set(whole.missing_env_refs))
    whole.missing_secrets = sorted(set(whole.missing_secrets))
    return whole


def _warnings(
    resolution: Resolution, kept_for_data: Iterable[str], changes: ChangesRequest, after: Iterable[InstalledPackage]
) -> Iterator[str]:
    yield from map(warning_text, resolution.warnings)
    for name in sorted(kept_for_data):
        yield f"package {name} is required by nothing, and stays with its data; `pkger uninstall {name}` removes both"
    records = {each.name: each for each in after}
    for request in sorted(changes.request.installs, key=lambda each: each.name):
        record, is_folder = records.get(request.name), request.name in changes.folders
        if record and request.repository and not is_folder and record.repository != request.repository:
            source = f"repository {record.repository}" if record.repository else "a folder"
            yield (
                f"package {request.name} stays as it was installed from {source}; uninstall it first to have it from"
                f" {request.repository}"
            )
