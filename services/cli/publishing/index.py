"""Makes, writes and compares the index files of a repository."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from rich.text import Text

from services.cli.errors import CommandFailed, plain_errors
from services.cli.output.consoles import console, print_lines, progress_console
from services.cli.output.documents import print_document
from services.cli.packages.parser import parser
from services.cli.process.interrupts import Interrupts
from services.cli.publishing.folder import FolderContents, VersionsBefore, read_folder, versions_before
from services.cli.publishing.folder_lock import folder_lock
from services.core.text_lists import listed as listed_text
from services.packages.index_files import INDEX_FILE, versions_file
from services.packages.publishing import Contents, Finding, IndexFiles, IndexSettings, index_files
from services.repositories.file_problem import FileProblem
from services.repositories.texts import index_of, index_text, versions_of, versions_text
from services.settings import load
from services.system import Clock, machine_clock


@dataclass(frozen=True, slots=True)
class _Outcome:
    """
    What the command found out.

    Attributes:
        findings: What is wrong, errors included.
        stale: The index files that are not as they should be, by path, with their texts.
        packages: Number of packages.
        versions: Number of versions of all packages.
        is_check: Whether nothing may be written.
    """

    findings: tuple[Finding, ...]
    stale: Mapping[str, str]
    packages: int
    versions: int
    is_check: bool

    @property
    def has_errors(self) -> bool:
        return any(each.is_error for each in self.findings)

    @property
    def ends_well(self) -> bool:
        return not self.has_errors and not (self.is_check and self.stale)


async def index(
    root: Path,
    settings: IndexSettings,
    environ: Mapping[str, str],
    output: str,
    is_check: bool,
    clock: Clock = machine_clock,
) -> bool:
    """
    Make the index files of the repository in a folder, and print what is wrong in it.

    With an error, nothing is written.

    Args:
        root: The folder.
        settings: What the publisher sets.
        environ: The environment.
        output: "text", "json" or "yaml".
        is_check: Whether to compare the files only.
        clock: When versions are listed first.

    Returns:
        Whether there is no error and, for a check, no difference.

    Raises:
        CommandFailed: The folder cannot be read, another command is at work in it, or a file in it cannot be written.
    """
    limits = load(environ)
    # What is read must not be older than what another command writes meanwhile.
    with folder_lock(root, is_check):
        with Interrupts() as interrupts, plain_errors():
            async with parser(environ) as reading:
                folder = await interrupts.or_stop(read_folder(root, reading, limits))
        now = datetime.fromtimestamp(clock() // 1_000_000, UTC)
        outcome = _outcome(folder, versions_before(root, limits.max_index_bytes), root, settings, now, is_check)
        if not is_check and not outcome.has_errors:
            _write(root, outcome.stale)
    if output != "text":
        print_document(_document(outcome), output)
    else:
        print_lines(console(), list(map(_line, outcome.findings)))
        print_lines(progress_console() if outcome.ends_well else console(), _summary(outcome))
    return outcome.ends_well


def _vanished(listed: Collection[str], contents: Contents) -> Iterator[Finding]:
    """A warning about the packages that the index lists and that have no folder any more."""
    if gone := sorted(set(listed).difference(contents)):
        text = (
            f"packages that were listed have no folder any more: {listed_text(gone, _SHOWN)}; they are listed no more"
        )
        yield Finding(INDEX_FILE, text, is_error=False)


_SHOWN = 10
"""How many packages a warning names."""


_NO_VERSIONS = Finding(
    INDEX_FILE, "the folder has no packages; put each version into NAME/VERSION, with package.yaml", is_error=False
)


def _outcome(
    folder: FolderContents, before: VersionsBefore, root: Path, settings: IndexSettings, now: datetime, is_check: bool
) -> _Outcome:
    files = index_files(folder.contents, before.packages, settings, now)
    # What cannot be read counts as missing, which needs no warnings besides the errors.
    is_complete = not any(each.is_error for each in folder.findings)
    texts = _texts(files)
    findings = (
        *before.findings,
        *folder.findings,
        *_vanished(before.listed, folder.contents),
        *(each for each in files.findings if is_complete or each.is_error),
        *_unreadable(files, texts),
        *(() if folder.contents or folder.findings else (_NO_VERSIONS,)),
    )
    stale = {path: text for path, text in texts.items() if not _is_equal(root / path, text)}
    return _Outcome(
        findings, stale, len(folder.contents), sum(len(each) for each in folder.contents.values()), is_check
    )


def _texts(files: IndexFiles) -> dict[str, str]:
    """The texts of the files by path, the index last: what it lists is there before."""
    texts = {versions_file(name): versions_text(package) for name, package in sorted(files.versions.items())}
    return texts | {INDEX_FILE: index_text(files.index)}


def _unreadable(files: IndexFiles, texts: Mapping[str, str]) -> Iterator[Finding]:
    """The files that no planner would read, such as those with too many versions."""
    readers: dict[str, Callable[[bytes], object]] = {
        versions_file(name): partial(versions_of, name=name) for name in files.versions
    }
    for path, text in texts.items():
        try:
            readers.get(path, index_of)(text.encode())
        except FileProblem as problem:
            yield Finding(path, f"the file would not be readable: {problem.problem}")


def _is_equal(path: Path, text: str) -> bool:
    try:
        return path.read_bytes() == text.encode()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise CommandFailed(f"{path}: {error.strerror or error}") from error


def _write(root: Path, texts: Mapping[str, str]) -> None:
    for path, text in texts.items():
        target = root / path
        new = target.with_name(f".{target.name}.new")
        try:
            # With the mode of any new file: a web server has to read it.
            new.write_bytes(text.encode())
            os.replace(new, target)
        except OSError as error:
            raise CommandFailed(f"{target}: {error.strerror or error}; run the command again") from error


def _line(finding: Finding) -> Text:
    word, colour = ("error", "red") if finding.is_error else ("warning", "yellow")
    return Text(f"{finding.place}: ").append(f"{word}: ", colour).append(finding.text)


def _summary(outcome: _Outcome) -> list[Text]:
    if outcome.has_errors:
        count = sum(each.is_error for each in outcome.findings)
        return [Text(f"{_counted(count, 'error')}; nothing was written", "red")]
    content = f"{_counted(outcome.packages, 'package')}, {_counted(outcome.versions, 'version')}"
    if not outcome.stale:
        return [Text(f"{content}: the index files are up to date")]
    if outcome.is_check:
        remedy = "run `pkger repo index` without --check, and publish what it writes"
        return [Text(f"{path}: differs from what the folder has", "red") for path in outcome.stale] + [Text(remedy)]
    return [Text(f"wrote {path}") for path in outcome.stale] + [Text(content)]


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _document(outcome: _Outcome) -> dict[str, Any]:
    is_written = not outcome.is_check and not outcome.has_errors
    return {
        "package_count": outcome.packages,
        "version_count": outcome.versions,
        "findings": [
            {"severity": "error" if each.is_error else "warning", "place": each.place, "text": each.text}
            for each in outcome.findings
        ],
        "written_files": list(outcome.stale) if is_written else [],
        "stale_files": [] if is_written else list(outcome.stale),
    }
