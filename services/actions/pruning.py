"""Which phases may delete resources of a stack, so that users are asked first."""

from services.actions.definitions import STACK, ActionObject, Phase


def pruned_stack(phase: Phase, target: ActionObject | None) -> str:
    """
    The name of the stack of which *phase* may delete resources; empty: it deletes none.

    Args:
        phase: A phase. An argument that is a template counts as true, as its value is not known before it runs.
        target: The object of its action; None: it has none.

    Returns:
        The name as the phase has it, which may be a template.
    """
    if phase.function != "RestoreStack" or phase.arguments.get("prune", False) in (False, None):
        return ""
    if stack := phase.arguments.get("stack"):
        return str(stack)
    if target is None:
        return ""
    return target.name if target.kind == STACK else target.stack
