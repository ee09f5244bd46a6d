"""Commands whose exit status tells what they found: 2 is taken then, and wrong usage is 1 like any other error."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

OPTION = "--detailed-exitcode"

T = TypeVar("T")


class _DetailedUsageError(click.UsageError):
    """Wrong usage where 2 is taken."""

    exit_code = 1


class DetailedCommand(click.Command):
    """A command with the option ``--detailed-exitcode``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; with the option, wrong ones end the command with 1."""
        given = [*args]
        return _ending(given, lambda: super(DetailedCommand, self).parse_args(ctx, args))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; likewise."""
        is_detailed = ctx.params.get("detailed_exitcode")
        return _ending([OPTION] if is_detailed else [], lambda: super(DetailedCommand, self).invoke(ctx))


def _ending(args: list[str], run: Callable[[], T]) -> T:
    try:
        return run()
    except click.UsageError as error:
        if OPTION in args:
            raise _DetailedUsageError(error.message, error.ctx) from error
        raise
