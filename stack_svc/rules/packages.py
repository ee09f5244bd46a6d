"""The installed packages of stacks: they change when an operation has succeeded, as its plan says."""

from collections.abc import Iterable, Sequence

from services.core.errors import PackageStack
from services.packages.installed import InstalledPackage, PackageMove, moves_between
from stack_svc.rules import stacks
from stack_svc.store.packages import START, PackagePlace
from stack_svc.store.plans import StoredPlan
from stack_svc.store.stacks import Choice, Stack
from stack_svc.store.store import ReadTransaction, Transaction

ALL = 1_000_000
"""Size of a page that holds all packages of a stack."""


def page(
    reading: ReadTransaction, choice: Choice, after: PackagePlace, size: int
) -> tuple[Stack, Sequence[InstalledPackage]]:
    """
    Read one page of the packages of a stack, sorted by name; one more than the page size when more follow.

    Raises:
        StackNotFound: There is no such stack.
    """
    stack = stacks.existing(reading, choice)
    return stack, reading.packages.page(stack.record.id, after, size + 1)


def own_names(reading: ReadTransaction, stack: Stack, names: Iterable[str]) -> list[str]:
    """
    The *names* of objects without the name of their package; in a stack without packages, they have none.

    Raises:
        PackageStack: The stack has packages, and a name is not ``PACKAGE.NAME`` of one of them.
    """
    if not stack.package_count:
        return list(names)
    packages = {package.name for package in reading.packages.page(stack.record.id, START, ALL)}
    own: list[str] = []
    for name in names:
        package, _, own_name = name.partition(".")
        if package not in packages or not own_name:
            problem = f"has no object {name[:80]!r}: names are PACKAGE.NAME of an installed package"
            raise PackageStack(stack.called, problem)
        own.append(own_name)
    return own


def change(tx: Transaction, stack: Stack, plan: StoredPlan) -> tuple[Sequence[PackageMove], Sequence[InstalledPackage]]:
    """
    Change the packages of *stack* as *plan* says.

    Returns:
        The packages that changed, and all packages of the stack afterwards.
    """
    packages = {package.name: package for package in tx.packages.page(stack.record.id, START, ALL)}
    changes = {name: package for name, package in tx.plan_packages.of(plan.id).items() if packages.get(name) != package}
    if changes:
        tx.packages.change(stack.record.id, changes)
    after = [package for package in (packages | changes).values() if package]
    return moves_between(packages.values(), after), after
