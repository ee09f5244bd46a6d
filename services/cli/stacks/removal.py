"""``pkger stacks uninstall``, which keeps the stack, and ``pkger stacks delete``."""

from collections.abc import Mapping
from dataclasses import replace

from pkger.applier.v1 import applier_pb2
from pkger.model.v1 import plan_pb2
from rich.text import Text

from services.cli.errors import CommandFailed
from services.cli.output.consoles import progress_console
from services.cli.output.interaction import Interaction
from services.cli.plan.apply import apply, protected
from services.cli.plan.plan_input import PlanInput
from services.core.errors import StackNotFound


async def uninstall(
    plan_input: PlanInput, environ: Mapping[str, str], interaction: Interaction, run_options: applier_pb2.RunOptions
) -> None:
    """
    Delete the resources that a stack created, and keep the stack.

    Raises:
        CommandFailed: There is no such stack, or the operation did not succeed.
    """
    await apply(replace(plan_input, after_uninstall=plan_pb2.AFTER_UNINSTALL_KEEP), environ, interaction, run_options)


async def delete(
    plan_input: PlanInput, environ: Mapping[str, str], interaction: Interaction, run_options: applier_pb2.RunOptions
) -> None:
    """
    Delete the resources that a stack created, and then the stack; without such a stack, there is nothing to do.

    Raises:
        CommandFailed: The operation did not succeed, or the stack stays, as it has protected resources.
    """
    try:
        deleting = replace(plan_input, after_uninstall=plan_pb2.AFTER_UNINSTALL_DELETE)
        done = await apply(deleting, environ, interaction, run_options)
    except CommandFailed as error:
        if not isinstance(error.__cause__, StackNotFound):
            raise
        if interaction.output == "text":
            progress_console().print(Text(f"there is no stack {plan_input.stack}; nothing to delete"))
        return
    if done.finished.stack_id:
        raise CommandFailed(
            f"stack {plan_input.stack} is not deleted: it still has {protected(done.plan)}. To delete it, change its"
            " policy with `pkger stacks policy` and run this command twice: the first run records the new policy"
        )
