"""``pkger repo index``."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from services.cli.common import common
from services.cli.options import common_options

if TYPE_CHECKING:
    from services.packages.versions import Version


@click.command(
    epilog="""\b
Examples:
  pkger repo index packages/
  pkger repo index packages/ --check                                  # in CI: 1 if a file differs
  pkger repo index packages/ --latest base-labels=1.3.0
  pkger repo index packages/ --yank "base-labels@1.2.0=loses data\""""
)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--latest",
    multiple=True,
    metavar="NAME=VERSION",
    help="The version of an installation that names none; NAME= for the highest release again. May be repeated.",
)
@click.option(
    "--yank",
    multiple=True,
    metavar="NAME@VERSION=REASON",
    help="Nobody should install this version any more; without REASON, it is no longer yanked. May be repeated.",
)
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file would be written.")
@common_options
def index(folder: Path, latest: tuple[str, ...], yank: tuple[str, ...], check: bool) -> int:
    """
    Make the index files of the repository in FOLDER, which has each version in FOLDER/NAME/VERSION.

    All packages are validated. The content of a version that is listed already must not change.
    """
    from services.cli.publishing.index import index as make_index
    from services.cli.run_async import run
    from services.packages.publishing import IndexSettings

    settings = IndexSettings(dict(_latest(latest)), dict(_yanks(yank)))
    return 0 if run(make_index(folder, settings, common().environ(), common().format, check)) else 1


def _latest(texts: tuple[str, ...]) -> "Iterator[tuple[str, Version | None]]":
    for text in texts:
        name, is_there, version = text.partition("=")
        if not name or not is_there:
            raise click.UsageError(f"--latest {text}: write NAME=VERSION, such as base-labels=1.3.0")
        yield name, _version(f"--latest {text}", version) if version else None


def _yanks(texts: tuple[str, ...]) -> "Iterator[tuple[tuple[str, Version], str | None]]":
    for text in texts:
        package, is_there, reason = text.partition("=")
        name, _, version = package.partition("@")
        if not name or not version or not is_there:
            raise click.UsageError(f"--yank {text}: write NAME@VERSION=REASON, such as base-labels@1.2.0='loses data'")
        yield (name, _version(f"--yank {text}", version)), reason.strip() or None


def _version(option: str, text: str) -> "Version":
    from services.packages.versions import ParseProblem, Version

    try:
        return Version.parse(text)
    except ParseProblem as problem:
        raise click.UsageError(f"{option}: {text!r} is no version: {problem.text}; {problem.remedy}") from None
