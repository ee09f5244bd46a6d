"""Installed packages as a tree of what they require."""

from collections.abc import Iterable, Iterator

from pkger.model.v1 import manifest_pb2, package_change_pb2
from rich.text import Text

from services.cli.output.escapes import one_line


def tree_lines(packages: Iterable[package_change_pb2.InstalledPackage]) -> list[Text]:
    """
    A line for each package and each of its requirements, below what requires it; by name.

    Manual packages are at the root, then the packages that none of them leads to. What a package requires is shown the
    first time only.
    """
    by_name = {each.name: each for each in sorted(packages, key=lambda each: each.name)}
    shown: set[str] = set()
    manual = [name for name, each in by_name.items() if each.origin != package_change_pb2.PACKAGE_ORIGIN_DEPENDENCY]
    lines = [line for name in manual for line in _branch(by_name, shown, name, "")]
    unrequired = by_name.keys() - shown
    required = {each.name for name in unrequired for each in by_name[name].requires}
    # Packages that require each other have no first one.
    for name in sorted(unrequired, key=lambda name: (name in required, name)):
        if name not in shown:
            lines += _branch(by_name, shown, name, ", no manual package leads to it")
    return [Text(one_line(line)) for line in lines]


def _branch(
    packages: dict[str, package_change_pb2.InstalledPackage], shown: set[str], name: str, note: str
) -> Iterator[str]:
    """The lines of a package at the root."""
    # A loop, as a chain may be longer than the recursion that Python allows.
    pending = [(0, manifest_pb2.Requirement(name=name), note)]
    while pending:
        depth, requirement, note = pending.pop()
        package = packages.get(requirement.name)
        within = f" ({requirement.version_range})" if requirement.version_range else ""
        if package is None:
            yield f"{'  ' * depth}{requirement.name}{within}, not installed"
            continue
        is_repeated = package.name in shown
        mark = ", shown above" if is_repeated else note
        yield f"{'  ' * depth}{package.name} {package.version}{within}{mark}"
        if not is_repeated:
            shown.add(package.name)
            required = sorted(package.requires, key=lambda each: each.name, reverse=True)
            pending += [(depth + 1, each, "") for each in required]
