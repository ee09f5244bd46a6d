"""Index files as text: what they say, and what is refused."""

import gzip
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.packages.index_files import (
    MAX_PACKAGES,
    MAX_VERSIONS,
    ListedPackage,
    PackageVersions,
    PublishedVersion,
    RepositoryFault,
    RepositoryIndex,
    highest_release,
)
from services.packages.manifest import Manifest, Requirement
from services.packages.ranges import Range
from services.packages.versions import Version
from services.repositories.file_problem import FileProblem
from services.repositories.texts import index_of, index_text, manifest_of, versions_of, versions_text
from tests.packages.strategies import range_texts, version_texts

DIGEST = f"sha256:{'3f' * 32}"

INDEX = """\
apiVersion: pkger/v1
kind: RepositoryIndex
packages:
- {name: base-labels, latest: 1.3.0, description: Labels for all, later: 1}
- name: other
"""

VERSIONS = f"""\
apiVersion: pkger/v1
kind: PackageVersions
name: base-labels
latest: 1.3.0
versions:
- version: 1.3.0
  digest: {DIGEST}
  files: [package.yaml, labels/team.yaml]
  requires: [{{name: other, version: "^1"}}, {{name: third}}]
  platform: ">=0.3"
  created: 2026-11-22T08:00:00Z
  yanked: {{reason: loses data}}
  signatures: [later]
- version: 1.2.0
  digest: {DIGEST}
  files: [package.yaml]
"""


def versions(text: str) -> PackageVersions:
    return versions_of(text.encode(), "base-labels")


def problem(text: str | bytes, read_versions: bool = True) -> FileProblem:
    data = text.encode() if isinstance(text, str) else text
    with pytest.raises(FileProblem) as raised:
        versions_of(data, "base-labels") if read_versions else index_of(data)
    return raised.value


def test_an_index_is_read() -> None:
    packages = index_of(INDEX.encode()).packages
    assert packages == {
        "base-labels": ListedPackage("base-labels", Version.parse("1.3.0"), "Labels for all"),
        "other": ListedPackage("other"),
    }


def test_versions_are_read() -> None:
    package = versions(VERSIONS)
    assert package.latest == Version.parse("1.3.0")
    assert list(package.versions.values()) == [
        PublishedVersion(
            Version.parse("1.3.0"),
            DIGEST,
            ("package.yaml", "labels/team.yaml"),
            (Requirement("other", Range.parse("^1")), Requirement("third")),
            Range.parse(">=0.3"),
            datetime(2026, 11, 22, 8, tzinfo=UTC),
            "loses data",
        ),
        PublishedVersion(Version.parse("1.2.0"), DIGEST),
    ]
    assert highest_release(package.versions) == Version.parse("1.2.0")


@pytest.mark.parametrize("latest", ["latest: 2.0.0-rc.1\n", ""])
def test_a_latest_that_is_no_release_is_none(latest: str) -> None:
    prerelease = f"- {{version: 2.0.0-rc.1, digest: {DIGEST}, files: [package.yaml]}}\n"
    text = VERSIONS.replace("latest: 1.3.0\n", f"{latest}latestSet: true\n") + prerelease
    assert (versions(text).latest, versions(text).is_latest_set) == (Version.parse("1.2.0"), False)
    index = index_of(INDEX.replace("1.3.0", "2.0.0-rc.1").encode())
    assert index.packages["base-labels"].latest is None


def test_removed_versions_are_no_versions() -> None:
    removed = (
        f"removedVersions:\n- {{version: 1.1.0, digest: {DIGEST}, files: [package.yaml], yanked: {{reason: a}}}}\n"
    )
    package = versions(VERSIONS + removed)
    expected = PublishedVersion(Version.parse("1.1.0"), DIGEST, yanked="a")
    assert (len(package.versions), [*package.removed_versions.values()]) == (2, [expected])
    twice = problem(VERSIONS + removed.replace("1.1.0", "1.2.0"))
    assert "the version 1.2.0 is listed twice" in twice.problem


def test_json_is_yaml() -> None:
    assert index_of(b'{"apiVersion": "pkger/v1", "kind": "RepositoryIndex", "packages": []}') == RepositoryIndex({})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "the file must be a mapping with kind RepositoryIndex; it is missing"),
        ("- a\n", "line 1, column 1: the file must be a mapping with kind RepositoryIndex; found a list"),
        ("packages: [\n", "line 2, column 1: did not find expected node content"),
        ("<!DOCTYPE html>\n<title>Log in</title>", "this is a web page"),
        (INDEX + "---\n" + INDEX, "the file has 2 documents; it needs one"),
        (INDEX.replace("RepositoryIndex", "Bucket"), "line 2, column 7: kind must be RepositoryIndex; found the text"),
        (INDEX.replace("pkger/v1", "pkger/v2"), "line 1, column 13: apiVersion must be pkger/v1; found the text"),
        (INDEX.replace("base-labels", "Base"), "line 4, column 10: name must be the name of a package"),
        (INDEX.replace("base-labels", "other"), "line 5, column 9: the package 'other' is listed twice"),
        (INDEX.replace("1.3.0", "1.3"), "line 4, column 31: latest must be a text in quotes; found the number 1.3"),
        (INDEX.replace("Labels for all", "[]"), "line 4, column 51: description must be a text; found a list"),
        (INDEX.replace("Labels for all", "x" * 4097), "description has 4,097 characters"),
        (INDEX.replace("- name: other", "- other"), "line 5, column 3: each of packages must be a mapping"),
        (f"{INDEX.partition('packages')[0]}packages: {{}}\n", "line 3, column 11: packages must be a list"),
        (INDEX + "packages: []\n", "line 6, column 1: the key 'packages' stands twice in one mapping"),
        (INDEX + "a: \x01\n", "the character U\\+0001 is not allowed in YAML"),
        (INDEX + "a: &a [*a]\n", "refers to itself|is not defined|alias"),
        (INDEX + f"a: {'[' * 101}{']' * 101}\n", "the file exceeds the limit for nesting depth of 100"),
        (INDEX + "a: [" + ", ".join(["x"] * 1_000_000) + "]\n", "exceeds the limit for number of values"),
    ],
)
def test_a_faulty_index_is_refused_with_its_place(text: str, expected: str) -> None:
    fault = problem(text, read_versions=False)
    assert fault.fault is RepositoryFault.INDEX_INVALID
    assert re.search(expected, fault.problem), fault.problem


def test_aliases_without_end_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 20)]
    assert problem(INDEX + "\n".join(lines) + "\n", read_versions=False).fault is RepositoryFault.INDEX_INVALID


def test_bytes_that_are_no_text_are_refused() -> None:
    assert problem(gzip.compress(INDEX.encode()), read_versions=False).problem.startswith("the file is no UTF-8 text")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("name: base-labels", "name: other", "line 3, column 7: the file lists versions of 'other', and stands in the"),
        ("latest: 1.3.0", "latest: 1.4.0", "line 4, column 9: latest is 1.4.0, which is not among the versions"),
        ("version: 1.2.0", "version: 1.3.0", "line 14, column 12: the version 1.3.0 is listed twice"),
        ("version: 1.2.0", "version: v1.3.0", "line 14, column 12: the version 1.3.0 is listed twice"),
        ("version: 1.2.0", "version: 1.2", "line 14, column 12: version must be a text in quotes; found the number"),
        ("version: 1.2.0", "version: 01.2.0", "is no version: the number 01 starts with a 0, at position 0; write 1"),
        ("version: 1.2.0", "version: null", "each of versions needs a version, such as 1.0.0"),
        (f"version: 1.2.0\n  digest: {DIGEST}", "version: 1.2.0", "digest must be sha256: and 64 .*; it is missing"),
        (f"1.2.0\n  digest: {DIGEST}", "1.2.0\n  digest: md5:00", "digest must be sha256: .*; found the text 'md5:00'"),
        ("^1", ">=1.0.0+1", "line 9, column 37: version '>=1.0.0\\+1' is no range of versions: .*, at position 7; "),
        ("name: third", "name: other", "the package 'other' is required twice"),
        ("name: third", "name: -a", "name must be the name of a package"),
        (">=0.3", "latest", "platform 'latest' is no range of versions"),
        ("2026-11-22T08:00:00Z", "yesterday", "created must be a time such as"),
        ("2026-11-22T08:00:00Z", "2026-11-22T08:00:00", "created must be a time such as"),
        ("2026-11-22T08:00:00Z", "0001-01-01T00:00:00+05:00", "created must be a time such as"),
        ("2026-11-22T08:00:00Z", "2026-13-22T08:00:00Z", "created must be a time such as"),
        ("{reason: loses data}", "true", "yanked must be a mapping with a reason; found true"),
        ("[package.yaml, labels/team.yaml]", "[labels/team.yaml]", "files must have package.yaml"),
        ("labels/team.yaml", "package.yaml", "the file 'package.yaml' is listed twice"),
        ("[package.yaml, labels/team.yaml]", "package.yaml", "files must be a list of paths; found the text"),
        ("labels/team.yaml", ", ".join(f"{n}.yaml" for n in range(100)), "files are 101; at most 100 are accepted"),
    ],
)
def test_faulty_versions_are_refused_with_their_place(old: str, new: str, expected: str) -> None:
    assert old in VERSIONS
    fault = problem(VERSIONS.replace(old, new))
    assert fault.fault is RepositoryFault.INDEX_INVALID
    assert re.search(expected, fault.problem), fault.problem


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../a.yaml", "a/../../b.yaml", "a//b.yaml", "./a.yaml", "'a\\b.yaml'", "'c:a.yaml'", "a b"]
)
def test_a_path_that_may_lead_elsewhere_is_refused(path: str) -> None:
    fault = problem(VERSIONS.replace("labels/team.yaml", path))
    assert fault.fault is RepositoryFault.PATH_REFUSED
    assert fault.problem.startswith("line 8, column 25: the file ")


def test_sizes_are_bounded() -> None:
    assert problem(b" " * (8 * 2**20 + 1), read_versions=False).fault is RepositoryFault.TOO_LARGE
    assert problem(b" " * (4 * 2**20 + 1)).fault is RepositoryFault.TOO_LARGE
    packages = "".join(f"- name: a{number}\n" for number in range(MAX_PACKAGES + 1))
    many = problem(INDEX.partition("- ")[0] + packages, read_versions=False)
    assert many.problem == "line 4, column 1: packages are 20,001; at most 20,000 are accepted"
    one = f", digest: '{DIGEST}', files: [package.yaml]}}\n"
    entries = "".join(f"- {{version: 1.0.{number}{one}" for number in range(MAX_VERSIONS + 1))
    assert "at most 2,000" in problem(VERSIONS.partition("- ")[0] + entries).problem


_versions = version_texts.map(Version.parse)
_releases = _versions.filter(lambda each: not each.is_prerelease)
_texts = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Z", "Cc"]), max_size=20)
_published = st.builds(
    PublishedVersion,
    version=_versions,
    digest=st.just(DIGEST),
    files=st.just(("package.yaml", "a.yaml")) | st.just(("package.yaml",)),
    requires=st.lists(
        st.builds(Requirement, st.sampled_from(["a", "b", "1"]), st.none() | range_texts.map(Range.parse)),
        max_size=3,
        unique_by=lambda each: each.name,
    ).map(tuple),
    platform=st.none() | range_texts.map(Range.parse),
    created=st.none() | st.just(datetime(2026, 11, 22, 8, tzinfo=UTC)),
    yanked=st.none() | _texts,
)


@given(st.lists(_published, max_size=4, unique_by=lambda each: each.version), st.integers(0, 4), st.booleans())
def test_versions_are_read_as_they_are_written(published: list[PublishedVersion], count: int, is_set: bool) -> None:
    by_version = {each.version: each for each in published[:count]}
    latest, removed = highest_release(by_version), {each.version: each for each in published[count:]}
    package = PackageVersions("a", by_version, latest, is_set and latest is not None, removed)
    assert versions_of(versions_text(package).encode(), "a") == package


@given(st.dictionaries(st.sampled_from(["a", "no", "1", "1e3"]), st.tuples(st.none() | _releases, _texts)))
def test_an_index_is_read_as_it_is_written(listed: dict[str, tuple[Version | None, str]]) -> None:
    index = RepositoryIndex({name: ListedPackage(name, *rest) for name, rest in listed.items()})
    assert index_of(index_text(index).encode()) == index


MANIFEST = "apiVersion: pkger/v1\nkind: Package\nmetadata: {name: base}\nspec: {version: 1.0.0}\n"
LABEL = "apiVersion: influxdata.com/v2alpha1\nkind: Label\nmetadata: {name: env}\n"


def test_the_manifest_may_be_anywhere_in_its_file() -> None:
    assert manifest_of(f"{LABEL}---\n{MANIFEST}".encode()) == Manifest("base", Version.parse("1.0.0"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LABEL, "the file has no manifest; it needs one object of kind Package"),
        (MANIFEST + "---\n" + MANIFEST, "the file has 2 manifests"),
        (MANIFEST.replace("1.0.0", "1.0"), "spec.version of the manifest: version must be three numbers"),
        (MANIFEST.replace("{name: base}", "[]"), "metadata.name of the manifest: "),
        (MANIFEST.replace("{name: base}", "[a]"), "metadata and spec of the manifest must be mappings"),
        ("a: [", "line 2, column 1: did not find expected node content"),
    ],
)
def test_a_file_without_a_valid_manifest_is_refused(text: str, expected: str) -> None:
    with pytest.raises(FileProblem) as raised:
        manifest_of(text.encode())
    assert raised.value.fault is RepositoryFault.MANIFEST_MISMATCH
    assert raised.value.problem.startswith(expected)
