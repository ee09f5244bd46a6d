"""The checks of a plan that read its request only (docs/reference/engine.md, "Refusals")."""

from collections.abc import Sequence

from pkger.planner.v1 import planner_pb2

from services.core.errors import RequestInvalid


def refuse_nothing_desired(request: planner_pb2.CreatePlanRequest) -> None:
    """
    Refuse a request without a desired state.

    Raises:
        RequestInvalid: It has no package, no revision and no destroy.
    """
    if not request.HasField("desired"):
        raise RequestInvalid("desired", "give a package, a revision, or destroy")


def refuse_nameless_without_package(request: planner_pb2.CreatePlanRequest) -> None:
    """
    Refuse a request for a nameless stack that has no package: such a stack is found by the objects of a package.

    Raises:
        RequestInvalid: It has no package, or ``nameless`` is false.
    """
    match request.stack.WhichOneof("stack"), request.WhichOneof("desired"):
        case "nameless", "package" if request.stack.nameless:
            return
        case "nameless", "package":
            raise RequestInvalid("stack.nameless", "set it to true, or name the stack by id or by name")
        case "nameless", desired:
            raise RequestInvalid("stack.nameless", f"{desired} needs a stack that is named by id or by name")


def refuse_missing_sources(request: planner_pb2.CreatePlanRequest, urls: Sequence[str], stack_name: str = "") -> None:
    """
    Refuse a package without a source.

    Args:
        request: The request.
        urls: The URLs of its stack.
        stack_name: The name of its stack; empty: the stack has no name, or there is no stack.

    Raises:
        RequestInvalid: Neither the request nor the stack has a source.
    """
    if request.HasField("package") and not (request.package.sources or urls):
        stack = stack_name or request.stack.name or request.stack.id
        problem = f"stack {stack!r} has no URLs, so name at least one source" if stack else "name at least one source"
        raise RequestInvalid("package.sources", problem)
