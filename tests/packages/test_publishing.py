"""The index files that follow from the versions in a folder, and circles of requirements."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from services.packages.index_files import PackageVersions
from services.packages.manifest import Manifest, Requirement
from services.packages.publishing import Contents, IndexFiles, IndexSettings, VersionContent, index_files
from services.packages.ranges import Range
from services.packages.versions import Version

NOW = datetime(2026, 11, 22, 8, tzinfo=UTC)
NOTHING_SET = IndexSettings({}, {})


def contents(*packages: tuple[str, str, dict[str, str]]) -> Contents:
    """Versions by their names, versions and requirements."""
    folder: dict[str, dict[Version, VersionContent]] = {}
    for name, version, requires in packages:
        needs = tuple(Requirement(each, Range.parse(text) if text else None) for each, text in requires.items())
        manifest = Manifest(name, Version.parse(version), requires=needs)
        folder.setdefault(name, {})[manifest.version] = VersionContent(manifest, f"sha256:{'0' * 64}")
    return folder


def files_of(folder: Contents, before: dict[str, PackageVersions] | None = None) -> IndexFiles:
    return index_files(folder, before or {}, NOTHING_SET, NOW)


def circles(folder: Contents) -> list[str]:
    return [each.text.split(": ")[1].split(";")[0] for each in files_of(folder).findings if each.is_error]


def test_each_circle_is_told_once_from_its_first_package() -> None:
    folder = contents(("a", "1.0.0", {"b": ""}), ("b", "1.0.0", {"c": "", "d": ""}), ("c", "1.0.0", {"b": ""}))
    folder = {**folder, **contents(("d", "1.0.0", {"a": ""}), ("e", "1.0.0", {"a": ""}))}
    assert circles(folder) == ["b 1.0.0 -> c 1.0.0 -> b 1.0.0", "a 1.0.0 -> b 1.0.0 -> d 1.0.0 -> a 1.0.0"]


def test_a_circle_that_no_installation_chooses_is_none() -> None:
    old = [("a", "1.0.0", {"b": "^1"}), ("b", "1.0.0", {"a": ""})]
    assert circles(contents(*old)) == ["a 1.0.0 -> b 1.0.0 -> a 1.0.0"]
    assert circles(contents(*old, ("b", "1.1.0", {}))) == []


def test_a_long_chain_is_no_problem() -> None:
    count = 5000
    folder = contents(*((f"p{number}", "1.0.0", {f"p{number + 1}": ""}) for number in range(count)))
    assert [each.text for each in files_of(folder).findings if each.is_error] == []


@given(st.permutations(["1.0.0", "1.1.0", "2.0.0-rc.1", "1.0.0+1"]))
def test_the_order_of_the_folder_does_not_count(versions: list[str]) -> None:
    made_in_order = files_of(contents(*(("a", version, {}) for version in sorted(versions))))
    assert files_of(contents(*(("a", version, {}) for version in versions))) == made_in_order
    assert made_in_order.versions["a"].latest == Version.parse("1.1.0")


def test_files_without_a_mark_keep_a_latest_that_is_not_the_highest() -> None:
    folder = contents(("a", "1.0.0", {}), ("a", "1.1.0", {}))
    versions = files_of(folder).versions["a"].versions
    before = {"a": PackageVersions("a", versions, Version.parse("1.0.0"))}
    assert files_of(folder, before).versions["a"].latest == Version.parse("1.0.0")
