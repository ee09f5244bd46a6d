"""Resolutions, conflicts and published versions as messages."""

from collections.abc import Iterable

from google.protobuf.timestamp_pb2 import Timestamp
from pkger.model.v1 import package_change_pb2
from pkger.planner.v1 import package_pb2

from planner_svc.packages.listings import Listing
from planner_svc.resolution.explanations import DependencyPath, Explanation
from planner_svc.resolution.model import (
    Change,
    ChangeAction,
    Conflict,
    ConflictCode,
    Fact,
    FactKind,
    HeldBack,
    Repository,
    Resolution,
    ResolutionWarning,
    Suggestion,
    SuggestionKind,
    WarningCode,
)
from services.packages.index_files import ListedPackage, PublishedVersion
from services.packages.installed import PackageOrigin
from services.rpc.convert.enums import Numbers
from services.rpc.convert.manifests import requirement_to_pb
from services.rpc.convert.packages import installed_to_pb

_ACTION = Numbers(ChangeAction, package_change_pb2.PackageAction, "PACKAGE_ACTION")
_ORIGIN = Numbers(PackageOrigin, package_change_pb2.PackageOrigin, "PACKAGE_ORIGIN")
_WARNING = Numbers(WarningCode, package_change_pb2.ResolutionWarningCode, "RESOLUTION_WARNING_CODE")
_CODE = Numbers(ConflictCode, package_change_pb2.ConflictCode, "CONFLICT_CODE")
_FACT = Numbers(FactKind, package_change_pb2.ConflictFactKind, "CONFLICT_FACT_KIND")
_SUGGESTION = Numbers(SuggestionKind, package_change_pb2.SuggestionKind, "SUGGESTION_KIND")


def answer_to_pb(answer: Resolution | Conflict) -> package_pb2.ResolvePackagesResponse:
    """Translate the answer to a request."""
    if isinstance(answer, Conflict):
        return package_pb2.ResolvePackagesResponse(conflict=conflict_to_pb(answer))
    return package_pb2.ResolvePackagesResponse(
        resolution=package_change_pb2.Resolution(
            changes=map(change_to_pb, answer.changes),
            held_back=map(held_back_to_pb, answer.held_back),
            warnings=map(_warning_to_pb, answer.warnings),
        )
    )


def held_back_to_pb(package: HeldBack) -> package_change_pb2.HeldBackPackage:
    """Translate a package that is held back."""
    return package_change_pb2.HeldBackPackage(name=package.name, facts=map(_fact_to_pb, package.facts))


def listed_to_pb(listing: Listing, package: ListedPackage) -> package_pb2.ListedPackage:
    """Translate a package of an index."""
    return package_pb2.ListedPackage(
        name=package.name,
        latest=str(package.latest or ""),
        repository=listing.name,
        description=package.description,
    )


def unread_to_pb(listings: Iterable[Listing | Repository]) -> list[package_pb2.UnreadRepository]:
    """The repositories that cannot be read."""
    return [
        package_pb2.UnreadRepository(name=each.name, problem=each.problem)
        for each in listings
        if each.problem is not None
    ]


def explanation_to_pb(explanation: Explanation) -> package_pb2.ExplainedPackage:
    """Translate what an installed package is there for, and what it can become."""
    return package_pb2.ExplainedPackage(
        installed=installed_to_pb(explanation.installed),
        paths=map(_path_to_pb, explanation.paths),
        further_paths=explanation.further_paths,
        allowed_ranges=map(str, explanation.ranges),
        reachable_version=str(explanation.reachable or ""),
        latest=str(explanation.latest or ""),
        held_back_by=map(_fact_to_pb, explanation.held_back_by),
    )


def _path_to_pb(path: DependencyPath) -> package_pb2.DependencyPath:
    return package_pb2.DependencyPath(start=path.start, requirements=map(requirement_to_pb, path.requirements))


def version_to_pb(version: PublishedVersion) -> package_pb2.PublishedVersion:
    """Translate a version."""
    message = package_pb2.PublishedVersion(
        version=version.version.text,
        digest=version.digest,
        requires=map(requirement_to_pb, version.requires),
        platform_range=None if version.platform is None else str(version.platform),
        yank_reason=version.yanked,
    )
    if version.created is not None:
        time = Timestamp()
        time.FromDatetime(version.created)
        message.create_time.CopyFrom(time)
    return message


def conflict_to_pb(conflict: Conflict) -> package_change_pb2.PackageConflict:
    """Translate a conflict."""
    return package_change_pb2.PackageConflict(
        code=_CODE.number(conflict.code),
        package=conflict.package,
        text=conflict.text,
        resolvable=conflict.resolvable,
        facts=map(_fact_to_pb, conflict.facts),
        suggestions=map(_suggestion_to_pb, conflict.suggestions),
        incomplete=not conflict.is_explained,
    )


def change_to_pb(change: Change) -> package_change_pb2.PlannedPackage:
    """Translate a change."""
    return package_change_pb2.PlannedPackage(
        action=_ACTION.number(change.action),
        name=change.name,
        old_version=str(change.old or ""),
        new_version=str(change.new or ""),
        origin=_ORIGIN.number(change.origin) if change.origin else package_change_pb2.PACKAGE_ORIGIN_UNSPECIFIED,
        repository=change.repository or "",
        required_by=change.required_by,
    )


def _fact_to_pb(fact: Fact) -> package_change_pb2.ConflictFact:
    return package_change_pb2.ConflictFact(
        kind=_FACT.number(fact.kind),
        packages=fact.packages,
        text=fact.text,
        paths=(package_change_pb2.RequirementPath(packages=path) for path in fact.paths),
        further_paths=fact.further_paths,
    )


def _suggestion_to_pb(suggestion: Suggestion) -> package_change_pb2.Suggestion:
    return package_change_pb2.Suggestion(
        kind=_SUGGESTION.number(suggestion.kind),
        command=suggestion.command,
        unpins=suggestion.unpins,
        changes=map(change_to_pb, suggestion.changes),
    )


def _warning_to_pb(warning: ResolutionWarning) -> package_change_pb2.ResolutionWarning:
    return package_change_pb2.ResolutionWarning(
        code=_WARNING.number(warning.code),
        package=warning.package,
        dependency=warning.dependency,
        repository=warning.repository,
        text=warning_text(warning),
    )


def warning_text(warning: ResolutionWarning) -> str:
    """A warning as a sentence for people."""
    match warning.code:
        case WarningCode.BROKEN_BEFORE:
            return f"{warning.package} requires {warning.dependency} as it is not, which was so before"
        case WarningCode.PLATFORM:
            return f"the installed version of {warning.package} is for other versions of pkger"
        case WarningCode.REPOSITORY_UNAVAILABLE:
            return f"repository {warning.repository} does not answer; `pkger packages search` prints why"
        case WarningCode.VERSION_CHANGED:
            return f"the installed version of {warning.package} is published with other content than it had, and stays"
        case WarningCode.YANKED:
            return f"the installed version of {warning.package} is yanked; `pkger packages versions` prints why"
