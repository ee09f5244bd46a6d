"""A program reads regular files in its own folder and in libraries, and no others."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from services.core.errors import SourceUndecodable
from services.jsonnet.evaluators import Evaluator
from tests.jsonnet.evaluating import each_choice, each_evaluator, result


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a package, with a secret file beside it."""
    (tmp_path / "secret.txt").write_text("secret")
    folder = tmp_path / "package"
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / "one.libsonnet").write_text(
        '{name: "one", two: import "two.libsonnet", text: importstr "../note"}'
    )
    (folder / "lib" / "two.libsonnet").write_text("{number: 2}")
    (folder / "note").write_text("é\n")
    return folder


@each_choice
async def test_files_of_the_package_are_imported(evaluator: Evaluator | None, folder: Path) -> None:
    program = '[import "lib/one.libsonnet", (import "./lib/../lib/two.libsonnet").number, importbin "note"]'
    one = {"name": "one", "two": {"number": 2}, "text": "é\n"}
    assert await result(program, evaluator, folder) == [one, 2, list("é\n".encode())]


@each_evaluator
@pytest.mark.parametrize(
    ("keyword", "path"),
    [
        ("import", "a.libsonnet"),
        ("importstr", "/etc/passwd"),
        ("importbin", "/dev/zero"),
        ("importstr", "../secret.txt"),
    ],
)
async def test_without_a_folder_nothing_is_imported(keyword: str, path: str, evaluator: Evaluator) -> None:
    with pytest.raises(SourceUndecodable) as caught:
        await result(f'[{keyword} "{path}"]', evaluator)
    assert (
        caught.value.metadata["problem"] == f'cannot import "{path}": only a program in a local file can import files'
    )


async def test_a_refused_import_has_its_position() -> None:
    with pytest.raises(SourceUndecodable, match=r"a\.jsonnet:2:2: cannot import"):
        await result('[\n importstr "/etc/passwd"]')


def _link(target: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "file").symlink_to(target)


REFUSED: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "an absolute path": (lambda folder: None, "/etc/passwd", "relative to the importing file"),
    "an absolute path into the folder": (lambda folder: None, "{folder}/note", "relative to the importing file"),
    "a path out": (lambda folder: None, "../secret.txt", "not in the folder of the package"),
    "a path out and in": (lambda folder: None, "../package/../secret.txt", "not in the folder of the package"),
    "a link out": (_link("../secret.txt"), "file", "not in the folder of the package"),
    "a link out by its folder": (_link(".."), "file/secret.txt", "not in the folder of the package"),
    "a link to a device": (_link("/dev/zero"), "file", "not in the folder of the package"),
    "a folder": (lambda folder: None, "lib", "directory"),
    "a pipe": (lambda folder: os.mkfifo(folder / "file"), "file", "not a regular file"),
    "nothing": (lambda folder: None, "missing", "No such file"),
    "no name": (lambda folder: None, "", "directory"),
    "bytes": (lambda folder: (folder / "file").write_bytes(b"\xff\xfe"), "file", "not UTF-8 text"),
    "much": (lambda folder: (folder / "file").write_text("x" * 100_001), "file", "too large"),
}


@each_evaluator
@pytest.mark.parametrize("case", REFUSED)
async def test_only_files_of_the_package_are_imported(case: str, evaluator: Evaluator, folder: Path) -> None:
    make, path, problem = REFUSED[case]
    make(folder)
    with pytest.raises(SourceUndecodable, match=problem) as caught:
        await result(f'[importstr "{path.format(folder=folder)}"]', evaluator, folder)
    assert "secret\n" not in str(caught.value)
    assert str(folder.parent) not in caught.value.metadata["problem"].replace(path.format(folder=folder), "")


@each_evaluator
@pytest.mark.parametrize("path", [".ssh/id_rsa", ".env", "lib/.keys", "lib/../.ssh/id_rsa", "link", "ssh/id_rsa"])
@pytest.mark.parametrize("place", ["package", "library"])
async def test_a_file_is_not_imported_if_its_name_or_that_of_a_folder_begins_with_a_dot(
    place: str, path: str, evaluator: Evaluator, folder: Path
) -> None:
    (folder / ".ssh").mkdir()
    for name in (".ssh/id_rsa", ".env", "lib/.keys"):
        (folder / name).write_text("secret")
    (folder / "link").symlink_to(".env")
    (folder / "ssh").symlink_to(".ssh")
    roots = {"folder": folder} if place == "package" else {"libraries": [folder]}
    with pytest.raises(SourceUndecodable) as caught:
        await result(f'[importstr "{path}"]', evaluator, **roots)
    problem = "programs read no file or folder whose name begins with a dot; import a file with another name"
    assert caught.value.metadata["problem"] == f'cannot import "{path}": {problem}'


@each_evaluator
async def test_a_missing_file_whose_name_begins_with_a_dot_has_the_same_error(
    evaluator: Evaluator, folder: Path
) -> None:
    """A program does not learn which of them exist."""
    with pytest.raises(SourceUndecodable, match="begins with a dot"):
        await result('[importstr ".aws/credentials"]', evaluator, folder)


@each_evaluator
async def test_a_package_or_a_library_may_be_in_a_folder_whose_name_begins_with_a_dot(
    evaluator: Evaluator, folder: Path
) -> None:
    package, library = folder / ".package", folder / ".package" / ".vendor"
    library.mkdir(parents=True)
    (package / "note").write_text("of the package")
    (library / "objects.libsonnet").write_text('{of: "the library"}')
    program = '[importstr "note", (import "objects.libsonnet").of]'
    assert await result(program, evaluator, package, libraries=[library]) == ["of the package", "the library"]


@each_evaluator
async def test_files_of_a_folder_that_kubernetes_mounts_are_imported(evaluator: Evaluator, folder: Path) -> None:
    """Each file is a link to ``..data``, which is a link to a folder with the time in its name."""
    (folder / "..2026_11_28").mkdir()
    (folder / "..2026_11_28" / "map").write_text("mounted")
    (folder / "..data").symlink_to("..2026_11_28")
    (folder / "map").symlink_to("..data/map")
    assert await result('[importstr "map"]', evaluator, folder) == ["mounted"]
    with pytest.raises(SourceUndecodable, match="begins with a dot"):
        await result('[importstr "..data/map"]', evaluator, folder)


@each_evaluator
async def test_a_link_to_a_file_of_the_package_is_followed(evaluator: Evaluator, folder: Path) -> None:
    (folder / "file").symlink_to("lib/two.libsonnet")
    other = folder.parent / "other"
    other.symlink_to(folder)
    assert await result('[import "file"]', evaluator, other) == [{"number": 2}]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{number: 2,\n oops", r"\(lib/two\.libsonnet:2:6\)"),
        ('{number:\n  error "é no"}', r"é no \(lib/two\.libsonnet:2:3\)"),
        (
            'importstr "../../secret.txt"',
            r"not in the folder of the package, or below it, or .*--jpath \(lib/two\.libsonnet:1:1\)",
        ),
    ],
)
async def test_an_error_in_an_imported_file_names_that_file(text: str, problem: str, folder: Path) -> None:
    (folder / "lib" / "two.libsonnet").write_text(text)
    with pytest.raises(SourceUndecodable, match=problem) as caught:
        await result('local one = import "lib/one.libsonnet";\n[one]', None, folder)
    assert str(folder) not in str(caught.value)


@pytest.fixture
def library(folder: Path) -> Path:
    """A library beside the package, whose files import each other and one of another library."""
    library, other = folder.parent / "library", folder.parent / "other"
    library.mkdir()
    other.mkdir()
    (library / "three.libsonnet").write_text('{three: 3, four: (import "four.libsonnet").four}')
    (library / "four.libsonnet").write_text('{four: import "five.libsonnet"}')
    (other / "five.libsonnet").write_text("5")
    (other / "note").write_text("another note")
    return library


@each_choice
async def test_files_of_libraries_are_imported_by_name_or_path(
    evaluator: Evaluator | None, folder: Path, library: Path
) -> None:
    libraries = [library, folder.parent / "other"]
    program = '[import "three.libsonnet", (import "../library/three.libsonnet").three, importstr "note"]'
    assert await result(program, evaluator, folder, libraries=libraries) == [{"three": 3, "four": 5}, 3, "é\n"]
    program = '[import "three.libsonnet", importstr "note"]'
    assert await result(program, evaluator, libraries=libraries) == [{"three": 3, "four": 5}, "another note"]


async def test_the_first_library_with_a_file_counts(folder: Path, library: Path) -> None:
    (library / "note").write_text("first")
    libraries = [library, folder.parent / "other"]
    assert await result('[importstr "note"]', None, None, libraries=libraries) == ["first"]
    assert await result('[importstr "note"]', None, None, libraries=libraries[::-1]) == ["another note"]


@each_evaluator
@pytest.mark.parametrize("has_folder", [True, False])
@pytest.mark.parametrize("path", ["../secret.txt", "link", "../library/../secret.txt"])
async def test_libraries_do_not_open_other_folders(
    path: str, has_folder: bool, evaluator: Evaluator, folder: Path, library: Path
) -> None:
    (library / "link").symlink_to("../secret.txt")
    if has_folder:
        (folder / "link").symlink_to("../secret.txt")
    with pytest.raises(SourceUndecodable, match="it is not in ") as caught:
        await result(f'[importstr "{path}"]', evaluator, folder if has_folder else None, libraries=[library])
    assert str(folder.parent) not in caught.value.metadata["problem"]


async def test_an_error_in_a_library_names_its_file(library: Path) -> None:
    (library / "four.libsonnet").write_text("{four:\n  error 'no'}")
    with pytest.raises(SourceUndecodable, match=r"no \(four\.libsonnet:2:3\)"):
        await result('[import "three.libsonnet"]', None, None, libraries=[library])


async def test_modules_beside_a_package_are_not_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("json", "rjsonnet", "_jsonnet", "sitecustomize", "services"):
        (folder / f"{name}.py").write_text("import os; os._exit(99)")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    assert await result("[1]", None, folder) == [1]
