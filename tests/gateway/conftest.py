"""Short paths for sockets."""

from tests.cli.conftest import short_path

__all__ = ["short_path"]
