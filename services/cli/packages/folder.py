"""A local folder with a package, as it is sent to the planner."""

from pathlib import Path

from pkger.planner.v1 import package_pb2

from services.cli.errors import CommandFailed
from services.packages.index_files import PACKAGE_FILE
from services.repositories.file_problem import FileProblem
from services.repositories.folders import read_file
from services.repositories.texts import manifest_of
from services.settings import Bounds


def folder_package(folder: Path, bounds: Bounds) -> package_pb2.PackageFolder:
    """
    The files of the package in *folder*: ``package.yaml``, and those that its manifest names.

    Raises:
        CommandFailed: A file cannot be read, or the manifest breaks a rule.
    """
    left = bounds.bytes

    def read(path: str) -> bytes:
        nonlocal left
        try:
            data = read_file(folder, path, left)
        except FileProblem as problem:
            raise CommandFailed(f"{folder / path}: {problem.problem}") from None
        except OSError as error:
            raise CommandFailed(f"{folder / path}: {error.strerror or error}") from error
        left -= len(data)
        return data

    files = {PACKAGE_FILE: read(PACKAGE_FILE)}
    try:
        manifest = manifest_of(files[PACKAGE_FILE], bounds)
    except FileProblem as problem:
        raise CommandFailed(f"{folder / PACKAGE_FILE}: {problem.problem}") from None
    files |= {path: read(path) for path in manifest.files}
    return package_pb2.PackageFolder(
        files=[package_pb2.PackageFile(path=path, text=_text(folder / path, data)) for path, data in files.items()]
    )


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise CommandFailed(f"{path}: is no UTF-8 (byte {error.start}); save it as UTF-8") from None
