"""The ``pkger`` command."""

import copy

import click

from services.cli.commands import (
    about,
    action_sets,
    actions,
    definitions,
    exports,
    installed_packages,
    installs,
    operations,
    packages,
    plans,
    platforms,
    published_packages,
    repo,
    repo_index,
    resources,
    services,
    snapshots,
    stacks,
    tokens,
)
from services.cli.common import caller
from services.cli.entrypoint import Root
from services.cli.options import common_options


def _print_version(context: click.Context, _option: click.Parameter, is_set: bool) -> None:
    if is_set:
        from importlib.metadata import version

        click.echo(f"pkger, version {version('pkger')}", file=caller().stdout)
        context.exit()


@click.group(
    cls=Root,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Examples:
  pkger validate -f fleet.yml
  pkger plan -f fleet.yml --stack fleet
  pkger apply -f fleet.yml --stack fleet
  pkger stacks show fleet
Exit status: 0 done, 1 error, 2 wrong usage, 3 stale plan, 4 another operation runs, 5 rolled back, 6 blocked,
7 packages conflict, 10 no valid token.""",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version."
)
@common_options
def main() -> None:
    """Validate, plan and apply declarative packages of platform resources, and keep them as stacks."""


dry_run = copy.copy(packages.plan)
dry_run.name, dry_run.short_help = "dry-run", "Another name of plan."

repo.repo.add_command(repo_index.index)

for command in (
    installed_packages.list_packages,
    installed_packages.print_tree,
    installed_packages.explain_package,
    installed_packages.pin,
    installed_packages.unpin,
    installed_packages.mark,
    installed_packages.suspend,
    installed_packages.resume,
):
    published_packages.packages.add_command(command)

for command in (
    packages.validate,
    packages.plan,
    dry_run,
    packages.apply,
    installs.install,
    installs.update,
    installs.uninstall,
    exports.export_package,
    exports.convert,
    packages.schema,
    packages.kinds,
    stacks.stacks,
    plans.plans,
    operations.operations,
    platforms.platforms,
    published_packages.packages,
    repo.repo,
    definitions.blueprints,
    definitions.configmaps,
    actions.functions,
    actions.perform,
    action_sets.action_sets,
    snapshots.snapshots,
    resources.resources,
    about.config,
    services.up,
    services.serve,
    services.admin,
    tokens.token,
    about.version,
    about.completion,
):
    main.add_command(command)


if __name__ == "__main__":
    main()
