"""KIND NAME pairs on the command line, each with a new name where one is given: ``Bucket b --as c Task t``."""

from collections.abc import Sequence
from typing import NamedTuple

import click


class Named(NamedTuple):
    """Resources that the user names: by kind, and by id or display name; *new_name* is empty for their own."""

    kind: str
    id_or_name: str
    new_name: str = ""


class Renamed(str):
    """The name of a resource as it is typed, with the name that it is to get."""

    new_name: str

    def __new__(cls, name: str, new_name: str) -> "Renamed":
        """The text *name*."""
        self = super().__new__(cls, name)
        self.new_name = new_name
        return self


class CommandOfPairs(click.Command):
    """A command whose option ``--as`` belongs to the pair before it: click keeps no order of options and arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put each ``--as`` into the name before it."""
        kept: list[str] = []
        rest = iter(args)
        for word in rest:
            option, equals, value = word.partition("=")
            if option != "--as":
                kept.append(word)
                continue
            new_name = value if equals else next(rest, "")
            if not new_name or len(kept) < 2 or isinstance(kept[-1], Renamed):
                raise click.UsageError("--as gives a new name to the pair before it: KIND NAME --as NEW", ctx)
            kept.append(Renamed(kept.pop(), new_name))
        return super().parse_args(ctx, kept)


def named_resources(words: Sequence[str]) -> list[Named]:
    """
    The resources that pairs name.

    Raises:
        click.UsageError: The last NAME is missing, or ``--as`` stands behind a KIND or an option.
    """
    if len(words) % 2:
        raise click.UsageError(f"name a {words[-1]} by its id or its name, behind the kind: {words[-1]} NAME")
    pairs = list(zip(words[::2], words[1::2], strict=True))
    if any(isinstance(kind, Renamed) for kind, _ in pairs):
        raise click.UsageError("--as gives a new name to the pair before it: KIND NAME --as NEW")
    return [Named(kind, name, name.new_name if isinstance(name, Renamed) else "") for kind, name in pairs]
