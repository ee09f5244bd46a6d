"""``pkger repo``."""

import click


@click.group()
def repo() -> None:
    """Publish repositories of packages."""
