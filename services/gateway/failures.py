"""Makes the error message for an operation that failed: pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2

from services.core.text_lists import listed

SHOWN_STEPS = 50
"""Most steps in a message: a limit of the platform may reject thousands of objects, which would fill a terminal."""


def failure_text(
    finished: operation_pb2.Finished,
    operation: str,
    outcomes: Sequence[operation_pb2.StepOutcome],
    steps: Iterable[plan_pb2.Step],
) -> str:
    """
    The cause, and whether the operation was rolled back; then a line for each step that failed.

    Args:
        finished: The last event of the operation.
        operation: Its name.
        outcomes: The outcomes of its steps, and of their undos.
        steps: The steps of its plan.
    """
    keys = {step.number: named_step(step) for step in steps}
    lines = list(dict.fromkeys(_lines(outcomes, keys)))
    head = f"{finished.cause or 'the operation failed'}; {_end(finished, operation)}"
    return "\n\t".join([head, listed(lines, SHOWN_STEPS, "\n\t")] if lines else [head])


def _end(finished: operation_pb2.Finished, operation: str) -> str:
    match finished.state:
        case operation_pb2.OPERATION_STATE_ROLLED_BACK:
            return "all changes were rolled back"
        case operation_pb2.OPERATION_STATE_BLOCKED:
            return (
                f"the operation is blocked and needs a decision: `pkger operations show {operation}` lists the choices"
            )
        case _:
            return "nothing was changed"


def _lines(outcomes: Iterable[operation_pb2.StepOutcome], keys: Mapping[int, str]) -> Iterator[str]:
    for outcome in outcomes:
        match outcome.WhichOneof("outcome"):
            case "failed":
                yield f"{keys.get(outcome.step, f'step {outcome.step}')}: {outcome.failed.message}"
            case "unknown":
                yield f"{keys.get(outcome.step, f'step {outcome.step}')}: {outcome.unknown.message}"


def named_step(step: plan_pb2.Step) -> str:
    """The object of a step, as kind and metadata.name, or the key of its secret."""
    match step.WhichOneof("change"):
        case "create" | "update" | "delete" as change:
            return _named(getattr(step, change).key)
        case "attach" | "detach" as change:
            association = getattr(step, change)
            return f"{_named(association.label)} on {_named(association.key)}"
        case _:
            return f"secret {step.put_secret.key}"


def _named(key: object_pb2.ObjectKey) -> str:
    return f"{key.kind} {key.name}".strip()
