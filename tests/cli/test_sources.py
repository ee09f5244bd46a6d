"""Sources of the command line: files, folders, addresses, standard input, Jsonnet."""

import asyncio
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest
from pkger.parser.v1.parser_pb2 import ENCODING_JSON, ENCODING_UNSPECIFIED, Source

from services.cli.errors import CommandFailed
from services.cli.packages.sources import MAX_BYTES, read_sources
from services.core.errors import SourceTooLarge, SourceUndecodable
from services.settings import Bounds
from tests import needs
from tests.cli.command import environment, parts, pkger
from tests.cluster import Cluster

LABEL = '{apiVersion: "influxdata.com/v2alpha1", kind: "Label", metadata: {name: "%s"}}'


async def test_files_are_read_in_the_order_that_they_are_named(tmp_path: Path) -> None:
    (tmp_path / "b.yml").write_text("\ufeffé: b\r\n")
    (tmp_path / "a").write_text("a: b")
    names = [str(tmp_path / name) for name in ("b.yml", "a", "b.yml")]
    assert [(source.name, source.text) for source in await read_sources(names)] == [
        (names[0], "\ufeffé: b\r\n"),
        (names[1], "a: b"),
        (names[2], "\ufeffé: b\r\n"),
    ]


async def test_addresses_are_left_to_the_parser() -> None:
    addresses = ["http://example.com/a.yml", "HTTPS://example.com/a.jsonnet"]
    assert await read_sources(addresses) == [Source(url=address) for address in addresses]


FILES = ["a.yml", "b/c.json", "b/d.yaml", "b/e/f.yml", "b.yml", "z.yml"]


async def test_a_folder_stands_for_the_package_files_in_it(tmp_path: Path) -> None:
    others = ["note.txt", "c.YML", "lib.libsonnet", ".hidden.yml", ".git/a.yml", "b/.git/b/a.yml", "yml"]
    for name in [*FILES, *others]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "linked").symlink_to("b")
    (tmp_path / "z.yml").unlink()
    (tmp_path / "z.yml").symlink_to("a.yml")
    sources = await read_sources([str(tmp_path), str(tmp_path / "yml")], recursive=True)
    assert [os.path.relpath(source.name, tmp_path) for source in sources] == [*sorted(FILES), "yml"]
    assert sources[-2].text == "a.yml"


async def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(
        CommandFailed, match="is a directory; name the files in it, or use -R for all package files in it"
    ):
        await read_sources([str(tmp_path)])
    with pytest.raises(CommandFailed, match=r"it has no package files \(\*\.yml, "):
        await read_sources([str(tmp_path)], recursive=True)


async def test_a_folder_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    """Root may read every folder, but none whose path is too long."""
    folder, name = os.open(tmp_path, os.O_RDONLY), "x" * 250
    for _ in range(17):
        os.mkdir(name, dir_fd=folder)
        inner = os.open(name, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    with pytest.raises(CommandFailed, match="x: File name too long"):
        await read_sources([str(tmp_path)], recursive=True)


def _write(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data)


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "nothing": (lambda path: None, "No such file or directory"),
    "a pipe": (os.mkfifo, "is not a regular file; for standard input, write -"),
    "a link to a device": (lambda path: path.symlink_to("/dev/zero"), "is not a regular file"),
    "a link to a pseudo file": (lambda path: path.symlink_to("/proc/self/environ"), "is not a regular file"),
    "a link to itself": (lambda path: path.symlink_to(path), "ymbolic link"),
    "Latin-1": (_write(b"a: b\nc: caf\xe9"), r":2: is not UTF-8 text \(byte 0xe9\); save it as UTF-8"),
    "UTF-16": (_write("a: b".encode("utf-16")), "is UTF-16 text; save it as UTF-8"),
    "much": (_sparse, "a package has at most 32 MiB of text in all its files"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_a_file_that_is_not_a_package_file_is_reported(case: str, tmp_path: Path) -> None:
    make, message = REFUSED[case]
    path = tmp_path / "a.yml"
    make(path)
    with pytest.raises(CommandFailed, match=message) as caught:
        await read_sources([str(path)])
    assert caught.value.message.startswith(f"{path}:")


@pytest.mark.parametrize(
    "name", ["/dev/null", "/dev/stdin", "/proc/version", "/sys/kernel/mm/transparent_hugepage/enabled"]
)
async def test_devices_and_pseudo_files_are_refused(name: str) -> None:
    with _standard_input(), pytest.raises(CommandFailed, match=f"{name}: "):
        await read_sources([name])


@needs.path("/dev/shm")
async def test_a_file_in_memory_is_a_file() -> None:
    with tempfile.NamedTemporaryFile(dir="/dev/shm", suffix=".yml") as file:
        file.write(b"a: b")
        file.flush()
        [source] = await read_sources([file.name])
    assert source.text == "a: b"


async def test_all_files_together_have_a_bound(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_bytes(b"#" * (MAX_BYTES - 10))
    (tmp_path / "b.yml").write_bytes(b"#" * 11)
    with pytest.raises(CommandFailed, match=r"b\.yml: a package has at most 32 MiB"):
        await read_sources([str(tmp_path)], recursive=True)


async def test_undecodable_bytes_in_a_name_are_replaced(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/\xff.yml"
    try:
        Path(os.fsdecode(name)).write_text("a: b")
    except OSError:
        needs.outside("a file system with names of any bytes")
    [source] = await read_sources([os.fsdecode(name)])
    assert source.name == f"{tmp_path}/\ufffd.yml"


@contextmanager
def _standard_input() -> Iterator[BinaryIO]:
    """While the block is open, standard input is a pipe, whose writing end is the file."""
    kept, (reading, writing) = os.dup(0), os.pipe()
    os.dup2(reading, 0)
    os.close(reading)
    try:
        with open(writing, "wb") as file:
            yield file
    finally:
        os.dup2(kept, 0)
        os.close(kept)


async def test_standard_input_is_read_to_its_end() -> None:
    text = "é" * 100_000
    with _standard_input() as file:
        reading = asyncio.create_task(read_sources(["-"]))
        for part in (text.encode()[:30_001], text.encode()[30_001:]):
            await asyncio.to_thread(file.write, part)
            await asyncio.to_thread(file.flush)
        file.close()
        assert await reading == [Source(name="stdin", text=text)]


async def test_a_wait_for_standard_input_can_be_cancelled() -> None:
    with _standard_input():
        reading = asyncio.create_task(read_sources(["-"]))
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading


async def test_a_file_on_standard_input_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a: b")
    with _standard_input(), (tmp_path / "a").open("rb") as file:
        os.dup2(file.fileno(), 0)
        assert await read_sources(["-"]) == [Source(name="stdin", text="a: b")]


async def test_jsonnet_imports_files_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "label.libsonnet").write_text("function(name) " + LABEL.replace('"%s"', "name"))
    program = tmp_path / "a.jsonnet"
    program.write_text('[(import "lib/label.libsonnet")(name) for name in ["one", "two"]]')
    (tmp_path / "b.yml").write_text("a: b")
    [evaluated, plain] = await read_sources([str(tmp_path)], recursive=True)
    assert (evaluated.name, evaluated.encoding, evaluated.generated) == (str(program), ENCODING_JSON, True)
    assert [item["metadata"]["name"] for item in json.loads(evaluated.text)] == ["one", "two"]
    assert (plain.encoding, plain.generated) == (ENCODING_UNSPECIFIED, False)


async def test_each_command_that_reads_packages_finds_libraries(services: Cluster, tmp_path: Path) -> None:
    for name in ("first", "last"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "label.libsonnet").write_text(LABEL % name)
    (tmp_path / "package").mkdir()
    program = tmp_path / "package" / "a.jsonnet"
    program.write_text('[import "label.libsonnet"]')
    env = environment(tmp_path, services.addresses)
    folders = [f"--jpath={tmp_path / name}" for name in ("first", "last")]
    # As jsonnet has it: the last option counts first, and of a setting the first folder.
    shown = await pkger("plan", "-f", str(program), *folders, env=env)
    assert "Label last" in shown.out
    shown = await pkger(
        "plan", "-f", str(program), env=env | {"PKGER_JPATH": f"{tmp_path / 'first'}:{tmp_path / 'last'}"}
    )
    assert "Label first" in shown.out
    for command in (["validate"], ["plan"], ["apply", "--yes", "--stack", "s"], ["stacks", "import", "s", "--yes"]):
        assert (await pkger(*command, "-f", str(program), env=env)).code == 1
        assert (await pkger(*command, "-f", str(program), *folders, env=env)).code == 0
    missing = await pkger("validate", "-f", str(program), "--jpath", str(tmp_path / "none"), env=env)
    assert (missing.code, "does not exist" in missing.err) == (2, True)


async def test_a_missing_import_and_a_syntax_error_are_reported(tmp_path: Path) -> None:
    program = tmp_path / "a.jsonnet"
    for text, message in (
        ('[import "b"]', '1:2: cannot import "b": No such file'),
        ("[\n1,", "2:3: unexpected end of file"),
    ):
        program.write_text(text)
        with pytest.raises(SourceUndecodable) as caught:
            await read_sources([str(program)])
        assert str(caught.value).startswith(f"{program}:{message}")


async def test_the_evaluation_of_a_program_is_bounded(tmp_path: Path) -> None:
    program = tmp_path / "a.jsonnet"
    program.write_text('local f(s) = f(s + s) tailstrict; [f("x")]')
    with pytest.raises(SourceTooLarge, match="bytes of memory for evaluation of 100,663,296"):
        await read_sources([str(program)], bounds=Bounds(memory=96 * 2**20))


async def test_a_program_is_planned_like_any_package(services: Cluster, tmp_path: Path) -> None:
    program, env = tmp_path / "a.jsonnet", environment(tmp_path, services.addresses)
    program.write_text(f"[{LABEL % 'one'}, {LABEL % 'two'}]")
    planned = await pkger("plan", "-f", str(program), "-o", "json", env=env)
    assert [step["create"]["key"]["name"] for step in parts(planned.out)["steps"]["steps"]] == ["one", "two"]
    program.write_text("[1,")
    refused = await pkger("plan", "-f", str(program), env=env)
    assert (refused.code, refused.err.splitlines()) == (1, [f"Error: {program}:1:4: unexpected end of file"])
