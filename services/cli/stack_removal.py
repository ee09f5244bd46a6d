"""``pkger stacks uninstall``, which keeps the stack, and ``pkger stacks delete``."""

from collections.abc import Mapping

from pkger.model.v1 import plan_pb2
from rich.text import Text

from services.cli.errors import Failed
from services.cli.packages import Wanted, apply
from services.cli.show import console
from services.core.errors import StackNotFound


async def uninstall(
    name: str, platform: str, org: str, environ: Mapping[str, str], assume_yes: bool, full: bool = False
) -> None:
    """
    Remove what a stack created, and keep its record.

    Raises:
        Failed: There is no such stack, or not all was done.
    """
    await apply(Wanted((), name, org, {}, platform, then=plan_pb2.AFTER_UNINSTALL_KEEP, full=full), environ, assume_yes)


async def delete(
    name: str, platform: str, org: str, environ: Mapping[str, str], assume_yes: bool, full: bool = False
) -> None:
    """
    Remove what a stack created, and its record; a stack that is not there is deleted already.

    Raises:
        Failed: Not all was done.
    """
    wanted = Wanted((), name, org, {}, platform, then=plan_pb2.AFTER_UNINSTALL_DELETE, full=full)
    try:
        await apply(wanted, environ, assume_yes)
    except Failed as error:
        if not isinstance(error.__cause__, StackNotFound):
            raise
        console().print(Text(f"there is no stack {name}; nothing to delete"))
