"""Worlds of packages as JSON, as the recorded cases have them, and answers as JSON."""

from collections.abc import Iterable, Mapping
from typing import Any

from planner_svc.resolution.bounds import Bounds
from planner_svc.resolution.model import (
    Change,
    Conflict,
    Options,
    PackageRequest,
    Repository,
    Request,
    Resolution,
    ResolutionWarning,
)
from planner_svc.resolution.nab_search import search as nab_search
from planner_svc.resolution.resolve import resolve
from planner_svc.resolution.search import Search
from services.packages.index_files import PackageVersions, PublishedVersion
from services.packages.installed import InstalledPackage, PackageOrigin
from services.packages.manifest import Requirement
from services.packages.ranges import Range
from services.packages.versions import Version

Json = Mapping[str, Any]


def resolved(case: Json, bounds: Bounds | None = None, search: Search = nab_search) -> Resolution | Conflict:
    """The answer to a case."""
    return resolve(
        map(repository, case["repositories"]),
        map(installed, case["installed"]),
        request(case["request"]),
        options(case.get("options") or {}),
        bounds or Bounds(),
        search,
    )


def repository(written: Json) -> Repository:
    return Repository(
        name=written["name"],
        priority=written.get("priority", 0),
        only=tuple(written.get("only", ())),
        is_enabled=written.get("enabled", True),
        problem="no answer within 30 s" if written.get("unreachable") else None,
        packages={name: published(name, each) for name, each in written.get("packages", {}).items()},
    )


def published(name: str, written: Json) -> PackageVersions:
    versions = [
        PublishedVersion(
            Version.parse(each["version"]),
            digest="",
            requires=_requirements(each),
            yanked=each.get("yanked"),
            platform=Range.parse(each["platform"]) if "platform" in each else None,
        )
        for each in written["versions"]
    ]
    latest = Version.parse(written["latest"]) if "latest" in written else None
    return PackageVersions(name, {each.version: each for each in versions}, latest)


def _requirements(written: Json) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(each["name"], Range.parse(each["version"]) if "version" in each else None)
        for each in written.get("requires", ())
    )


def installed(written: Json) -> InstalledPackage:
    return InstalledPackage(
        name=written["name"],
        version=Version.parse(written["version"]),
        repository=written.get("repository"),
        origin=PackageOrigin(written.get("origin", "manual")),
        is_pinned=written.get("pinned", False),
        is_suspended=written.get("suspended", False),
        requested=_versions(written.get("requested")),
        requires=_requirements(written),
    )


def _versions(written: str | None) -> Range | Version | None:
    """What a request names; only a version can have a revision."""
    if written is None:
        return None
    return Version.parse(written) if "+" in written else Range.parse(written)


def request(written: Json) -> Request:
    def packages(verb: str) -> tuple[PackageRequest, ...]:
        return tuple(
            PackageRequest(each["name"], _versions(each.get("version")), each.get("repository"))
            for each in written.get(verb, ())
        )

    return Request(
        packages("install"),
        packages("update"),
        written.get("update_all", False),
        tuple(written.get("uninstall", ())),
    )


def options(written: Json) -> Options:
    return Options(
        update_dependencies=written.get("update_dependencies", False),
        allow_downgrade=written.get("allow_downgrade", False),
        cascade=written.get("cascade", False),
        keep_unused=written.get("keep_unused", False),
        keep=frozenset(written.get("keep", ())),
        prereleases=frozenset(written.get("prerelease", ())),
        platform=Version.parse(written["platform"]) if "platform" in written else None,
    )


def as_json(answer: Resolution | Conflict) -> dict[str, Any]:
    """An answer as the recorded cases have it, with texts."""
    if isinstance(answer, Resolution):
        return {
            "outcome": "solved",
            "changes": changes_as_json(answer.changes),
            "held_back": [each.name for each in answer.held_back],
            "warnings": list(map(_warning, answer.warnings)),
        }
    return {
        "outcome": "conflict",
        "code": answer.code.value,
        "text": answer.text,
        "resolvable": answer.resolvable,
        "suggestions": [
            {"kind": each.kind.value, "changes": changes_as_json(each.changes), "command": list(each.command)}
            for each in answer.suggestions
        ],
        "facts": [
            {
                "kind": each.kind.value,
                "packages": list(each.packages),
                "text": each.text,
                "paths": [list(path) for path in each.paths],
            }
            for each in answer.facts
        ],
    }


def changes_as_json(changes: Iterable[Change]) -> list[dict[str, str]]:
    written = []
    for change in changes:
        values = {
            "action": change.action.value,
            "name": change.name,
            "from": change.old and str(change.old),
            "to": change.new and str(change.new),
            "origin": change.origin and change.origin.value,
            "repository": change.repository,
        }
        written.append({key: value for key, value in values.items() if value})
    return written


def _warning(warning: ResolutionWarning) -> dict[str, str]:
    values = {
        "code": warning.code.value,
        "package": warning.package,
        "dependency": warning.dependency,
        "repository": warning.repository,
    }
    return {key: value for key, value in values.items() if value}
