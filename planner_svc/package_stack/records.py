"""What the record has of packages after a change of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import orjson

from planner_svc.package_stack.model import PlannedPackage
from planner_svc.packages.requests import ChangesRequest
from planner_svc.repositories.reader import VersionFiles
from planner_svc.resolution.model import Change, ChangeAction, PackageRequest, Resolution
from services.kinds.attachment import text_digest
from services.packages.installed import InstalledPackage, PackageOrigin


@dataclass(frozen=True, slots=True)
class PackageContent:
    """
    The files of a version.

    Attributes:
        files: The files, checked.
        text: All of them as one text, which the store keeps.
    """

    files: VersionFiles
    text: str

    @property
    def digest(self) -> str:
        """The digest of *text*."""
        return text_digest(self.text)


def content_of(files: VersionFiles) -> PackageContent:
    """
    The content of a version.

    Args:
        files: Its files, which are UTF-8 texts.
    """
    texts = {path: data.decode() for path, data in files.files.items()}
    return PackageContent(files, orjson.dumps(texts, option=orjson.OPT_SORT_KEYS).decode())


def recorded_digest(before: InstalledPackage | None, repository: str | None) -> str:
    """
    The digest that a version has to have because a stack had it before; empty: any.

    Args:
        before: What the stack had under that version.
        repository: The repository that the request names; None: none. If it names another one than before, the client
            wants what that one has.
    """
    if before is None or before.repository is None or repository not in (None, before.repository):
        return ""
    return before.digest


def planned_packages(
    installed: Mapping[str, InstalledPackage],
    edited: Mapping[str, InstalledPackage],
    resolution: Resolution,
    changes: ChangesRequest,
    contents: Mapping[str, PackageContent],
) -> tuple[PlannedPackage, ...]:
    """
    The changes of packages with what is recorded of them, in the order of the resolution; each package once.

    Args:
        installed: The installed packages, by name.
        edited: The same, with the requested changes of what is recorded of them.
        resolution: The versions that go together.
        changes: What was requested.
        contents: The contents of the packages that are installed, or move, or come from a folder, by name.
    """
    marks = {each.name: each for each in resolution.changes if each.action is ChangeAction.MARK}
    requests = {each.name: each for each in changes.request.installs}
    planned = {
        each.name: PlannedPackage(each, _record(each, edited, requests, marks, contents))
        for each in resolution.changes
        if each.action is not ChangeAction.MARK
    }
    for name in [*marks, *sorted({*requests, *changes.edits})]:
        before = installed.get(name)
        if before is None or name in planned:
            continue
        content = contents.get(name)
        record = _requested(_marked(edited[name], name in marks), requests.get(name), comes=content is not None)
        if content and content.digest != before.content_digest:
            change = Change(ChangeAction.UPDATE, name, before.version, before.version)
            planned[name] = PlannedPackage(change, _with_content(record, content))
        elif record != before:
            planned[name] = PlannedPackage(Change(ChangeAction.MARK, name, origin=record.origin), record)
    return tuple(planned.values())


def edited_packages(installed: Mapping[str, InstalledPackage], changes: ChangesRequest) -> dict[str, InstalledPackage]:
    """
    The installed packages with the requested changes of what is recorded of them.

    Packages that are not installed are left out: a resolution tells them.
    """
    return {name: changes.edits[name](each) if name in changes.edits else each for name, each in installed.items()}


def removed_packages(installed: Iterable[InstalledPackage]) -> tuple[PlannedPackage, ...]:
    """The changes when all packages of a stack are removed."""
    return tuple(PlannedPackage(Change(ChangeAction.REMOVE, each.name, old=each.version), None) for each in installed)


def restored_packages(
    installed: Mapping[str, InstalledPackage], restored: Mapping[str, InstalledPackage]
) -> tuple[PlannedPackage, ...]:
    """The changes when the packages of a stack become those of an earlier revision."""
    planned: list[PlannedPackage] = []
    for name, record in restored.items():
        before = installed.get(name)
        if before == record:
            continue
        if before is None:
            change = Change(ChangeAction.INSTALL, name, None, record.version, record.origin, record.repository)
        elif before.version == record.version:
            change = Change(ChangeAction.MARK, name, origin=record.origin)
        else:
            action = ChangeAction.UPDATE if record.version > before.version else ChangeAction.DOWNGRADE
            change = Change(action, name, before.version, record.version)
        planned.append(PlannedPackage(change, record))
    return (*planned, *removed_packages(each for name, each in installed.items() if name not in restored))


def installed_after(
    installed: Mapping[str, InstalledPackage], planned: Sequence[PlannedPackage]
) -> tuple[InstalledPackage, ...]:
    """The installed packages after the changes, by name."""
    after: dict[str, InstalledPackage | None] = {**installed, **{each.change.name: each.record for each in planned}}
    return tuple(record for _, record in sorted(after.items()) if record)


def _record(
    change: Change,
    installed: Mapping[str, InstalledPackage],
    requests: Mapping[str, PackageRequest],
    marks: Mapping[str, Change],
    contents: Mapping[str, PackageContent],
) -> InstalledPackage | None:
    if change.action is ChangeAction.REMOVE or change.new is None:
        return None
    content = contents[change.name]
    before = installed.get(change.name)
    if before is None:
        origin = change.origin or PackageOrigin.MANUAL
        record = InstalledPackage(change.name, change.new, _repository(change.repository), origin)
    else:
        record = _marked(before, change.name in marks)
    return _with_content(_requested(record, requests.get(change.name), comes=True), content)


def _with_content(record: InstalledPackage, content: PackageContent) -> InstalledPackage:
    return replace(
        record,
        version=content.files.published.version,
        requires=content.files.published.requires,
        digest=content.files.published.digest,
        content_digest=content.digest,
    )


def _marked(record: InstalledPackage, is_marked: bool) -> InstalledPackage:
    return replace(record, origin=PackageOrigin.MANUAL) if is_marked else record


def _requested(record: InstalledPackage, request: PackageRequest | None, comes: bool) -> InstalledPackage:
    """*record* with the range that was requested, and the source that was named if the package *comes* from there."""
    if request is None:
        return record
    if request.repository is not None and comes:
        record = replace(record, repository=_repository(request.repository))
    # The version of a folder is no range that an update has to stay in.
    is_folder = record.repository is None
    return record if request.versions is None or is_folder else replace(record, requested=request.versions)


def _repository(name: str | None) -> str | None:
    """The repository of a package; None: a folder, whose name no repository can have."""
    return None if name is None or name.startswith(".") else name
