"""``pkger stacks uninstall``, which keeps the stack, and ``pkger stacks delete``."""

from collections.abc import Mapping
from dataclasses import replace

from pkger.model.v1 import plan_pb2
from rich.text import Text

from services.cli.errors import Failed
from services.cli.packages import Wanted, apply
from services.cli.show import console
from services.core.errors import StackNotFound


async def uninstall(wanted: Wanted, environ: Mapping[str, str], assume_yes: bool) -> None:
    """
    Remove what a stack created, and keep its record.

    Raises:
        Failed: There is no such stack, or not all was done.
    """
    await apply(replace(wanted, then=plan_pb2.AFTER_UNINSTALL_KEEP), environ, assume_yes)


async def delete(wanted: Wanted, environ: Mapping[str, str], assume_yes: bool) -> None:
    """
    Remove what a stack created, and its record; a stack that is not there is deleted already.

    Raises:
        Failed: Not all was done.
    """
    try:
        await apply(replace(wanted, then=plan_pb2.AFTER_UNINSTALL_DELETE), environ, assume_yes)
    except Failed as error:
        if not isinstance(error.__cause__, StackNotFound):
            raise
        console().print(Text(f"there is no stack {wanted.stack}; nothing to delete"))
