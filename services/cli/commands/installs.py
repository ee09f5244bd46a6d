"""``pkger install``, ``update`` and ``uninstall``."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from services.cli import options
from services.cli.commands.published_packages import install_of, package_words, refresh_option
from services.cli.common import common
from services.cli.options import F, common_options

if TYPE_CHECKING:
    from pkger.applier.v1.applier_pb2 import RunOptions
    from pkger.planner.v1.package_pb2 import PackageChange

PACKAGES = "packages"
"""Name of the stack of packages, unless ``--stack`` names another one."""


stack_option = click.option(
    "--stack", default=PACKAGES, show_default=True, metavar="NAME", help="Stack of the packages."
)
_consent = (
    click.option("--update-dependencies", is_flag=True, help="Let installed packages that are not named move up."),
    click.option("--allow-downgrade", is_flag=True, help="Let packages move down."),
    click.option("--pre", "prereleases", multiple=True, metavar="NAME", help="Prereleases of package NAME count."),
    refresh_option,
)
_running = (
    stack_option,
    options.platform_option,
    options.org_option,
    click.option("--dry-run", is_flag=True, help="Show the plan only."),
    click.option("--save", is_flag=True, help="Show the plan, and store it for a day, for `pkger apply --plan`."),
    click.option(
        "--out",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Show the plan, store it, and write its id and digest to FILE, for `pkger apply --plan FILE`.",
    ),
    click.option(
        "--detailed-exitcode", "detailed", is_flag=True, help="With --dry-run: 0: no changes, 2: changes, 1: error."
    ),
    click.option("--allow-replace", is_flag=True, help="Allow replacing resources that no stack owns."),
    options.secret_option,
    options.secret_file_option,
    options.run_options,
    options.full_option,
    options.wait_option,
    options.yes_option,
)


def _with(*added: Callable[[F], F]) -> Callable[[F], F]:
    """A decorator that adds options."""

    def decorate(command: F) -> F:
        for option in reversed(added):
            command = option(command)
        return command

    return decorate


running_options = _with(*_running)
"""The options of every change of packages, for ``change``."""


@click.command(
    epilog="""\b
Examples:
  pkger install team-dashboards
  pkger install "team-dashboards@^1.4" main/base-labels --yes
  pkger install ./team --dry-run"""
)
@click.argument("names", metavar="[REPOSITORY/]NAME[@RANGE]|FOLDER...", nargs=-1, required=True)
@_with(*_consent)
@running_options
@common_options
def install(names: tuple[str, ...], **typed: Any) -> int:
    """
    Install NAME..., and what they require, as one plan.

    FOLDER is a folder with the file package.yaml; write it with a slash, such as ./team. Exit status 7: no versions go
    together.
    """
    return change([_installed(each) for each in names], **typed)


@click.command(
    epilog="""\b
Examples:
  pkger update
  pkger update base-labels
  pkger update "base-labels@^2" --update-dependencies"""
)
@click.argument("names", metavar="[NAME[@RANGE]]...", nargs=-1)
@_with(*_consent)
@running_options
@common_options
def update(names: tuple[str, ...], **typed: Any) -> int:
    """Update the installed packages NAME..., or all, as one plan. Exit status 7: no versions go together."""
    from pkger.planner.v1.package_pb2 import PackageChange, PackageUpdate, UpdateAll

    if not names:
        return change([PackageChange(update_all=UpdateAll())], **typed)
    changes = []
    for each in names:
        repository, name, range_ = package_words(each)
        if repository:
            raise click.BadParameter(
                f"{each!r}: an update comes from where the package came from; write NAME or NAME@RANGE"
            )
        changes.append(PackageChange(update=PackageUpdate(name=name, version_range=range_)))
    return change(changes, **typed)


@click.command(
    epilog="""\b
Examples:
  pkger uninstall team-dashboards
  pkger uninstall base-labels --cascade"""
)
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("--cascade", is_flag=True, help="Uninstall what requires them, too.")
@click.option("--keep-unused", is_flag=True, help="Keep dependencies that nothing requires any more.")
@running_options
@common_options
def uninstall(names: tuple[str, ...], **typed: Any) -> int:
    """
    Uninstall the packages NAME..., and dependencies that nothing requires any more, as one plan.

    A dependency with data, such as a bucket, stays until it is named. Exit status 7: others require them.
    """
    from pkger.planner.v1.package_pb2 import PackageChange, PackageUninstall

    return change([PackageChange(uninstall=PackageUninstall(name=name)) for name in names], **typed)


def _installed(text: str) -> "PackageChange":
    """The installation of a package of a repository, or of a folder, which is written with a slash first or last."""
    if text.startswith((".", "/", "~")) or text.endswith("/"):
        from pkger.planner.v1.package_pb2 import PackageChange

        from services.cli.packages.folder import folder_package
        from services.settings import load

        return PackageChange(folder=folder_package(Path(text).expanduser(), load(common().environ()).bounds))
    return install_of(text)


def change(
    changes: "Iterable[PackageChange]",
    *,
    stack: str,
    platform: str,
    org: str,
    dry_run: bool,
    save: bool,
    out: Path | None,
    detailed: bool,
    allow_replace: bool,
    secrets: tuple[str, ...],
    secret_files: tuple[str, ...],
    run_options: "RunOptions",
    full: bool,
    wait: float,
    yes: bool,
    refresh: bool = False,
    **consent: Any,
) -> int:
    """Plan changes of packages, and run the plan unless it is only to be shown or saved."""
    from pkger.planner.v1.package_pb2 import PackageChanges, ResolutionOptions
    from pkger.planner.v1.planner_pb2 import PlanOptions

    from services.cli.output.interaction import Interaction
    from services.cli.packages import values
    from services.cli.plan.apply import SaveOptions
    from services.cli.plan.package_changes import PackagesInput, change_packages, plan_packages
    from services.cli.plan.secrets import read_secrets
    from services.cli.run_async import run

    shows_only = dry_run or save or out is not None
    if shows_only and yes:
        raise click.UsageError("--yes runs the plan, and --dry-run, --save and --out only show or store it")
    if detailed and not shows_only:
        raise click.UsageError("--detailed-exitcode is for --dry-run, --save and --out")
    typed = common()
    platform, org = typed.place(platform, org)
    packages_input = PackagesInput(
        PackageChanges(changes=changes, options=ResolutionOptions(**consent), refresh=refresh),
        stack,
        platform,
        org,
        PlanOptions(allow_replace=allow_replace),
        {**values.secret_files(secret_files), **read_secrets(secrets, ())},
    )
    interaction = Interaction(typed.format, typed.quiet, full, yes, wait)
    if shows_only:
        return run(plan_packages(packages_input, typed.environ(), interaction, SaveOptions(save, out, detailed)))
    return run(change_packages(packages_input, typed.environ(), interaction, run_options))
