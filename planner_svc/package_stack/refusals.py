"""The stacks whose packages can be changed, and what cannot be done to a stack with packages."""

from collections.abc import Collection, Iterable

from pkger.planner.v1 import planner_pb2
from pkger.stack.v1 import stack_pb2

from planner_svc.package_stack.model import PlannedPackage
from services.core.errors import PackagePinned, PackageStack
from services.core.model import StackRecord
from services.packages.installed import InstalledPackage


def refuse_other_stacks(header: stack_pb2.Stack, stack: StackRecord, installed: Collection[InstalledPackage]) -> None:
    """
    Refuse to change packages in a stack that has other objects.

    Raises:
        PackageStack: It has URLs, or objects that belong to no package.
    """
    called = header.name or header.id
    if header.urls:
        raise PackageStack(called, "has URLs, so its objects come from there; install the packages into another stack")
    plain = next((entry.key for entry in stack.resources if "." not in entry.key.name), None)
    if plain and not installed:
        problem = f"has objects of no package, such as {plain}; install the packages into another stack"
        raise PackageStack(called, problem)


def refuse_package_stack(request: planner_pb2.CreatePlanRequest, header: stack_pb2.Stack) -> None:
    """
    Refuse the objects of sources, or of a snapshot, for a stack with installed packages.

    Raises:
        PackageStack: It has packages.
    """
    if not header.package_count:
        return
    called = header.name or header.id
    if request.HasField("package"):
        raise PackageStack(called, "has installed packages; change these, or use another stack")
    if request.HasField("snapshot"):
        problem = "has installed packages, and a snapshot has objects of no package; restore it into another stack"
        raise PackageStack(called, problem)


def refuse_export(header: stack_pb2.Stack) -> None:
    """
    Refuse to store the export of a stack with installed packages.

    Raises:
        PackageStack: It has packages.
    """
    if header.package_count:
        problem = "has installed packages, which an export does not have; keep their versions instead"
        raise PackageStack(header.name or header.id, problem)


def refuse_earlier_revision(header: stack_pb2.Stack, number: int) -> None:
    """
    Refuse a rollback of a stack with installed packages to a revision that has objects of no package.

    Raises:
        PackageStack: Names the revision.
    """
    problem = f"has installed packages, and revision {number} is from before; uninstall the packages first"
    raise PackageStack(header.name or header.id, problem)


def refuse_pinned(
    header: stack_pb2.Stack, installed: Iterable[InstalledPackage], planned: Iterable[PlannedPackage]
) -> None:
    """
    Refuse to move or remove pinned packages with their stack.

    Raises:
        PackagePinned: Has their names.
    """
    pinned = {each.name: each for each in installed if each.is_pinned or each.is_suspended}
    moved = [
        name
        for name, each in pinned.items()
        for change in planned
        if change.change.name == name and (change.record is None or change.record.version != each.version)
    ]
    if moved:
        raise PackagePinned(header.name or header.id, sorted(moved))
