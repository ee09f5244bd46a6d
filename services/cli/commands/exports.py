"""``pkger export``."""

import click

from services.cli import options
from services.cli.common import common
from services.cli.options import export_options
from services.cli.resource_args import KindNameCommand, named_resources


@click.command(
    "export",
    cls=KindNameCommand,
    epilog="""\b
Examples:
  pkger export --stack fleet -o fleet.yml
  pkger export Bucket raw --as readings Label fleet""",
)
@click.argument("pairs", nargs=-1, type=click.UNPROCESSED, metavar="[KIND NAME [--as NEW]]...")
@click.option("--all", "everything", is_flag=True, help="Export all resources of the organization.")
@click.option(
    "--stack", callback=options.stack_name, metavar="NAME", help="Export the resources of this stack; a name or an id."
)
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Export all resources of this kind.")
@click.option(
    "--label", "labels", multiple=True, metavar="NAME", help="Export all resources with a label of this name."
)
@click.option(
    "-o",
    "--out",
    default="",
    metavar="FILE",
    help="File to write; JSON if it ends with .json.  [default: standard output]",
)
@click.option("-e", "--encoding", type=click.Choice(["yml", "json"]), help="Encoding, whatever the name of FILE.")
@click.option(
    "--schema",
    default="",
    metavar="FILE",
    help="JSON Schema that the first line of YAML names for editors.  [default: no such line]",
)
@click.option("--full", is_flag=True, help="Print all warnings.")
@click.option("--strict", is_flag=True, help="Exit with status 1 after a warning; the package is written.")
@options.target_options
@export_options
def export_package(
    pairs: tuple[str, ...],
    everything: bool,
    stack: str,
    kinds: tuple[str, ...],
    labels: tuple[str, ...],
    out: str,
    encoding: str | None,
    schema: str,
    full: bool,
    strict: bool,
    target: tuple[str, str],
) -> None:
    """
    Write resources as a package: all, those of a stack, resources by KIND and NAME (or id), or several of these.

    Labels of the resources, and endpoints of rules, are exported, too. --as NEW exports the resource before it under
    another name. --kind and --label may be repeated: a resource must have one of the kinds and one of the labels.
    "Check" and "NotificationEndpoint" stand for all kinds of their family. Warnings, and the secrets that another
    target needs, are printed on standard error.
    """
    from services.cli.packages.export import ExportInput, export
    from services.cli.run_async import run

    if out in ("text", "json", "yaml"):
        raise click.UsageError(f"-o names a file here: -e sets the encoding; write -o ./{out} for a file of that name")
    named = named_resources(pairs)
    if not (everything or stack or kinds or labels or named):
        raise click.UsageError("nothing to export; use --all, --stack, --kind, --label, or KIND NAME")
    export_input = ExportInput(
        *target,
        stack,
        everything,
        kinds,
        labels,
        named,
        encoding or "",
        schema,
        out,
        full,
        strict,
        common().quiet,
    )
    run(export(export_input, common().environ()))


@click.command(
    epilog="""\b
Examples:
  pkger convert sensors.json -o sensors.yml
  pkger convert sensors.json | pkger plan -f - --stack sensors"""
)
@click.argument("file")
@click.option(
    "-o",
    "--out",
    default="",
    metavar="PACKAGE",
    help="File to write; JSON if it ends with .json.  [default: standard output]",
)
@export_options
def convert(file: str, out: str) -> None:
    """
    Make a package of FILE, which the user interface of InfluxDB exported: a dashboard, a task or a variable.

    Variables and labels that it uses become objects as well. What a package cannot express is named on standard error.
    """
    from services.cli.packages.convert import convert as make_package
    from services.cli.run_async import run

    run(make_package(file, out))
