"""``pkger repo index``: what it writes, keeps and refuses."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from services.cli.publishing.folder_lock import folder_lock
from tests.cli.command import Ended, environment, pkger
from tests.conftest import ROOT
from tests.packages.folders import write_repository

MANIFEST = "apiVersion: pkger/v1\nkind: Package\nmetadata: {{name: {}}}\nspec:\n  version: {}\n"
LABEL = "---\napiVersion: influxdata.com/v2alpha1\nkind: Label\nmetadata: {name: env}\n"
LABELS = LABEL + LABEL.replace("env", "team")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A copy of the repository of the examples, without its index files."""
    folder = tmp_path / "repository"
    shutil.copytree(ROOT / "examples" / "repository", folder)
    for path in files(folder):
        (folder / path).unlink()
    return folder


def files(folder: Path) -> dict[str, bytes]:
    """The index files of a folder."""
    paths = [*folder.glob("index.yaml"), *folder.glob("*/versions.yaml")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(paths)}


def write(folder: Path, name: str, version: str, rest: str = "") -> Path:
    path = folder / name / version / "package.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(MANIFEST.format(name, version) + rest)
    return path


async def index(folder: Path, *options: str) -> Ended:
    return await pkger("repo", "index", str(folder), *options, env=environment(folder.parent / "home"))


async def refused(folder: Path, *options: str) -> str:
    """What the command prints when it writes nothing."""
    before = files(folder)
    ended = await index(folder, *options)
    assert (ended.code, files(folder)) == (1, before)
    assert "Traceback" not in ended.out + ended.err
    return ended.out + ended.err


async def latest_of(folder: Path, name: str, *options: str) -> str:
    ended = await index(folder, *options)
    assert ended.code == 0, ended
    lines = (folder / name / "versions.yaml").read_text().splitlines()
    return next((line.split('"')[1] for line in lines if line.startswith("latest: ")), "")


async def test_the_repository_of_the_examples_is_indexed() -> None:
    ended = await index(ROOT / "examples" / "repository", "--check")
    assert (ended.code, ended.out) == (0, "3 packages, 4 versions: the index files are up to date\n")


async def test_a_second_run_changes_no_byte(repository: Path) -> None:
    first = await index(repository)
    assert first.out.splitlines()[-1] == "3 packages, 4 versions"
    before = files(repository)
    assert list(before) == [
        "base-labels/versions.yaml",
        "index.yaml",
        "team-dashboards/versions.yaml",
        "web-buckets/versions.yaml",
    ]
    assert (await index(repository)).out == "3 packages, 4 versions: the index files are up to date\n"
    assert files(repository) == before
    # Nothing else is written, and a web server may read what is.
    assert {path.name for path in repository.rglob(".*")} == set()
    assert (repository / "index.yaml").stat().st_mode & 0o444 == 0o444


async def test_a_check_writes_nothing(repository: Path) -> None:
    assert "index.yaml: differs from what the folder has" in await refused(repository, "--check")
    await index(repository)
    assert (await index(repository, "--check")).code == 0
    write(repository, "base-labels", "1.4.0", LABELS)
    text = await refused(repository, "--check")
    assert "base-labels/versions.yaml: differs" in text
    assert "web-buckets" not in text


async def test_a_listed_version_keeps_its_digest(repository: Path) -> None:
    await index(repository)
    for path in ("base-labels/1.3.0/labels/team.yaml", "web-buckets/2.0.0/package.yaml"):
        original = (repository / path).read_text()
        (repository / path).write_text(original + "# edited\n")
        text = await refused(repository)
        assert "is not what was published under this version; restore it" in text
        assert await refused(repository, "--check") == text
        (repository / path).write_text(original)
    assert (await index(repository, "--check")).code == 0


async def test_the_first_time_of_listing_is_kept(repository: Path) -> None:
    await index(repository)
    path = repository / "base-labels" / "versions.yaml"
    text = path.read_text()
    created = text.partition("created: ")[2].split('"')[1]
    path.write_text(text.replace(created, "2020-01-01T00:00:00Z"))
    write(repository, "base-labels", "1.4.0", LABELS)
    assert (await index(repository)).code == 0
    assert path.read_text().count("2020-01-01T00:00:00Z") == 2


async def test_the_highest_release_is_the_latest_unless_one_is_set(repository: Path) -> None:
    assert await latest_of(repository, "base-labels") == "1.3.0"
    assert await latest_of(repository, "base-labels", "--latest", "base-labels=1.3.0") == "1.3.0"
    write(repository, "base-labels", "1.4.0", LABELS)
    write(repository, "base-labels", "2.0.0-rc.1")
    assert await latest_of(repository, "base-labels") == "1.3.0"
    assert await latest_of(repository, "base-labels", "--latest", "base-labels=") == "1.4.0"
    assert await latest_of(repository, "base-labels", "--yank", "base-labels@1.4.0=a = b") == "1.3.0"
    assert "reason: a = b" in (repository / "base-labels" / "versions.yaml").read_text()
    assert await latest_of(repository, "base-labels") == "1.3.0"
    assert await latest_of(repository, "base-labels", "--yank", "base-labels@1.4.0=") == "1.4.0"
    shown = await refused(repository, "--latest", "base-labels=2.0.0-rc.1")
    assert "2.0.0-rc.1 is a prerelease, which no installation takes by itself; choose a release" in shown
    write(repository, "beta", "1.0.0-rc.1")
    assert await latest_of(repository, "beta") == ""


async def test_a_latest_that_is_yanked_is_replaced(repository: Path) -> None:
    assert await latest_of(repository, "base-labels", "--latest", "base-labels=1.2.0") == "1.2.0"
    ended = await index(repository, "--yank", "base-labels@1.2.0=loses data")
    assert "1.2.0, which was set as latest, is yanked or gone; latest is 1.3.0 now" in ended.out
    assert "1.2.0 is yanked; choose another one" in await refused(repository, "--latest", "base-labels=1.2.0")


async def test_a_version_without_a_folder_is_not_listed_any_more(repository: Path) -> None:
    await index(repository)
    shutil.rmtree(repository / "base-labels" / "1.2.0")
    ended = await index(repository)
    assert ended.code == 0
    assert "warning: 1.2.0 of base-labels had been listed, and no folder has them" in ended.out


async def test_a_version_that_comes_back_is_what_was_published(repository: Path, tmp_path: Path) -> None:
    await index(repository, "--yank", "base-labels@1.2.0=loses data")
    before = files(repository)
    (repository / "base-labels" / "1.2.0").rename(tmp_path / "away")
    assert (await index(repository)).code == 0
    assert (await index(repository, "--check")).out == "3 packages, 3 versions: the index files are up to date\n"
    path = write(repository, "base-labels", "1.2.0")
    assert "the content of 1.2.0 is not what was published under this version" in await refused(repository)
    shutil.rmtree(path.parent)
    (tmp_path / "away").rename(path.parent)
    assert (await index(repository)).code == 0
    assert files(repository) == before


async def test_no_command_loses_what_another_one_writes(repository: Path) -> None:
    await index(repository)
    yanks = ["base-labels@1.2.0", "base-labels@1.3.0", "web-buckets@2.0.0"]
    ended = await asyncio.gather(*(index(repository, "--yank", f"{each}=loses {each}") for each in yanks))
    written = b"".join(files(repository).values()).decode()
    assert [f"loses {each}" in written for each in yanks] == [each.code == 0 for each in ended]
    assert any(each.code == 0 for each in ended)


@pytest.mark.parametrize(("options", "checks_too"), [((), False), (("--check",), True)])
async def test_a_folder_in_which_another_command_is_at_work_is_left_alone(
    repository: Path, options: tuple[str, ...], checks_too: bool
) -> None:
    await index(repository)
    with folder_lock(repository, is_check=False):
        assert "another `pkger repo index` is at work in this folder" in await refused(repository, *options)
    with folder_lock(repository, is_check=True):
        assert ((await index(repository, *options)).code == 0) == checks_too


async def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    write(folder, "violating", "1.0.0", "---\napiVersion: influxdata.com/v2alpha1\nkind: Bucket\nmetadata: {name: B}\n")
    write(folder, "misnamed", "1.0.0").write_text(MANIFEST.format("other", "1.0.0"))
    write(folder, "misversioned", "1.0.0").write_text(MANIFEST.format("misversioned", "1.1.0"))
    write(folder, "lacking", "1.0.0", "  files: [a.yaml]\n")
    write(folder, "listing", "1.0.0", "  files: [package.yaml]\n")
    write(folder, "Wrong", "1.0.0")
    write(folder, "short", "1.0").write_text(MANIFEST.format("short", "1.0.0"))
    write(folder, "prefixed", "v1.0.0").write_text(MANIFEST.format("prefixed", "1.0.0"))
    (folder / "empty" / "1.0.0").mkdir(parents=True)
    write(folder, "plain", "1.0.0").write_text(LABEL)
    write(folder, "linked", "1.0.0").unlink()
    (tmp_path / "outside.yaml").write_text(MANIFEST.format("linked", "1.0.0"))
    (folder / "linked" / "1.0.0" / "package.yaml").symlink_to(tmp_path / "outside.yaml")
    write(folder, "broken", "1.0.0", "  files: [a.yaml]\n").with_name("a.yaml").write_text("a: [")
    write(folder, "binary", "1.0.0", "  files: [a.yaml]\n").with_name("a.yaml").write_bytes(b"\xff")
    write(folder, "jsonnet", "1.0.0", "  files: [a.jsonnet]\n")
    (folder / "docs" / "images").mkdir(parents=True)
    shown = await refused(folder)
    for expected in (
        "violating/1.0.0/package.yaml:9:18: error: ",
        "misnamed/1.0.0/package.yaml: error: the manifest is of other 1.0.0, and this is the folder of misnamed 1.0.0",
        "misversioned/1.0.0/package.yaml: error: the manifest is of misversioned 1.1.0, and this is the folder of",
        "lacking/1.0.0/a.yaml: error: there is no such file",
        "listing/1.0.0/package.yaml: error: the files of the manifest list package.yaml, its own file",
        "Wrong/1.0.0: error: 'Wrong' is no name of a package",
        "short/1.0: error: '1.0' is no version",
        "prefixed/v1.0.0: error: the folder of a version is named without v; name it 1.0.0",
        "empty/1.0.0/package.yaml: error: there is no such file",
        "plain/1.0.0/package.yaml: error: the file has no manifest",
        "linked/1.0.0/package.yaml: error: a link leads out of the folder of the repository",
        "broken/1.0.0/a.yaml:2:1: error: did not find expected node content",
        "binary/1.0.0/a.yaml: error: the file is no UTF-8 text (byte 0xff)",
        "jsonnet/1.0.0/package.yaml:6:11: error: the file 'a.jsonnet' is Jsonnet",
        "14 errors; nothing was written",
    ):
        assert expected in shown, shown


async def test_requirements_are_compared_with_the_other_packages(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    write(folder, "base", "1.0.0", LABEL)
    write(folder, "base", "1.1.0")
    requires = "  requires: [{name: elsewhere}, {name: base, version: ^2}]\n"
    write(folder, "team", "1.0.0", requires)
    ended = await index(folder)
    assert ended.code == 0
    assert "warning: team 1.0.0 requires elsewhere, which this repository does not have" in ended.out
    assert "warning: team 1.0.0 requires base ^2, and this repository has 1.1.0, 1.0.0" in ended.out


@pytest.mark.parametrize(("range_", "named"), [(", version: ^1", "base ^1"), ("", "base")])
async def test_a_yank_that_leaves_nothing_to_choose_is_told(tmp_path: Path, range_: str, named: str) -> None:
    folder = tmp_path / "r"
    write(folder, "base", "1.0.0")
    write(folder, "base", "1.1.0-rc.1")
    write(folder, "team", "1.0.0", f"  requires: [{{name: base{range_}}}]\n")
    assert "warning" not in (await index(folder)).out
    ended = await index(folder, "--yank", "base@1.0.0=loses data")
    text = f"team/1.0.0/package.yaml: warning: team 1.0.0 requires {named}, and no installation chooses"
    assert (ended.code, text in ended.out) == (0, True), ended.out
    assert "warning" not in (await index(folder, "--yank", "team@1.0.0=as base")).out
    assert "warning" not in (await index(folder, "--yank", "base@1.0.0=", "--yank", "team@1.0.0=")).out


@pytest.mark.parametrize(("version", "severity"), [("^1.1", "error"), ("^1", "error"), ("1.0.0 - 1.0.9", "")])
async def test_references_name_objects_of_the_required_versions(tmp_path: Path, version: str, severity: str) -> None:
    folder = tmp_path / "r"
    write(folder, "base", "1.0.0", LABEL)
    write(folder, "base", "1.1.0")
    bucket = "---\napiVersion: influxdata.com/v2alpha1\nkind: Bucket\nmetadata: {name: raw}\n"
    associations = "spec: {associations: [{kind: Label, name: base.env}]}\n"
    write(folder, "team", "1.0.0", f"  requires: [{{name: base, version: {version}}}]\n{bucket}{associations}")
    ended = await index(folder)
    assert ended.code == (1 if severity else 0)
    told = f"team/1.0.0/package.yaml:11:43: {severity}: base has no label 'env' in 1.1.0"
    assert (told in ended.out) == bool(severity), ended.out


async def test_an_older_version_without_an_object_is_a_warning(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    write(folder, "base", "1.0.0")
    write(folder, "base", "1.1.0", LABEL)
    bucket = "---\napiVersion: influxdata.com/v2alpha1\nkind: Bucket\nmetadata: {name: raw}\n"
    associations = "spec: {associations: [{kind: Label, name: base.env}]}\n"
    write(folder, "team", "1.0.0", f"  requires: [{{name: base}}]\n{bucket}{associations}")
    ended = await index(folder)
    assert ended.code == 0
    assert "warning: base has no label 'env' in 1.0.0" in ended.out


async def test_the_endpoint_of_a_rule_is_no_label(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    endpoint = (
        LABEL.replace("Label", "NotificationEndpointHTTP")
        + "spec: {type: none, method: GET, url: 'https://example.com'}\n"
    )
    write(folder, "base", "1.0.0", endpoint.replace("env", "hook") + LABEL)
    for name in ("hook", "env"):
        rule = LABEL.replace("Label", "NotificationRule").replace("env", "rule")
        statuses = "every: 1m, statusRules: [{currentLevel: WARN}], messageTemplate: a"
        spec = f"spec: {{endpointName: base.{name}, {statuses}}}\n"
        write(folder, f"of-{name}", "1.0.0", f"  requires: [{{name: base}}]\n{rule}{spec}")
    shown = await refused(folder)
    assert "of-env/1.0.0/package.yaml:11:22: error: base has no endpoint 'env' in 1.0.0" in shown
    assert "1 error; nothing was written" in shown


async def test_circles_of_requirements_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    write(folder, "a", "1.0.0", "  requires: [{name: b}]\n")
    write(folder, "b", "1.0.0", "  requires: [{name: c, version: ^1}]\n")
    write(folder, "c", "1.0.0", "  requires: [{name: a}]\n")
    shown = await refused(folder)
    assert "packages require each other: a 1.0.0 -> b 1.0.0 -> c 1.0.0 -> a 1.0.0; remove one" in shown
    assert "1 error; nothing was written" in shown


async def test_a_file_that_is_no_index_is_not_replaced(repository: Path) -> None:
    (repository / "index.yaml").write_text("title: my site\n")
    assert "index.yaml: error: line 1, column 1: apiVersion must be pkger/v1" in await refused(repository)
    (repository / "index.yaml").unlink()
    (repository / "base-labels" / "versions.yaml").write_text("a: [")
    assert "base-labels/versions.yaml: error: line 2, column 1: " in await refused(repository)


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        (["--latest", "base-labels"], "write NAME=VERSION"),
        (["--latest", "base-labels=1.2"], "'1.2' is no version: a version has three numbers, not 2; write 1.2.0"),
        (["--yank", "base-labels@1.2.0"], "write NAME@VERSION=REASON"),
        (["--yank", "base-labels=1.2.0"], "write NAME@VERSION=REASON"),
    ],
)
async def test_mistyped_settings_are_wrong_usage(repository: Path, option: list[str], problem: str) -> None:
    ended = await index(repository, *option)
    assert ended.code == 2
    assert problem in ended.err
    assert files(repository) == {}


async def test_settings_of_what_is_not_there_are_refused(repository: Path) -> None:
    assert "the repository has no package 'none'" in await refused(repository, "--latest", "none=1.0.0")
    shown = await refused(repository, "--yank", "base-labels@9.0.0=a")
    assert "base-labels has no version 9.0.0, but 1.3.0, 1.2.0; check the version" in shown


async def test_what_no_planner_would_read_is_not_written(repository: Path) -> None:
    shown = await refused(repository, "--yank", f"base-labels@1.2.0={'x' * 4097}")
    assert "base-labels/versions.yaml: error: the file would not be readable: line " in shown
    assert "reason has 4,097 characters; at most 4,096 are accepted" in shown


async def test_the_size_of_a_version_is_bounded(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    write(folder, "base", "1.0.0", "  files: [a.yaml]\n").with_name("a.yaml").write_text("# " + "x" * 8 * 2**20)
    shown = await refused(folder)
    assert "base/1.0.0/a.yaml: error: with this file, the version has more than 8,388,608 bytes" in shown


async def test_a_folder_without_packages_gets_an_index_and_a_warning(tmp_path: Path) -> None:
    ended = await index(tmp_path)
    assert ended.code == 0
    assert ended.out.startswith("index.yaml: warning: the folder has no packages; put each version into NAME/VERSION")
    assert list(files(tmp_path)) == ["index.yaml"]


async def test_a_quiet_run_prints_only_what_is_wrong(repository: Path) -> None:
    assert (await index(repository, "--quiet")).out == ""
    (repository / "base-labels" / "1.3.0" / "labels" / "team.yaml").write_text("")
    assert "2 errors; nothing was written" in await refused(repository, "--quiet")


async def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    ended = await index(tmp_path / "none")
    assert (ended.code, ended.err) == (
        1,
        f"Error: {tmp_path}/none: No such file or directory; name the folder of a repository\n",
    )


async def test_the_result_as_data(repository: Path) -> None:
    first = json.loads((await index(repository, "-o", "json")).out)
    assert first["package_count"] == 3
    assert first["written_files"][-1] == "index.yaml"
    write(repository, "base-labels", "1.2.0", "  description: new\n")
    second = json.loads((await index(repository, "-o", "json")).out)
    assert second["written_files"] == []
    assert [each["severity"] for each in second["findings"]] == ["error", "warning"]


async def test_all_mistakes_of_a_manifest_are_told_with_their_places(tmp_path: Path) -> None:
    manifest = (
        "apiVersion: pkger/v1\nkind: Package\nmetadata: {name: base}\nspec:\n  version: v1\n"
        '  requires: [{name: base}, {name: other, version: "~>1"}]\n  files: [../x.yaml]\n'
    )
    (tmp_path / "base" / "1.0.0").mkdir(parents=True)
    (tmp_path / "base" / "1.0.0" / "package.yaml").write_text(manifest)
    ended = await pkger("repo", "index", str(tmp_path), env=environment(tmp_path / "home"))
    assert ended.code == 1
    places = [line.partition(": error: ")[0] for line in ended.out.splitlines() if ": error: " in line]
    assert places == [f"base/1.0.0/package.yaml:{place}" for place in ("5:12", "6:21", "6:51", "7:11")]


async def test_a_package_that_vanished_is_told(tmp_path: Path) -> None:
    env = environment(tmp_path / "home")
    repository = write_repository(tmp_path / "repository", ["base 1.0.0", "gone 1.0.0"])
    shutil.rmtree(repository / "gone")
    ended = await pkger("repo", "index", str(repository), env=env)
    assert "index.yaml: warning: packages that were listed have no folder any more: gone" in ended.out
    assert ended.code == 0
