"""``pkger stacks uninstall``, which keeps the stack, and ``pkger stacks delete``."""

from collections.abc import Mapping
from dataclasses import replace

from pkger.model.v1 import plan_pb2
from rich.text import Text

from services.cli.consoles import talk
from services.cli.errors import Failed
from services.cli.packages import Manner, apply, protected
from services.cli.wanted import Wanted
from services.core.errors import StackNotFound


async def uninstall(wanted: Wanted, environ: Mapping[str, str], manner: Manner) -> None:
    """
    Remove what a stack created, and keep its record.

    Raises:
        Failed: There is no such stack, or not all was done.
    """
    await apply(replace(wanted, then=plan_pb2.AFTER_UNINSTALL_KEEP), environ, manner)


async def delete(wanted: Wanted, environ: Mapping[str, str], manner: Manner) -> None:
    """
    Remove what a stack created, and its record; a stack that is not there is deleted already.

    Raises:
        Failed: Not all was done; the stack is still there, as it has something that is protected.
    """
    try:
        done = await apply(replace(wanted, then=plan_pb2.AFTER_UNINSTALL_DELETE), environ, manner)
    except Failed as error:
        if not isinstance(error.__cause__, StackNotFound):
            raise
        talk().print(Text(f"there is no stack {wanted.stack}; nothing to delete"))
        return
    if done.finished.stack_id:
        raise Failed(
            f"stack {wanted.stack} is not deleted: it still has {protected(done.plan)}. To delete all of it, change its"
            " policy with `pkger stacks policy` and delete it twice: the first time records the new policy"
        )
