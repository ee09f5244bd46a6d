"""The checks of a plan that read its request only (docs/reference/engine.md, "Refusals")."""

from collections.abc import Sequence

from pkger.planner.v1 import planner_pb2

from services.core.errors import RequestInvalid
from services.rpc.convert.objects import check_stack_ref


def refuse_nothing_desired(request: planner_pb2.CreatePlanRequest) -> None:
    """
    Refuse a request without a desired state.

    Raises:
        RequestInvalid: It has no package, no revision, no snapshot, no packages and no destroy.
    """
    if request.WhichOneof("desired") is None:
        raise RequestInvalid("desired", "give a package, a revision, a snapshot, packages, or destroy")


def refuse_invalid_stack(request: planner_pb2.CreatePlanRequest) -> None:
    """
    Refuse a request that does not name its stack as it has to.

    Only a package may be without a stack.

    Raises:
        RequestInvalid: It names no stack, or is ambiguous.
    """
    if request.HasField("stack"):
        check_stack_ref(request.stack)
    elif request.HasField("destroy"):
        raise RequestInvalid("stack", "destroy removes what a stack owns, so name the stack")
    elif request.HasField("revision"):
        raise RequestInvalid("stack", "a revision is one of a stack, so name the stack")
    elif request.HasField("snapshot"):
        raise RequestInvalid("stack", "a snapshot is restored into a stack, so name the stack")
    elif request.HasField("packages"):
        raise RequestInvalid("stack", "packages are installed in a stack, so name the stack")
    if request.HasField("packages") and request.options.skip:
        raise RequestInvalid("options.skip", "packages are changed as a whole, so skip nothing")


def refuse_unkeepable(request: planner_pb2.CreatePlanRequest, *, has_packages: bool) -> None:
    """
    Refuse to keep other objects where the request is about all objects of the stack.

    Args:
        request: The request.
        has_packages: Whether its stack has installed packages, or gets some.

    Raises:
        RequestInvalid: It keeps other objects.
    """
    if not request.options.keep_others:
        return
    problem = ""
    if request.HasField("destroy"):
        problem = "destroy removes what the stack owns; skip the objects that are to stay"
    elif request.HasField("packages") or has_packages:
        problem = "packages are changed as a whole, so the objects of the others stay anyway"
    if problem:
        raise RequestInvalid("options.keep_others", problem)


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
