"""``pkger resources``."""

import click

from services.cli import options
from services.cli.common import common
from services.cli.options import common_options


@click.command(
    epilog="""\b
Examples:
  pkger resources
  pkger resources Bucket Check --target eu/telemetry
  pkger resources -o json"""
)
@click.argument("kinds", nargs=-1, metavar="[KIND]...")
@options.target_options
@common_options
def resources(kinds: tuple[str, ...], target: tuple[str, str]) -> None:
    """
    List the resources on the platform, or those of KIND..., with the stacks and objects that own them.

    "Check" and "NotificationEndpoint" stand for all kinds of their family.
    """
    from pkger.model.v1 import object_pb2

    from services.cli.platforms.resources import list_all
    from services.cli.run_async import run

    run(list_all(object_pb2.Target(platform=target[0], org=target[1]), kinds, common().environ(), common().format))
