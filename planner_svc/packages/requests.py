"""The names, ranges and changes of requests about packages."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from pkger.planner.v1 import package_pb2

from planner_svc.packages.folder_packages import FolderPackage, folder_package
from planner_svc.resolution.model import Options, PackageRequest, Request
from services.core.errors import PackageNotFound, RangeInvalid, RequestInvalid
from services.core.limits import MOST_PACKAGES
from services.kinds.format.package_names import is_package_name
from services.packages.installed import InstalledPackage, versions_in
from services.packages.ranges import Range
from services.packages.versions import ParseProblem, Version
from services.rpc.convert.packages import ORIGIN
from services.settings import Bounds

RecordEdit = Callable[[InstalledPackage], InstalledPackage]
"""Changes what is recorded of a package, without its version."""


@dataclass(frozen=True, slots=True)
class ChangesRequest:
    """
    What is to change in the packages of a stack.

    Attributes:
        request: The packages; a package of a folder is one to install.
        options: What the client consents to, without the platform.
        folders: The packages of folders, by name.
        refresh: Whether to ask the repositories, however fresh their index files are.
        edits: What is to change in the record of installed packages, by name.
    """

    request: Request
    options: Options
    folders: Mapping[str, FolderPackage]
    refresh: bool
    edits: Mapping[str, RecordEdit] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """The packages that are named to stay or to come."""
        return frozenset(each.name for each in (*self.request.installs, *self.request.updates))


def check_page_token(token: str, is_own: bool, other: str) -> None:
    """
    Refuse the token of a page of another list.

    Args:
        token: The token; empty: the first page.
        is_own: Whether it belongs to the list of the request.
        other: What it belongs to, if it does not.

    Raises:
        RequestInvalid: It belongs to another list.
    """
    if token and not is_own:
        raise RequestInvalid("page_token", f"belongs to {other}; start with the first page")


def checked_name(name: str, field: str) -> str:
    """
    Accept the name of a package or of a repository.

    Raises:
        RequestInvalid: It has not the form of a name.
    """
    if not is_package_name(name):
        problem = "a name is 1 to 63 lower-case letters, digits and '-', which is neither first nor last"
        raise RequestInvalid(field, problem)
    return name


def requested_versions(text: str, field: str) -> Range | Version | None:
    """
    The versions that a request names: a range, or one version with its revision; None: it names none.

    Raises:
        RangeInvalid: The text is neither.
    """
    try:
        return versions_in(text)
    except ParseProblem as problem:
        raise RangeInvalid(field, text[:300], problem.position, str(problem)) from None


def changes_request(changes: package_pb2.PackageChanges, bounds: Bounds, field: str = "changes") -> ChangesRequest:
    """
    Read the changes of packages.

    Args:
        changes: The changes.
        bounds: The limits of the files of a folder.
        field: The name of the changes in their request, for errors.

    Raises:
        RequestInvalid: There are no changes, or too many, or a name has not the form of one, or a folder is none of a
            package.
        RangeInvalid: A range cannot be read.
    """
    if not changes.changes:
        raise RequestInvalid(f"{field}.changes", "there are none; name at least one package")
    if len(changes.changes) > MOST_PACKAGES:
        problem = f"there are {len(changes.changes):,}; at most {MOST_PACKAGES} are accepted"
        raise RequestInvalid(f"{field}.changes", problem)
    installs: list[PackageRequest] = []
    updates: list[PackageRequest] = []
    uninstalls: list[str] = []
    folders: dict[str, FolderPackage] = {}
    edits: dict[str, RecordEdit] = {}
    updates_all = False
    for number, change in enumerate(changes.changes):
        place = f"{field}.changes[{number}]"
        match change.WhichOneof("change"):
            case "install":
                installs.append(_install(change.install, f"{place}.install"))
            case "folder":
                package = folder_package(change.folder.files, bounds, f"{place}.folder")
                folders[package.name] = package
                installs.append(PackageRequest(package.name, package.version, package.repository))
            case "update":
                name = checked_name(change.update.name, f"{place}.update.name")
                range_ = requested_versions(change.update.version_range, f"{place}.update.version_range")
                updates.append(PackageRequest(name, range_))
            case "update_all":
                updates_all = True
            case "uninstall":
                uninstalls.append(checked_name(change.uninstall.name, f"{place}.uninstall.name"))
            case "pin" | "unpin" | "suspend" | "resume" | "mark" as verb:
                name = checked_name(getattr(change, verb).name, f"{place}.{verb}.name")
                if name in edits:
                    raise RequestInvalid(place, f"package {name} is named more than once; name it once")
                edits[name] = _edit(change, verb, f"{place}.mark.origin")
            case _:
                raise RequestInvalid(place, "is empty; say what is to change")
    options = Options(
        update_dependencies=changes.options.update_dependencies,
        allow_downgrade=changes.options.allow_downgrade,
        cascade=changes.options.cascade,
        keep_unused=changes.options.keep_unused,
        prereleases=_prereleases(changes.options.prereleases, f"{field}.options.prereleases"),
    )
    request = Request(tuple(installs), tuple(updates), updates_all, tuple(uninstalls))
    moved = {*(each.name for each in (*installs, *updates)), *uninstalls}
    if both := sorted(moved & edits.keys()):
        raise RequestInvalid(f"{field}.changes", f"package {both[0]} is named more than once; name it once")
    return ChangesRequest(request, options, folders, changes.refresh, edits)


def named_packages(names: Collection[str], installed: Collection[str], stack: str) -> list[str]:
    """
    The installed packages that a request names, sorted; all of them, if it names none.

    Args:
        names: The names of the request.
        installed: The names of the installed packages.
        stack: Name of the stack, for errors.

    Raises:
        RequestInvalid: There are too many, or one has not the form of a name.
        PackageNotFound: One is not installed.
    """
    if len(names) > MOST_PACKAGES:
        raise RequestInvalid("names", f"there are {len(names):,}; at most {MOST_PACKAGES} are accepted")
    checked = {checked_name(name, f"names[{number}]") for number, name in enumerate(names)}
    if missing := min(checked.difference(installed), default=None):
        problem = f"package {missing} is not installed in stack {stack!r}; ListPackages lists what is"
        raise PackageNotFound(missing, problem, stack)
    return sorted(checked or installed)


_EDITS: Mapping[str, RecordEdit] = {
    "pin": lambda package: replace(package, is_pinned=True),
    "unpin": lambda package: replace(package, is_pinned=False),
    "suspend": lambda package: replace(package, is_suspended=True),
    "resume": lambda package: replace(package, is_suspended=False),
}


def _edit(change: package_pb2.PackageChange, verb: str, field: str) -> RecordEdit:
    if verb != "mark":
        return _EDITS[verb]
    origin = ORIGIN.member(change.mark.origin, field)
    return lambda package: replace(package, origin=origin)


def _prereleases(names: Iterable[str], field: str) -> frozenset[str]:
    packages = frozenset(checked_name(name, f"{field}[{number}]") for number, name in enumerate(names))
    if len(packages) > MOST_PACKAGES:
        raise RequestInvalid(field, f"there are {len(packages):,}; at most {MOST_PACKAGES} are accepted")
    return packages


def _install(install: package_pb2.PackageInstall, field: str) -> PackageRequest:
    return PackageRequest(
        checked_name(install.name, f"{field}.name"),
        requested_versions(install.version_range, f"{field}.version_range"),
        checked_name(install.repository, f"{field}.repository") if install.repository else None,
    )
