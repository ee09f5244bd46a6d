"""``pkger export``."""

import click

from services.cli import options
from services.cli.options import common, export_options
from services.cli.pairs import CommandOfPairs, named_resources


@click.command(
    "export",
    cls=CommandOfPairs,
    epilog="""\b
Examples:
  pkger export --stack fleet -o fleet.yml
  pkger export Bucket raw --as readings Label fleet""",
)
@click.argument("pairs", nargs=-1, type=click.UNPROCESSED, metavar="[KIND NAME [--as NEW]]...")
@click.option("--all", "everything", is_flag=True, help="Everything of the organisation.")
@click.option("--stack", callback=options.stack_name, metavar="NAME", help="What this stack has; also by its id.")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Everything of the organisation of this kind.")
@click.option("--label", "labels", multiple=True, metavar="NAME", help="Everything that carries a label of this name.")
@click.option("-o", "--out", default="", metavar="FILE", help="Write FILE, .json as JSON.  [default: standard output]")
@click.option("-e", "--encoding", type=click.Choice(["yml", "json"]), help="How to write it, whatever FILE is called.")
@click.option(
    "--schema",
    default="package.schema.json",
    show_default=True,
    metavar="FILE",
    help="JSON Schema that each YAML document names for editors; empty for none.",
)
@click.option("--full", is_flag=True, help="Tell all warnings, however many.")
@options.platform_option
@options.org_option
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
    platform: str,
    org: str,
) -> None:
    """
    Write what is there as a package: everything, a stack, resources by KIND and NAME (or id), or any of them together.

    Labels come along, and a rule brings its endpoint. --as NEW exports the resource before it under another name. Both
    --kind and --label may be repeated; what passes has one of the kinds and one of the labels. "Check" and
    "NotificationEndpoint" stand for all kinds of their family. Warnings, and the secrets that another target needs, are
    told on standard error.
    """
    from services.cli.export import Wanted, export
    from services.cli.running import run

    platform, org = common().place(platform, org)
    if out in ("text", "json", "yaml"):
        raise click.UsageError(f"-o names a file here: -e says how to write it, and -o ./{out} is a file of that name")
    named = named_resources(pairs)
    if not (everything or stack or kinds or labels or named):
        raise click.UsageError("name what to export: --all, --stack, --kind, --label, or KIND NAME")
    wanted = Wanted(
        platform, org, stack, everything, kinds, labels, named, encoding or "", schema, out, full, common().quiet
    )
    run(export(wanted, common().environ()))
