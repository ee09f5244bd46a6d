"""Pairs of KIND and NAME on the command line, each with an optional new name: ``Bucket b --as c Task t``."""

from collections.abc import Sequence
from typing import NamedTuple

import click


class ResourceArg(NamedTuple):
    """Resources by kind, and by id or display name; an empty *new_name* keeps their own name."""

    kind: str
    id_or_name: str
    new_name: str = ""


class RenamedResource(str):
    """The name of a resource as typed, with its new name."""

    new_name: str

    def __new__(cls, name: str, new_name: str) -> "RenamedResource":
        """The text *name*."""
        self = super().__new__(cls, name)
        self.new_name = new_name
        return self


class KindNameCommand(click.Command):
    """A command whose option ``--as`` applies to the pair before it: click does not keep the order of options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Attach the value of each ``--as`` to the name before it."""
        kept: list[str] = []
        rest = iter(args)
        for word in rest:
            option, equals, value = word.partition("=")
            if option != "--as":
                kept.append(word)
                continue
            new_name = value if equals else next(rest, "")
            if not new_name or len(kept) < 2 or isinstance(kept[-1], RenamedResource):
                raise click.UsageError("--as needs a pair before it and a new name after it: KIND NAME --as NEW", ctx)
            kept.append(RenamedResource(kept.pop(), new_name))
        return super().parse_args(ctx, kept)


def named_resources(words: Sequence[str]) -> list[ResourceArg]:
    """
    The resources that the pairs name.

    Raises:
        click.UsageError: The last NAME is missing, or ``--as`` follows a KIND or an option.
    """
    if len(words) % 2:
        raise click.UsageError(f"write the id or the name of a {words[-1]} after the kind: {words[-1]} NAME")
    pairs = list(zip(words[::2], words[1::2], strict=True))
    if any(isinstance(kind, RenamedResource) for kind, _ in pairs):
        raise click.UsageError("--as needs a pair before it and a new name after it: KIND NAME --as NEW")
    return [ResourceArg(kind, name, name.new_name if isinstance(name, RenamedResource) else "") for kind, name in pairs]
