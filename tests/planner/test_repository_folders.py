"""Folders of repositories, good and with one fault each: the first fault that a reader meets."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from planner_svc.repositories.reader import RepositorySource
from services.core.errors import RepositoryInvalid
from services.packages.digests import digest_of
from services.packages.versions import Version

PACKAGE = """\
apiVersion: pkger/v1
kind: Package
metadata: {name: base}
spec:
  version: 1.0.0
  requires: [{name: other, version: "^1"}]
---
apiVersion: influxdata.com/v2alpha1
kind: Label
metadata: {name: env}
"""
TEAM = "apiVersion: influxdata.com/v2alpha1\nkind: Label\nmetadata: {name: team}\n"


@dataclass
class Folder:
    """
    The files of a repository.

    Attributes:
        package: ``package.yaml`` of the one version; None: it is missing.
        listed: The paths in ``files``.
        contents: Further files of the version.
        replaced: Texts in index.yaml and versions.yaml with what stands there instead.
        missing: Files that are not there.
        links: Files that are links out of the folder.
    """

    package: str = PACKAGE
    listed: str = "package.yaml"
    contents: dict[str, str] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    links: tuple[str, ...] = ()

    def write(self, root: Path) -> None:
        content = {"package.yaml": self.package, **self.contents}
        hashed = {path: text.encode() for path, text in content.items() if path in self.listed}
        files = {
            "index.yaml": "apiVersion: pkger/v1\nkind: RepositoryIndex\npackages:\n- {name: base, latest: 1.0.0}\n",
            "base/versions.yaml": "apiVersion: pkger/v1\nkind: PackageVersions\nname: base\nlatest: 1.0.0\nversions:\n"
            f"- version: 1.0.0\n  digest: {digest_of(hashed)}\n  files: [{self.listed}]\n"
            '  requires: [{name: other, version: "^1"}]\n',
        }
        for old, new in self.replaced.items():
            files = {path: text.replace(old, new) for path, text in files.items()}
        files |= {f"base/1.0.0/{path}": text for path, text in content.items()}
        for path in files.keys() - {*self.missing}:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            if path in self.links:
                outside = root.parent / "outside.yaml"
                outside.write_text(files[path])
                (root / path).symlink_to(outside)
            else:
                (root / path).write_text(files[path])


def edited(root: Path) -> None:
    (root / "base/1.0.0/package.yaml").write_text(PACKAGE + "# edited\n")


VERSIONS, CONTENT = "base/versions.yaml", "base/1.0.0/package.yaml"
ENTRY = "- version: 1.0.0"

ROWS: dict[str, tuple[Folder, str]] = {
    "a good one": (Folder(), ""),
    "a second file": (
        Folder(
            PACKAGE.replace("---", "  files: [labels/team.yaml]\n---"),
            "package.yaml, labels/team.yaml",
            {"labels/team.yaml": TEAM},
        ),
        "",
    ),
    "no index": (Folder(missing=("index.yaml",)), "FILE_MISSING index.yaml"),
    "no versions": (Folder(missing=(VERSIONS,)), f"FILE_MISSING {VERSIONS}"),
    "no package file": (Folder(missing=(CONTENT,)), f"FILE_MISSING {CONTENT}"),
    "a file outside": (Folder(listed="package.yaml, ../2.0.0/a.yaml"), f"PATH_REFUSED {VERSIONS}"),
    "an absolute path": (Folder(listed="package.yaml, /etc/passwd"), f"PATH_REFUSED {VERSIONS}"),
    "a link outside": (Folder(links=(CONTENT,)), f"PATH_REFUSED {CONTENT}"),
    "another version": (Folder(PACKAGE.replace("1.0.0", "1.0.1")), f"MANIFEST_MISMATCH {CONTENT}"),
    "other requirements": (Folder(PACKAGE.replace("^1", "^2")), f"MANIFEST_MISMATCH {CONTENT}"),
    "a version twice": (
        Folder(replaced={ENTRY: f"- {{version: 1.0.0, digest: 'sha256:{'0' * 64}', files: [package.yaml]}}\n{ENTRY}"}),
        f"INDEX_INVALID {VERSIONS}",
    ),
    "no version": (Folder(replaced={ENTRY: "- version: 1.0"}), f"INDEX_INVALID {VERSIONS}"),
    "no range": (Folder(replaced={"^1": ">=1.0.0+1"}), f"INDEX_INVALID {VERSIONS}"),
    "no name": (Folder(replaced={"name: base, ": "name: Base_, "}), "INDEX_INVALID index.yaml"),
    "an unknown digest": (Folder(replaced={"digest: sha256:": "digest: md5:"}), f"INDEX_INVALID {VERSIONS}"),
    "another folder": (
        Folder(replaced={ENTRY: "- version: 2.0.0", "latest: 1.0.0": "latest: 2.0.0"}),
        f"VERSION_MISSING {VERSIONS}",
    ),
    "no such package": (Folder(replaced={"name: base, ": "name: other, "}), "PACKAGE_MISSING index.yaml"),
    "no YAML": (Folder(replaced={"packages:": "packages: ["}), "INDEX_INVALID index.yaml"),
    "a file that is not listed": (
        Folder(PACKAGE.replace("---", "  files: [labels/team.yaml]\n---"), contents={"labels/team.yaml": TEAM}),
        f"MANIFEST_MISMATCH {CONTENT}",
    ),
}


async def first_fault(root: Path) -> str:
    try:
        await RepositorySource(folders=None).reader("main", root.as_uri()).version("base", Version.parse("1.0.0"))
    except RepositoryInvalid as invalid:
        return f"{invalid.metadata['fault']} {invalid.metadata['file']}"
    return ""


@pytest.mark.parametrize("row", ROWS)
async def test_the_first_fault_of_a_folder(row: str, tmp_path: Path) -> None:
    folder, expected = ROWS[row]
    folder.write(tmp_path / "repository")
    assert await first_fault(tmp_path / "repository") == expected


async def test_content_that_was_changed_after_it_was_published(tmp_path: Path) -> None:
    Folder().write(tmp_path / "repository")
    edited(tmp_path / "repository")
    assert await first_fault(tmp_path / "repository") == f"DIGEST_MISMATCH {CONTENT}"
