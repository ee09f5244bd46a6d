"""Folders of repositories, made of packages as text."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import yaml

from services.packages.digests import digest_of
from services.packages.index_files import (
    INDEX_FILE,
    ListedPackage,
    PackageVersions,
    PublishedVersion,
    RepositoryIndex,
    highest_release,
    version_folder,
    versions_file,
)
from services.repositories.texts import index_text, versions_text
from tests.packages.resolving import published
from tests.packages.rows import package

Objects = Callable[[str, str], str]
"""The YAML of the objects of a version, by package and version."""


def write_repository(root: Path, packages: Sequence[str], objects: str | Objects = "") -> Path:
    """
    Write a repository into a folder.

    Args:
        root: The folder.
        packages: Each as in ``rows``.
        objects: The YAML of the objects of each version, or a function that returns it.
    """
    lists = [published(*package(text)) for text in packages]
    for path, data in repository_files(lists, objects).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    return root


def repository_files(packages: Sequence[PackageVersions], objects: str | Objects = "") -> Mapping[str, bytes]:
    """The files of a repository by path; ``objects`` as for ``write_repository``."""
    files: dict[str, bytes] = {}
    index: dict[str, ListedPackage] = {}
    for each in packages:
        versions: dict[object, PublishedVersion] = {}
        for version in each.versions.values():
            written = objects if isinstance(objects, str) else objects(each.name, version.version.text)
            content = f"{manifest_text(each.name, version)}{written}".encode()
            files[f"{version_folder(each.name, version.version)}/package.yaml"] = content
            versions[version.version] = replace(version, digest=digest_of({"package.yaml": content}))
        latest = each.latest or highest_release(each.versions)
        whole = PackageVersions(each.name, versions, latest)  # type: ignore[arg-type]
        files[versions_file(each.name)] = versions_text(whole).encode()
        index[each.name] = ListedPackage(each.name, latest, f"The package {each.name}")
    return files | {INDEX_FILE: index_text(RepositoryIndex(index)).encode()}


def manifest_text(name: str, version: PublishedVersion) -> str:
    """The manifest of a version as YAML, as the first document of its file."""
    requires = [
        {"name": each.name} | ({} if each.range is None else {"version": str(each.range)}) for each in version.requires
    ]
    manifest = {
        "apiVersion": "pkger/v1",
        "kind": "Package",
        "metadata": {"name": name},
        "spec": {"version": version.version.text, "requires": requires},
    }
    return f"{yaml.safe_dump(manifest)}---\n"
