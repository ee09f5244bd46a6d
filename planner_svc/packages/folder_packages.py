"""Packages that a client sends as the files of a local folder."""

from collections.abc import Iterable
from dataclasses import dataclass

from pkger.planner.v1 import package_pb2

from planner_svc.repositories.reader import VersionFiles
from planner_svc.resolution.model import Repository
from services.core.errors import RequestInvalid
from services.packages.digests import digest_of
from services.packages.index_files import PACKAGE_FILE, PackageVersions, PublishedVersion
from services.packages.manifest import unsafe_path_problem
from services.packages.versions import Version
from services.repositories.file_problem import FileProblem, files_too_large
from services.repositories.texts import manifest_of
from services.settings import Bounds


@dataclass(frozen=True, slots=True)
class FolderPackage:
    """
    A package of a folder.

    Attributes:
        files: Its files, as those of a version in a repository.
    """

    files: VersionFiles

    @property
    def name(self) -> str:
        """The name of the package."""
        return self.files.manifest.name

    @property
    def version(self) -> Version:
        """Its version."""
        return self.files.manifest.version

    @property
    def repository(self) -> str:
        """The name that stands for its folder in a resolution: no repository can have it."""
        return f"./{self.name}"

    def as_repository(self) -> Repository:
        """The folder as a repository with one package in one version."""
        versions = PackageVersions(self.name, {self.version: self.files.published}, self.version)
        return Repository(self.repository, packages={self.name: versions})


def folder_package(files: Iterable[package_pb2.PackageFile], bounds: Bounds, field: str) -> FolderPackage:
    """
    Read the package that *files* are.

    Args:
        files: The files.
        bounds: The limits of a package.
        field: Their name in the request, for errors.

    Raises:
        RequestInvalid: They are not those that the manifest names, or the manifest breaks a rule, or they are too
            large.
    """
    contents: dict[str, bytes] = {}
    for file in files:
        problem = unsafe_path_problem(file.path)
        if problem or file.path in contents:
            raise RequestInvalid(f"{field}.files", f"{file.path[:100]} {problem or 'is there twice; send it once'}")
        contents[file.path] = file.text.encode()
    if sum(map(len, contents.values())) > bounds.bytes:
        raise RequestInvalid(f"{field}.files", files_too_large(bounds.bytes))
    if PACKAGE_FILE not in contents:
        raise RequestInvalid(f"{field}.files", f"{PACKAGE_FILE} is missing; it has the manifest")
    try:
        manifest = manifest_of(contents[PACKAGE_FILE], bounds)
    except FileProblem as problem:
        raise RequestInvalid(f"{field}.files", f"{PACKAGE_FILE}: {problem.problem}") from None
    paths = (PACKAGE_FILE, *manifest.files)
    if missing := next((path for path in paths if path not in contents), ""):
        raise RequestInvalid(f"{field}.files", f"{missing} is missing, and the manifest names it")
    files_of_manifest = {path: contents[path] for path in paths}
    published = PublishedVersion(
        manifest.version, digest_of(files_of_manifest), tuple(sorted(paths)), manifest.requires, manifest.platform
    )
    return FolderPackage(VersionFiles(published, manifest, files_of_manifest))
